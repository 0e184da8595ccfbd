"""Runs the calls of one attempt: each decided on and recorded before it starts, its result recorded before anybody sees it, and those that
have to ask a person first, or in their middle, waiting for the answer.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from holdfast.core import approvals, elicitation, output, usage
from holdfast.core import events as e
from holdfast.core.approvals import Approval, Clearance
from holdfast.core.content import Content
from holdfast.core.effects import SHOWN_OUTPUT, Effect, ToolOutcome
from holdfast.core.elicitation import Ask, Elicited
from holdfast.core.errors import HoldfastError
from holdfast.core.history import Call
from holdfast.core.messages import ToolCall
from holdfast.core.plans import ask
from holdfast.core.texts import storable, storable_value
from holdfast.gateway.asking import Asked, Asker
from holdfast.gateway.host import Host
from holdfast.gateway.kit import Kit
from holdfast.gateway.news import Halt, News
from holdfast.gateway.permissions import Permissions
from holdfast.gateway.resting import Rests
from holdfast.gateway.turn_log import TurnLog
from holdfast.ports.agents import AgentRequest
from holdfast.ports.tools import Answers, Asks, Tool, ToolContext, ToolResult

UNREADABLE = "An answer was given, but its record is damaged and cannot be read."
NO_TOOL = Clearance(place="")


class Calls:
    """Those of one attempt. It knows every call of the turn, of earlier attempts too. `anchor`: what its turn replies to."""

    def __init__(
        self,
        written: TurnLog,
        request: AgentRequest,
        *,
        news: News,
        anchor: str | None,
        tools: Kit,
        permissions: Permissions,
        host: Host,
    ) -> None:
        self._log, self._request, self._news = written, request, news
        self._tools, self._permissions, self._host = tools, permissions, host
        self._asker = Asker(request.session_key, anchor, host.ids)
        self._questions = news.questions
        self._rests = Rests(written, self._asker, news.questions, host)
        self._calls = {call.call_id: call for call in request.calls}
        self._recording: set[str] = set()
        self._recorded = asyncio.Event()

    @property
    def known(self) -> Sequence[ToolCall]:
        """Every call of the turn, as far as it came."""
        return tuple(self._calls.values())

    async def ask_first(self, calls: Sequence[Call], *, offset: int | None = None) -> list[e.Event]:
        """What has to be on record before these can run: the questions that they ask. `offset`: how much of the step's text stands before
        them.
        """
        asking = await self._asking(calls, offset=offset)
        self._note(asking)
        return [event for asked in asking for event in asked.events]

    async def run(self, calls: Sequence[Call]) -> list[ToolResult]:
        """As `TurnFace.run`."""
        while True:
            await self._run_what_may(calls)
            results = [self._result(call.call_id) for call in calls]
            if all(results):
                return [result for result in results if result is not None]
            if not self._hear_answers():
                await self._wait()

    async def _run_what_may(self, calls: Sequence[Call]) -> None:
        """Pure calls in parallel and ahead; the others in order, up to one that waits for a person. Questions are asked first, so that
        people can answer while the rest runs.
        """
        todo = [call for call in calls if self._result(call.call_id) is None]
        if asking := await self.ask_first(todo):  # Those of a step stand there since its response was recorded, if they were known then.
            await self._log.record(*asking)
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

    def _rested(self, call_id: str) -> bool:
        known = self._calls.get(call_id)
        return known is not None and known.rests

    def _result(self, call_id: str) -> ToolResult | None:
        known = self._calls.get(call_id)
        if known is None or known.outcome is None:
            return None
        return ToolResult(known.outcome, known.content or "")

    async def _run(self, proposed: Call) -> bool:
        """Decided and recorded before it starts, and its result before anybody sees it. False: a person has to be asked first after all."""
        known = self._calls.get(proposed.call_id)
        if known is not None and known.rests:
            return await self._continue(proposed, known)
        tool, clearance = self._tools.get(proposed.name), NO_TOOL
        if proposed.problem is None and tool is not None:
            clearance = await self._clear(proposed, tool)
            if clearance.asks:
                return False
        call = self._started(proposed)
        started = self._start_of(call, clearance)
        self._questions.given.pop(call.call_id, None)
        if proposed.problem is not None:
            await self._refuse(call, started, proposed.problem)
        elif tool is None:
            await self._refuse(call, started, self._tools.unknown(call.name))
        elif clearance.refused is not None:
            await self._refuse(call, started, clearance.refused)
        else:
            await self._log.record(started)
            return await self._perform(tool, call)
        return True

    async def _continue(self, proposed: Call, known: ToolCall) -> bool:
        """A call that rested, with what people have answered. The approval of its start covers this; a rule that denies it now counts."""
        assert known.resting is not None
        tool, elicited, step = self._tools.get(proposed.name), known.resting.elicited, elicitation.proceed(known.resting)
        refused = None if tool is None else (await self._clear(proposed, tool)).refused
        if tool is None:
            refused = self._tools.unknown(proposed.name)
        elif tool.version != elicited.version:
            refused = "It was not continued: the tool is described differently since it asked."
        elif self._host.secrets.lost_in(elicited.state):
            refused = approvals.MARKED
        if refused is not None:
            await self._conclude(known, ToolResult(ToolOutcome.FAILED, refused))
            return True
        assert tool is not None
        if isinstance(step, Ask):
            return await self._rest(known, elicited, step)
        call = self._started(proposed)
        await self._log.record(self._start_of(call, NO_TOOL))
        return await self._perform(tool, call, Answers(requests=elicited.requests, given=step, state=elicited.state), elicited.rounds)

    async def _perform(self, tool: Tool, call: ToolCall, answers: Answers | None = None, rounds: int = 0) -> bool:
        """False: it asks a person, and rests until that is answered. `rounds`: how often it has asked."""
        result = await self._use(tool, call, answers)
        if isinstance(result, Asks):
            if wrong := elicitation.problem(result.requests, result.state):
                result = ToolResult(ToolOutcome.FAILED, f"It wants to ask the user something, but {wrong}.")
            else:
                elicited = Elicited(requests=result.requests, state=result.state, version=tool.version, rounds=rounds)
                return await self._rest(call, elicited, Ask(0))
        await self._conclude(call, result)
        return True

    async def _rest(self, call: ToolCall, elicited: Elicited, step: Ask) -> bool:
        if elicited.rounds >= elicitation.MOST_ROUNDS:
            await self._conclude(call, ToolResult(ToolOutcome.FAILED, f"It asked the user {elicited.rounds} times and was ended."))
            return True
        elicited = msgspec.structs.replace(elicited, number=step.number, rounds=elicited.rounds + 1)
        await self._rests.ask(call, elicited, step.problem)
        return False

    async def _conclude(self, call: ToolCall, result: ToolResult) -> None:
        """The effect is done: its result is recorded even if the turn is interrupted in this moment."""
        result = msgspec.structs.replace(result, content=self._kept(result.content), used=self._counted(result.used))
        await self._host.tasks.finish(self._finish(call, result), name=f"result of {call.call_id}")

    def _start_of(self, call: ToolCall, clearance: Clearance) -> e.ToolStarted:
        return e.ToolStarted(
            call_id=call.call_id,
            name=call.name,
            arguments=call.arguments,
            effect=call.effect,
            step=call.step,
            offset=self._offset(call.step),
            approval=clearance.approval,
            place=clearance.place if clearance.approval else None,
        )

    async def _clear(self, call: Call, tool: Tool) -> Clearance:
        return await self._permissions.clear(self._request, call, tool, self._questions.given.get(call.call_id))

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

    def _counted(self, used: e.Used | None) -> e.Used | None:
        """For which day, and for whom."""
        now = self._host.clock.now()
        day = usage.day(now, self._host.clock.offset_s(now))
        return None if used is None else msgspec.structs.replace(used, day=day, sender=self._request.sender)

    def _offset(self, step: int) -> int:
        """How much of a step's text stands before what happens now. Behind a step that is on record, that is all of it."""
        return self._log.offset if step == self._log.step else 0

    async def _finish(self, call: ToolCall, result: ToolResult, *before: e.Event) -> None:
        self._recording.add(call.call_id)
        try:
            finished = e.ToolFinished(call_id=call.call_id, outcome=result.outcome, content=result.content, used=result.used)
            await self._log.record(*before, finished, *result.also)
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

    async def _put_out(self, call: ToolCall, text: str) -> None:
        text = self._log.without_secrets(call.call_id, text)
        call.output = (call.output + text)[-SHOWN_OUTPUT:]
        await self._log.output(call.call_id, text)

    async def _use(self, tool: Tool, call: ToolCall, answers: Answers | None) -> ToolResult | Asks:
        context = ToolContext(
            session_id=self._log.lease.session_id,
            session_key=self._request.session_key,
            generation=self._request.generation,
            turn_id=self._request.turn_id,
            call_id=call.call_id,
            key=call.call_id,
            folder=self._request.folder,
            sender=self._request.sender,
            output=partial(self._put_out, call),
            secrets=self._host.secrets,
            answers=answers,
            ask=partial(self._rests.ask_live, self._hear_answers, call, tool.version),
        )
        try:
            return await tool.run(call.arguments, context)
        except HoldfastError as error:
            return ToolResult(ToolOutcome.FAILED, str(error))

    # calls that the agent makes itself

    async def report(self, call_id: str, name: str, arguments: dict[str, Any]) -> None:
        """As `ReportingFace.report`."""
        if call_id in self._calls:
            return
        step = self._log.step
        call = self._calls[call_id] = ToolCall(
            call_id=call_id,
            name=storable(name),
            arguments=storable_value(arguments),
            effect=Effect.REPORTED,
            attempt=self._log.attempt,
            step=step,
        )
        await self._log.record(self._start_of(call, NO_TOOL))

    async def report_output(self, call_id: str, text: str) -> None:
        call = self._calls[call_id]
        if call.outcome is None and call.attempt == self._log.attempt:  # An earlier attempt has shown it already.
            await self._put_out(call, storable(text))

    async def report_result(self, call_id: str, outcome: ToolOutcome, text: str) -> None:
        call = self._calls[call_id]
        if call.outcome is None:
            await self._conclude(call, ToolResult(outcome, text))

    async def permit(self, wanted: Sequence[tuple[Call, str | None]]) -> dict[str, Approval]:
        """As `ReportingFace.permit`."""
        now = self._host.clock.now()
        new = [(call, offer) for call, offer in wanted if call.call_id not in self._questions and call.call_id not in self._questions.given]
        if asking := [self._asker.permission(_stored(call), offer, at=now + place) for place, (call, offer) in enumerate(new)]:
            self._note(asking)
            await self._log.record(*(event for asked in asking for event in asked.events))
        while not (given := {call.call_id: found for call, _ in wanted if (found := self._questions.given.get(call.call_id))}):
            if not self._hear_answers():
                await self._wait()
        return given

    # people

    async def _asking(self, calls: Sequence[Call], *, offset: int | None = None) -> list[Asked]:
        """What has to be asked before these calls can run, and is not asked yet: questions of the agent, and approvals. Of those that are
        asked at once, the first is the oldest. `offset`: how much of the step's text stands before them.
        """
        asking: list[Asked] = []
        for call in calls:
            if call.problem is not None or call.call_id in self._questions or self._rested(call.call_id):
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
            elif answered.verdict == elicitation.GIVEN and (call := self._calls.get(answered.call_id)) and call.resting is not None:
                call.resting.answers[call.resting.elicited.number] = answered.text
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


def _stored(call: Call) -> Call:
    """The call as it is recorded and shown."""
    return msgspec.structs.replace(call, name=storable(call.name), arguments=storable_value(call.arguments))
