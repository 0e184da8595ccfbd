"""The rows that say what models used."""

import msgspec

from holdfast.core import events as e
from holdfast.core import usage
from holdfast.store.heads import Head
from holdfast.store.projection.common import Rows
from holdfast.store.rows import Change, Delete, Insert

SUMS = ("requests", "input", "output", "cached", "stored", "thought", "cost", "unpriced")
_ADDED = ", ".join(f"{name} = spent.{name} + excluded.{name}" for name in SUMS)
SPENT = Insert("spent", "session", "turn", "day", "model", "sender", *SUMS, conflict=f"(session, turn, day, model) DO UPDATE SET {_ADDED}")
NONE_SPENT = msgspec.structs.astuple(usage.NOTHING)
SPENT_GONE = Delete("spent", where="session = ?")


def counted(head: Head, day: str, sender: str | None) -> Change:
    """The turn itself, before a model has used anything for it."""
    return (SPENT, (head.session, head.turn or "", day, "", sender or "", *NONE_SPENT))


def _spent(head: Head, event: e.ModelResponded | e.ContextCompacted, at: int, in_turn: bool) -> list[Change]:
    spent = usage.of(event)
    if not spent.requests:
        return []
    row = (head.session, head.turn or "", event.day or usage.day(at), event.model, event.sender or "")
    return [(SPENT, (*row, *msgspec.structs.astuple(spent)))]


def _spent_by_call(head: Head, event: e.ToolFinished, at: int, in_turn: bool) -> list[Change]:
    used = event.used
    if used is None:
        return []
    # One that comes late counts for its session, because another turn may run by now.
    turn, sender = (head.turn or "", used.sender or "") if in_turn else ("", "")
    row = (head.session, turn, used.day or usage.day(at), used.model, sender)
    return [(SPENT, (*row, *msgspec.structs.astuple(usage.of_call(event))))]


ROWS: Rows = {e.ModelResponded: _spent, e.ContextCompacted: _spent, e.ToolFinished: _spent_by_call}
