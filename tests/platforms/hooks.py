"""Homes of platforms that tell us over HTTP: a real server on a loopback port stands in front of the gateway, and serves nothing else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.routing import Route, Router

from holdfast.core.redaction import NO_SECRETS
from holdfast.gateway.gateway import Gateway
from holdfast.process.server import Server, address, listen
from holdfast.process.system import SystemClock
from holdfast.web.access import Access
from holdfast.web.endpoints import Resource
from holdfast.web.envelope import Envelope, Guard
from holdfast.web.hooks import Hooks
from tests.fakes.hooks import Hook
from tests.platforms.rigs import Life, Place, Rig

PUBLIC = "https://bot.example.org"


class HookedPlace(Place):
    """`hook`: how the platform reaches the process that serves now; between two lives nobody does."""

    def __init__(self, folder: Path, rig: Rig, hook: Hook) -> None:
        super().__init__(folder, rig)
        self._hook = hook

    @asynccontextmanager
    async def life(self, **settings: Any) -> AsyncIterator[Life]:
        async with super().life(**settings) as life, _served(life.gateway) as origin:
            self._hook.lead_to(origin)
            try:
                yield life
            finally:
                self._hook.lead_to(None)


@asynccontextmanager
async def _served(gateway: Gateway) -> AsyncIterator[str]:
    """Gives where it answers."""
    listener = listen("127.0.0.1", 0)
    access = Access("a token", clock=SystemClock(), port=listener.getsockname()[1], public=PUBLIC)
    router = Router([Route(each.route, Resource([each], access)) for each in Hooks(gateway).endpoints()])
    server = Server(Envelope(Guard(router, access), NO_SECRETS), listener)
    running = asyncio.ensure_future(server.run())
    try:
        await server.started()
        yield address(listener)
    finally:
        server.stop()
        await running
        listener.close()
