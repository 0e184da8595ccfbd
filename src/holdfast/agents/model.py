"""The agent that answers with a model: asks it, records what it responds, runs the calls it makes, until it makes none."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

import msgspec

from holdfast.agents.context import Asking, Context
from holdfast.agents.instructions import Instructions
from holdfast.agents.prices import Prices
from holdfast.agents.talk import NoAnswer, Talk, TooManySteps
from holdfast.core import notices, retries
from holdfast.core.events import ModelFailed
from holdfast.core.retries import Problem, Try
from holdfast.ports.agents import AgentRequest, Response, TurnFace
from holdfast.ports.models import (
    Busy,
    Cut,
    ModelClient,
    ModelError,
    ModelRequest,
    ModelSettings,
    Rejected,
    TextPiece,
    ThoughtPiece,
    TooLong,
)
from holdfast.ports.process import Clock

MAX_STEPS = 250
CUT_OFF = "It was not run: the response reached its limit of tokens in the middle of this call. Make it again, shorter."


class ModelAgent:
    """`models`: those to ask for a conversation that chose this one, or None, in order. `client`: of a model, by its name. `read`: the
    bytes of a blob. `settings`: of a model. `prices`: what responses cost. `max_steps`: how many a turn may take.
    """

    name = "model"

    def __init__(
        self,
        *,
        models: Callable[[str | None], Sequence[str]],
        client: Callable[[str], ModelClient],
        instructions: Instructions,
        settings: Callable[[str], ModelSettings],
        read: Callable[[str], Awaitable[bytes]],
        clock: Clock,
        prices: Prices | None = None,
        max_steps: int = MAX_STEPS,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._models, self._make, self._clients = models, client, dict[str, ModelClient]()
        self._instructions, self._settings = instructions, settings
        self._read, self._clock, self._chance = read, clock, chance
        self._prices, self._max_steps = prices or Prices(), max_steps

    async def run(self, request: AgentRequest, turn: TurnFace) -> None:
        talk = Talk(request)
        asked = ModelRequest(
            system=self._instructions.read(request),
            history=talk.items,
            tools=request.tools,
            note=request.note,
            read=self._read,
        )
        if request.unfinished:
            talk.add_results(request.unfinished, await turn.run(request.unfinished))
        failures = request.failures
        while not talk.over:
            if talk.steps >= self._max_steps:
                raise TooManySteps(talk.steps)
            models = self._models(request.model)
            talk.add_users(await turn.taken())
            takes = self._client(models[0]).takes
            if unheard := talk.unheard(takes):
                await turn.afford()
                talk.add_heard(unheard, await turn.run(unheard))
            if unread := talk.unread(takes):
                first = next(iter(unread))
                told = notices.not_given({part.name or "an attachment": why for part, why in unread.items()}, models[0])
                await turn.tell(f"unread.{first.blob[:16]}", told)
            response = await self._step(talk, asked, turn, failures, models)
            step = await turn.responded(_without_half_a_call(response))
            talk.add_step(step)
            talk.add_results(step.calls, await turn.run(step.calls))
            failures = ()
        talk.check()

    async def _step(
        self, talk: Talk, asked: ModelRequest, turn: TurnFace, failures: Sequence[ModelFailed], models: Sequence[str]
    ) -> Response:
        """The next response. Where the conversation is too long for it, it becomes shorter first."""

        async def summarise(asking: Asking) -> Response:
            return await self._respond(asking, turn, [each for each in failures if each.summary], talk.steps, models, summary=True)

        context = Context(talk, asked, turn=turn, models=models, prices=self._prices, respond=summarise)
        await context.fit()
        return await self._respond(context, turn, [each for each in failures if not each.summary], talk.steps, models)

    async def _respond(
        self,
        asking: Asking,
        turn: TurnFace,
        failures: list[ModelFailed],
        step: int,
        models: Sequence[str],
        *,
        summary: bool = False,
    ) -> Response:
        """From whichever model gives one. Each failed request is on record before the next is made. A summary is not said to people."""
        while due := retries.due(failures, models):
            await asyncio.sleep(retries.wait_s(due.after, self._clock.now()))
            await turn.afford()
            try:
                return await self._ask(due, asking.request(), None if summary else turn)
            except ModelError as error:
                shortened = isinstance(error, TooLong) and asking.can_shorten
                now, chance = self._clock.now(), self._chance()
                problem = _problem(error, shortened=shortened)
                failures.append(retries.failed(problem, due, failures, models, step=step, now=now, chance=chance, summary=summary))
                await turn.failed(failures[-1])
                if shortened and failures[-1].retry_at is not None:
                    await asking.shorten()
        raise NoAnswer(failures)

    async def _ask(self, due: Try, asked: ModelRequest, turn: TurnFace | None) -> Response:
        self._prices.expect(due.model)
        pieces = self._client(due.model).stream(msgspec.structs.replace(asked, thoughts=due.thoughts, settings=self._settings(due.model)))
        response = None
        try:
            async for piece in pieces:
                match piece:
                    case TextPiece(text) if turn is not None:
                        await turn.say(text)
                    case ThoughtPiece(text) if turn is not None:
                        await turn.think(text)
                    case Response():
                        response = piece
        finally:
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()  # Whatever ends it, the connection is closed before anything else is done.
        if response is None:
            raise Cut(f"{due.model} sent no response")
        return msgspec.structs.replace(response, cost=await self._prices.cost(due.model, response.usage))

    def _client(self, model: str) -> ModelClient:
        if model not in self._clients:
            self._clients[model] = self._make(model)
        return self._clients[model]

    async def aclose(self) -> None:
        for client in self._clients.values():
            await client.aclose()


def _without_half_a_call(response: Response) -> Response:
    """A response that reached its limit ends in the middle of its last call."""
    if response.finish != "length" or not response.calls:
        return response
    *whole, last = response.calls
    return msgspec.structs.replace(response, calls=(*whole, msgspec.structs.replace(last, problem=last.problem or CUT_OFF)))


def _problem(error: ModelError, *, shortened: bool) -> Problem:
    return Problem(
        error=error.code,
        why=str(error),
        again=isinstance(error, Busy),
        after_s=error.retry_after_s if isinstance(error, Busy) else None,
        at_once=isinstance(error, Busy) and error.at_once,
        thoughts=isinstance(error, Rejected) and error.thoughts,
        shortened=shortened,
    )
