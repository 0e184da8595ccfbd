"""Tools whose effects are recorded outside the process that runs them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

from holdfast.core.effects import Effect, ToolOutcome
from holdfast.ports.tools import ToolContext, ToolResult
from holdfast.tools.plain import PlainTool

GUARDED = "guarded"


class Faults(Protocol):
    """Where a fake stands at a place at which the process may die. Awaiting it never returns in a process that does."""

    def at(self, place: str) -> Awaitable[None]: ...

    def pause(self) -> Awaitable[None]:
        """As long as the wire or the work takes."""

    def poll(self) -> Awaitable[None]:
        """Until it is worth looking again."""

    def hang(self) -> Awaitable[None]:
        """Longer than anybody waits."""


class Done(NamedTuple):
    """`log_id`: the newest event of the log at the moment of the effect."""

    call_id: str
    tool: str
    log_id: int


class World(Protocol):
    """What a tool changes: it is still changed when the process is dead."""

    effects: list[Done]

    def last_id(self) -> int: ...


class CounterTool(PlainTool):
    """Adds one to a counter in the world. Called again with the same key, an idempotent one changes nothing more.
    It takes as long as its argument `lasts_s` says.
    """

    def __init__(
        self, effect: Effect, *, world: World, faults: Faults, noise: Callable[[], int] = lambda: 1, guarded: bool = False
    ) -> None:
        """`guarded`: a person has to approve its calls."""
        self.name, self.description, self._effect = GUARDED if guarded else str(effect), f"An {effect} counter.", effect
        self._guarded = guarded
        self._world, self._faults, self._noise = world, faults, noise

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        await self._faults.at("tool starts")
        await self._faults.pause()
        await self._faults.at("before its effect")
        self._world.effects.append(Done(context.call_id, self.name, self._world.last_id()))
        await self._faults.at("after its effect")
        await asyncio.sleep(arguments.get("lasts_s", 0.0))
        for number in range(self._noise()):
            await context.output(f"{arguments['word']} {number}\n")
            await self._faults.pause()
        return ToolResult(ToolOutcome.DONE, f"{self.name} {arguments['word']}")

    def effect(self, arguments: dict[str, Any]) -> Effect:
        return self._effect

    def confined(self, arguments: dict[str, Any]) -> bool:
        return not self._guarded
