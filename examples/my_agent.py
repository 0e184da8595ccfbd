"""An agent of one's own: it runs a command, asks whether to delete what it found, and survives a kill -9 at any moment."""

import shlex

from holdfast.ports.agents import AgentRequest, TurnFace


async def agent(request: AgentRequest, turn: TurnFace) -> None:
    """`request` is what was said and done before; every method of `turn` is on record before it counts. Returning ends the turn."""
    file = shlex.quote(request.text)
    await turn.say(f"Looking for {file}.\n")
    # A call has an id of its own within the turn. After a restart the same id gives the same result, and nothing runs twice.
    found = await turn.call(f"{request.turn_id}.look", "terminal", {"command": f"ls -d {file}"})
    # Asking ends this attempt; the answer begins the next one, in whichever process is there by then.
    answer = await turn.ask(f"{request.turn_id}.ask", f"This is there:\n{found.text}\nDelete it?")
    if answer.text.strip().lower() == "yes":
        deleted = await turn.call(f"{request.turn_id}.delete", "terminal", {"command": f"rm {file}"})
        await turn.say(f"Deleted ({deleted.outcome}).")
    else:
        await turn.say("Left where it is.")
