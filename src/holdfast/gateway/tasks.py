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
