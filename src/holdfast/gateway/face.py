"""What an agent sees of its turn (`ports.agents.ReportingFace`): everything it does is recorded before it counts."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from holdfast.core import events as e
from holdfast.core import keys, limits, retries, usage
from holdfast.core.approvals import Approval
from holdfast.core.effects import ToolOutcome
from holdfast.core.errors import Unavailable
from holdfast.core.history import Call, Step, User, about_cause, calls_of
from holdfast.core.limits import LimitReached
from holdfast.core.plans import ask
from holdfast.core.plans.ask import ASK
from holdfast.core.restarts import Notice
from holdfast.core.texts import storable, storable_value
from holdfast.gateway.budget import Budget
from holdfast.gateway.calls import Calls
from holdfast.gateway.host import Host
from holdfast.gateway.kit import Kit
from holdfast.gateway.news import News
from holdfast.gateway.teller import Teller
from holdfast.gateway.turn_log import TurnLog
from holdfast.ports.agents import AgentRequest, Response
from holdfast.ports.tools import ToolResult


class Face:
    """One attempt's face. `anchor`: what its turn replies to."""

    def __init__(
        self,
        written: TurnLog,
        request: AgentRequest,
        *,
        news: News,
        anchor: str | None,
        tools: Kit,
        calls: Calls,
        budget: Budget,
        teller: Teller,
        host: Host,
        recall: Callable[[e.ContextCompacted], int],
    ) -> None:
        self._log, self._request, self._news, self._anchor = written, request, news, anchor
        self._tools, self._calls, self._budget, self._teller, self._host = tools, calls, budget, teller, host
        self._recall, self._recalled = recall, 0

    # a step's text

    async def say(self, text: str) -> None:
        if text:
            await self._log.say(text)

    async def think(self, text: str) -> None:
        await self._log.think(text)

    async def keep(self, chars: int) -> None:
        self._log.keep(self._request.kept[:chars])

    # steps and calls

    async def responded(self, response: Response) -> Step:
        step = e.ModelResponded(
            step=self._log.step,
            text=storable(response.text),
            calls=tuple(self._proposed(call, self._tools.hidden(call.name)) for call in response.calls),
            blocks=tuple(storable_value(block) for block in response.blocks),
            finish=response.finish,
            usage=response.usage,
            cost=response.cost,
            wire=response.wire,
            provider=response.provider,
            model=response.model,
            response_id=response.response_id,
            day=self._today,
            sender=self._request.sender,
        )
        calls = calls_of(self._request.turn_id, step)
        await self._log.respond(step, *await self._calls.ask_first(calls, offset=len(step.text)))
        return Step(
            turn_id=self._request.turn_id,
            number=step.step,
            text=step.text,
            calls=calls,
            response=step,
            generation=self._request.generation,
        )

    def _proposed(self, call: e.ProposedCall, wrong: str | None = None) -> e.ProposedCall:
        """As it is recorded, with what is wrong with it."""
        name, arguments = ask.ASK if ask.asks(call.name) else storable(call.name), storable_value(call.arguments)
        problem = call.problem or wrong or self._tools.problem(name, arguments)
        return e.ProposedCall(name=name, arguments=arguments, problem=None if problem is None else storable(problem))

    async def failed(self, failure: e.ModelFailed) -> None:
        await self._log.record(failure)
        self._log.start_over()
        self._log.silent_for(retries.wait_s(failure, self._host.clock.now()))

    async def afford(self) -> None:
        turn_id, session_id = self._request.turn_id, self._log.lease.session_id
        while found := await self._budget.reached(
            session_id, turn_id, day=self._today, sender=self._request.sender, calls=self._calls.known
        ):
            if not found.asks or limits.declined(self._calls.known):
                raise LimitReached(found)
            call_id = limits.open_question(self._calls.known) or limits.call_id(turn_id, found)
            arguments = {"question": limits.question(found, for_others=not self._on_page), "choices": [limits.CONTINUE, limits.END]}
            [answer] = await self.run([Call(call_id=call_id, name=ASK, arguments=arguments, step=self._log.step)])
            if not limits.continues(answer.text):
                raise LimitReached(found)

    async def tell(self, notice_id: str, text: str) -> None:
        notice = Notice(
            id=f"{self._request.turn_id}.{notice_id}",
            session_key=self._request.session_key,
            session_id=self._request.session_id,
            text=storable(text),
            anchor=self._anchor,
        )
        while True:
            try:
                await self._teller.tell(notice)
                return
            except Unavailable as error:
                await asyncio.sleep(error.retry_after_s)

    async def compacted(self, compaction: e.ContextCompacted) -> None:
        summary, problem = storable(compaction.summary), None if compaction.problem is None else storable(compaction.problem)
        # What only shortens results leaves the place of a summary that this attempt has recorded: it still holds.
        self._recalled = self._recall(compaction) or self._recalled
        await self._log.record(
            msgspec.structs.replace(
                compaction,
                summary=summary,
                problem=problem,
                day=self._today,
                sender=self._request.sender,
                recall=self._recalled,
            )
        )

    @property
    def _today(self) -> str:
        now = self._host.clock.now()
        return usage.day(now, self._host.clock.offset_s(now))

    @property
    def _on_page(self) -> bool:
        return keys.parse(self._request.session_key).on_page

    async def run(self, calls: Sequence[Call]) -> list[ToolResult]:
        return await self._calls.run(calls)

    async def call(self, call_id: str, name: str, arguments: dict[str, Any], *, careful: bool = False) -> ToolResult:
        made = self._proposed(e.ProposedCall(name=name, arguments=arguments))
        call = Call(call_id=call_id, name=made.name, arguments=made.arguments, problem=made.problem, careful=careful)
        return (await self.run([call]))[0]

    async def ask(self, call_id: str, question: str) -> ToolResult:
        return await self.call(call_id, ASK, {"question": question})

    # an agent that is another program

    async def linked(self, event: e.AgentStarted | e.AgentRead) -> bool:
        if isinstance(event, e.AgentRead):
            if event.fold is not None and self._log.holds_back:
                return False
            event = msgspec.structs.replace(event, written=self._log.offset)
        await self._log.record(event)
        return True

    async def report(self, call_id: str, name: str, arguments: dict[str, Any]) -> None:
        await self._calls.report(call_id, name, arguments)

    async def report_output(self, call_id: str, text: str) -> None:
        await self._calls.report_output(call_id, text)

    async def report_result(self, call_id: str, outcome: ToolOutcome, text: str) -> None:
        await self._calls.report_result(call_id, outcome, text)

    async def permit(self, wanted: Sequence[tuple[Call, str | None]]) -> dict[str, Approval]:
        return await self._calls.permit(wanted)

    async def taken(self) -> tuple[User, ...]:
        if not self._news.queued:
            return ()
        self._news.queued = False
        causes, generation = await self._log.take(), self._request.generation
        return tuple(
            User(
                id=cause.cause_id,
                content=cause.content,
                sender=cause.sender,
                what=cause.what,
                generation=generation,
                about=about_cause(cause.what),
            )
            for cause in causes
        )
