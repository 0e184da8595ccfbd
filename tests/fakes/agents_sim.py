"""An agent that does what the message tells it to, step by step, and whose whole answer can be foretold.

say:hello|call:unsafe|call:pure 200|ask:name|say:bye|sleep:0.5|fail|hang|crash
start:lasts 2; exit 3; at 1 print watched|quiet:lasts 1|wait|read|kill

A number behind a call's tool is how many seconds it takes. `start` and `quiet` run what `fakes.keepers` understands in the background, the
latter without being told of its end; the others are about the last one that was started. A message that begins with `steps:` goes to the
agent that works in steps, one that begins with `model:` to the agent that answers with a model.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from holdfast.agents.demo import DemoAgent
from holdfast.core import notes
from holdfast.core.effects import ToolOutcome
from holdfast.core.policy import PROCESSES
from holdfast.ports.agents import AgentRequest, TurnFace
from holdfast.tools.processes import process_id_of
from tests.fakes import agents_steps
from tests.fakes.agents_model import MODEL, ModelTurns, to_the_answer

STEPS = "steps:"
# Words about background processes, what is watched for in their output, and how everything begins that is told of them.
STARTING, ABOUT = ("start", "quiet"), ("wait", "read", "kill")
WATCHED, TOLD = "watched", "The background process `"
# Those whose agents work in steps.
IN_STEPS = (STEPS, MODEL)


class Failure(Exception):
    pass


class ScriptedAgent:
    """`keeps` decides whether a resumed attempt goes on behind the text it finds or begins its answer anew. `given` hears of every
    attempt, and `crash` takes the whole process down.

    A page's `count N` goes to the demo agent.
    """

    name = "scripted"

    def __init__(
        self,
        *,
        keeps: Callable[[], bool] = lambda: True,
        think: Callable[[], float] = lambda: 0.0,
        given: Callable[[AgentRequest], None] = lambda request: None,
        crash: Callable[[], Awaitable[None]] | None = None,
        models: ModelTurns | None = None,
        sums_up: Callable[[], bool] = lambda: False,
    ) -> None:
        self._keeps, self._think, self._given, self._crash, self._models = keeps, think, given, crash, models
        self._demo, self._steps = DemoAgent(), agents_steps.StepAgent(think=think, sums_up=sums_up)

    async def aclose(self) -> None:
        pass

    async def run(self, request: AgentRequest, turn: TurnFace) -> None:
        self._given(request)
        if request.text.startswith("count "):
            await self._demo.run(request, turn)
            return
        if request.causes[0].text.startswith(STEPS):
            await self._steps.run(request, turn)
            return
        if self._models is not None and request.causes[0].text.startswith(MODEL):
            await self._models.run(request, turn)
            return
        writer, processes = _Writer(request.kept if self._keeps() else "", turn), Started(request.turn_id)
        for number, (word, rest) in enumerate(steps(request.text), 1):
            await asyncio.sleep(self._think())
            call_id = f"{request.turn_id}.{number}"
            processes.at(word, call_id)
            if word in (*STARTING, *ABOUT):
                result = await turn.call(call_id, PROCESSES, processes.arguments(word, rest))
                await writer.say(called(result.outcome, result.text))
            elif word == "call":
                tool, _, lasts_s = rest.partition(" ")
                result = await turn.call(call_id, tool, {"word": tool, "lasts_s": float(lasts_s or 0)})
                await writer.say(called(result.outcome, result.text))
            elif word == "ask":
                await writer.say(answered((await turn.ask(call_id, rest)).text))
            elif word == "sleep":
                await asyncio.sleep(float(rest))
            elif word == "fail":
                raise Failure("as it was told")
            elif word == "hang":
                await asyncio.Event().wait()
            elif word == "crash" and self._crash is not None:
                await self._crash()
            else:
                await writer.say(rest + " ")
        await writer.finish()


class Started:
    """Which process a turn has started last."""

    def __init__(self, turn_id: str) -> None:
        self._turn_id, self._process_id = turn_id, ""

    def at(self, word: str, call_id: str) -> None:
        if word in STARTING:
            self._process_id = process_id_of(self._turn_id, call_id)

    def arguments(self, word: str, rest: str) -> dict[str, object]:
        if word in STARTING:
            return {"action": "start", "command": rest, "notify_on_complete": word == "start", "watch_patterns": [WATCHED]}
        return {"action": word, "process_id": self._process_id, **({"timeout_s": 30} if word == "wait" else {})}


class _Writer:
    """Says what is not yet there: as long as the answer repeats what earlier attempts wrote, nothing needs to be said."""

    def __init__(self, kept: str, turn: TurnFace) -> None:
        self._kept, self._turn = kept, turn
        self._repeated = ""
        self._going_on = not kept

    async def say(self, text: str) -> None:
        if self._going_on:
            await self._turn.say(text)
        elif self._kept.startswith(self._repeated + text):
            self._repeated += text
        else:
            common = next((length for length in range(len(text), -1, -1) if self._kept.startswith(self._repeated + text[:length])), 0)
            await self.finish(common, text)
            await self._turn.say(text[common:])

    async def finish(self, common: int = 0, text: str = "") -> None:
        if not self._going_on:
            await self._turn.keep(len(self._repeated) + common)
            self._going_on = True


def steps(text: str) -> list[tuple[str, str]]:
    return [(word, rest) for word, _, rest in (step.partition(":") for step in text.split("|"))]


def called(outcome: ToolOutcome | None, text: str) -> str:
    return f"[{outcome} {text}] "


def answered(text: str) -> str:
    return f"<{text}> "


def whole_answer(turn_id: str, text: str, results: Mapping[str, tuple[ToolOutcome | None, str]], steered: Sequence[str] = ()) -> str:
    """What a completed turn must have answered, given the results on record and the words it took. (A failed one has not come so far.)"""
    if text.startswith(STEPS):
        return agents_steps.whole_answer(turn_id, text.removeprefix(STEPS), results, list(steered))
    if text.startswith(MODEL):  # It is told what no person said.
        heard = [f"{notes.PROCESS} {words}" if words.startswith(TOLD) else words for words in steered]
        return agents_steps.whole_answer(turn_id, to_the_answer(text.removeprefix(MODEL)), results, heard)
    if text.startswith("count "):
        counted = " ".join(str(number) for number in range(1, int(text.split()[1]) + 1))
        return counted + "".join(f"\n\n{'' if words.startswith(TOLD) else 'You also said: '}{words.strip()}" for words in steered)
    answer = ""
    for number, (word, rest) in enumerate(steps(text), 1):
        outcome, result = results.get(f"{turn_id}.{number}", (None, ""))
        if word in ("call", *STARTING, *ABOUT):
            answer += called(outcome, result)
        elif word == "ask":
            answer += answered(result)
        elif word == "say" or word not in ("sleep", "fail", "hang", "crash"):
            answer += rest + " "
    return answer
