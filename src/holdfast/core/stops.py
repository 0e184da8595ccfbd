"""Which turn a stop is for: the one that ran when the stop was accepted, and no later one."""

import msgspec

from holdfast.core.delivery import DeliveryState
from holdfast.core.sessions import Session

AT_ONCE_MS = 10_000


class LastStop(msgspec.Struct, frozen=True):
    """The turn that people stopped last in a session, when they first did, and how far the newest reply to them has come. A page needs no
    reply: it shows the record.
    """

    turn_id: str
    at: int
    reply: DeliveryState | None


def named(session: Session, *, saw: str | None, last: LastStop | None, now: int) -> str | None:
    """The turn a stop is for, open or not. `saw`: the turn that was open when the stop was accepted, if one was.

    Stops that are sent to a chat at once are all for the same turn: whoever sends them has not heard yet that the first one did its work.
    That holds for a few seconds only, so that a chat whose replies are stuck can still stop what runs.
    """
    if last is not None and last.reply is not None and not _heard(last.reply) and abs(now - last.at) <= AT_ONCE_MS:
        return last.turn_id
    if saw is not None:
        return saw
    return session.turn_id if session.open_turn else None


def stops(session: Session, turn_id: str | None) -> bool:
    """Whether there is still something to stop. A stop for a turn that has ended stops nothing."""
    return turn_id is not None and session.open_turn and session.turn_id == turn_id


def _heard(reply: DeliveryState) -> bool:
    """One that was given up is as good as heard: nobody will ever hear more."""
    return reply in (DeliveryState.SENT, DeliveryState.DEAD)
