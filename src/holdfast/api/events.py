"""An event as readers get it: its public fields, with times in words. How it travels (frames, tables) is decided elsewhere."""

from collections.abc import Iterator
from typing import Any

from msgspec import to_builtins

from holdfast.api import parts, schedules
from holdfast.api.times import rfc3339
from holdfast.core import keys
from holdfast.core.events import CauseRecorded, DueTime, Logged, MessageAccepted, MessageWritten, Reasoning, Text, ToolOutput, public

# Pieces that belong to a step.
STEPPED = frozenset({Text.kind, Reasoning.kind, ToolOutput.kind})


def fields(logged: Logged) -> dict[str, Any]:
    """The public fields of a record. A message says under which `client_id` it was sent, so that its sender knows it again."""
    event = logged.event
    found = {name: _shown(name, value) for name, value in public(event, in_turn=logged.turn_id is not None)}
    if isinstance(event, CauseRecorded) and event.schedule is None:
        del found["schedule"]
    if isinstance(event, MessageAccepted) or (isinstance(event, MessageWritten) and event.dedup_key is not None):
        found["client_id"] = keys.client_id(event.dedup_key)
    return found


def _shown(name: str, value: Any) -> Any:
    if name.endswith("_at"):
        return rfc3339(value) if value else None
    if isinstance(value, DueTime):
        return schedules.due_time(value)
    return parts.content(value) if name == "parts" else value


def data(logged: Logged) -> dict[str, Any]:
    """The whole object, as the event stream has it: a piece of a running turn as it is stored, without what is at its default; its step is
    always there.
    """
    found = dict(_when_and_where(logged))
    if logged.kind in STEPPED:
        found["step"] = 0
    found |= to_builtins(logged.event if logged.event.stream else fields(logged))
    return found


def _when_and_where(logged: Logged) -> Iterator[tuple[str, Any]]:
    yield "at", rfc3339(logged.at) if logged.at else None  # A damaged event has lost its time.
    if logged.turn_id is not None:
        yield from (("turn_id", logged.turn_id), ("attempt", logged.attempt), ("position", logged.position))
