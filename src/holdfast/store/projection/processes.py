"""The rows of processes in the background."""

from holdfast.core import events as e
from holdfast.store.heads import Head
from holdfast.store.projection.common import Rows
from holdfast.store.rows import Change, Delete, Insert, Update

STARTS = Insert("process", "process_id", "session", "seq", "state", conflict="DO NOTHING")
MATCHES = Update("process", "scanned", "matched_at", "streak", where="process_id = ?")
PASSES = Update("process", "scanned", where="process_id = ?")
CONSUMES = Update("process", "consumed", where="process_id = ? AND consumed IS NULL")
ENDS = Update("process", "state = 'ended'", "ended_seq", where="process_id = ? AND state = 'running'")
PROCESSES_GONE = Delete("process", where="session = ?")


def _process_started(head: Head, event: e.ProcessStarted, at: int, in_turn: bool) -> list[Change]:
    return [(STARTS, (event.process_id, head.session, head.seq, "running"))]


def _process_matched(head: Head, event: e.ProcessMatched, at: int, in_turn: bool) -> list[Change]:
    if not event.lines:
        return [(PASSES, (event.through, event.process_id))]
    return [(MATCHES, (event.through, at, event.streak, event.process_id))]


def _process_consumed(head: Head, event: e.ProcessConsumed, at: int, in_turn: bool) -> list[Change]:
    return [(CONSUMES, (event.how, event.process_id))]


def _process_ended(head: Head, event: e.ProcessEnded, at: int, in_turn: bool) -> list[Change]:
    return [(ENDS, (head.seq, event.process_id))]


ROWS: Rows = {
    e.ProcessStarted: _process_started,
    e.ProcessMatched: _process_matched,
    e.ProcessConsumed: _process_consumed,
    e.ProcessEnded: _process_ended,
}
