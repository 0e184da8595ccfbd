"""An agent that works in steps, as a model does: its message is the script of what the model responds.

look around > pure a > pure b | act > unsafe c > ask your colour > ask your size > unsafe d | done

Steps are parted by `|`. The first words of a step are its text, the others its calls: a tool and a word for it, `ask` and a question, with
what can be chosen in brackets, or `start` and a command for the background.
The last step's text ends with every result the agent was given, and with what steered it, so that the whole answer can be foretold.
"""

import asyncio
from collections.abc import Callable, Mapping

from holdfast.core.effects import ToolOutcome
from holdfast.core.events import ContextCompacted, ProposedCall, Usage
from holdfast.core.history import Result, Step
from holdfast.core.plans.ask import ASK, asks
from holdfast.core.policy import PROCESSES
from holdfast.ports.agents import AgentRequest, Response, TurnFace

PIECE = 5


class StepAgent:
    """`given` hears of every attempt, `think` says how long the model takes for a step. `sums_up`: whether a turn begins with a summary of
    those before it.
    """

    name = "steps"

    def __init__(
        self,
        *,
        given: Callable[[AgentRequest], None] = lambda request: None,
        think: Callable[[], float] = lambda: 0.0,
        sums_up: Callable[[], bool] = lambda: False,
    ) -> None:
        self._given, self._think, self._sums_up = given, think, sums_up

    async def aclose(self) -> None:
        pass

    async def run(self, request: AgentRequest, turn: TurnFace) -> None:
        self._given(request)
        script = parse(request.causes[0].text.removeprefix("steps:"))
        mine = [item for item in request.history if isinstance(item, Step) and item.turn_id == request.turn_id]
        results = [said(item.outcome, item.text) for item in request.history if isinstance(item, Result) and _of(request, item)]
        steered = [cause.text for cause in request.causes[1:]]
        if not mine and request.generation > 1 and self._sums_up():
            await turn.compacted(ContextCompacted(through=request.generation - 1, summary="What was said."))
        if request.unfinished:
            ran = await turn.run(request.unfinished)
            results = results[: len(results) - _known(request)] + [said(result.outcome, result.text) for result in ran]
        for number in range(len(mine), len(script)):
            steered += [cause.text for cause in await turn.taken()]
            text, calls = script[number]
            if number == len(script) - 1:
                text = whole(text, results, steered)
            await asyncio.sleep(self._think())
            for start in range(0, len(text), PIECE):
                await turn.say(text[start : start + PIECE])
            response = Response(text=text, calls=calls, blocks=({"said": text, "number": number},), usage=Usage(input=1, output=1))
            ran = await turn.run((await turn.responded(response)).calls)
            results += [said(result.outcome, result.text) for result in ran]


def _of(request: AgentRequest, result: Result) -> bool:
    return result.call_id.startswith(f"{request.turn_id}.")


def _known(request: AgentRequest) -> int:
    """How many of the unfinished step's calls have their result already: they are given once more, in their place."""
    unfinished = {call.call_id for call in request.unfinished}
    return sum(isinstance(item, Result) and item.call_id in unfinished for item in request.history)


def parse(script: str) -> list[tuple[str, tuple[ProposedCall, ...]]]:
    steps = []
    for step in script.split("|"):
        text, *calls = (word.strip() for word in step.split(">"))
        steps.append((text, tuple(_call(*call.split(" ", 1)) for call in calls)))
    return steps


def _call(tool: str, word: str = "") -> ProposedCall:
    if asks(tool):
        question, _, choices = word.rstrip("]").partition(" [")
        return ProposedCall(name=ASK, arguments={"question": question, **({"choices": choices.split(",")} if choices else {})})
    if tool == "start":
        return ProposedCall(name=PROCESSES, arguments={"action": "start", "command": word, "watch_patterns": ["watched"]})
    return ProposedCall(name=tool, arguments={"word": word, "command": word})


def said(outcome: ToolOutcome | None, text: str) -> str:
    return f"[{outcome} {text}]"


def whole(text: str, results: list[str], steered: list[str]) -> str:
    return " ".join([text, *results, *(f"<{word}>" for word in steered)])


def whole_answer(turn_id: str, script: str, results: Mapping[str, tuple[ToolOutcome | None, str]], steered: list[str]) -> str:
    """What a completed turn must have answered, given the results on record and what it took."""
    steps = parse(script)
    ids = [f"{turn_id}.{step}.{number}" for step, (_, calls) in enumerate(steps) for number in range(1, len(calls) + 1)]
    return whole(steps[-1][0], [said(*results[call_id]) for call_id in ids], steered)
