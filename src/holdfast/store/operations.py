"""The writes, each a function of (db, arguments) that runs inside the writer's transaction.

An operation may run twice: when another one of its batch fails half-way the whole batch is run again. So: check first, write after.
"""

from collections.abc import Callable, Sequence

import apsw

from holdfast.core import events as e
from holdfast.core import replies
from holdfast.core.busy import Route, route
from holdfast.core.delivery import DeliveryState
from holdfast.core.effects import ToolOutcome
from holdfast.core.errors import (
    Bug,
    Conflict,
    DuplicateOtherContent,
    LaneFull,
    NotFound,
    NothingToStop,
    PositionGap,
    QuestionClosed,
    StaleEpoch,
    StalePosition,
)
from holdfast.core.sessions import Lease, Session
from holdfast.core.transcript import answer_id
from holdfast.core.turns import Outcome, TurnState
from holdfast.ports import Accepted, Owner, StartedTurn, Stopped, StreamItem
from holdfast.store import reads
from holdfast.store.catalog import append, digest
from holdfast.store.connection import fetch
from holdfast.store.log import NOT_STORABLE, STREAMS, Head, insert, load_head, not_storable, number, save_head

FENCED = (
    "UPDATE head SET seq = seq + ?1, position = position + ?1"
    " WHERE session = (SELECT id FROM session WHERE session_id = ?2) AND epoch = ?3 AND owner = ?4 AND turn = ?5 AND attempt = ?6"
    " AND position = ?7 AND state = 'running' RETURNING session, seq"
)

HELD = (TurnState.RUNNING, TurnState.INTERRUPTED)
TAKEABLE = (TurnState.RUNNING, TurnState.ANSWERED, TurnState.INTERRUPTED)
PRUNED_AT_ONCE = 10_000
EXPIRED_AT_ONCE = 100
STOPPED_WAITING = "The turn was stopped before an answer came."
SEARCHED = "kind IN ('message.written', 'session.created', 'session.changed')"


def create_session(db: apsw.Connection, event: e.SessionCreated, at: int) -> Session:
    head = Head(fetch(db, "SELECT coalesce(max(id), 0) + 1 FROM session")[0][0])
    append(db, head, event, at, in_turn=False)
    save_head(db, head)
    return reads.session(db, event.session_id)


def change_session(db: apsw.Connection, session_id: str, change: e.SessionChanged, at: int) -> Session:
    append_free(db, number(db, session_id), [change], at)
    return reads.session(db, session_id)


def append_free(db: apsw.Connection, session: int, events: Sequence[e.Event], at: int) -> None:
    """What anyone may add at any time, without a lease; no turn's position moves."""
    head = load_head(db, session)
    for event in events:
        append(db, head, event, at, in_turn=False)
    save_head(db, head)


def accept(db: apsw.Connection, session_id: str, message: e.MessageAccepted, fresh: tuple[str, str], max_waiting: int, at: int) -> Accepted:
    known = _known(db, message.dedup_key, digest(message.text))
    if known is not None:
        return Accepted(known[1], known[0], duplicate=True)
    session = reads.session(db, session_id)
    where = route(session, max_waiting=max_waiting)
    if where is Route.NEW_SESSION:
        current = reads.current_session(db, session.session_key)
        if current is None or current.suspended:
            session = create_session(
                db,
                e.SessionCreated(
                    session_id=fresh[0], session_key=session.session_key, log=fresh[1], title=session.title, auto_reset_reason="suspended"
                ),
                at,
            )
        else:
            session = current
        where = route(session, max_waiting=max_waiting)
    if where is Route.LANE_FULL:
        raise LaneFull(session.queued)
    head = load_head(db, number(db, session.session_id))
    append(db, head, message, at, in_turn=False)
    if where is Route.ANSWER:
        question_id, call_id = _open_question(db, head.session)
        answered = e.QuestionAnswered(question_id=question_id, call_id=call_id, text=message.text, message_id=message.message_id)
        append(db, head, answered, at, in_turn=True)
    save_head(db, head)
    return Accepted(message.message_id, session.session_id)


def _known(db: apsw.Connection, dedup_key: str | None, content: bytes) -> tuple[str, str] | None:
    """(session id, ref) of what was stored under this key before."""
    if dedup_key is None:
        return None
    rows = fetch(
        db, "SELECT d.digest, s.session_id, d.ref FROM dedup d JOIN session s ON s.id = d.session WHERE dedup_key = ?", (dedup_key,)
    )
    if not rows:
        return None
    if rows[0][0] != content:
        raise DuplicateOtherContent(dedup_key.rpartition("|")[2])
    return rows[0][1], rows[0][2]


def _open_question(db: apsw.Connection, session: int) -> tuple[str, str]:
    rows = fetch(db, "SELECT question_id, call_id FROM question WHERE session = ? AND state = 'open'", (session,))
    if not rows:
        raise Bug(f"Session {session} waits, but no question of it is open.")
    return rows[0][0], rows[0][1]


def request_stop(db: apsw.Connection, session_id: str, by: str, dedup_key: str | None, at: int) -> Stopped:
    known = _known(db, dedup_key, b"stop")
    session = reads.session(db, session_id)
    if known is not None:
        still = session.turn_id == known[1] and session.open_turn
        return Stopped(known[1], session.queued, ended=not still)
    if not session.open_turn or session.turn_id is None:
        raise NothingToStop(session_id)
    head = load_head(db, number(db, session_id))
    append(db, head, e.StopRequested(turn_id=session.turn_id, by=by, dedup_key=dedup_key), at, in_turn=False)
    # A waiting or answered turn belongs to no process: it ends here. A cut one is ended by whoever decides upon it (R0).
    ended = head.state in (TurnState.WAITING, TurnState.ANSWERED)
    if ended:
        _end_unattended(db, head, Outcome.CANCELLED, STOPPED_WAITING, at)
    save_head(db, head)
    return Stopped(session.turn_id, session.queued, ended)


def _end_unattended(db: apsw.Connection, head: Head, outcome: Outcome, why: str, at: int) -> None:
    """Ends a turn that no process runs: its open question is closed, and what it had said becomes a record."""
    if head.state is TurnState.WAITING:
        _, call_id = _open_question(db, head.session)
        append(db, head, e.ToolFinished(call_id=call_id, outcome=ToolOutcome.FAILED, result=why), at, in_turn=True)
    if head.turn is not None and (said := reads.answer_text(db, head)):
        key = reads.session(db, reads.name(db, head.session)).session_key
        append(db, head, replies.written(key, "assistant", answer_id(head.turn), said), at, in_turn=True)
    append(db, head, e.TurnEnded(outcome=outcome, error=why if outcome is Outcome.FAILED else None), at, in_turn=True)


def answer(db: apsw.Connection, question_id: str, make: Callable[[str, str], e.QuestionAnswered], at: int) -> str:
    rows = fetch(db, "SELECT session, call_id, state FROM question WHERE question_id = ?", (question_id,))
    if not rows:
        raise NotFound("question", question_id)
    session, call_id, state = rows[0]
    if state != "open":
        raise QuestionClosed(question_id, state)
    head = load_head(db, session)
    append(db, head, make(question_id, call_id), at, in_turn=True)
    save_head(db, head)
    return reads.name(db, session)


def expire_questions(db: apsw.Connection, now: int) -> list[str]:
    rows = fetch(
        db,
        "SELECT session FROM question WHERE state = 'open' AND expires_at <= ? ORDER BY expires_at LIMIT ?",
        (now, EXPIRED_AT_ONCE),
    )
    expired = []
    for (session,) in rows:
        head = load_head(db, session)
        _end_unattended(db, head, Outcome.FAILED, "Nobody answered in time; the question has expired.", now)
        save_head(db, head)
        expired.append(reads.name(db, session))
    return expired


def start_turn(db: apsw.Connection, session_id: str, owner: int, turn_id: str, at: int) -> StartedTurn | None:
    session = number(db, session_id)
    head = load_head(db, session)
    if head.state not in (TurnState.NONE, TurnState.ENDED):
        return None
    if reads.session(db, session_id).suspended:
        _refuse_waiting(db, head, at)
        return None
    rows = fetch(db, "SELECT seq, message_id FROM inbox WHERE session = ? ORDER BY seq LIMIT 1", (session,))
    if not rows:
        return None
    seq, message_id = rows[0]
    accepted = reads.event_at(db, session, seq)
    text = accepted.text if isinstance(accepted, e.MessageAccepted) else "(this message was damaged on disk and cannot be read)"
    generation = 1 + int(
        fetch(db, "SELECT generation FROM lane WHERE session_key = (SELECT session_key FROM session WHERE id = ?)", (session,))[0][0]
    )
    head.turn = turn_id
    started = e.TurnStarted(generation=generation, attempt=1, cause="message", message_ids=(message_id,), owner=owner, epoch=head.epoch + 1)
    append(db, head, started, at, in_turn=True)
    append(db, head, e.MessageWritten(message_id=message_id, role="user", text=text), at, in_turn=True)
    save_head(db, head)
    return StartedTurn(Lease(session_id, owner, head.epoch), turn_id, head.attempt, head.position)


def _refuse_waiting(db: apsw.Connection, head: Head, at: int) -> None:
    """What waited in a session when it was suspended starts no turn there; it is refused, and stays readable (A20)."""
    waiting = fetch(db, "SELECT message_id FROM inbox WHERE session = ? ORDER BY seq", (head.session,))
    for (message_id,) in waiting:
        append(db, head, e.MessageRefused(message_id=message_id, reason="it was suspended before its turn came"), at, in_turn=False)
    if waiting:
        save_head(db, head)


def take_turn(
    db: apsw.Connection, session_id: str, owner: int, turn_id: str, epoch: int, events: Sequence[e.Event], at: int
) -> StartedTurn:
    head = load_head(db, number(db, session_id))
    if (head.epoch, head.turn) != (epoch, turn_id) or head.state not in TAKEABLE:
        raise StaleEpoch(session_id, epoch)
    append(db, head, e.TurnTaken(owner=owner, epoch=epoch + 1), at, in_turn=True)
    for event in events:
        append(db, head, event, at, in_turn=True)
    save_head(db, head)
    return StartedTurn(Lease(session_id, owner, head.epoch), turn_id, head.attempt, head.position)


def append_turn(db: apsw.Connection, lease: Lease, turn_id: str, attempt: int, position: int, events: Sequence[e.Event], at: int) -> int:
    for event in events:
        if not event.stream:
            break
    else:
        return append_stream(db, lease, turn_id, attempt, position, events, at)
    head = load_head(db, number(db, lease.session_id))
    if (head.epoch, head.owner, head.turn) != (lease.epoch, lease.owner, turn_id) or head.state not in HELD:
        raise StaleEpoch(lease.session_id, lease.epoch)
    _check_position(head, turn_id, attempt, position)
    for event in events:
        append(db, head, event, at, in_turn=True)
    if head.stop and head.state is TurnState.WAITING:  # It asked in the moment in which it was stopped: the stop wins.
        _end_unattended(db, head, Outcome.CANCELLED, STOPPED_WAITING, at)
    save_head(db, head)
    return head.position


def append_stream(db: apsw.Connection, lease: Lease, turn_id: str, attempt: int, position: int, events: Sequence[e.Event], at: int) -> int:
    """One fenced UPDATE answers for lease and position; only a refusal is looked into."""
    pieces = [(event.kind, e.encode(event)) for event in events]  # Before anything is written: it may be no text at all.
    count = len(pieces)
    rows = fetch(db, FENCED, (count, lease.session_id, lease.epoch, lease.owner, turn_id, attempt, position))
    if not rows:
        raise _why_refused(db, lease, turn_id, attempt, position)
    session, seq = rows[0]
    seq -= count
    for kind, body in pieces:
        seq += 1
        insert(db, session, seq, turn_id, attempt, position, kind, body, at)
        position += 1
    return position


def append_streams(db: apsw.Connection, items: Sequence[StreamItem], at: int) -> list[int | Exception]:
    results: list[int | Exception] = []
    for item in items:
        try:
            for event in item.events:
                if not event.stream:
                    raise Bug("Only stream events can be written for many turns at once.")
            results.append(append_stream(db, item.lease, item.turn_id, item.attempt, item.position, item.events, at))
        except (Conflict, NotFound, Bug) as refusal:
            results.append(refusal)
        except NOT_STORABLE as error:
            results.append(not_storable(error))
    return results


def _why_refused(db: apsw.Connection, lease: Lease, turn_id: str, attempt: int, position: int) -> Exception:
    head = load_head(db, number(db, lease.session_id))
    if (head.epoch, head.owner, head.turn, head.state) == (lease.epoch, lease.owner, turn_id, TurnState.RUNNING):
        _check_position(head, turn_id, attempt, position)
    return StaleEpoch(lease.session_id, lease.epoch)


def _check_position(head: Head, turn_id: str, attempt: int, position: int) -> None:
    if attempt < head.attempt or position < head.position:
        raise StalePosition(turn_id, position, head.position)
    if attempt > head.attempt or position > head.position:
        raise PositionGap(turn_id, position, head.position)


def record_delivery(db: apsw.Connection, session_id: str, change: e.DeliveryChanged, expect: DeliveryState, at: int) -> bool:
    session = number(db, session_id)
    rows = fetch(db, "SELECT state FROM outbox WHERE delivery_id = ? AND session = ?", (change.delivery_id, session))
    if not rows or rows[0][0] != expect:
        return False
    append_free(db, session, [change], at)
    return True


def register_owner(db: apsw.Connection, owner: Owner) -> int:
    rows = fetch(
        db,
        "INSERT INTO owner (name, pid, started_at, boot_id, socket) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET pid = excluded.pid, started_at = excluded.started_at, boot_id = excluded.boot_id,"
        " socket = excluded.socket RETURNING id",
        (owner.name, owner.pid, owner.started_at, owner.boot_id, owner.socket),
    )
    return int(rows[0][0])


def forget_owner(db: apsw.Connection, owner: int) -> None:
    # A lease is held by open turns alone, and those have an index.
    db.execute(
        "DELETE FROM owner WHERE id = ?1"
        " AND NOT EXISTS (SELECT 1 FROM head WHERE state IN ('running', 'answered', 'interrupted') AND owner = ?1)",
        (owner,),
    )


def index_search(db: apsw.Connection, limit: int) -> int:
    """Off the write path: messages become searchable a moment after they are stored."""
    last = fetch(db, "SELECT value FROM meta WHERE name = 'searchable_id'")[0][0]
    try:
        [(newest, count)] = fetch(
            db, "SELECT max(id), count(*) FROM (SELECT id FROM event WHERE id > ? ORDER BY id LIMIT ?)", (last, max(0, limit))
        )
        rows = fetch(db, f"SELECT id, kind, body FROM event WHERE id > ? AND id <= ? AND {SEARCHED}", (last, newest))
    except apsw.CorruptError:
        logged, _ = reads.tail(db, last, limit, {})
        newest, count = max((item.id for item in logged), default=None), len(logged)
        rows = [(item.id, item.kind, item.body) for item in logged]
    if newest is None:
        return 0
    for id_, kind, body in rows:
        event = e.decode(kind, body) if isinstance(body, bytes) else None
        text = getattr(event, "text" if isinstance(event, e.MessageWritten) else "title", None)
        if isinstance(text, str) and text:
            db.execute("INSERT INTO search (rowid, text) VALUES (?, ?)", (id_, text))
    db.execute("UPDATE meta SET value = ? WHERE name = 'searchable_id'", (newest,))
    return int(count)


def prune_session(db: apsw.Connection, session_id: str, at: int) -> tuple[int, bool]:
    """Drops stream events of a session at rest, a page of them; the record of it makes readers with an old cursor start from a snapshot.
    Gives how many went, and whether more are there."""
    head = load_head(db, number(db, session_id))
    if head.state not in (TurnState.NONE, TurnState.ENDED):
        return 0, False
    pruned = fetch(db, "SELECT pruned_seq FROM session WHERE id = ?", (head.session,))[0][0]
    first_kept = fetch(
        db,
        f"SELECT seq FROM event WHERE session = ? AND seq > ? AND seq <= ? AND {STREAMS} ORDER BY seq LIMIT 1 OFFSET ?",
        (head.session, pruned, head.seq, PRUNED_AT_ONCE),
    )
    through = first_kept[0][0] - 1 if first_kept else head.seq
    db.execute(f"DELETE FROM event WHERE session = ? AND seq > ? AND seq <= ? AND {STREAMS}", (head.session, pruned, through))
    gone = db.changes()
    append(db, head, e.JournalPruned(through=through), at, in_turn=False)
    save_head(db, head)
    return gone, bool(first_kept)
