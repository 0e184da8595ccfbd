"""A server in a thread of its own, for tests that wait for real processes."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, Self, TypeVar

S = TypeVar("S", bound=AbstractAsyncContextManager[Any])
T = TypeVar("T")


class ServerThread(Generic[S]):
    """Whatever touches the server is done in its thread: `do(lambda server: server.say(...))`."""

    def __init__(self, server: S) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._over: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.server = server

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._over is not None and self._loop is not None
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        async with self.server:
            self._ready.set()
            await self._over.wait()

    def do(self, work: Callable[[S], T]) -> T:
        async def inside() -> T:
            return work(self.server)

        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(inside(), self._loop).result(10)
