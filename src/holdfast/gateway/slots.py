"""How many of something may be under way at once, and who is next. What keeps a slot, and for how long, `admission` decides."""

import asyncio
import heapq

from holdfast.gateway.tasks import Tasks

Rank = tuple[int, int]


class Slot:
    """Giving it back a second time does nothing."""

    def __init__(self, slots: "Slots") -> None:
        self._slots: Slots | None = slots

    def give_back(self) -> None:
        if self._slots is not None:
            self._slots.free()
            self._slots = None


class Slots:
    """The lowest rank is served first; among equals, who came first."""

    def __init__(self, count: int, tasks: Tasks) -> None:
        self.count, self._tasks = count, tasks
        self._closed = False
        self._taken = 0
        self._arrivals = 0
        self._waiting: list[tuple[Rank, int, asyncio.Event]] = []

    @property
    def full(self) -> bool:
        return self._taken >= self.count

    async def take(self, rank: Rank, news: asyncio.Event) -> Slot | None:
        """A slot, or None when there was news first: what was to be resumed may have been stopped."""
        if self._taken < self.count and not self._waiting and not self._closed:
            self._taken += 1
            return Slot(self)
        called = asyncio.Event()
        self._arrivals += 1
        entry = (rank, self._arrivals, called)
        heapq.heappush(self._waiting, entry)
        mine = self._tasks.spawn(called.wait(), name="waiting for a slot")
        heard = self._tasks.spawn(news.wait(), name="news while waiting for a slot")
        try:
            await asyncio.wait({mine, heard}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if called.is_set():
                self.free()
            raise
        finally:
            heard.cancel()
            mine.cancel()
            if not called.is_set():
                self._waiting.remove(entry)
                heapq.heapify(self._waiting)
        return Slot(self) if called.is_set() else None

    def free(self) -> None:
        """One of the slots is free again, and goes to the next in rank."""
        self._taken -= 1
        self._call()

    def close(self) -> None:
        """No slot is given until they are opened."""
        self._closed = True

    def open(self) -> None:
        self._closed = False
        self._call()

    def _call(self) -> None:
        while self._waiting and self._taken < self.count and not self._closed:
            _, _, called = heapq.heappop(self._waiting)
            called.set()
            self._taken += 1
