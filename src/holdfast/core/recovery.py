"""Closes the open calls of an interrupted turn."""

from collections.abc import Sequence

from holdfast.core.effects import Effect, ToolOutcome, may_repeat, unknown_result
from holdfast.core.events import QuestionClosed, ToolFinished
from holdfast.core.messages import Question, ToolCall

NOT_CONTINUED = "It was not continued with the answer: the turn ended first."
LOST = "the call that asked was interrupted"


def close_open_calls(calls: list[ToolCall]) -> list[ToolFinished]:
    """Calls without a result that must not run again get an honest one. Those that may be repeated stay open (P5), and so do those that
    rest until a person has answered, because nothing of them was under way, and reported ones, which may still run in their agent.
    """
    return close_every_call([call for call in calls if not _stays_open(call)])


def _stays_open(call: ToolCall) -> bool:
    return may_repeat(call.effect) or call.rests or call.effect is Effect.REPORTED


def close_live_questions(questions: Sequence[Question]) -> list[QuestionClosed]:
    """Questions of calls that ran while they asked: nobody can give these calls an answer any more."""
    return [QuestionClosed(question_id=each.question_id, call_id=each.call_id, why=LOST) for each in questions if each.live]


def close_every_call(calls: list[ToolCall], *, stopped: bool = False) -> list[ToolFinished]:
    """For a turn that will not continue: nothing stays open."""
    return [_closed(call, stopped=stopped) for call in calls if call.outcome is None]


def _closed(call: ToolCall, *, stopped: bool) -> ToolFinished:
    if call.rests:
        return ToolFinished(call_id=call.call_id, outcome=ToolOutcome.FAILED, content=NOT_CONTINUED)
    return ToolFinished(call_id=call.call_id, outcome=ToolOutcome.UNKNOWN, content=unknown_result(call.name, call.output, stopped=stopped))
