"""The seam between a turn and the agent that answers it."""

from typing import Any, Protocol

import msgspec

from holdfast.core.transcript import Message, ToolCall
from holdfast.ports.tools import ToolResult


class AgentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is given. `calls` are this turn's calls of earlier attempts, `kept` the text they had written,
    `note` ours to it.
    """

    session_key: str
    generation: int
    turn_id: str
    attempt: int
    messages: list[Message]
    text: str
    calls: list[ToolCall]
    kept: str
    note: str | None


class TurnFace(Protocol):
    """What an agent may do with its turn. Everything is recorded before it counts; every method may be cancelled."""

    async def say(self, text: str) -> None:
        """More of the answer. Shown once it is durable."""

    async def think(self, text: str) -> None:
        """More of the reasoning."""

    async def keep(self, chars: int) -> None:
        """The first `chars` characters earlier attempts wrote stay part of the answer. Otherwise the answer starts over."""

    async def call(self, call_id: str, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Runs a tool. Recorded before it starts, its result before this returns. A call of this id that has a result
        gives that result and runs nothing (P5).
        """

    async def ask(self, call_id: str, question: str) -> str:
        """The user's answer. Where there is none yet the attempt ends here and the turn waits; the next attempt gets the
        answer.
        """


class Agent(Protocol):
    name: str

    async def run(self, request: AgentRequest, turn: TurnFace) -> None:
        """One attempt at one answer. Returning ends the turn as completed; raising ends it as failed. It is cancelled with a word of
        why: `stop`, `gateway shutting down`, `gateway restarting` ...
        """

    async def aclose(self) -> None:
        """Closes what it holds open between runs. Called once, when none is running."""
