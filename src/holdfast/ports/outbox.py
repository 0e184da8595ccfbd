"""What is owed to chats."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from holdfast.core import content
from holdfast.core.content import Content
from holdfast.core.delivery import DeliveryState
from holdfast.core.events import Button, DeliveryChanged, DeliveryOpened, DeliveryPlanned, Piece
from holdfast.core.places import Place, place
from holdfast.core.plans.deliver import Live


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One message that is owed to a chat: a reply, or one piece of it. `part`: which piece; `piece`: None while nothing is planned, or
    where it is sent as it is. `owner`: who sends it, while it is being sent; None where version 0.1 was sending it. `written_at`: when it
    began to be owed; `tried_at`: when it was last sent. `turn_id`: the turn that it was written in. `live`: it shows an answer while that
    is being written. `seq`: where in the log it is written.
    """

    delivery_id: str
    session_id: str
    session_key: str
    state: DeliveryState
    content: Content
    tries: int
    retry_at: int
    part: int = 0
    parts: int = 1
    piece: Piece | None = None
    anchor: str | None = None
    owner: int | None = None
    written_at: int = 0
    tried_at: int = 0
    turn_id: str | None = None
    live: bool = False
    planned: bool = False
    target: str | None = None
    receipt: str | None = None
    error: str | None = None
    buttons: tuple[Button, ...] = ()
    role: str = ""
    seq: int = 0

    @property
    def text(self) -> str:
        return content.text(self.content)

    @property
    def place(self) -> Place:
        return place(self.session_key, self.anchor)


class Outbox(Protocol):
    """Deliveries. Every method keeps to the contract of `ports.store`."""

    async def deliveries(
        self, *, states: Sequence[DeliveryState], now: int, limit: int, platforms: Sequence[str] | None = None
    ) -> list[Delivery]:
        """Messages in these states whose time to be tried has come, in the order in which they were recorded, over all conversations and
        whatever the clock said; the pieces of one reply in theirs. Without those that show an answer while it is being written.
        `platforms`: only what is owed to chats of these, whose names hold no `:`.
        """

    async def record_delivery(self, session_id: str, change: DeliveryChanged, *, expect: DeliveryState, at: int) -> bool:
        """Moves a delivery on; false, and nothing changed, when it is not in the expected state."""

    async def plan_delivery(self, session_id: str, planned: DeliveryPlanned, *, at: int) -> bool:
        """It is sent in these pieces from now on. False, and nothing changed, if it is planned already or no longer pending, or if one of
        the messages that it is to be put into is not live any more.
        """

    async def open_delivery(self, session_id: str, opened: DeliveryOpened, *, at: int) -> bool:
        """A message that shows an answer is about to be sent. False, and nothing changed, if that turn does not run any more, or if
        anything else is still owed to a conversation of the same session key: that comes first.
        """

    async def live_deliveries(self) -> list[Delivery]:
        """All that show, or are about to show, an answer that is being written, or was."""

    async def live_messages(self, session_id: str, turn_id: str, *, before: int = 2**62) -> list[Live]:
        """The messages that show the answer of a turn, in the order in which they were opened. What was written later to a conversation of
        the same session key follows them, unless that was at or behind `before`, where a record stands.
        """

    async def reply_anchor(self, session_id: str) -> str | None:
        """What a reply of the newest turn hangs on."""

    async def delivery(self, delivery_id: str) -> list[Delivery]:
        """The pieces of one, in any state; none if there is no such delivery."""
