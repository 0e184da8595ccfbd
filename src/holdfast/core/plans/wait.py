"""The end of an attempt that can do nothing more until people answer: decided by what is still open in that transaction. And the end of a
turn that waited for too long.
"""

import msgspec

from holdfast.core.events import TurnWaiting
from holdfast.core.plans import Plan, Write, ending, to_turn
from holdfast.core.plans.ending import Unfinished
from holdfast.core.plans.owe import Question


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """`open`: the questions that the turn waits for. None: the attempt continues, because calls that it believed to be waiting have their
    answer (`answered`); or the turn ends, because a question was not answered in time (`expired`) or a stop is on record (`stopped`).
    """

    open: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    expired: bool = False
    stopped: bool = False


def plan(session_id: str, questions: tuple[Question, ...], *, asking: tuple[str, ...], stop_requested: bool, at: int) -> Plan[Waiting]:
    """`questions`: the open ones of the turn. `asking`: the calls that wait, as far as the attempt knows. What stands behind one that has
    been answered may run before the turn waits for the others.
    """
    still_open = {question.call_id for question in questions}
    answered = tuple(call_id for call_id in asking if call_id not in still_open)
    if stop_requested:
        return Plan((), Waiting(stopped=True, answered=answered))
    if answered:
        return Plan((), Waiting(answered=answered))
    if any(question.expires_at <= at for question in questions):
        return Plan((), Waiting(expired=True))
    open_ones = tuple(question.question_id for question in questions)
    if not open_ones:
        return Plan((), Waiting())
    return Plan((Write(session_id, TurnWaiting(question_ids=open_ones), in_turn=True),), Waiting(open=open_ones))


def expire(session_id: str, unfinished: Unfinished | None) -> Plan[bool]:
    """One of its questions was not answered in time (R5): the first of them ends the turn, and with it the others. `unfinished`: the open
    turn, if no process runs it; one that a process runs is ended by that process. Gives whether it ended.
    """
    if unfinished is None:
        return Plan((), False)
    return Plan(tuple(to_turn(session_id, ending.expired(unfinished))), True)
