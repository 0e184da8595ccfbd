"""What may be spent on models: the limits, and the sums they are held against."""

from collections.abc import Collection

from holdfast.core import limits, usage
from holdfast.core.limits import Bounds, Reached, SpendingLimits
from holdfast.core.messages import ToolCall
from holdfast.ports.process import Clock
from holdfast.ports.spending import Spending


class Budget:
    """Costs nothing where nothing is limited."""

    def __init__(self, limits: SpendingLimits, store: Spending) -> None:
        self.limits, self._store = limits, store

    def bounds(self, clock: Clock) -> Bounds | None:
        """What people may use today, where that is limited."""
        if not self.limits.bounds_senders:
            return None
        now = clock.now()
        return Bounds(limits=self.limits, day=usage.day(now, clock.offset_s(now)))

    async def reached(self, session_id: str, turn_id: str, *, day: str, sender: str, calls: Collection[ToolCall]) -> Reached | None:
        """The limit that forbids another request for this turn, if one does. `calls`: of the turn, with what people have allowed."""
        if not self.limits.any:
            return None
        account = await self._store.account(session_id, turn_id=turn_id, day=day, sender=sender)
        return limits.reached(self.limits, account, limits.allowed(self.limits, calls))
