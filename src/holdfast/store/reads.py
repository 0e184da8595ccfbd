"""The reads. None holds a cursor open: each fetches what it needs, at most a page, and is done."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from holdfast.core import crash_loops
from holdfast.core import events as e
from holdfast.core.content import digest
from holdfast.core.crash_loops import Start
from holdfast.core.errors import BadPlace, BadState, Deleted, NotFound, Unavailable
from holdfast.core.notices import MISSING_EVENT
from holdfast.core.plans.repeats import Known
from holdfast.core.sessions import Session
from holdfast.core.shutdowns import Shutdown
from holdfast.core.transcript import Transcript
from holdfast.core.turns import TurnState
from holdfast.ports.log import Make
from holdfast.ports.owners import Owner, Pause
from holdfast.ports.sessions import SessionPage
from holdfast.ports.upkeep import Counts
from holdfast.store import queries as q
from holdfast.store.heads import Head
from holdfast.store.log import Finding, body_size, fill_gaps, made, read, salvage
from holdfast.store.tx import Tx

E = TypeVar("E", bound=StrEnum)
MAX_ROWS = 1000
# Folding so many takes a millisecond or two, for which the event loop may have to wait.
FOLD_ROWS = 200
MAX_INTEGER = 2**62


def session(tx: Tx, session_id: str) -> Session:
    """Also one that is deleted, as long as there is something to read."""
    found = any_session(tx, session_id)
    if found.deleted and found.undo_until is None:
        raise Deleted(session_id, undoable=False)
    return found


def any_session(tx: Tx, session_id: str) -> Session:
    """Of one that is purged, no more than its tombstone says."""
    return numbered(tx, session_id)[1]


def numbered(tx: Tx, session_id: str) -> tuple[int, Session]:
    """As `any_session`, with the store's own number of it."""
    rows = tx.query(q.SESSION, session_id)
    if not rows:
        raise NotFound("session", session_id)
    return rows[0][-1], _session(rows[0])


def living(tx: Tx, session_id: str) -> Session:
    """One that is not deleted."""
    found = session(tx, session_id)
    if found.deleted:
        raise Deleted(session_id, undoable=True)
    return found


def purged(tx: Tx, session_ids: Sequence[str]) -> list[str]:
    found = (row for session_id in session_ids for row in tx.query(q.SESSION_PURGED, session_id))
    return [session_id for (session_id,) in found]


def current_session(tx: Tx, session_key: str) -> Session | None:
    rows = tx.query(q.SESSION_CURRENT, session_key)
    return _session(rows[0]) if rows else None


def known(tx: Tx, dedup_key: str) -> Known | None:
    dedup_key = tx.secrets.key(dedup_key)
    rows = tx.query(q.KNOWN, dedup_key)
    if rows:
        return Known(*rows[0])
    gone = tx.query(q.FORGOTTEN, digest(dedup_key))
    return Known(None, gone[0][0], "") if gone else None


def named(tx: Tx, prefix: str, limit: int) -> list[Session]:
    after_all = prefix + "\U0010ffff"
    rows = tx.query(q.SESSIONS_NAMED, prefix, after_all, _page(limit))
    return [_session(row) for row in rows]


def name(tx: Tx, session: int) -> str:
    return str(tx.query(q.SESSION_NAME, session)[0][0])


def conversations(tx: Tx, session_key: str, limit: int) -> list[tuple[int, Session]]:
    rows = tx.query(q.CONVERSATIONS, session_key)
    numbered = [(len(rows) - place, _session(row)) for place, row in enumerate(rows)]
    return [(number, found) for number, found in numbered if not found.deleted][: _page(limit)]


def conversation_number(tx: Tx, session: int) -> int:
    """The number a session has among those of its key."""
    return int(tx.query(q.CONVERSATION_NUMBER, session, session)[0][0])


def conversations_of(tx: Tx, session_key: str) -> int:
    """How many sessions a key has had."""
    return int(tx.query(q.CONVERSATIONS_COUNT, session_key)[0][0])


def sessions(tx: Tx, limit: int, before: str | None, query: str, archived: bool, state: str | None) -> SessionPage:
    updated_at, id_ = _place(before) if before else (MAX_INTEGER, MAX_INTEGER)
    limit = _page(limit) or 1
    if state is not None and state not in q.IN_STATE:
        raise BadState(state, q.IN_STATE)
    found = tx.search(query) if query.strip() else []
    if query.strip() and not found:
        return SessionPage([], None)
    rows = tx.query(q.listed(state, len(found)), int(archived), updated_at, id_, *found, limit + 1)
    more = f"{rows[limit - 1][6]}.{rows[limit - 1][-1]}" if len(rows) > limit else None
    return SessionPage([_session(row) for row in rows[:limit]], more)


def _place(before: str) -> tuple[int, int]:
    try:
        updated_at, id_ = (int(part) for part in before.split("."))
    except ValueError:
        updated_at = id_ = 2**63
    if not (-(2**63) <= updated_at < 2**63 and -(2**63) <= id_ < 2**63):
        raise BadPlace(before)
    return updated_at, id_


def _session(row: tuple[Any, ...]) -> Session:
    (
        session_id, session_key, log, seq, title, created_at, updated_at, generation, pinned, archived, suspended, resume_pending,
        resume_reason, marked_at, auto_reset_reason, restarts, queued, state, turn, attempt, position, turn_seq, owner, epoch, stop,
        pruned, left, rule, why, current, deleted_at, purge_at, purged, attempt_at, on_trial, tried_at, lived_ms, deaths, model,
        folder, processes, _,
    ) = row  # fmt: skip
    return Session(
        session_id=session_id, session_key=session_key, log=log, seq=seq, title=title, created_at=created_at, updated_at=updated_at,
        generation=generation, pinned=bool(pinned), archived=bool(archived), suspended=bool(suspended), resume_pending=bool(resume_pending),
        resume_reason=resume_reason, last_resume_marked_at=marked_at if isinstance(marked_at, int) else None,
        was_auto_reset=auto_reset_reason is not None, auto_reset_reason=auto_reset_reason, interrupted_restarts=restarts, queued=queued,
        turn_state=member(TurnState, state), turn_id=turn, attempt=attempt, position=position, turn_seq=turn_seq, owner=owner, epoch=epoch,
        stop_requested=bool(stop), pruned_seq=pruned, left=bool(left), rule=rule, why=why,
        current=bool(current) and deleted_at is None, deleted_at=deleted_at, undo_until=None if purged else purge_at,
        attempt_at=attempt_at, on_trial=bool(on_trial), tried_at=tried_at, lived_ms=lived_ms, deaths=deaths, model=model,
        folder=folder, processes=processes,
    )  # fmt: skip


def events(tx: Tx, session_id: str, after: int, limit: int, records: bool, make: Make | None = None) -> tuple[e.Page, list[Finding]]:
    after, limit = bounded(after), _page(limit)
    rows = tx.query(q.LOG_BOUNDS, session_id)
    if not rows:
        raise NotFound("session", session_id)
    session, last, purged = rows[0]
    if purged:
        raise Deleted(session_id, undoable=False)
    # The head's bound keeps out a row whose sequence was changed on disk: it would carry a reader's cursor past everything to come.
    try:
        rows = tx.page(q.PAGE_RECORDS if records else q.PAGE, session, after, last, limit)
    except tx.unreadable:  # The index alone may still be whole.
        rows = salvage(tx, tx.query(q.PAGE_RECORD_PLACES if records else q.PAGE_PLACES, session, after, last, limit))
    found: list[Finding] = []
    logged = [item for item in read(tx, rows, {session: session_id}, found) if item.session_id]
    more = bool(logged) and logged[-1].seq < last and _is_full(rows, limit)
    until = logged[-1].seq if more else last
    if not records and until - after > len(logged):
        # Read after the events: whatever was pruned before they were read is known here.
        pruned = tx.query(q.PRUNED_SEQ, session)[0][0]
        kept = [item for item in logged if item.seq <= pruned]
        logged = kept + fill_gaps(session_id, session, max(after, pruned), logged[len(kept) :], until, limit - len(kept), found)
        more = bool(logged) and logged[-1].seq < last
    return made(e.Page(logged, more=more), make), found


def recall(tx: Tx, session_id: str) -> int:
    """Behind which place of its log lies everything that an agent is given of a session and its newest turn."""
    for session, last, _ in tx.query(q.LOG_BOUNDS, session_id):
        try:
            rows = tx.query(q.COMPACTED_LAST, session, last)
        except tx.unreadable:  # Whatever else of it reads is read as a whole.
            rows = []
        for item in read(tx, rows, {session: session_id}, []):
            return item.event.recall if isinstance(item.event, e.ContextCompacted) else 0
    return 0


def fold(tx: Tx, transcript: Transcript, session_id: str, after: int, until: int | None, records: bool) -> tuple[int | None, list[Finding]]:
    """Adds the next slice behind `after`, up to `until`, to a transcript. Gives where to continue, None when there is no more."""
    page, found = events(tx, session_id, after, FOLD_ROWS, records)
    transcript.extend(item for item in page if until is None or item.seq <= until)
    return (page[-1].seq if page.more and (until is None or page[-1].seq < until) else None), found


def _is_full(rows: Sequence[tuple[Any, ...]], limit: int) -> bool:
    return len(rows) >= limit or sum(body_size(row) for row in rows) >= e.PAGE_BYTES


def event_at(tx: Tx, session: int, seq: int) -> e.Event:
    rows = tx.query(q.EVENT_AT, session, seq)
    logged = read(tx, rows, {session: ""}, [])
    return logged[0].event if logged else e.Damaged(reason=MISSING_EVENT)


def open_turns(tx: Tx, apart_from: int) -> list[Session]:
    rows = tx.query(q.OPEN_TURNS, apart_from)
    return [_session(row) for row in rows]


def undecided(tx: Tx) -> list[Session]:
    rows = tx.query(q.UNDECIDED)
    return [_session(row) for row in rows]


def open_turn(tx: Tx, head: Head) -> Transcript:
    """The newest turn, from its own events."""
    transcript, after = Transcript(), head.turn_seq - 1
    while rows := tx.page(q.EVENTS_BEHIND, head.session, after):
        transcript.extend(read(tx, rows, {head.session: ""}, []))
        after = rows[-1][2]
    return transcript


def last_reason(tx: Tx, head: Head) -> str:
    """What interrupted the newest turn last."""
    for (body,) in tx.query(q.LAST_INTERRUPTION, head.session, head.turn_seq):
        if isinstance(cut := e.decode("turn.interrupted", body), e.TurnInterrupted):
            return cut.reason
    return "crash"


def unclean_starts(tx: Tx, owner: int) -> int:
    """Before this owner's."""
    return crash_loops.in_a_row(Start(*map(bool, row)) for row in tx.query(q.STARTS_BEFORE, owner))


def deaths(tx: Tx, before: int, since: int) -> int:
    return int(tx.query(q.DEATHS, before, since)[0][0])


def last_end(tx: Tx, apart_from: int) -> bool:
    rows = tx.query(q.LAST_END, apart_from)
    return bool(rows[0][0]) if rows else True


def waiting_lanes(tx: Tx, limit: int, safe: bool = False) -> list[str]:
    rows = tx.query(q.WAITING_LANES_SAID if safe else q.WAITING_LANES, _page(limit))
    return [row[0] for row in rows]


def prunable(tx: Tx, before: int, limit: int) -> list[str]:
    """Sessions at rest whose last turn ended before a time and whose stream events are still there, longest first."""
    rows = tx.query(
        q.PRUNABLE,
        bounded(before),
        _page(limit),
    )
    return [row[0] for row in rows]


def running_by_owner(tx: Tx) -> dict[int, int]:
    rows = tx.query(q.RUNNING_BY_OWNER)
    return dict(rows)


def pause(tx: Tx, now: int) -> Pause | None:
    rows = tx.query(q.PAUSE, now)
    return Pause(*rows[0]) if rows else None


def told_to_stop(tx: Tx, owner: int) -> bool:
    return bool(tx.query(q.TOLD_TO_STOP, owner))


def stop_in(told: str | None) -> Shutdown | None:
    return None if told is None else msgspec.json.decode(told, type=Shutdown)


def owners(tx: Tx) -> list[Owner]:
    rows = tx.query(q.OWNERS)
    return [
        Owner(id=id_, name=name_, pid=pid, started_at=started_at, boot_id=boot_id, socket=socket, draining=draining, told=stop_in(told))
        for id_, name_, pid, started_at, boot_id, socket, draining, told in rows
    ]


def counts(tx: Tx) -> Counts:
    row = tx.query(q.COUNTS)[0]
    return Counts(*row)


def bounded(value: int) -> int:
    """A cursor or time from outside, as the nearest one the database can hold."""
    return max(0, min(value, MAX_INTEGER))


def _page(limit: int) -> int:
    return max(0, min(limit, MAX_ROWS))


def member(kind: type[E], value: str) -> E:
    try:
        return kind(value)
    except ValueError:
        raise Unavailable(f"The store failed: {value!r} is no {kind.__name__}") from None


def signed_out(tx: Tx, now: int) -> list[str]:
    return [row[0] for row in tx.query(q.SIGNED_OUT, now)]
