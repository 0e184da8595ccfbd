"""Closes the open calls of an interrupted turn and counts restarts in a row."""

from holdfast.core.effects import ToolOutcome, may_repeat, unknown_result
from holdfast.core.events import ToolFinished
from holdfast.core.transcript import ToolCall

PROGRESS_AFTER_MS = 10 * 60 * 1000


def close_open_calls(calls: list[ToolCall]) -> list[ToolFinished]:
    """Calls without a result that must not run again get an honest one. Those that may be repeated stay open (P5)."""
    return close_every_call([call for call in calls if not may_repeat(call.effect)])


def close_every_call(calls: list[ToolCall], *, stopped: bool = False) -> list[ToolFinished]:
    """For a turn that will not go on: nothing stays open."""
    return [
        ToolFinished(call_id=call.call_id, outcome=ToolOutcome.UNKNOWN, result=unknown_result(call.name, call.output, stopped=stopped))
        for call in calls
        if call.outcome is None
    ]


def restarts_after_cut(restarts: int, *, own_results: int, ran_ms: int) -> int:
    """The count of restarts in a row, this cut included. An attempt that made progress of its own starts the count anew."""
    return 0 if own_results or ran_ms >= PROGRESS_AFTER_MS else restarts + 1


def own_results(calls: list[ToolCall], attempt: int) -> int:
    """How many results the attempt recorded itself. Results made up for calls of unknown outcome are not progress."""
    return sum(call.finished_in == attempt and call.outcome is not ToolOutcome.UNKNOWN for call in calls)
