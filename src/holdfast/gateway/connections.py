"""What a gateway is connected to: the platforms whose updates it takes in, its agents, and the servers of its tools."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

from holdfast.gateway.agents import Agents
from holdfast.gateway.host import Host
from holdfast.gateway.intake import Intake
from holdfast.gateway.links import Link
from holdfast.gateway.stage import Stage
from holdfast.gateway.toolbox import Toolbox
from holdfast.ports.agents import Agent
from holdfast.ports.platforms import Platform
from holdfast.ports.titles import Titler

LEAVE_S = 5.0
CLOSE_S = 3.0

log = structlog.get_logger()


async def vital(stage: Stage, work: Coroutine[Any, Any, None]) -> None:
    """Without any one of these a gateway only looks alive. Its process should end, and the next start continues from the log."""
    try:
        await work
    except Exception:  # The boundary: reported by its task; the process acts on `broken`.
        stage.broken.set()
        raise


class Connections:
    def __init__(
        self,
        *,
        host: Host,
        stage: Stage,
        links: dict[str, Link],
        agents: Agents,
        titler: Titler | None,
        tools: Toolbox,
        intake: Intake,
    ) -> None:
        self._host, self._stage, self._links, self._intake = host, stage, links, intake
        self._agents, self._titler, self._tools = agents, titler, tools
        self._intakes: list[asyncio.Task[None]] = []

    def open(self) -> None:
        """Takes in what people write. What is open already stays so: a successor that was never ready took nothing away."""
        if self._intakes:
            return
        for link in self._links.values():
            for name, work in (("intake", self._intake.follow), ("updates", self._intake.work)):
                self._intakes.append(self._host.tasks.spawn(vital(self._stage, work(link)), name=f"{name} {link.name}"))

    async def leave(self) -> None:
        """Takes in nothing more; the platforms stay connected, so that what is owed can be sent."""
        intakes, self._intakes = self._intakes, []
        for intake in intakes:
            intake.cancel()
        if intakes:
            await asyncio.wait(intakes, timeout=LEAVE_S)

    async def close(self) -> None:
        await self.leave()
        platforms = [link.platform for link in self._links.values()]
        titlers = [self._titler] if self._titler is not None else []
        open_ones: list[Platform | Agent | Titler | Toolbox] = [*platforms, *self._agents.all, *titlers, self._tools]
        for what in open_ones:
            try:
                async with asyncio.timeout(CLOSE_S):
                    await what.aclose()
            except Exception as error:  # The boundary to foreign code: what does not close is named, and left.
                log.error("does not close", what=what.name, error=f"{type(error).__name__}: {error}")
