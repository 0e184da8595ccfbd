"""An agent that is made when a turn first needs it, so that what no conversation has chosen is not loaded."""

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.ports.agents import Agent, AgentRequest, ReportingFace


class LazyAgent:
    """If it cannot be made, the turn fails with the reason, and the next one tries again."""

    def __init__(self, name: str, make: Callable[[], Awaitable[Agent]]) -> None:
        self.name, self._make = name, make
        self._made: Agent | None = None
        self._making = asyncio.Lock()

    async def run(self, request: AgentRequest, turn: ReportingFace) -> None:
        async with self._making:
            agent = self._made = self._made or await self._make()
        await agent.run(request, turn)

    async def aclose(self) -> None:
        if self._made is not None:
            await self._made.aclose()
