"""Models in this process, whose responses follow from what they are given: the words of a person are the script of the turn, as for a
`StepAgent`. What goes wrong comes from a list, request by request.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from holdfast.core import compaction, titles
from holdfast.core.events import Usage
from holdfast.core.history import Item, Result, Step, User
from holdfast.ports.agents import Response
from holdfast.ports.models import CallPiece, ModelError, ModelRequest, Piece, Taking, TextPiece, ThoughtPiece, TooLong
from tests.fakes.agents_steps import PIECE, parse, said, whole


class Half(msgspec.Struct, frozen=True):
    """So much of a text is said before the error comes."""

    text: str
    error: ModelError


class Given(msgspec.Struct, frozen=True):
    """A request, as it was made. `history`: of that moment."""

    model: str
    at: float
    history: tuple[Item, ...]
    request: ModelRequest


class ScriptedModels:
    """All models of a test. `wrong`: by model, what becomes of its next requests; None: nothing, "hang": no word ever comes. `changes` is
    made to every response. `silent_s`: how long one takes. `window`: a request of more tokens than that is refused, None: none is.
    `summaries`: how many were asked for. `title`: what they say who are asked for one.
    """

    def __init__(self) -> None:
        self.requests: list[Given] = []
        self.wrong: dict[str, list[ModelError | Half | str | None]] = {}
        self.changes: dict[str, Any] = {}
        self.silent_s = 0.0
        self.closed: list[str] = []
        self.open = 0
        self.window: int | None = None
        self.summaries = 0
        self.title = "Title: **Watering the plants.**"

    def client(self, name: str) -> "ScriptedClient":
        return ScriptedClient(self, name)

    @property
    def asked(self) -> list[str]:
        return [given.model for given in self.requests]


class ScriptedClient:
    wire = "script"
    takes = Taking()

    def __init__(self, models: ScriptedModels, name: str) -> None:
        self._models, self._name = models, name
        self.provider, _, self.model = name.partition(":")

    async def aclose(self) -> None:
        self._models.closed.append(self._name)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Piece | Response]:
        models, wrong = self._models, self._models.wrong.get(self._name)
        models.requests.append(Given(self._name, asyncio.get_running_loop().time(), tuple(request.history), request))
        models.open += 1
        try:
            await asyncio.sleep(models.silent_s)
            match wrong.pop(0) if wrong else None:
                case "hang":
                    await asyncio.Event().wait()
                case ModelError() as error:
                    raise error
                case Half(text, error):
                    yield TextPiece(text)
                    await asyncio.sleep(0.1)
                    raise error
            tokens = sum(map(compaction.size, request.history))
            if models.window is not None and tokens > models.window:
                raise TooLong(f"{tokens} tokens are too many")
            if request.system == titles.INSTRUCTIONS:
                response = Response(text=models.title, usage=Usage(input=50, output=4))
            else:
                response = self._summary(request) if request.system == compaction.INSTRUCTIONS else respond(request)
            yield ThoughtPiece("hm")
            for start in range(0, len(response.text), PIECE):
                yield TextPiece(response.text[start : start + PIECE])
            for call in response.calls:
                yield CallPiece(call.name)
            yield msgspec.structs.replace(response, provider=self.provider, model=self.model, wire=self.wire, **models.changes)
        finally:
            models.open -= 1

    def _summary(self, request: ModelRequest) -> Response:
        self._models.summaries += 1
        return Response(text=f"Summary {self._models.summaries}.", blocks=({"text": "s"},), usage=Usage(input=7, output=2))


def respond(request: ModelRequest) -> Response:
    """What the script says comes next."""
    items = list(request.history)
    begun = max(
        number for number, item in enumerate(items) if isinstance(item, User) and "|" in item.text + "|" and not _steers(items, number)
    )
    script, mine = parse(_user(items[begun]).text), items[begun + 1 :]
    number = sum(isinstance(item, Step) for item in mine)
    text, calls = script[min(number, len(script) - 1)]
    if number >= len(script) - 1:
        results = [said(item.outcome, item.text) for item in mine if isinstance(item, Result)]
        text = whole(text, results, [item.text for item in mine if isinstance(item, User)])
    finish = "calls" if calls else "end"
    usage = Usage(input=sum(map(compaction.size, items)), output=1)
    return Response(text=text, calls=calls, blocks=({"text": text},), finish=finish, usage=usage)


def _steers(items: list[Item], number: int) -> bool:
    """Whether these words came while a turn was running: behind a result, and not behind an answer."""
    return number > 0 and isinstance(items[number - 1], Result)


def _user(item: Item) -> User:
    assert isinstance(item, User)
    return item
