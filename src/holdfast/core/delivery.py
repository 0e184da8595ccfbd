"""The states of a message on its way to a chat: one table, what to do with a send whose outcome is unknown, and what stands before a text
that may be a repeat or comes late (P4)."""

import hashlib
from base64 import b32encode
from collections.abc import Sequence
from enum import StrEnum

from holdfast.core import notices
from holdfast.core.capabilities import Capabilities
from holdfast.core.errors import Bug, Refused

REPEAT_LABEL = "(may be a repeat) "
# So often a text is sent that may have arrived. What surely did not arrive is tried for days.
MAX_TRIES = 8
GIVE_UP_MS = 3 * 24 * 3600 * 1000
# What is noted of a message that a person gave up, in the place of a problem.
DROPPED = "An operator dropped it."
LATE_MS = 24 * 3600 * 1000
# For so long after a send, and while the platform works, it is asked whether the message arrived. What comes next in the chat waits.
ASK_MS = 5 * 60 * 1000
# Until it is asked again.
LEAST_ASK_MS, MOST_ASK_MS = 2000, 60_000
# A time to try again that an earlier process stored is kept for at most so long: the clock may have been set back.
MOST_WAIT_MS = 10 * 60 * 1000


# What a platform has to answer within, and the slowest connection that still gets a file through.
ANSWER_S, SLOWEST_BYTES_PER_S = 60.0, 50_000


class DeliveryState(StrEnum):
    """UNKNOWN: its sender died while sending it, or it may have been sent after the backup that was restored. REPEATING: it is sent once
    more, with a label. DEAD: given up, visibly. LIVE: a message that shows an answer while it is being written.
    """

    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    UNKNOWN = "unknown"
    REPEATING = "repeating"
    DEAD = "dead"
    LIVE = "live"


D = DeliveryState
TABLE: dict[tuple[DeliveryState, str], DeliveryState] = {
    (D.PENDING, "send"): D.SENDING,
    (D.PENDING, "restored"): D.UNKNOWN,
    (D.PENDING, "give up"): D.DEAD,
    (D.SENDING, "receipt"): D.SENT,
    (D.SENDING, "opened"): D.LIVE,
    (D.SENDING, "failed"): D.PENDING,
    (D.SENDING, "lost"): D.UNKNOWN,
    (D.SENDING, "edit lost"): D.PENDING,
    (D.SENDING, "give up"): D.DEAD,
    (D.SENDING, "restored"): D.UNKNOWN,
    (D.UNKNOWN, "found"): D.SENT,
    (D.UNKNOWN, "opened"): D.LIVE,
    (D.UNKNOWN, "not found"): D.PENDING,
    (D.UNKNOWN, "same key"): D.SENDING,
    (D.UNKNOWN, "repeat"): D.REPEATING,
    (D.UNKNOWN, "give up"): D.DEAD,
    (D.REPEATING, "receipt"): D.SENT,
    (D.REPEATING, "failed"): D.UNKNOWN,
    (D.REPEATING, "lost"): D.UNKNOWN,
    (D.REPEATING, "give up"): D.DEAD,
    (D.REPEATING, "restored"): D.UNKNOWN,
    (D.UNKNOWN, "restored"): D.UNKNOWN,
    (D.LIVE, "closed"): D.SENT,
    (D.LIVE, "restored"): D.LIVE,
    (D.LIVE, "give up"): D.DEAD,
    (D.DEAD, "retry"): D.PENDING,
    (D.UNKNOWN, "seen"): D.SENT,
    (D.DEAD, "seen"): D.SENT,
}
DUE = (D.PENDING, D.UNKNOWN)
IN_FLIGHT = (D.SENDING, D.REPEATING)


def after(state: DeliveryState, happened: str) -> DeliveryState:
    try:
        return TABLE[state, happened]
    except KeyError:
        raise Bug(f"A delivery that is {state} cannot see {happened!r}.") from None


def overall(states: Sequence[str]) -> DeliveryState:
    """How far a message has come that is sent in several: it is there when all of them are, and what went wrong with one counts."""
    for state in (D.DEAD, D.UNKNOWN, D.REPEATING, D.SENDING):
        if state in states:
            return state
    return D.SENT if all(state == D.SENT for state in states) else D.PENDING


class NotOver(Refused):
    """An operator asked for something that makes no sense for a delivery in this state."""

    code = "not_over"

    def __init__(self, delivery_id: str, state: str, action: str) -> None:
        super().__init__(f"The delivery {delivery_id!r} is {state}, so there is nothing to {action}.")


def by_operator(state: DeliveryState, action: str) -> DeliveryState | None:
    """What an operator's word makes of a message: "retry" what was given up, or try again now what waits; "drop" what has not arrived, and
    tell nobody any more of what was given up; "sent": a person has seen that it arrived. None where there is nothing to do. What is being
    sent has to come to its outcome first.
    """
    if action == "sent":
        return TABLE.get((state, "seen"))
    if action == "retry":
        return {D.DEAD: D.PENDING, D.PENDING: D.PENDING, D.UNKNOWN: D.UNKNOWN}.get(state)
    return D.DEAD if state in (*DUE, D.DEAD) else None


class Settle(StrEnum):
    """What becomes of a send of unknown outcome. ASK the platform; send it again under the SAME_KEY, which is one send; WAIT for its echo;
    REPEAT it with a label; or GIVE_UP.
    """

    ASK = "ask"
    SAME_KEY = "same key"
    WAIT = "wait"
    REPEAT = "repeat"
    GIVE_UP = "give up"


def settle(can: Capabilities, *, tries: int, tried_ms_ago: int, works_ms: int, sure_ms: int, refused: bool = False) -> Settle:
    """`tried_ms_ago`: since it was last sent. `works_ms`: for how long the platform has been within reach; one that is not is asked for as
    long as that lasts. `sure_ms`: for how long intake has been complete, so that an echo would have come. `refused`: the platform was asked
    and can never tell.
    """
    if can.finds and not refused and (0 <= tried_ms_ago < ASK_MS or works_ms < ASK_MS):
        return Settle.ASK
    if 0 <= tried_ms_ago < can.key_lasts_s * 1000:
        return Settle.SAME_KEY
    if sure_ms < can.echoes_s * 1000:
        return Settle.WAIT
    return Settle.REPEAT if tries < MAX_TRIES else Settle.GIVE_UP


def gives_up(*, tries: int, age_ms: int) -> bool:
    """Whether something that surely did not arrive is tried no more. A clock that jumps gives up nothing at once."""
    return tries >= MAX_TRIES and age_ms > GIVE_UP_MS


def retry_delay_ms(tries: int) -> int:
    """Doubling from one second to five minutes."""
    return int(min(300_000, 1000 * 2 ** min(tries, 10)))


def ask_delay_ms(tried_ms_ago: int) -> int:
    """Until the platform is asked again: twice as late each time, from two seconds to one minute. The time of the send is stored, so the
    next process does not begin at two seconds.
    """
    return min(MOST_ASK_MS, max(LEAST_ASK_MS, tried_ms_ago))


def stored_wait_ms(state: DeliveryState, left_ms: int) -> int:
    """How long a message waits for a time to try again that an earlier process stored, and that is so far ahead by the wall clock. What may
    have arrived is asked about in time (`ASK_MS`), wherever the clock has been set.
    """
    return min(MOST_ASK_MS if state is D.UNKNOWN else MOST_WAIT_MS, max(0, left_ms))


def upload_s(size: int) -> float:
    """How long it may take to upload so many bytes."""
    return ANSWER_S + size / SLOWEST_BYTES_PER_S


def send_s(size: int) -> float:
    """How long one send may take in all, with a file of so many bytes or, at 0, without one."""
    return ANSWER_S + upload_s(size) if size else ANSWER_S


def words_before(*, repeat: bool, age_ms: int) -> str:
    """What stands before a text that may have arrived already, or that is a day old when it is sent."""
    late = f"(delayed by {notices.span(age_ms)}) " if age_ms >= LATE_MS else ""
    return (REPEAT_LABEL if repeat else "") + late


def key(delivery_id: str, part: int = 0) -> str:
    """By which a platform knows a message of ours again: 24 letters and digits, the same in every process."""
    data = hashlib.sha256(f"{delivery_id}|{part}".encode()).digest()[:15]
    return b32encode(data).decode().lower()
