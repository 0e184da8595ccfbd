"""What an operator asks: what runs, who is waited for, what waits, how the last hours went. Every read is bounded."""

from holdfast.core import content, phases
from holdfast.core import events as e
from holdfast.ports.overview import Ask, Lane, Life, Mark, Owed, PastPause, Working
from holdfast.store import queries as q
from holdfast.store import reads
from holdfast.store.log import number, read
from holdfast.store.tx import Tx

RECENT = 40
TEXT_CHARS = 2000


def working(tx: Tx, limit: int) -> list[Working]:
    found = []
    for (session_id,) in tx.query(q.RUNNING, limit):
        session = reads.any_session(tx, session_id)
        id_ = number(tx, session_id)
        newest = read(tx, tx.query(q.NEWEST, id_, session.turn_seq, 1), {id_: session_id}, [])
        # What it prints and says is many events; what it does is told by its records.
        records = read(tx, tx.query(q.NEWEST_RECORDS, id_, session.turn_seq, RECENT), {id_: session_id}, [])
        started = tx.query(q.EVENT_TIME, id_, session.turn_seq)
        phase, name, since = phases.phase(records)
        signed = newest[0].at if newest else 0
        found.append(
            Working(
                session=session, phase=phase, name=name, since=since or signed, signed_at=signed, started_at=started[0][0] if started else 0
            )
        )
    return found


def asks(tx: Tx, limit: int) -> list[Ask]:
    found = []
    for session_id, question_id, form, expires_at, session, seq in tx.query(q.ASKS, limit):
        row = reads.any_session(tx, session_id)
        asked = reads.event_at(tx, session, seq)
        if row.deleted or not isinstance(asked, e.QuestionAsked):
            continue
        at = tx.query(q.EVENT_TIME, session, seq)
        text = content.text(asked.content)[:TEXT_CHARS]
        found.append(Ask(session=row, question_id=question_id, form=form, text=text, asked_at=at[0][0], expires_at=expires_at))
    return sorted(found, key=lambda ask: ask.asked_at)


def waiting(tx: Tx, limit: int) -> list[Lane]:
    return [Lane(session=reads.any_session(tx, name), waiting=count, oldest_at=at) for name, count, at in tx.query(q.LANES, limit)]


def owed(tx: Tx, limit: int, given_up: bool, arrived: bool) -> list[Owed]:
    wanted = (q.NOT_SENT, *([q.GIVEN_UP] if given_up else []), *([q.SENT] if arrived else []))
    return [
        Owed(
            delivery_id=id_,
            part=part,
            session=reads.any_session(tx, name),
            state=state,
            tries=tries,
            retry_at=retry_at,
            error=error,
            at=at,
        )
        for statement in wanted
        for id_, part, name, state, tries, retry_at, error, at in tx.query(statement, limit)
    ]


def lives(tx: Tx) -> list[Life]:
    return [
        Life(pid=pid, started_at=at, ended=bool(ended), version=version, handed_at=handed, ended_at=gone, owner=owner)
        for pid, at, ended, version, handed, gone, owner in tx.query(q.LIVES)
    ]


def pauses(tx: Tx, since: int, now: int) -> list[PastPause]:
    found = [_pause(now, *row) for row in tx.query(q.PAUSES)]
    return [each for each in found if each.holds or (each.ended_at or each.until) > since]


def _pause(now: int, begun: int, holder: str, until: int, ended: int | None, current: int) -> PastPause:
    """One that ran out while no process served is over though nobody wrote that down."""
    if ended is None and current and until <= now:
        ended = until
    return PastPause(holder=holder, since=begun, until=until, ended_at=ended, holds=bool(current) and ended is None)


def marks(tx: Tx, since: int, limit: int) -> list[Mark]:
    names: dict[int, str] = {}
    logged = read(tx, tx.query(q.MARKS, since, limit), names, [])
    return [
        Mark(
            at=item.at,
            session_id=item.session_id,
            turn_id=item.turn_id,
            attempt=item.attempt,
            kind=item.kind,
            fields=dict(e.public(item.event, in_turn=True)),
        )
        for item in logged
        if item.session_id
    ]
