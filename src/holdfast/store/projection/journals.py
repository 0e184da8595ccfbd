"""The rows that follow from what becomes of stream events."""

from holdfast.core import events as e
from holdfast.core.journals import State
from holdfast.core.spools import parse_stream_id
from holdfast.store.heads import Head
from holdfast.store.projection.common import THIS, Rows
from holdfast.store.rows import Change, Delete, Insert, Update

JOURNAL = ("session", "turn", "epoch", "state", "tries", "size", "filled", "first_seen", "changed_at")
JOURNAL_LATE = Insert("journal", *JOURNAL, conflict="DO NOTHING")
_ARRIVED = "filled = CASE WHEN excluded.filled = 1 THEN 1 ELSE journal.filled END"
_AS_NOW = ", ".join(f"{name} = excluded.{name}" for name in ("state", "tries", "size", "changed_at"))
JOURNAL_CHANGED = Insert("journal", *JOURNAL, conflict=f"(session, turn, epoch) DO UPDATE SET {_AS_NOW}, {_ARRIVED}")
JOURNALS_GONE = Delete("journal", where="session = ?")
PRUNED = Update("session", "pruned_seq", where="id = ? AND pruned_seq < ?")
ALL_PRUNED = Update("session", "journal_since = NULL", where=THIS)


def late(head: Head, event: e.TurnInterrupted, at: int) -> list[Change]:
    stream = parse_stream_id(event.stream_id or "")
    return [(JOURNAL_LATE, (head.session, *stream, State.RECOVERING.value, 0, 0, 0, at, at))] if stream else []


def _journal_changed(head: Head, event: e.JournalChanged, at: int, in_turn: bool) -> list[Change]:
    stream, filled = parse_stream_id(event.stream_id), int(bool(event.text or event.call_ids))
    return [(JOURNAL_CHANGED, (head.session, *stream, event.state, event.tries, event.size, filled, at, at))] if stream else []


def _journal_pruned(head: Head, event: e.JournalPruned, at: int, in_turn: bool) -> list[Change]:
    changes: list[Change] = [(PRUNED, (event.through, head.session, event.through))]
    return [*changes, (ALL_PRUNED, (head.session,))] if event.through + 1 == head.seq else changes


ROWS: Rows = {e.JournalPruned: _journal_pruned, e.JournalChanged: _journal_changed}
