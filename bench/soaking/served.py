"""`python -m bench.soaking.served` is `python -m holdfast` with an agent that knows a word more, which works in chats as well."""

import asyncio

from holdfast.agents import making
from holdfast.agents.demo import DemoAgent
from holdfast.cli import main as command_line
from holdfast.ports.agents import AgentRequest, TurnFace

TELL = "tell"


def told(name: str, last: int) -> str:
    """What `tell NAME LAST PACE_S` is answered with."""
    return f"{name}:" + "".join(f" {number}" for number in range(1, last + 1))


class TellingAgent(DemoAgent):
    async def run(self, request: AgentRequest, turn: TurnFace) -> None:
        word, *rest = request.text.split()
        if word != TELL:
            return await super().run(request, turn)
        name, last, pace_s = rest
        await turn.say(f"{name}:")
        for number in range(1, int(last) + 1):
            await asyncio.sleep(float(pace_s))
            await turn.say(f" {number}")


if __name__ == "__main__":
    # The composition root builds everything else.
    setattr(making, "DemoAgent", TellingAgent)  # noqa: B010 - a name of its own module, not an exported one.
    command_line()
