"""Where an accepted message goes: to the open question, to the queue, or back with a refusal."""

from enum import StrEnum

from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState

MAX_WAITING = 100


class Route(StrEnum):
    ANSWER = "answer"
    QUEUE = "queue"
    NEW_SESSION = "new_session"
    LANE_FULL = "lane_full"


def route(session: Session, *, max_waiting: int = MAX_WAITING, answers: bool = True) -> Route:
    """A suspended session is left for a new one; a waiting turn takes the message as its answer, unless it is none; the rest queue up."""
    if session.suspended:
        return Route.NEW_SESSION
    if session.turn_state is TurnState.WAITING and answers:
        return Route.ANSWER
    if session.queued >= max_waiting:
        return Route.LANE_FULL
    return Route.QUEUE
