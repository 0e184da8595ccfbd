"""What this process has measured of itself and of the store in the last day, for the operator's view. No decision looks at it, and it ends
with the process.
"""

import asyncio
from collections.abc import Callable

import msgspec

from holdfast.core.errors import Unavailable
from holdfast.core.series import Ring
from holdfast.gateway.gateway import Gateway
from holdfast.ports.process import Clock
from holdfast.ports.upkeep import Commits

STEP_S = 10
KEPT = 24 * 3600 // STEP_S
# So many are shown, however long a time they are of.
POINTS = 360
BEAT_S = 1.0
NAMES = ("running_turns", "inbox", "outbox", "inbox_lag_ms", "first_text_ms", "loop_lag_ms", "commit_ms", "memory_bytes")


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """`since`: when the first step begins. `series`: by name, the highest number of each step, None where nothing was measured."""

    since: int
    step_s: int
    series: dict[str, list[float | None]]


class Series:
    """`memory`: how many bytes the process takes now, None where nobody knows."""

    def __init__(self, gateway: Gateway, *, clock: Clock, memory: Callable[[], int | None]) -> None:
        self._gateway, self._clock, self._memory = gateway, clock, memory
        self._rings = {name: Ring(KEPT) for name in NAMES}
        self._commits = Commits()

    async def run(self) -> None:
        while True:
            await self.measure()
            measured = self._slot
            while self._slot == measured:
                began = self._clock.monotonic()
                await asyncio.sleep(BEAT_S)
                self._put("loop_lag_ms", 1000 * max(0.0, self._clock.monotonic() - began - BEAT_S))

    async def measure(self) -> None:
        before, self._commits = self._commits, self._gateway.store.commits
        if made := self._commits.count - before.count:
            self._put("commit_ms", 1000 * (self._commits.seconds - before.seconds) / made)
        self._put("memory_bytes", self._memory())
        waited, first_text = self._gateway.tally.waited_ms, self._gateway.tally.first_text_ms
        if waited:
            self._put("inbox_lag_ms", max(waited))
        if first_text:
            self._put("first_text_ms", sorted(first_text)[len(first_text) // 2])
        waited.clear()
        first_text.clear()
        try:
            counts = await self._gateway.counts()
        except Unavailable:
            return  # A store that cannot be read leaves a gap.
        self._put("running_turns", counts.running)
        self._put("inbox", counts.inbox)
        self._put("outbox", counts.outbox)

    def window(self, hours: int) -> Window:
        """Up to now, `hours` long, at most a day."""
        slots = hours * 3600 // STEP_S // POINTS
        step_ms = 1000 * slots * STEP_S
        found = {name: ring.window(self._slot, points=POINTS, slots=slots) for name, ring in self._rings.items()}
        return Window(since=self._clock.now() - POINTS * step_ms, step_s=step_ms // 1000, series=found)

    @property
    def _slot(self) -> int:
        return int(self._clock.monotonic() // STEP_S)

    def _put(self, name: str, value: float | None) -> None:
        if value is not None:
            self._rings[name].put(self._slot, value)
