"""The server in a thread of its own, for tests that wait for real processes."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from tests.fakes.discord.markdown import seen
from tests.fakes.discord.server import DiscordServer

T = TypeVar("T")


class DiscordThread:
    """Whatever touches the server is done in its thread: `do(lambda server: server.say(...))`."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._over: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.server = DiscordServer()

    def __enter__(self) -> "DiscordThread":
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

    @property
    def url(self) -> str:
        return self.server.base_url

    def do(self, work: Callable[[DiscordServer], T]) -> T:
        async def inside() -> T:
            return work(self.server)

        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(inside(), self._loop).result(10)

    def say(self, user: str, text: str) -> dict[str, Any]:
        """In the private chat with somebody."""
        return self.do(lambda server: server.say(server.private(user), text, user=user))

    def texts(self, user: str) -> list[str]:
        return self.do(lambda server: [seen(text) for text in server.texts(server.private(user))])
