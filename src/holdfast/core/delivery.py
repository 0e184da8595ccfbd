"""The states of a reply on its way to a chat: one table, and what to do with a send whose outcome is unknown (P4)."""

from enum import StrEnum

from holdfast.core import content
from holdfast.core.content import Content, TextPart
from holdfast.core.errors import Bug

REPEAT_LABEL = "(may be a repeat) "
MAX_TRIES = 8


class DeliveryState(StrEnum):
    """UNKNOWN: its sender died while sending it, or it may have been sent after the backup that was restored. REPEATING: it is sent once
    more, with a label. DEAD: given up, visibly.
    """

    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    UNKNOWN = "unknown"
    REPEATING = "repeating"
    DEAD = "dead"


D = DeliveryState
TABLE: dict[tuple[DeliveryState, str], DeliveryState] = {
    (D.PENDING, "send"): D.SENDING,
    (D.PENDING, "restored"): D.UNKNOWN,
    (D.PENDING, "give up"): D.DEAD,
    (D.SENDING, "receipt"): D.SENT,
    (D.SENDING, "failed"): D.PENDING,
    (D.SENDING, "lost"): D.UNKNOWN,
    (D.SENDING, "give up"): D.DEAD,
    (D.SENDING, "restored"): D.UNKNOWN,
    (D.UNKNOWN, "found"): D.SENT,
    (D.UNKNOWN, "not found"): D.PENDING,
    (D.UNKNOWN, "repeat"): D.REPEATING,
    (D.UNKNOWN, "give up"): D.DEAD,
    (D.REPEATING, "receipt"): D.SENT,
    (D.REPEATING, "failed"): D.UNKNOWN,
    (D.REPEATING, "lost"): D.UNKNOWN,
    (D.REPEATING, "give up"): D.DEAD,
    (D.REPEATING, "restored"): D.UNKNOWN,
    (D.UNKNOWN, "restored"): D.UNKNOWN,
}
DUE = (D.PENDING, D.UNKNOWN)
IN_FLIGHT = (D.SENDING, D.REPEATING)


def after(state: DeliveryState, happened: str) -> DeliveryState:
    try:
        return TABLE[state, happened]
    except KeyError:
        raise Bug(f"A delivery that is {state} cannot see {happened!r}.") from None


def repeated(given: Content) -> Content:
    """What is sent once more although it may have arrived, with a visible label."""
    parts = content.parts(given)
    if parts and isinstance(parts[0], TextPart):
        return content.of([TextPart(REPEAT_LABEL + parts[0].text), *parts[1:]])
    return content.of([TextPart(REPEAT_LABEL.strip()), *parts])


def retry_delay_ms(tries: int) -> int:
    """Doubling from one second to five minutes."""
    return int(min(300_000, 1000 * 2 ** min(tries, 10)))
