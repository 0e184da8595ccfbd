"""What is owed to chats."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from holdfast.core import content
from holdfast.core.content import Content
from holdfast.core.delivery import DeliveryState
from holdfast.core.events import DeliveryChanged


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One reply that is owed to a chat. `owner`: who sends it, while it is being sent; None where version 0.1 was sending it."""

    delivery_id: str
    session_id: str
    session_key: str
    state: DeliveryState
    content: Content
    tries: int
    retry_at: int
    anchor: str | None = None
    owner: int | None = None

    @property
    def text(self) -> str:
        return content.text(self.content)


class Outbox(Protocol):
    """Deliveries. Every method keeps to the contract of `ports.store`."""

    async def deliveries(self, *, states: Sequence[DeliveryState], now: int, limit: int) -> list[Delivery]:
        """Replies in these states whose time to be tried has come, oldest first; those of one session in the order of its log."""

    async def record_delivery(self, session_id: str, change: DeliveryChanged, *, expect: DeliveryState, at: int) -> bool:
        """Moves a delivery on; false, and nothing changed, when it is not in the expected state."""
