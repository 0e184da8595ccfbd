"""How many resumes may be getting under way at once. A place is given back as soon as its turn has shown a sign of life."""

import asyncio
from types import TracebackType

from holdfast.gateway.tasks import Tasks


class Place:
    """Leaving gives it back, unless it was given back before."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places: asyncio.Semaphore | None = places

    def give_back(self) -> None:
        if self._places is not None:
            self._places.release()
            self._places = None

    def __enter__(self) -> "Place":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.give_back()


class Places:
    def __init__(self, count: int, tasks: Tasks) -> None:
        self._places, self._tasks = asyncio.Semaphore(count), tasks

    async def take(self, news: asyncio.Event) -> Place | None:
        """A place, or None when there was news first: what was to be resumed may have been stopped meanwhile."""
        if not self._places.locked():
            await self._places.acquire()
            return Place(self._places)
        mine = self._tasks.spawn(self._places.acquire(), name="waiting for a place")
        heard = self._tasks.spawn(news.wait(), name="news while waiting for a place")
        try:
            await asyncio.wait({mine, heard}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            heard.cancel()
            mine.cancel()
        return Place(self._places) if mine.done() and not mine.cancelled() else None
