"""`python -m tests.e2e.scripted` is `python -m holdfast` with an agent that knows two words more than the demo: places in a turn that a
kill can hit for certain."""

import asyncio
import os
import signal

import msgspec

from holdfast.agents import making
from holdfast.agents.demo import AskedToFail, DemoAgent
from holdfast.cli import main as command_line
from holdfast.core.history import User
from holdfast.ports.agents import AgentRequest, TurnFace


class ScriptedAgent(DemoAgent):
    """`after COMMAND` runs a command and then counts to 100. `stumble` hangs, and fails when it is taken up again. `again` runs a command
    of its own in each attempt, and then hangs; `kill` does so, and then kills its process.
    """

    async def run(self, request: AgentRequest, turn: TurnFace) -> None:
        word, _, rest = request.text.partition(" ")
        if word == "after":
            await turn.call(f"{request.turn_id}.1", "terminal", {"command": rest})
            counts = User(id=request.causes[0].id, content="count 100 0.05")
            await super().run(msgspec.structs.replace(request, causes=(counts,)), turn)
        elif word in ("again", "kill"):
            await turn.call(f"{request.turn_id}.{request.attempt}", "terminal", {"command": "true"})
            if word == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            await asyncio.Event().wait()
        elif word == "stumble":
            await turn.say("Here goes.")
            if request.attempt > 1:
                raise AskedToFail
            await asyncio.Event().wait()
        else:
            await super().run(request, turn)


if __name__ == "__main__":
    # The composition root builds everything else: what is tested is what is served.
    setattr(making, "DemoAgent", ScriptedAgent)  # noqa: B010 - a name of its own module, not an exported one.
    command_line()
