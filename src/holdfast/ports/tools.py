"""The seam between a turn and the tools it runs."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec

from holdfast.core import content
from holdfast.core.content import Content
from holdfast.core.effects import Effect, ToolOutcome


class ToolResult(msgspec.Struct, frozen=True):
    outcome: ToolOutcome
    content: Content

    @property
    def text(self) -> str:
        return content.text(self.content)


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """`output` takes what the tool puts out as it comes. Of a long output only parts are recorded (`core.output`)."""

    session_id: str
    session_key: str
    generation: int
    turn_id: str
    call_id: str
    output: Callable[[str], Awaitable[None]]


class Tool(Protocol):
    name: str
    effect: Effect

    async def reap(self, lives: Callable[[str], bool]) -> int:
        """Kills what lives of the gateway that are over (`lives(owner's name)` is false) left running; gives how many it killed."""

    async def stop(self, turn_id: str) -> int:
        """Kills what calls of this turn, run here, left running after they had returned: the turn was stopped. Gives how many."""

    async def end_session(self, session_id: str) -> int:
        """Kills what calls of this session left running, whichever process of this home started them. Gives how many."""

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Cancelled means: whatever it started is dead when this has returned. What goes on after a call that returned is named in its
        result. Bad arguments are a failed result, not an exception.
        """
