"""Which turn a stop is for: the one that ran when the stop was accepted, and no later one."""

import msgspec

from holdfast.core.delivery import DeliveryState
from holdfast.core.sessions import Session

AT_ONCE_MS = 3_000
UNHEARD_MS = 10_000


class LastStop(msgspec.Struct, frozen=True):
    """The turn that people stopped last in a session, and when they first did. `waited`: the message that the session's newest turn
    answers was waiting then. `reply`: how far the newest reply to them has come; on a page there is none, the record is shown.
    """

    turn_id: str
    at: int
    waited: bool
    reply: DeliveryState | None = None


def named(session: Session, *, turn_id: str | None, saw: str | None, last: LastStop | None, now: int) -> str | None:
    """The turn a stop is for, open or not. `turn_id`: what the stop names itself. `saw`: the turn that was open when it was accepted.

    Stops that are sent at once, and name no turn, are all for the same one: their sender has not heard yet that the first did its work,
    while the next message, which was waiting, is being answered. That holds for a few seconds only, so that a stop always wins.
    """
    if turn_id is not None:
        return turn_id
    if last is not None and last.waited and abs(now - last.at) <= _not_heard_ms(last.reply):
        return last.turn_id
    if saw is not None:
        return saw
    return session.turn_id if session.open_turn else None


def stops(session: Session, turn_id: str | None) -> bool:
    """Whether there is still something to stop. A stop for a turn that has ended stops nothing."""
    return turn_id is not None and session.open_turn and session.turn_id == turn_id


def _not_heard_ms(reply: DeliveryState | None) -> int:
    """For how long people cannot be expected to know that their stop did its work. A reply that was given up is as good as heard: nobody
    will ever hear more.
    """
    if reply is None:
        return AT_ONCE_MS
    return -1 if reply in (DeliveryState.SENT, DeliveryState.DEAD) else UNHEARD_MS
