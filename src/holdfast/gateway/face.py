"""What an agent sees of its turn (`ports.agents.TurnFace`): everything it does is recorded before it counts."""

from typing import Any

from holdfast.core import events as e
from holdfast.core import output, replies
from holdfast.core.effects import SHOWN_OUTPUT, Effect, ToolOutcome
from holdfast.core.errors import HoldfastError
from holdfast.core.texts import storable, storable_value
from holdfast.core.transcript import ToolCall
from holdfast.gateway.host import Host
from holdfast.gateway.journal import TurnLog
from holdfast.gateway.toolbox import Toolbox
from holdfast.ports.agents import AgentRequest
from holdfast.ports.tools import Tool, ToolContext, ToolResult

QUESTION_LIFE_MS = 24 * 3600 * 1000
ASK = "ask"


class Asked(BaseException):
    """Ends the attempt at a question. Not an Exception, so that no agent's error handling holds it up."""


class Face:
    """One attempt's face. `calls`: every call of the turn, of earlier attempts too."""

    def __init__(self, written: TurnLog, request: AgentRequest, *, anchor: str | None, tools: Toolbox, host: Host) -> None:
        self._log, self._request, self._anchor, self._tools, self._host = written, request, anchor, tools, host
        self.calls = {call.call_id: call for call in request.calls}

    async def say(self, text: str) -> None:
        if text:
            await self._log.say(text)

    async def think(self, text: str) -> None:
        await self._log.think(text)

    async def keep(self, chars: int) -> None:
        self._log.keep(self._request.kept[:chars])

    async def call(self, call_id: str, name: str, arguments: dict[str, Any]) -> ToolResult:
        known = self.calls.get(call_id)
        if known is not None and known.outcome is not None:
            return ToolResult(known.outcome, known.result or "")
        name, arguments = storable(name), storable_value(arguments)
        tool = self._tools.get(name)
        effect = tool.effect if tool else Effect.PURE
        call = ToolCall(call_id=call_id, name=name, arguments=arguments, effect=effect, attempt=self._log.attempt)
        self.calls[call_id] = call
        offset = self._log.length
        await self._log.record(e.ToolStarted(call_id=call_id, name=name, arguments=arguments, effect=effect, offset=offset))
        if tool is None:
            result = ToolResult(ToolOutcome.FAILED, f"There is no tool {name!r}.")
        else:
            result = await self._run(tool, call)
        result = ToolResult(result.outcome, output.result(storable(result.text)))
        # The effect is done: its result is recorded even if the turn is cut in this moment.
        await self._host.tasks.finish(self._finish(call, result), name=f"result of {call_id}")
        return result

    async def _finish(self, call: ToolCall, result: ToolResult) -> None:
        await self._log.record(e.ToolFinished(call_id=call.call_id, outcome=result.outcome, content=result.text))
        call.outcome, call.content = result.outcome, result.text

    async def _run(self, tool: Tool, call: ToolCall) -> ToolResult:
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

    async def ask(self, call_id: str, question: str) -> str:
        known = self.calls.get(call_id)
        if known is not None and known.outcome is not None:
            return known.result or ""
        question_id, question = self._host.ids.new("q"), storable(question)
        arguments = {"question": question}
        events: list[e.Event] = [e.ToolStarted(call_id=call_id, name=ASK, arguments=arguments, effect=Effect.PURE, offset=self._log.length)]
        if replies.owed(self._request.session_key):  # A chat must be told what it is asked.
            events.append(
                replies.written(self._request.session_key, "notice", replies.asked_delivery(question_id), question, anchor=self._anchor)
            )
        expires_at = self._host.clock.now() + QUESTION_LIFE_MS
        events.append(e.QuestionAsked(question_id=question_id, call_id=call_id, content=question, expires_at=expires_at))
        await self._log.record(*events)
        raise Asked
