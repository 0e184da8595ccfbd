"""Where an accepted message goes: to the open question, to the queue, or back with a refusal."""

from collections.abc import Sequence
from enum import StrEnum

from holdfast.core.delivery import DeliveryState
from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState

MAX_WAITING = 100


class Route(StrEnum):
    ANSWER = "answer"
    QUEUE = "queue"
    NEW_SESSION = "new_session"
    LANE_FULL = "lane_full"


class Asked(StrEnum):
    """How far a question has come on its way to its user. LOST: every attempt to deliver it was given up."""

    SEEN = "seen"
    ON_ITS_WAY = "on_its_way"
    LOST = "lost"


def asked(deliveries: Sequence[DeliveryState]) -> Asked:
    """Whether the user of a question can have seen it (A27). `deliveries`: each message that carries it to a chat; a page needs none."""
    if not deliveries or DeliveryState.SENT in deliveries:
        return Asked.SEEN
    return Asked.LOST if all(state is DeliveryState.DEAD for state in deliveries) else Asked.ON_ITS_WAY


def route(session: Session, *, max_waiting: int = MAX_WAITING, answers: bool = True) -> Route:
    """A suspended session is left for a new one. A waiting turn takes the message as its answer if it `answers`: its sender can have seen
    the question, and did not say that the message is for later. Everything else queues up.
    """
    if session.suspended:
        return Route.NEW_SESSION
    if session.turn_state is TurnState.WAITING and answers:
        return Route.ANSWER
    if session.queued >= max_waiting:
        return Route.LANE_FULL
    return Route.QUEUE
