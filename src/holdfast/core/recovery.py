"""Closes the open calls of an interrupted turn."""

from holdfast.core.effects import ToolOutcome, may_repeat, unknown_result
from holdfast.core.events import ToolFinished
from holdfast.core.transcript import ToolCall


def close_open_calls(calls: list[ToolCall]) -> list[ToolFinished]:
    """Calls without a result that must not run again get an honest one. Those that may be repeated stay open (P5)."""
    return close_every_call([call for call in calls if not may_repeat(call.effect)])


def close_every_call(calls: list[ToolCall], *, stopped: bool = False) -> list[ToolFinished]:
    """For a turn that will not continue: nothing stays open."""
    return [
        ToolFinished(call_id=call.call_id, outcome=ToolOutcome.UNKNOWN, content=unknown_result(call.name, call.output, stopped=stopped))
        for call in calls
        if call.outcome is None
    ]
