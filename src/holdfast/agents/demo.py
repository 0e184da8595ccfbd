"""The demo agent: no network, real tools, real streaming, so that anyone can try to break Holdfast in the first minute."""

import asyncio

from holdfast.core import content, keys, notices
from holdfast.core.effects import ToolOutcome
from holdfast.core.errors import HoldfastError
from holdfast.core.history import User
from holdfast.core.processes import ENDED, MATCHED
from holdfast.ports.agents import AgentRequest, TurnFace

HINT = "Try: count 60 0.1 · run date · background sleep 5 · approve date · ask What is your name? · fail · hang"
MAX_COUNT = 100_000
MAX_DELAY_S = 60.0
DEFAULT_DELAY_S = 0.05
# What a command printed is shown with its call; the answer does not repeat it.
SAID_OF_RUN = {
    ToolOutcome.DONE: "Done.",
    ToolOutcome.FAILED: "The command failed.",
    ToolOutcome.UNKNOWN: "The command was interrupted. It is not known whether it finished, and it was not run again. Send it again if that"
    " does no harm.",
}


class AskedToFail(HoldfastError):
    code = "agent_failed"

    def __init__(self) -> None:
        super().__init__("The demo agent failed, as it was asked to.")


class DemoAgent:
    """Understands one word at the start of a message; anything else is echoed."""

    name = "demo"

    def __init__(self) -> None:
        self._words = {
            "count": self._count,
            "run": self._run,
            "background": self._background,
            "approve": self._approve,
            "ask": self._ask,
            "fail": self._fail,
            "hang": self._hang,
        }

    async def run(self, request: AgentRequest, turn: TurnFace) -> None:
        if not keys.parse(request.session_key).on_page:
            await turn.say(notices.no_agent())
            return
        first = request.causes[0]  # What was said to steer the turn comes behind it.
        word, _, rest = first.text.strip().partition(" ")
        if first.what in (ENDED, MATCHED):
            await turn.say(first.text.partition("\n\n")[0])
        elif word in self._words:
            await self._words[word](request, turn, rest.strip())
        else:
            await turn.say(f"You said: {request.text}{_attached(request)}\n\n{HINT}")

    async def aclose(self) -> None:
        """It holds nothing open."""

    async def _count(self, request: AgentRequest, turn: TurnFace, rest: str) -> None:
        try:
            last, delay_s = _count_arguments(rest)
        except ValueError:
            await turn.say(f"`count N [DELAY_S]` counts to N, at most {MAX_COUNT}, with up to {MAX_DELAY_S:.0f} s between numbers.")
            return
        done, kept = _counted(request.kept)
        steered = list(request.causes[1:])
        if done:
            await turn.keep(kept)
        last, more = _steered(last, steered)
        while done < last:
            done += 1
            await turn.say(str(done) if done == 1 else f" {done}")
            if done < last:
                await asyncio.sleep(delay_s)
            if taken := await turn.taken():
                steered += taken
                last, more = _steered(last, steered)
        for text in more:
            await turn.say(f"\n\n{text}")

    async def _run(self, request: AgentRequest, turn: TurnFace, rest: str) -> None:
        if not rest:
            await turn.say("`run COMMAND` runs a shell command, for example `run date`.")
            return
        result = await turn.call(f"{request.turn_id}.1", "terminal", {"command": rest})
        await turn.say(SAID_OF_RUN[result.outcome])

    async def _background(self, request: AgentRequest, turn: TurnFace, rest: str) -> None:
        if not rest:
            await turn.say("`background COMMAND` runs a shell command in the background, for example `background sleep 5; date`.")
            return
        result = await turn.call(f"{request.turn_id}.1", "processes", {"action": "start", "command": rest})
        await turn.say(result.text)

    async def _approve(self, request: AgentRequest, turn: TurnFace, rest: str) -> None:
        if not rest:
            await turn.say("`approve COMMAND` runs a shell command once you approved it, for example `approve date`.")
            return
        result = await turn.call(f"{request.turn_id}.1", "terminal", {"command": rest}, careful=True)
        await turn.say("The command was denied, or failed." if result.outcome is ToolOutcome.FAILED else SAID_OF_RUN[result.outcome])

    async def _ask(self, request: AgentRequest, turn: TurnFace, rest: str) -> None:
        answer = await turn.ask(f"{request.turn_id}.1", rest or "What would you like to tell me?")
        await turn.say(f"Thank you. You answered: {answer.text}")

    async def _fail(self, request: AgentRequest, turn: TurnFace, rest: str) -> None:
        raise AskedToFail

    async def _hang(self, request: AgentRequest, turn: TurnFace, rest: str) -> None:
        await turn.say("Hanging until I am stopped. Press stop, or kill me.")
        await asyncio.Event().wait()


def _attached(request: AgentRequest) -> str:
    """A line for each file that came with the message."""
    parts = [part for cause in request.causes for part in content.attached(cause.content)]
    return "".join(f"\n- {part.name or 'unnamed'} ({part.media_type}, {part.size} bytes)" for part in parts)


def _count_arguments(rest: str) -> tuple[int, float]:
    words = rest.split()
    if not 1 <= len(words) <= 2:
        raise ValueError
    last, delay_s = int(words[0]), float(words[1]) if len(words) == 2 else DEFAULT_DELAY_S
    if not (1 <= last <= MAX_COUNT and 0 <= delay_s <= MAX_DELAY_S):
        raise ValueError
    return last, delay_s


def _steered(last: int, steered: list[User]) -> tuple[int, list[str]]:
    """A number that is said while it counts is where it ends from then on; everything else is said back at the end."""
    more = []
    for cause in steered:
        text = cause.text.strip()
        if text.isdecimal() and 1 <= int(text) <= MAX_COUNT:
            last = int(text)
        else:
            more.append(text if cause.what in (ENDED, MATCHED) else f"You also said: {text}")
    return last, more


def _counted(kept: str) -> tuple[int, int]:
    """How far an earlier attempt had counted, and how many characters say so: its last number may have been cut off within. Zeros where its
    text is not a count from one.
    """
    numbers, done = kept.split(" "), 0
    while numbers[done : done + 1] == [str(done + 1)]:
        done += 1
    rest = numbers[done:]
    if rest and (len(rest) > 1 or not str(done + 1).startswith(rest[0])):
        return 0, 0
    return done, len(" ".join(numbers[:done]))
