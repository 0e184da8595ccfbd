"""What is sent to chats, and how far it has come."""

import msgspec

from holdfast.core.events.base import Event
from holdfast.core.rich import Rich


class DeliveryOpened(Event, frozen=True):
    """A message is about to be sent that will show the answer of this turn while it is being written. `owner`: who sends it. `anchor`: of
    what the turn replies to.
    """

    kind = "delivery.opened"
    delivery_id: str
    turn_id: str
    owner: int
    anchor: str | None = None


class Piece(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of a delivery that takes several, or that is put into messages which are there. `text`: None for all there is to say;
    `file`: the number of an attachment, which is sent instead. `target`: the platform's message that it is put into by an edit.
    """

    text: Rich | None = None
    file: int | None = None
    target: str | None = None
    repeat: bool = False


class DeliveryPlanned(Event, frozen=True):
    """What is owed is sent in these pieces. `live`: the messages they are put into, which showed the answer until now; `lost`: those of
    which nobody knows whether they arrived.
    """

    kind = "delivery.planned"
    delivery_id: str
    pieces: tuple[Piece, ...]
    live: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


class DeliveryChanged(Event, frozen=True):
    """`state` as in core.delivery; `retry_at` is the wall time of the next try, `receipt` what the platform answered. `owner`: who sends
    it, while it is being sent. `part`: which piece of it. `anew`: the message that it was put into is gone, so it is sent as one of its
    own.
    """

    kind = "delivery.changed"
    delivery_id: str
    state: str
    part: int = 0
    anew: bool = False
    tries: int = 0
    receipt: str | None = None
    retry_at: int = 0
    error: str | None = None
    owner: int | None = None
