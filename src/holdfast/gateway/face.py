"""What an agent sees of its turn (`ports.agents.TurnFace`): everything it does is recorded before it counts."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.core import events as e
from holdfast.core import limits, output, usage
from holdfast.core.approvals import Clearance
from holdfast.core.content import Content
from holdfast.core.effects import SHOWN_OUTPUT, Effect, ToolOutcome
from holdfast.core.errors import HoldfastError
from holdfast.core.history import Call, Step, User, calls_of
from holdfast.core.limits import LimitReached
from holdfast.core.messages import ToolCall
from holdfast.core.plans import ask
from holdfast.core.plans.ask import ASK
from holdfast.core.texts import storable, storable_value
from holdfast.gateway.asking import Asked, Asker
from holdfast.gateway.budget import Budget
from holdfast.gateway.host import Host
from holdfast.gateway.journal import TurnLog
from holdfast.gateway.kit import Kit
from holdfast.gateway.news import Halt, News
from holdfast.gateway.permissions import Permissions
from holdfast.ports.agents import AgentRequest, Response
from holdfast.ports.tools import Tool, ToolContext, ToolResult

UNREADABLE = "An answer was given, but its record is damaged and cannot be read."
NO_TOOL = Clearance(place="")


class Face:
    """One attempt's face. It knows every call of the turn, of earlier attempts too."""

    def __init__(
        self,
        written: TurnLog,
        request: AgentRequest,
        *,
        news: News,
        anchor: str | None,
        tools: Kit,
        permissions: Permissions,
        budget: Budget,
        host: Host,
    ) -> None:
        self._log, self._request, self._news = written, request, news
        self._tools, self._permissions, self._budget, self._host = tools, permissions, budget, host
        self._asker = Asker(request.session_key, anchor, host.ids)
        self._questions = news.questions
        self._calls = {call.call_id: call for call in request.calls}
        self._recording: set[str] = set()
        self._recorded = asyncio.Event()

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
            sender=self._sender,
        )
        calls = calls_of(self._request.turn_id, step)
        asking = await self._asking(calls, offset=len(step.text))
        self._note(asking)
        await self._log.respond(step, *(event for asked in asking for event in asked.events))
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
        self._log.silent_until(failure.retry_at)

    async def afford(self) -> None:
        turn_id, session_id = self._request.turn_id, self._log.lease.session_id
        while found := await self._budget.reached(session_id, turn_id, day=self._today, sender=self._sender, calls=self._calls.values()):
            if not found.asks or limits.declined(self._calls.values()):
                raise LimitReached(found)
            call_id = limits.open_question(self._calls.values()) or limits.call_id(turn_id, found)
            arguments = {"question": limits.question(found), "choices": [limits.CONTINUE, limits.END]}
            [answer] = await self.run([Call(call_id=call_id, name=ASK, arguments=arguments, step=self._log.step)])
            if not limits.continues(answer.text):
                raise LimitReached(found)

    async def compacted(self, compaction: e.ContextCompacted) -> None:
        summary, problem = storable(compaction.summary), None if compaction.problem is None else storable(compaction.problem)
        await self._log.record(msgspec.structs.replace(compaction, summary=summary, problem=problem, day=self._today, sender=self._sender))

    @property
    def _today(self) -> str:
        now = self._host.clock.now()
        return usage.day(now, self._host.clock.offset_s(now))

    @property
    def _sender(self) -> str:
        """Whom the turn works for."""
        return next((cause.sender for cause in self._request.causes if cause.sender), "")

    async def run(self, calls: Sequence[Call]) -> list[ToolResult]:
        while True:
            await self._run_what_may(calls)
            results = [self._result(call.call_id) for call in calls]
            if all(results):
                return [result for result in results if result is not None]
            if not self._hear_answers():
                await self._wait()

    async def call(self, call_id: str, name: str, arguments: dict[str, Any], *, careful: bool = False) -> ToolResult:
        made = self._proposed(e.ProposedCall(name=name, arguments=arguments))
        call = Call(call_id=call_id, name=made.name, arguments=made.arguments, problem=made.problem, careful=careful)
        return (await self.run([call]))[0]

    async def ask(self, call_id: str, question: str) -> ToolResult:
        return await self.call(call_id, ASK, {"question": question})

    async def _run_what_may(self, calls: Sequence[Call]) -> None:
        """Pure calls in parallel and ahead; the others in order, up to one that waits for a person. Questions are asked first, so that
        people can answer while the rest runs.
        """
        todo = [call for call in calls if self._result(call.call_id) is None]
        if asking := await self._asking(todo):  # Those of a step stand there since its response was recorded, if they were known then.
            self._note(asking)
            await self._log.record(*(event for asked in asking for event in asked.events))
        ahead = [call for call in todo if call.call_id not in self._questions and self._effect(call) is Effect.PURE]
        if len(ahead) == len(todo) == 1:
            await self._run(ahead[0])
            return
        running = [self._host.tasks.spawn(self._try(call), name=f"call {call.call_id}") for call in ahead]
        try:
            for call in todo:
                if call.call_id in self._questions:
                    break
                if self._effect(call) is not Effect.PURE and not await self._run(call):
                    break
            for error in [await task for task in running]:
                if error is not None:
                    raise error
        except (asyncio.CancelledError, Exception):
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)
            raise

    async def _try(self, call: Call) -> Exception | None:
        """What went wrong belongs to the agent that asked for the call."""
        try:
            await self._run(call)
        except Exception as error:  # The task's boundary.
            return error
        return None

    def _effect(self, call: Call) -> Effect:
        tool = self._tools.get(call.name) if call.problem is None else None  # What cannot be run does nothing.
        return tool.effect(call.arguments) if tool is not None else Effect.PURE

    def _result(self, call_id: str) -> ToolResult | None:
        known = self._calls.get(call_id)
        if known is None or known.outcome is None:
            return None
        return ToolResult(known.outcome, known.content or "")

    async def _run(self, proposed: Call) -> bool:
        """Decided and recorded before it starts, and its result before anybody sees it. False: a person has to be asked first after all."""
        tool, clearance = self._tools.get(proposed.name), NO_TOOL
        if proposed.problem is None and tool is not None:
            clearance = await self._clear(proposed, tool)
            if clearance.asks:
                return False
        call = self._started(proposed)
        started = e.ToolStarted(
            call_id=call.call_id,
            name=call.name,
            arguments=call.arguments,
            effect=call.effect,
            step=call.step,
            offset=self._offset(call.step),
            approval=clearance.approval,
            place=clearance.place if clearance.approval else None,
        )
        self._questions.given.pop(call.call_id, None)
        if proposed.problem is not None:
            await self._refuse(call, started, proposed.problem)
        elif tool is None:
            await self._refuse(call, started, self._tools.unknown(call.name))
        elif clearance.refused is not None:
            await self._refuse(call, started, clearance.refused)
        else:
            await self._log.record(started)
            result = await self._use(tool, call)
            result = ToolResult(result.outcome, self._kept(result.content))
            # The effect is done: its result is recorded even if the turn is interrupted in this moment.
            await self._host.tasks.finish(self._finish(call, result), name=f"result of {call.call_id}")
        return True

    async def _clear(self, call: Call, tool: Tool) -> Clearance:
        return await self._permissions.clear(self._log.lease.session_id, call, tool, self._questions.given.get(call.call_id))

    def _started(self, proposed: Call) -> ToolCall:
        call = ToolCall(
            call_id=proposed.call_id,
            name=proposed.name,
            arguments=proposed.arguments,
            effect=self._effect(proposed),
            attempt=self._log.attempt,
            step=proposed.step,
        )
        self._calls[call.call_id] = call
        return call

    async def _refuse(self, call: ToolCall, started: e.ToolStarted, why: str) -> None:
        """It never starts: what is recorded of it is one record."""
        result = ToolResult(ToolOutcome.FAILED, self._kept(why))
        await self._host.tasks.finish(self._finish(call, result, started), name=f"refusal of {call.call_id}")

    def _kept(self, result: Content) -> Content:
        """As much of a result as is recorded. Secrets are replaced first: half of one would not be known any more."""
        kept = self._host.secrets.content(result)
        return output.result(storable(kept)) if isinstance(kept, str) else kept

    def _offset(self, step: int) -> int:
        """How much of a step's text stands before what happens now. Behind a step that is on record, that is all of it."""
        return self._log.offset if step == self._log.step else 0

    async def _finish(self, call: ToolCall, result: ToolResult, *before: e.Event) -> None:
        self._recording.add(call.call_id)
        try:
            await self._log.record(*before, e.ToolFinished(call_id=call.call_id, outcome=result.outcome, content=result.content))
            call.outcome, call.content = result.outcome, result.content
        finally:
            self._recording.discard(call.call_id)
            self._recorded.set()

    async def finished(self) -> list[ToolCall]:
        """Every call of the turn, once no result is being recorded any more, with the answers that have come."""
        while self._recording:
            self._recorded.clear()
            await self._recorded.wait()
        self._hear_answers()
        return list(self._calls.values())

    async def _use(self, tool: Tool, call: ToolCall) -> ToolResult:
        async def put_out(text: str) -> None:
            text = self._log.without_secrets(call.call_id, text)
            call.output = (call.output + text)[-SHOWN_OUTPUT:]
            await self._log.output(call.call_id, text)

        context = ToolContext(
            session_id=self._log.lease.session_id,
            session_key=self._request.session_key,
            generation=self._request.generation,
            turn_id=self._request.turn_id,
            call_id=call.call_id,
            key=call.call_id,
            output=put_out,
            secrets=self._host.secrets,
        )
        try:
            return await tool.run(call.arguments, context)
        except HoldfastError as error:
            return ToolResult(ToolOutcome.FAILED, str(error))

    # people

    async def _asking(self, calls: Sequence[Call], *, offset: int | None = None) -> list[Asked]:
        """What has to be asked before these calls can run, and is not asked yet: questions of the agent, and approvals. Of those that are
        asked at once, the first is the oldest. `offset`: how much of the step's text stands before them.
        """
        asking: list[Asked] = []
        for call in calls:
            if call.problem is not None or call.call_id in self._questions:
                continue
            at = self._host.clock.now() + len(asking)
            if ask.asks(call.name):
                asking.append(self._asker.question(call, offset=self._offset(call.step) if offset is None else offset, at=at))
            elif (tool := self._tools.get(call.name)) is not None:
                clearance = await self._clear(call, tool)
                if clearance.asks:
                    asking.append(self._asker.approval(call, clearance, at=at))
        return asking

    def _note(self, asking: Sequence[Asked]) -> None:
        """Before it is recorded: that happens also if the turn is stopped in this moment, and then its end must know."""
        for asked in asking:
            self._questions.add(asked.call.call_id, asked.fingerprint)
            self._questions.given.pop(asked.call.call_id, None)
            if asked.fingerprint is None:
                self._started(asked.call)

    def _hear_answers(self) -> bool:
        """Whether one has come since: what waits behind it may run now."""
        answers = self._questions.take()
        for answered in answers:
            if answered.verdict is None and (call := self._calls.get(answered.call_id)):
                call.outcome, call.content = ToolOutcome.DONE, answered.content
        return bool(answers)

    async def _wait(self) -> None:
        """Nothing more can run until people answer. Returns only if they have."""
        waiting = await self._log.wait(self._questions.asking)
        if waiting.answered or waiting.stopped:  # That is on record, and its news may still be on their way.
            await self._news.look()
            self._hear_answers()
        if waiting.open or waiting.expired or waiting.stopped:
            self._news.halt(Halt.STOP if waiting.stopped else Halt.EXPIRED if waiting.expired else Halt.WAITING)
            await asyncio.Event().wait()  # The attempt is over: what still runs of it is about to be cancelled.
        await self._close_unreadable(waiting.answered)

    async def _close_unreadable(self, answered: Sequence[str]) -> None:
        """The record of an answer is damaged: its call must not wait for ever."""
        for call_id in answered:
            if call_id in self._questions and self._questions.close_unreadable(call_id):
                await self._finish(self._calls[call_id], ToolResult(ToolOutcome.FAILED, UNREADABLE))

    async def taken(self) -> tuple[User, ...]:
        if not self._news.queued:
            return ()
        self._news.queued = False
        causes, generation = await self._log.take(), self._request.generation
        return tuple(
            User(id=cause.cause_id, content=cause.content, sender=cause.sender, what=cause.what, generation=generation) for cause in causes
        )
