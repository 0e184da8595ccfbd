"""Writes about background processes, which need no lease once a turn has started one, and what the catalog has of them."""

from typing import Any

import msgspec

from holdfast.core import events as e
from holdfast.core.errors import NotFound
from holdfast.core.notices import DAMAGED_COMMAND
from holdfast.core.plans import processes as plans
from holdfast.core.plans.processes import Ending, Starting
from holdfast.core.processes import Matches, Process, Telling, started
from holdfast.store import queries as q
from holdfast.store import reads
from holdfast.store.log import number
from holdfast.store.tx import Tx
from holdfast.store.work import run


def start_process(tx: Tx, session_id: str, wanted: e.ProcessStarted, most: int, at: int) -> Process:
    session = reads.living(tx, session_id)
    head = tx.head(number(tx, session_id))
    cause = tx.event_at(head.session, head.asked_seq)
    asked = cause if isinstance(cause, e.MessageAccepted | e.CauseRecorded) else None
    known = tx.query(q.PROCESS, wanted.process_id)
    found = Starting(
        session=session,
        known=_process(tx, known[0]) if known else None,
        sender=asked.sender if asked else "owner",
        anchor=asked.anchor if asked else None,
        running=tx.query(q.PROCESSES_COUNT)[0][0],
    )
    run(tx, plans.start(found, wanted, most=most), at, {session_id: head})
    return process(tx, wanted.process_id)


def end_process(tx: Tx, ended: e.ProcessEnded, tail: str, matches: Matches, window_s: float, at: int) -> Telling:
    return run(tx, plans.end(_ending(tx, ended.process_id), ended, tail=tail, matches=matches, now=at, window_s=window_s), at)


def match_process(tx: Tx, process_id: str, matches: Matches, at: int) -> bool:
    return run(tx, plans.match(_ending(tx, process_id), matches, at=at), at)


def consume_process(tx: Tx, process_id: str, how: str, at: int) -> bool:
    found = process(tx, process_id)
    waiting = causes_of(tx, number(tx, found.session_id), process_id)
    return run(tx, plans.consume(found, waiting, how=how), at)


def _ending(tx: Tx, process_id: str) -> Ending:
    found = process(tx, process_id)
    session = tx.session(found.session_id)
    current = session if session.current else reads.current_session(tx, session.session_key)
    return Ending(process=found, session=session, current=current)


def causes_of(tx: Tx, session: int, process_id: str) -> list[str]:
    """What waits to be told of a process."""
    return [cause_id for (cause_id,) in tx.query(q.CAUSES_NAMED, session, f"{process_id}.", f"{process_id}/")]


# reading


def process(tx: Tx, process_id: str) -> Process:
    rows = tx.query(q.PROCESS, process_id)
    if not rows:
        raise NotFound("process", process_id)
    return _process(tx, rows[0])


def processes(tx: Tx, session_id: str) -> list[Process]:
    return [_process(tx, row) for row in tx.query(q.PROCESSES_OF, session_id)]


def running_processes(tx: Tx) -> list[Process]:
    return [_process(tx, row) for row in tx.query(q.PROCESSES_RUNNING)]


def _process(tx: Tx, row: tuple[Any, ...]) -> Process:
    """What of its record is damaged is not known; that it runs is."""
    process_id, session, session_id, seq, ended_seq, consumed, scanned, matched_at, streak, at = row
    recorded = tx.event_at(session, seq)
    if not isinstance(recorded, e.ProcessStarted):
        recorded = e.ProcessStarted(process_id=process_id, command=DAMAGED_COMMAND, turn_id="", call_id="", owner=0)
    return msgspec.structs.replace(
        started(recorded, session_id=session_id, at=at or 0),
        consumed=consumed,
        scanned=scanned,
        matched_at=matched_at,
        streak=streak,
        end=None if ended_seq is None else _ended(tx, session, ended_seq, process_id, at or 0),
    )


def _ended(tx: Tx, session: int, seq: int, process_id: str, at: int) -> e.ProcessEnded:
    recorded = tx.event_at(session, seq)
    return recorded if isinstance(recorded, e.ProcessEnded) else e.ProcessEnded(process_id=process_id, ended_at=at)
