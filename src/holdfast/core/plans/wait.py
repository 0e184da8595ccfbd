"""The end of an attempt that can do nothing more until people answer: decided by what is still open in that transaction."""

import msgspec

from holdfast.core.events import TurnWaiting
from holdfast.core.plans import Plan, Write
from holdfast.core.plans.owe import Question


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """`open`: the questions that the turn waits for. None: every one is answered, and the attempt continues; unless the turn ends, because
    one of them was not answered in time (`expired`) or a stop is on record (`stopped`).
    """

    open: tuple[str, ...] = ()
    expired: bool = False
    stopped: bool = False


def plan(session_id: str, questions: tuple[Question, ...], *, stop_requested: bool, at: int) -> Plan[Waiting]:
    """`questions`: the open ones of the turn. Answers may have come since the attempt last looked."""
    if stop_requested:
        return Plan((), Waiting(stopped=True))
    if any(question.expires_at <= at for question in questions):
        return Plan((), Waiting(expired=True))
    open_ones = tuple(question.question_id for question in questions)
    if not open_ones:
        return Plan((), Waiting())
    return Plan((Write(session_id, TurnWaiting(question_ids=open_ones), in_turn=True),), Waiting(open=open_ones))
