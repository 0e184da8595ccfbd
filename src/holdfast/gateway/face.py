"""What an agent sees of its turn (`ports.agents.TurnFace`): everything it does is recorded before it counts."""

import asyncio
from collections.abc import Sequence
from typing import Any

from holdfast.core import events as e
from holdfast.core import output
from holdfast.core.content import Content
from holdfast.core.effects import SHOWN_OUTPUT, Effect, ToolOutcome
from holdfast.core.errors import HoldfastError
from holdfast.core.history import Call, User, calls_of
from holdfast.core.messages import ToolCall
from holdfast.core.plans import ask
from holdfast.core.plans.ask import ASK, Asking
from holdfast.core.texts import storable, storable_value
from holdfast.gateway.host import Host
from holdfast.gateway.journal import TurnLog
from holdfast.gateway.news import Halt, News
from holdfast.gateway.questions import Questions
from holdfast.gateway.toolbox import Toolbox
from holdfast.ports.agents import AgentRequest, Response
from holdfast.ports.tools import Tool, ToolContext, ToolResult

UNREADABLE = "An answer was given, but its record is damaged and cannot be read."


class Face:
    """One attempt's face. `calls`: every call of the turn, of earlier attempts too. `questions`: those it has asked."""

    def __init__(
        self,
        written: TurnLog,
        request: AgentRequest,
        *,
        news: News,
        questions: Questions,
        anchor: str | None,
        tools: Toolbox,
        host: Host,
    ) -> None:
        self._log, self._request, self._anchor, self._news = written, request, anchor, news
        self._tools, self._host = tools, host
        self.questions = questions
        self.calls = {call.call_id: call for call in request.calls}

    # a step's text

    async def say(self, text: str) -> None:
        if text:
            await self._log.say(text)

    async def think(self, text: str) -> None:
        await self._log.think(text)

    async def keep(self, chars: int) -> None:
        self._log.keep(self._request.kept[:chars])

    # steps and calls

    async def responded(self, response: Response) -> tuple[Call, ...]:
        step = e.ModelResponded(
            step=self._log.step,
            text=storable(response.text),
            calls=tuple(_storable_call(call) for call in response.calls),
            blocks=tuple(storable_value(block) for block in response.blocks),
            finish=response.finish,
            usage=response.usage,
            cost=response.cost,
            wire=response.wire,
            provider=response.provider,
            model=response.model,
            response_id=response.response_id,
        )
        calls = calls_of(self._request.turn_id, step)
        asking = [self._asking(call, len(step.text)) for call in calls if call.name == ASK and call.problem is None]
        await self._log.respond(step, *(event for number, asked in enumerate(asking) for event in self._asked(asked, number)))
        for asked in asking:
            self._note(asked)
        return calls

    async def run(self, calls: Sequence[Call]) -> list[ToolResult]:
        while True:
            await self._run_what_may(calls)
            results = [self._result(call.call_id) for call in calls]
            if all(results):
                return [result for result in results if result is not None]
            if not await self._hear_answers():
                await self._wait()

    async def call(self, call_id: str, name: str, arguments: dict[str, Any]) -> ToolResult:
        return (await self.run([Call(call_id=call_id, name=name, arguments=arguments)]))[0]

    async def ask(self, call_id: str, question: str) -> str:
        [answer] = await self.run([Call(call_id=call_id, name=ASK, arguments={"question": question})])
        return answer.text

    async def _run_what_may(self, calls: Sequence[Call]) -> None:
        """Pure calls in parallel and ahead; the others in order, up to one that waits for a person. Questions are asked first, so that
        people can answer while the rest runs.
        """
        todo = [call for call in calls if self._result(call.call_id) is None]
        for call in todo:
            if call.name == ASK and call.problem is None and call.call_id not in self.questions:
                await self._ask(call)
        ahead = [call for call in todo if call.call_id not in self.questions and self._effect(call) is Effect.PURE]
        if len(ahead) == len(todo) == 1:
            return await self._run(ahead[0])
        running = [self._host.tasks.spawn(self._try(call), name=f"call {call.call_id}") for call in ahead]
        try:
            for call in todo:
                if call.call_id in self.questions:
                    break
                if self._effect(call) is not Effect.PURE:
                    await self._run(call)
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
        tool = self._tools.get(call.name)
        return tool.effect if tool is not None else Effect.PURE

    def _result(self, call_id: str) -> ToolResult | None:
        known = self.calls.get(call_id)
        if known is None or known.outcome is None:
            return None
        return ToolResult(known.outcome, known.content or "")

    async def _run(self, proposed: Call) -> None:
        """Recorded before it starts, and its result before anybody sees it."""
        name, arguments, effect = storable(proposed.name), storable_value(proposed.arguments), self._effect(proposed)
        call = ToolCall(
            call_id=proposed.call_id, name=name, arguments=arguments, effect=effect, attempt=self._log.attempt, step=proposed.step
        )
        self.calls[call.call_id] = call
        await self._log.record(
            e.ToolStarted(
                call_id=call.call_id, name=name, arguments=arguments, effect=effect, step=call.step, offset=self._offset(call.step)
            )
        )
        tool = self._tools.get(name)
        if proposed.problem is not None:
            result = ToolResult(ToolOutcome.FAILED, storable(proposed.problem))
        elif tool is None:
            result = ToolResult(ToolOutcome.FAILED, f"There is no tool {name!r}.")
        else:
            result = await self._use(tool, call)
        result = ToolResult(result.outcome, _kept(result.content))
        # The effect is done: its result is recorded even if the turn is interrupted in this moment.
        await self._host.tasks.finish(self._finish(call, result), name=f"result of {call.call_id}")

    def _offset(self, step: int) -> int:
        """How much of a step's text stands before what happens now. Behind a step that is on record, that is all of it."""
        return self._log.offset if step == self._log.step else 0

    async def _finish(self, call: ToolCall, result: ToolResult) -> None:
        await self._log.record(e.ToolFinished(call_id=call.call_id, outcome=result.outcome, content=result.content))
        call.outcome, call.content = result.outcome, result.content

    async def _use(self, tool: Tool, call: ToolCall) -> ToolResult:
        async def put_out(text: str) -> None:
            call.output = (call.output + text)[-SHOWN_OUTPUT:]
            await self._log.output(call.call_id, text)

        context = ToolContext(
            session_id=self._log.lease.session_id,
            session_key=self._request.session_key,
            generation=self._request.generation,
            turn_id=self._request.turn_id,
            call_id=call.call_id,
            output=put_out,
        )
        try:
            return await tool.run(call.arguments, context)
        except HoldfastError as error:
            return ToolResult(ToolOutcome.FAILED, str(error))

    # people

    async def _ask(self, call: Call) -> None:
        """For an agent without steps. The question of a step stands there since its response was recorded."""
        asked = self._asking(call, self._offset(call.step))
        await self._log.record(*self._asked(asked))
        self._note(asked)

    def _asking(self, call: Call, offset: int) -> Asking:
        choices = call.arguments.get("choices")
        return Asking(
            question_id=self._host.ids.new("q"),
            call_id=call.call_id,
            content=storable(str(call.arguments.get("question", ""))),
            choices=tuple(storable(str(choice)) for choice in choices) if isinstance(choices, list | tuple) else (),
            step=call.step,
            offset=offset,
        )

    def _asked(self, asked: Asking, number: int = 0) -> list[e.Event]:
        """Of those that are asked at once, the first is the oldest."""
        at = self._host.clock.now() + number
        return ask.by_call(asked, session_key=self._request.session_key, anchor=self._anchor, at=at)

    def _note(self, asked: Asking) -> None:
        self.questions.add(asked.call_id, asked.question_id)
        self.calls[asked.call_id] = ToolCall(
            call_id=asked.call_id,
            name=ASK,
            arguments={"question": asked.content},
            effect=Effect.PURE,
            attempt=self._log.attempt,
            step=asked.step,
        )

    async def _hear_answers(self) -> bool:
        """Whether one has come since: what waits behind it may run now."""
        answers = await self.questions.answers()
        for answered in answers:
            if call := self.calls.get(answered.call_id):
                call.outcome, call.content = ToolOutcome.DONE, answered.content
        return bool(answers)

    async def _wait(self) -> None:
        """Nothing more can run until people answer. Returns only if they have."""
        waiting = await self._log.wait()
        if waiting.open or waiting.expired or waiting.stopped:
            self._news.halt(Halt.STOP if waiting.stopped else Halt.EXPIRED if waiting.expired else Halt.WAITING)
            await asyncio.Event().wait()  # The attempt is over: what still runs of it is about to be cancelled.
        if not await self._hear_answers():
            await self._close_unreadable()

    async def _close_unreadable(self) -> None:
        """The record of an answer is damaged: its call must not wait for ever."""
        for call_id in self.questions.asking:
            self.questions.close(call_id)
            await self._finish(self.calls[call_id], ToolResult(ToolOutcome.FAILED, UNREADABLE))

    async def taken(self) -> tuple[User, ...]:
        if not self._news.queued:
            return ()
        self._news.queued = False
        causes = await self._log.take()
        return tuple(User(id=cause.cause_id, content=cause.content, sender=cause.sender, what=cause.what) for cause in causes)


def _storable_call(call: e.ProposedCall) -> e.ProposedCall:
    problem = None if call.problem is None else storable(call.problem)
    return e.ProposedCall(name=storable(call.name), arguments=storable_value(call.arguments), problem=problem)


def _kept(result: Content) -> Content:
    """As much of a result as is recorded."""
    return output.result(storable(result)) if isinstance(result, str) else result
