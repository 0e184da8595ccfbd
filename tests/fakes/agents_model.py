"""The agent that answers with a model, whose models are in this process and follow a script, and fail as they are told.

model: look around > pure a > pure b | act > unsafe c > guarded d > ask your colour | done

A script reads as for an agent that works in steps (`agents_steps`), and the whole answer can be foretold in the same way.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.agents.instructions import Instructions
from holdfast.agents.model import ModelAgent
from holdfast.core.events import Usage
from holdfast.core.history import Item, Result, Step, User
from holdfast.ports.agents import AgentRequest, Response, TurnFace
from holdfast.ports.models import (
    Busy,
    CallPiece,
    Cut,
    ModelError,
    ModelRequest,
    ModelSettings,
    NotAllowed,
    Piece,
    Rejected,
    Taking,
    TextPiece,
    ThoughtPiece,
    TooLong,
)
from holdfast.ports.process import Clock
from tests.fakes.agents_steps import PIECE, parse, said, whole

MODEL = "model:"
MODELS = ("a:first", "b:second")
OPEN, RESPONDED = "open", "responded"
# How a model may take a request, and the error that comes of it: at once, or after half of the text.
ERRORS: dict[str, Callable[[], ModelError]] = {
    "busy": lambda: Busy("It is busy."),
    "later": lambda: Busy("It is busy.", retry_after_s=7.0),
    "closed": lambda: Busy("There is no connection.", at_once=True),
    "cut": lambda: Cut("The stream broke off."),
    "thoughts": lambda: Rejected("These thoughts are not mine.", thoughts=True),
    "too long": lambda: TooLong("The request is too long."),
    "no key": lambda: NotAllowed("The key is wrong."),
}
SLOW_S = 2.0
EVENT_S = 0.001


@dataclass
class Asked:
    """A request to a model. `step`: how many steps of the turn it holds; `log_id`: the newest event of the log when it was made; `wrong`:
    what no real provider would take; `summary`: it asks for a summary of earlier turns. `outcome`: the code of its error, or that it was
    responded to, or that nobody waited for it.
    """

    turn_id: str
    attempt: int
    model: str
    step: int
    log_id: int
    wrong: str
    summary: bool
    outcome: str = OPEN


class ModelTurns:
    """`mood`: how the next request is taken: "" well; or a key of ERRORS; "slow"; "length": the response ends within its last call; "no
    end": the stream ends without a response. `asked` hears of each request. `chance`: for the retries.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        mood: Callable[[], str] = lambda: "",
        asked: Callable[[Asked], None] = lambda asked: None,
        log_id: Callable[[], int] = lambda: 0,
        chance: Callable[[], float] = lambda: 1.0,
    ) -> None:
        self._clock, self._chance = clock, chance
        self.mood, self.asked, self.log_id = mood, asked, log_id

    async def run(self, request: AgentRequest, turn: TurnFace) -> None:
        nowhere = Path("/nonexistent")
        agent = ModelAgent(
            models=lambda chosen: MODELS,
            client=lambda name: _Client(name, request, self),
            instructions=Instructions(home=nowhere, clock=self._clock, folder=lambda session_id, chosen: nowhere, text="Be kind."),
            settings=lambda model: ModelSettings(),
            read=_no_blob,
            clock=self._clock,
            chance=self._chance,
        )
        await agent.run(request, turn)
        await agent.aclose()


class _Client:
    """One model, for one attempt of one turn."""

    wire = "script"
    takes = Taking()

    def __init__(self, name: str, request: AgentRequest, turns: ModelTurns) -> None:
        self._name, self._request, self._turns = name, request, turns
        self.provider, _, self.model = name.partition(":")

    async def aclose(self) -> None: ...

    async def stream(self, request: ModelRequest) -> AsyncIterator[Piece | Response]:
        given, items = self._request, list(request.history)
        steps = sum(isinstance(item, Step) and item.turn_id == given.turn_id for item in items)
        summary = not request.tools
        asked = Asked(given.turn_id, given.attempt, self._name, steps, self._turns.log_id(), _wrong(items), summary)
        self._turns.asked(asked)
        mood = self._turns.mood()
        response = Response(text="A summary.") if summary else self._response(items, steps)
        try:
            if mood == "slow":
                await asyncio.sleep(SLOW_S)
            yield ThoughtPiece("hm")
            for start in range(0, len(response.text), PIECE):
                await asyncio.sleep(EVENT_S)
                if mood in ERRORS and (mood != "cut" or 2 * start >= len(response.text)):
                    raise ERRORS[mood]()
                yield TextPiece(response.text[start : start + PIECE])
            for call in response.calls:
                yield CallPiece(call.name)
            if mood == "no end":
                asked.outcome = Cut.code
                return
        except ModelError as error:
            asked.outcome = error.code
            raise
        asked.outcome = RESPONDED
        yield Response(
            text=response.text,
            calls=response.calls,
            blocks=({"said": response.text, "number": steps},),
            finish="length" if mood == "length" and response.calls else "calls" if response.calls else "end",
            usage=Usage(input=len(items), output=1),
            wire=self.wire,
            provider=self.provider,
            model=self.model,
        )

    def _response(self, items: list[Item], number: int) -> Response:
        """What the script says comes next."""
        mine = items[_place(items, self._request.causes[0].id) + 1 :]
        script = parse(to_the_answer(self._request.causes[0].text.removeprefix(MODEL)))
        text, calls = script[min(number, len(script) - 1)]
        if number >= len(script) - 1:
            results = [said(item.outcome, item.text) for item in mine if isinstance(item, Result)]
            text = whole(text, results, [item.text for item in mine if isinstance(item, User)])
        return Response(text=text, calls=calls)


def to_the_answer(script: str) -> str:
    """A response without calls is the answer."""
    steps = script.split("|")
    calling = list(itertools.takewhile(lambda step: ">" in step, steps))
    return "|".join(steps[: len(calling) + 1])


def _place(items: Sequence[Item], cause_id: str) -> int:
    return next(place for place, item in enumerate(items) if isinstance(item, User) and item.id == cause_id)


def _wrong(items: Sequence[Item]) -> str:
    """Behind each step stand the results of its calls, one each, in order, and nothing else."""
    wanted: list[str] = []
    for item in items:
        if isinstance(item, Result):
            if not wanted or wanted.pop(0) != item.call_id:
                return f"{item} where nobody waits for it"
        elif wanted:
            return f"{item} before the results of {wanted}"
        elif isinstance(item, Step):
            wanted = [call.call_id for call in item.calls]
    return f"no results of {wanted}" if wanted else ""


async def _no_blob(digest: str) -> bytes:
    return b""
