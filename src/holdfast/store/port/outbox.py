"""What is sent to chats."""

from collections.abc import Sequence

from holdfast.core import events as e
from holdfast.core.delivery import DeliveryState
from holdfast.core.plans.deliver import Live
from holdfast.ports.outbox import Delivery
from holdfast.store.port.base import OverLines
from holdfast.store.work import outbox


class Outbox(OverLines):
    async def deliveries(
        self, *, states: Sequence[DeliveryState], now: int, limit: int, platforms: Sequence[str] | None = None
    ) -> list[Delivery]:
        return await self._lines.read(outbox.deliveries, tuple(states), now, limit, None if platforms is None else tuple(platforms))

    async def record_delivery(self, session_id: str, change: e.DeliveryChanged, *, expect: DeliveryState, at: int) -> bool:
        return await self._lines.write(outbox.record_delivery, session_id, change, expect, at, when_full=True)

    async def plan_delivery(self, session_id: str, planned: e.DeliveryPlanned, *, at: int) -> bool:
        return await self._lines.write(outbox.plan_delivery, session_id, planned, at)

    async def open_delivery(self, session_id: str, opened: e.DeliveryOpened, *, at: int) -> bool:
        return await self._lines.write(outbox.open_delivery, session_id, opened, at)

    async def live_deliveries(self) -> list[Delivery]:
        return await self._lines.read(outbox.live_deliveries)

    async def live_messages(self, session_id: str, turn_id: str, *, before: int = 2**62) -> list[Live]:
        return await self._lines.read(outbox.live_messages, session_id, turn_id, before)

    async def reply_anchor(self, session_id: str) -> str | None:
        return await self._lines.read(outbox.reply_anchor, session_id)

    async def delivery(self, delivery_id: str) -> list[Delivery]:
        return await self._lines.read(outbox.delivery, delivery_id)
