"""Messages and other causes: how they come in, what becomes of them, and what is written into a conversation."""

import msgspec

from holdfast.core.events.base import Event, Says
from holdfast.core.events.schedules import DueTime
from holdfast.core.recitals import Recital


class MessageAccepted(Says, frozen=True):
    """The cause record of a message. `mode`: as `core.busy` says; "reject" only for one that is refused with it. `anchor` is the platform's
    own name of the message: what a reply to it hangs on. `recital`: what its client recited with it, if that is how it names a
    conversation. `sender_name`: what its sender was called then, empty where that is not known; anybody can take any name.
    """

    kind = "message.accepted"
    message_id: str
    mode: str = "queue"
    sender: str = "owner"
    anchor: str | None = None
    dedup_key: str | None = None
    recital: Recital | None = None
    sender_name: str = ""


class MessageEdited(Says, frozen=True):
    """Its sender changed a message. From then on it reads like this; what was answered already stays answered. `effect`: as
    `core.plans.edit` says. `since`: where in the log its first words stand.
    """

    kind = "message.edited"
    message_id: str
    effect: str = "recorded"
    sender: str = "owner"
    since: int = 0
    dedup_key: str | None = None


class MessageRefused(Event, frozen=True):
    kind = "message.refused"
    message_id: str
    reason: str


class CauseRecorded(Says, frozen=True):
    """Something other than a message that a turn may start from, or that a running turn may take: a process that ended, a schedule.
    `what` says which; `generation`: the turn of the lane it belongs to, where it belongs to one. `during`: that turn was open when it
    happened, and may take it, but no other turn starts from it. `schedule`: which time of a schedule it is.
    """

    kind = "cause.recorded"
    cause_id: str
    what: str
    sender: str = "owner"
    generation: int | None = None
    during: bool = False
    anchor: str | None = None
    schedule: DueTime | None = None
    dedup_key: str | None = None


class CauseTaken(Event, frozen=True):
    """The turn took this cause while it ran. Its agent sees it after this is on record. `step` and `offset`: where in the answer."""

    kind = "cause.taken"
    cause_id: str
    step: int = 0
    offset: int = 0


class CauseDropped(Event, frozen=True):
    """No turn will start from this cause. Nobody is told: nobody said it."""

    kind = "cause.dropped"
    cause_id: str
    reason: str


class Button(msgspec.Struct, frozen=True, array_like=True):
    """`data` comes back when somebody presses it."""

    label: str
    data: str


class MessageWritten(Says, frozen=True):
    """A message of the conversation, whole. What must be sent to a chat carries its delivery, the anchor of what it replies to, and the
    buttons that a chat which has any shows below it. A command to the gateway carries the `recital` of its client, if it has one.
    `begun`: of an answer whose last step no response fixed, the attempt that began to write that step once more, if one did.
    """

    kind = "message.written"
    message_id: str
    role: str
    delivery_id: str | None = None
    anchor: str | None = None
    buttons: tuple[Button, ...] = ()
    begun: int = 0
    dedup_key: str | None = None
    recital: Recital | None = None
