"""The lines to a database: callers await on the event loop, what they asked for runs in threads. Knows no engine."""

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import msgspec

from holdfast.core.errors import StoreClosed
from holdfast.ports.upkeep import Commits

T = TypeVar("T")
Read = tuple["asyncio.Future[Any]", Callable[..., Any], tuple[Any, ...]]


class Operation(msgspec.Struct, frozen=True):
    """`when_full`: still tried when the disk is full, because it ends something and frees more than it takes. `waits`: its caller has
    nowhere else to put it, and waits while another program holds the database.
    """

    future: "asyncio.Future[Any]"
    run: Callable[..., Any]
    arguments: tuple[Any, ...]
    when_full: bool
    waits: bool = True


class Result(msgspec.Struct, frozen=True):
    future: "asyncio.Future[Any]"
    value: Any
    error: BaseException | None


class Lines(Protocol):
    """The two ways to the database. A simulation brings its own, which run inline."""

    async def write(self, run: Callable[..., T], *arguments: Any, when_full: bool = False, waits: bool = True) -> T: ...

    async def read(self, run: Callable[..., T], *arguments: Any) -> T: ...

    def subscribe(self, heard: Callable[[], None]) -> Callable[[], None]: ...

    @property
    def degraded(self) -> str | None: ...

    @property
    def commits(self) -> Commits: ...

    async def writable(self) -> None: ...

    async def aclose(self) -> None: ...


class Queues:
    """The event loop's side: writes wait in a queue for the writer's thread, which is woken, and reads for whichever reader is free. An
    engine gives the two loops that work them off.
    """

    def __init__(self, *, readers: int, max_batch: int) -> None:
        self._max_batch = max_batch
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Operation] = deque()
        self._wake = threading.Lock()  # Held while the writer has nothing to do; releasing it wakes the writer.
        self._sleeping = False
        self._closing = False
        self._broken: str | None = None
        self.commits = Commits()
        self._back = asyncio.Event()  # The database can be written, as far as anybody knows.
        self._back.set()
        self._heard: list[Callable[[], None]] = []
        self._reads: queue.SimpleQueue[Read | None] = queue.SimpleQueue()
        self._wake.acquire()
        self._threads = [threading.Thread(target=self._write_loop, name="holdfast-writer", daemon=True)]
        self._threads += [threading.Thread(target=self._read_loop, name=f"holdfast-reader-{n}", daemon=True) for n in range(readers)]

    def _start(self) -> None:
        for thread in self._threads:
            thread.start()

    def _write_loop(self) -> None:
        raise NotImplementedError

    def _read_loop(self) -> None:
        raise NotImplementedError

    # on the event loop

    async def write(self, run: Callable[..., T], *arguments: Any, when_full: bool = False, waits: bool = True) -> T:
        self._check_open()
        self._check_usable(when_full, waits)
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.append(Operation(future, run, arguments, when_full, waits))
        if self._sleeping:
            self._rouse()
        if self._broken:  # The writer may have died since the look above, and have emptied the queue before the append.
            future.cancel()
            raise StoreClosed(self._broken)
        return await future

    async def read(self, run: Callable[..., T], *arguments: Any) -> T:
        self._check_open()
        self._check_usable(True, True)
        future: asyncio.Future[T] = self._loop.create_future()
        self._reads.put((future, run, arguments))
        return await future

    def subscribe(self, heard: Callable[[], None]) -> Callable[[], None]:
        self._heard.append(heard)

        def unsubscribe() -> None:
            if heard in self._heard:
                self._heard.remove(heard)

        return unsubscribe

    @property
    def degraded(self) -> str | None:
        return self._broken

    async def writable(self) -> None:
        await self._back.wait()

    async def aclose(self) -> None:
        if not self._closing:
            self._closing = True
            self._rouse()
            for _ in self._threads[1:]:
                self._reads.put(None)
        await asyncio.to_thread(self._join)

    def _join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _check_open(self) -> None:
        if self._closing:
            raise StoreClosed
        if self._broken:
            raise StoreClosed(self._broken)

    def _check_usable(self, when_full: bool, waits: bool) -> None:
        """Raises what an engine knows to be in the way."""

    def _rouse(self) -> None:
        """Wakes the writer. It says that it sleeps before it looks at the queue for the last time, and we look whether it sleeps after we
        put something there: one of the two sees the other. A wake-up too many is harmless."""
        self._sleeping = False
        try:
            self._wake.release()
        except RuntimeError:
            pass  # It is already awake, or about to be.

    def _resolve(self, results: list[Result]) -> None:
        for result in results:
            _settle(result)
        for heard in tuple(self._heard):
            heard()

    # in the threads

    def _on_loop(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            pass  # The loop is closed: nobody waits any more.

    def _answer(self, results: list[Result]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._resolve, results)
        except RuntimeError:
            pass  # The loop is closed: nobody waits any more.

    def _answer_read(self, result: Result) -> bool:
        """False when the loop is closed, and nobody waits any more."""
        try:
            self._loop.call_soon_threadsafe(_settle, result)
        except RuntimeError:
            return False
        return True

    def _wait(self, patience_s: float) -> bool:
        """Until something is queued, or for so long (negative: without end). False when closing and nothing is left."""
        if not self._queue:
            if self._closing:
                return False
            self._sleeping = True
            if not self._queue and not self._closing:
                self._wake.acquire(timeout=patience_s)
            self._sleeping = False
        return True

    def _take(self) -> list[Operation]:
        """What is queued, at most a batch."""
        return [self._queue.popleft() for _ in range(min(len(self._queue), self._max_batch))]

    def _break(self, why: str, batch: list[Operation]) -> None:
        """The writer is lost: everyone who waits hears of it."""
        self._broken = why
        waiting = batch + [self._queue.popleft() for _ in range(len(self._queue))]
        self._answer([Result(operation.future, None, StoreClosed(why)) for operation in waiting])


def _settle(result: Result) -> None:
    future = result.future
    if not future.done():  # Its caller may have been cancelled.
        if result.error is None:
            future.set_result(result.value)
        else:
            future.set_exception(result.error)
