"""An agent for chats: it answers each message with its words and ten numbers, slowly, so that a kill hits an answer in its middle."""

import asyncio

from holdfast.ports.agents import AgentRequest, TurnFace

NUMBERS = 10


def whole(text: str) -> str:
    return f"{text}:" + "".join(f" {number}" for number in range(NUMBERS))


async def agent(request: AgentRequest, turn: TurnFace) -> None:
    await turn.say(f"{request.text}:")
    for number in range(NUMBERS):
        await asyncio.sleep(0.0 if request.text.startswith("quick") else 0.2)
        await turn.say(f" {number}")
