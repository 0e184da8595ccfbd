"""`python -m bench.served` is `python -m holdfast` with an agent that knows two words more, and with a profile where one is wanted."""

import asyncio
import os
import time
from contextlib import nullcontext
from pathlib import Path

from bench.profiling import VARIABLE, profiled
from holdfast.agents import making
from holdfast.agents.demo import DemoAgent
from holdfast.cli import main as command_line
from holdfast.ports.agents import AgentRequest, TurnFace

THOUGHT = "a thought, no more."
STAMP_WRAP = 1_000_000  # Milliseconds: long enough for any latency, and as short as a word.


class ScriptedAgent(DemoAgent):
    """`think N` thinks N times without waiting. `stamp N DELAY_S` says N times what time it is, as a piece of its answer."""

    async def run(self, request: AgentRequest, turn: TurnFace) -> None:
        word, *rest = request.text.split()
        if word == "think":
            for _ in range(int(rest[0])):
                await turn.think(THOUGHT)
        elif word == "stamp":
            for _ in range(int(rest[0])):
                await turn.say(f"{stamp()} ")
                await asyncio.sleep(float(rest[1]))
        else:
            await super().run(request, turn)


def stamp() -> int:
    return time.time_ns() // 1_000_000 % STAMP_WRAP


def since(stamped: int, now_ms: float) -> float:
    """Milliseconds from a stamp to a wall time."""
    return (now_ms - stamped) % STAMP_WRAP


if __name__ == "__main__":
    # The composition root builds everything else: what is measured is what is served.
    setattr(making, "DemoAgent", ScriptedAgent)  # noqa: B010 - a name of its own module, not an exported one.
    folder = os.environ.pop(VARIABLE, None)
    with profiled(Path(folder)) if folder else nullcontext():
        command_line()
