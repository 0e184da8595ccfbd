"""An agent that makes the call whose arguments it is sent, as JSON: of the tool `processes`, or of the one that `tool` names."""

import json

from holdfast.ports.agents import AgentRequest, TurnFace


class Calls:
    name = "calls"

    async def run(self, request: AgentRequest, turn: TurnFace) -> None:
        if request.causes[0].what == "message":
            given = json.loads(request.text)
            await turn.say((await turn.call(f"{request.turn_id}.1", given.pop("tool", "processes"), given)).text)

    async def aclose(self) -> None:
        """It holds nothing open."""


agent = Calls()
