"""An agent that makes the call of the tool `processes` whose arguments it is sent, as JSON."""

import json

from holdfast.ports.agents import AgentRequest, TurnFace


class Calls:
    name = "calls"

    async def run(self, request: AgentRequest, turn: TurnFace) -> None:
        if request.causes[0].what == "message":
            await turn.say((await turn.call(f"{request.turn_id}.1", "processes", json.loads(request.text))).text)

    async def aclose(self) -> None:
        """It holds nothing open."""


agent = Calls()
