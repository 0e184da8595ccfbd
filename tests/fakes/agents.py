"""A small agent that does what the first word of its message says, and the tool it has.

anything else      is said back
count N            N pieces, each an event of its own
lines TEXT         says TEXT, thinks it and prints it with its tool
pour N             has its tool print N characters in pieces, and "the end"; the tool returns them when it is released
hold               says "holding" and waits until it is released
attempt            says how often it was tried, and waits until it is released
ask QUESTION       asks, then says what it was told
approve TEXT       prints TEXT with its tool once somebody approved that, and says what came of it
choose A|B         asks which one, then says what was chosen
model FINISH       answers in two steps as a model does, with a call between them; the second ends for this reason
fail               fails
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.events import ProposedCall, Usage
from holdfast.core.history import Call
from holdfast.core.plans.ask import ASK
from holdfast.ports.agents import AgentRequest, Response, TurnFace
from holdfast.ports.tools import ToolContext, ToolResult
from holdfast.tools.plain import PlainTool

PIECE = 65536


class WordAgent:
    name = "words"

    def __init__(self) -> None:
        self.released = asyncio.Event()

    async def aclose(self) -> None:
        pass

    async def run(self, request: AgentRequest, turn: TurnFace) -> None:
        word, _, rest = request.text.partition(" ")
        match word:
            case "count":
                for number in range(int(rest) // 2):
                    await turn.say(f"{number} ")
                    await turn.think(f"({number})")
            case "lines":
                await turn.say(rest)
                await turn.think(rest)
                await turn.call(f"{request.turn_id}.1", "printer", {"text": rest})
            case "pour":
                await turn.call(f"{request.turn_id}.1", "printer", {"pour": int(rest)})
            case "much":  # So many calls of 100 KB each.
                for number in range(int(rest)):
                    await turn.call(f"{request.turn_id}.{number}", "printer", {"text": "x" * 100_000})
                await turn.say("much")
            case "hold":
                await turn.say("holding")
                await self.released.wait()
            case "attempt":
                await turn.say(f"attempt {request.attempt}")
                await self.released.wait()
            case "approve":
                result = await turn.call(f"{request.turn_id}.1", "printer", {"text": rest}, careful=True)
                await turn.say(f"{result.outcome}: {result.text}")
            case "ask":
                await turn.say(f"told: {(await turn.ask(f'{request.turn_id}.1', rest)).text}")
            case "choose":
                which = {"question": "Which one?", "choices": rest.split("|")}
                [chosen] = await turn.run([Call(call_id=f"{request.turn_id}.1", name=ASK, arguments=which)])
                await turn.say(f"chosen: {chosen.text}")
            case "model":
                await self._respond(request, turn, rest)
            case "fail":
                raise RuntimeError("as it was told")
            case _:
                await turn.say(request.text)

    async def _respond(self, request: AgentRequest, turn: TurnFace, finish: str) -> None:
        calls = (ProposedCall(name="printer", arguments={"text": "seen"}),)
        named: dict[str, Any] = {"provider": "test", "model": "big", "usage": Usage(input=100, output=10, cached=40, thought=5)}
        for text, proposed, why in (("Let me look.", calls, "calls"), ("It is so.", (), finish)):
            await turn.think("hm")
            await turn.say(text)
            step = await turn.responded(Response(text=text, calls=proposed, blocks=(), finish=why, **named))
            await turn.run(step.calls)


class Printer(PlainTool):
    """Prints what it is given, as output and as result."""

    name = "printer"

    def effect(self, arguments: dict[str, Any]) -> Effect:
        return Effect.PURE

    def __init__(self) -> None:
        self.poured = asyncio.Event()
        self.released = asyncio.Event()
        self.put_out: Callable[[str], Awaitable[None]]

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        self.put_out = context.output
        if "pour" in arguments:
            for _ in range(arguments["pour"] // PIECE):
                await context.output("x" * PIECE)
            await context.output("the end")
            self.poured.set()
            await self.released.wait()
            return ToolResult(ToolOutcome.DONE, "x" * arguments["pour"] + "the end")
        await context.output(arguments["text"])
        return ToolResult(ToolOutcome.DONE, arguments["text"])
