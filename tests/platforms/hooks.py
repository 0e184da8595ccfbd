"""Homes of platforms that tell us over HTTP: a real server on a loopback port stands in front of the gateway, and serves nothing else."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.types import Receive, Scope, Send

from holdfast.core.redaction import NO_SECRETS
from holdfast.gateway.gateway import Gateway
from holdfast.process.server import Server, address, listen
from holdfast.process.system import SystemClock
from holdfast.web.access import Access
from holdfast.web.endpoints import Resource
from holdfast.web.envelope import Envelope, Guard
from holdfast.web.errors import NoSuchPath
from holdfast.web.hooks import Hooks
from holdfast.web.paths import Paths
from tests.platforms.rigs import Door, Life, Place

PUBLIC = "https://bot.example.org"


class HookedPlace(Place):
    """`lead_to`: tells the platform where it reaches the process that serves now; between two lives nobody does."""

    def __init__(self, folder: Path, rig: Door, lead_to: Callable[[str | None], None], *, lives: int = 0) -> None:
        super().__init__(folder, rig, lives=lives)
        self._lead_to = lead_to

    @asynccontextmanager
    async def life(self, **settings: Any) -> AsyncIterator[Life]:
        async with super().life(**settings) as life, _served(life.gateway) as origin:
            self._lead_to(origin)
            try:
                yield life
            finally:
                self._lead_to(None)


async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise NoSuchPath(scope["path"])


@asynccontextmanager
async def _served(gateway: Gateway) -> AsyncIterator[str]:
    """Gives where it answers."""
    listener = listen("127.0.0.1", 0)
    access = Access("a token", clock=SystemClock(), port=listener.getsockname()[1], public=PUBLIC)
    paths = Paths(nothing)
    for each in Hooks(gateway).endpoints():
        paths.add(each.path, Resource([each], access), rest=each.rest)
    server = Server(Envelope(Guard(paths, access), NO_SECRETS), listener)
    running = asyncio.ensure_future(server.run())
    try:
        await server.started()
        yield address(listener)
    finally:
        server.stop()
        await running
        listener.close()
