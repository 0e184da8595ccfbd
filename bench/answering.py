"""The agent behind the chats of the bench: it repeats what it is told, at once, or over two seconds what begins with `slow`."""

import asyncio

from holdfast.ports.agents import AgentRequest, TurnFace

SLOW, PIECES, PACE_S = "slow", 8, 0.25


def answer(text: str) -> str:
    return f"{text}:{' and so on' * PIECES}" if text.startswith(SLOW) else f"{text}, indeed"


async def agent(request: AgentRequest, turn: TurnFace) -> None:
    whole = answer(request.text)
    if not request.text.startswith(SLOW):
        await turn.say(whole)
        return
    size = -(-len(whole) // PIECES)
    for start in range(0, len(whole), size):
        await asyncio.sleep(PACE_S)
        await turn.say(whole[start : start + size])
