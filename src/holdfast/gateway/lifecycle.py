"""The start and the end of a gateway. `pausing` and `hand_over` say what may happen in between; one table (`core.lifecycle`) drives all."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from holdfast.core.lifecycle import GatewayState, Input
from holdfast.core.restarts import By
from holdfast.gateway.announcements import Announcements
from holdfast.gateway.connections import Connections, vital
from holdfast.gateway.host import Host
from holdfast.gateway.pausing import Pausing
from holdfast.gateway.stage import Stage
from holdfast.gateway.startup import Startup
from holdfast.gateway.stopping import Stopping
from holdfast.gateway.tasks import insist

# What runs for as long as the gateway does, by name.
Works = dict[str, Callable[[], Coroutine[Any, Any, None]]]


class Lifecycle:
    def __init__(
        self,
        *,
        host: Host,
        stage: Stage,
        startup: Startup,
        works: Works,
        connections: Connections,
        pausing: Pausing,
        announcements: Announcements,
        stopping: Stopping,
    ) -> None:
        self._host, self._stage, self._startup, self._works = host, stage, startup, works
        self._connections, self._pausing, self._announcements, self._stopping = connections, pausing, announcements, stopping

    @property
    def state(self) -> GatewayState:
        return self._stage.state

    @property
    def stopped(self) -> asyncio.Event:
        return self._stopping.stopped

    async def start(self) -> None:
        paused = await self._startup.look_back()
        for name, work in self._works.items():
            self._host.tasks.spawn(vital(self._stage, work()), name=name)
        self._connections.open()
        self._stage.enter(Input.READY)
        self._stage.tell()
        if paused is not None:
            self._pausing.begin(paused)

    def serve(self) -> None:
        """It is the one that serves now: those who wait for a restart are told."""
        self._host.tasks.spawn(insist(self._announcements.back), name="restart note")

    def hurry(self) -> None:
        """A stop that is under way, or comes, gives running turns no more time."""
        self._stopping.hurry()

    async def stop(self, *, reason: str, by: By | None = None, for_good: bool = False) -> None:
        await self._stopping.run(reason=reason, by=by, for_good=for_good)
