"""Keeps what a model is given within its window: a summary instead of earlier turns, shorter results of this one. Each is recorded before
it counts; what to give up is decided in `core.compaction`.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from holdfast.agents.prices import Prices
from holdfast.agents.talk import NoAnswer, Talk
from holdfast.core import compaction
from holdfast.core.compaction import Older
from holdfast.core.events import ContextCompacted
from holdfast.core.history import SUMMARY, User
from holdfast.ports.agents import Response, TurnFace
from holdfast.ports.models import ModelRequest

NO_ROOM = "the model can be given too little of them at once to write a summary."


class Asking(Protocol):
    """A request to models, which may have to become shorter."""

    def request(self) -> ModelRequest: ...

    @property
    def can_shorten(self) -> bool:
        """Whether a model that finds it too long is asked again with less."""

    async def shorten(self) -> None: ...


class Context:
    """The next step of a turn, as it is asked for. `respond`: asks for a summary."""

    def __init__(
        self,
        talk: Talk,
        asked: ModelRequest,
        *,
        turn: TurnFace,
        models: Sequence[str],
        prices: Prices,
        respond: Callable[[Asking], Awaitable[Response]],
    ) -> None:
        self._talk, self._asked, self._turn = talk, asked, turn
        self._models, self._prices, self._respond = models, prices, respond

    def request(self) -> ModelRequest:
        return self._asked

    async def fit(self) -> None:
        """Before the first step of a turn: where the conversation has become too long, its earlier turns are summarised."""
        talk, model = self._talk, self._models[0]
        if talk.steps or self._summarised_here:
            return
        tokens = compaction.estimate(talk.items, self._overhead)
        window = self._prices.set_window(model)
        if window is None:
            if not compaction.is_full(tokens, compaction.SMALLEST_WINDOW):
                return
            window = await self._prices.window(model)
        if not compaction.is_full(tokens, window):
            return
        if older := compaction.older(talk.items, talk.generation, keep=int(compaction.KEPT * window)):
            await self._compact(older, int(compaction.TO_SUMMARISE * window))

    @property
    def _summarised_here(self) -> bool:
        """An earlier attempt of this turn has done it."""
        first = self._talk.items[0] if self._talk.items else None
        return isinstance(first, User) and first.what == SUMMARY and first.generation == self._talk.generation

    @property
    def _overhead(self) -> int:
        tools = sum(len(tool.description) + len(msgspec.json.encode(tool.schema)) for tool in self._asked.tools)
        return (len(self._asked.system.encode()) + tools) // compaction.BYTES_PER_TOKEN

    # a model has found it too long

    @property
    def can_shorten(self) -> bool:
        return self._older is not None or bool(self._largest)

    @property
    def _older(self) -> Older | None:
        return compaction.older(self._talk.items, self._talk.generation, keep=0)

    @property
    def _largest(self) -> tuple[str, ...]:
        return compaction.largest(self._talk.items, self._talk.generation)

    async def shorten(self) -> None:
        if older := self._older:
            window = await self._prices.window(self._models[0])  # It may be wrong, as we have just seen.
            refused = sum(map(compaction.size, self._talk.items))
            await self._compact(older, int(compaction.TO_SUMMARISE * min(window, refused)))
        else:
            await self._record(ContextCompacted(through=0, summary="", trimmed=self._largest))

    # both

    async def _compact(self, older: Older, tokens: int) -> None:
        """`tokens`: how much of it the model that writes the summary is given."""
        summary = _Summary(self._talk, older.count, tokens, self._asked)
        if not summary.says_something:
            return await self._record(ContextCompacted(through=older.through, summary="", problem=NO_ROOM))
        try:
            response = await self._respond(summary)
        except NoAnswer as error:
            if not error.about_the_request:
                raise
            return await self._record(ContextCompacted(through=older.through, summary="", problem=f"no summary could be made. {error}"))
        text = response.text.strip() if response.finish != "filtered" else ""
        await self._record(
            ContextCompacted(
                through=older.through,
                summary=text,
                problem=None if text else "the model wrote no summary of them.",
                usage=response.usage,
                cost=response.cost,
                provider=response.provider,
                model=response.model,
            )
        )

    async def _record(self, compacted: ContextCompacted) -> None:
        await self._turn.compacted(compacted)
        self._talk.compact(compacted)


class _Summary:
    """The request for a summary of the first `count` items, with at most so many tokens of them."""

    def __init__(self, talk: Talk, count: int, tokens: int, asked: ModelRequest) -> None:
        self._items, self._tokens, self._asked = talk.items[:count], tokens, asked
        self._words = compaction.as_request(self._items, tokens)

    @property
    def says_something(self) -> bool:
        return self._words is not None

    def request(self) -> ModelRequest:
        history = [self._words] if self._words is not None else []
        return ModelRequest(system=compaction.INSTRUCTIONS, history=history, tools=(), read=self._asked.read)

    @property
    def can_shorten(self) -> bool:
        return self._tokens > compaction.LEAST and compaction.as_request(self._items, self._tokens // 2) is not None

    async def shorten(self) -> None:
        self._tokens //= 2
        self._words = compaction.as_request(self._items, self._tokens)
