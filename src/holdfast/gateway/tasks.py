"""Every task of the gateway: owned, named, its failure reported. The only place that creates one."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import structlog

from holdfast.core.errors import Unavailable

T = TypeVar("T")
log = structlog.get_logger()


async def heard(event: asyncio.Event, timeout_s: float) -> bool:
    """Waits for an event, but not longer than that; whether it came."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return False
    return True


class Alarm:
    """Calls `ring` at a time that is put off far more often than it comes. Putting it off costs no timer: the one that is set looks again
    when it is due.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._at: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self, after_s: float) -> None:
        """Not earlier than what it is set to already."""
        loop = asyncio.get_running_loop()
        self._at = loop.time() + after_s
        if self._timer is None:
            self._timer = loop.call_at(self._at, self._look)

    def clear(self) -> None:
        self._at = None

    def close(self) -> None:
        self._at = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        loop, at = asyncio.get_running_loop(), self._at
        if at is None:
            return
        if loop.time() < at:
            self._timer = loop.call_at(at, self._look)
        else:
            self._at = None
            self._ring()


async def insist(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Does it again until the store has taken it."""
    while True:
        try:
            return await work()
        except Unavailable as error:
            await asyncio.sleep(error.retry_after_s)


class Tasks:
    """Ends what it owns when it is left. A task that fails is reported and does not take the others with it."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._final: set[asyncio.Task[Any]] = set()
        self.failures = 0

    def spawn(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def until(self, work: asyncio.Task[Any], event: asyncio.Event) -> None:
        """Returns when the work is done, raising what it raised, or the event has happened."""
        happened = self.spawn(event.wait(), name=f"not {work.get_name()}")
        await asyncio.wait({work, happened}, return_when=asyncio.FIRST_COMPLETED)
        happened.cancel()
        if work.done():
            work.result()

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failures += 1
            log.error("task failed", task=task.get_name(), exc_info=error)

    async def finish(self, work: Coroutine[Any, Any, T], *, name: str) -> T:
        """A final write: it completes even when its caller is cancelled; the cancellation is raised after it. Its failure
        belongs to the caller.
        """
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._final.add(task)
        task.add_done_callback(self._finished)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():
                await asyncio.wait({task})
            raise

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._final.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.info("a last write was not made", task=task.get_name(), error=str(error))

    async def aclose(self, *, timeout_s: float = 5.0) -> None:
        """Cancels what it owns. Final writes are let through, but not waited for without end."""
        while self._tasks or self._final:
            for task in sorted(self._tasks, key=asyncio.Task.get_name):
                task.cancel()
            tasks = sorted(self._tasks | self._final, key=asyncio.Task.get_name)
            _, late = await asyncio.wait(tasks, timeout=timeout_s)
            if late:
                log.error("tasks did not end", tasks=sorted(task.get_name() for task in late))
                for task in late:
                    task.cancel()
                return
