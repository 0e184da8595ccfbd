"""A tool of a server, as it was described when an attempt began."""

from typing import Any

import msgspec

from holdfast.core import mcp
from holdfast.core.effects import Effect, ToolOutcome, may_repeat
from holdfast.core.mcp import Known
from holdfast.ports.blobs import Put
from holdfast.ports.tools import Asks, ToolContext, ToolResult
from holdfast.tools.mcp.errors import Forgotten, Lost, NotSent, ServerError
from holdfast.tools.mcp.server import Late, Server
from holdfast.tools.plain import PlainTool

# A call that may be repeated is, where its server died: once, because it may have died of the call.
TRIES = 2


class ServedTool(PlainTool):
    def __init__(self, server: Server, known: Known, put: Put) -> None:
        self._server, self._listed, self._put = server, known.listed, put
        listed = known.listed
        self.name = mcp.tool_name(server.name, listed.name)
        self.description = mcp.told(server.name, listed.description)
        self.schema = mcp.offered_schema(listed.schema)
        self.version = known.version

    def effect(self, arguments: dict[str, Any]) -> Effect:
        return mcp.effect(self._listed.hints, trusted=self._server.settings.trusted)

    def confined(self, arguments: dict[str, Any]) -> bool:
        return mcp.is_harmless(self._listed.hints, trusted=self._server.settings.trusted)

    def place(self, session_id: str, folder: str | None) -> str:
        return f"the MCP server {self._server.name} (tool version {self.version})"

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult | Asks:
        now = self._server.offer.tools.get(self._listed.name)
        if now is not None and now.version != self.version:
            return _failed(
                f"It was not run: the MCP server {self._server.name} describes this tool differently since this answer began. It can be"
                " used as it is now in the next answer."
            )
        for left in reversed(range(TRIES)):
            try:
                answer = await self._call(arguments, context)
            except Lost as error:
                if left and may_repeat(self.effect(arguments)) and not isinstance(error, Late):
                    continue
                return self._unknown(error, arguments)
            except NotSent as error:
                return _failed(f"It was not run: the MCP server {self._server.name} is away. What is known: {error}.")
            except ServerError as error:
                return _failed(f"The MCP server {self._server.name} could not do it: {error}.")
            return answer if isinstance(answer, Asks) else await self._result(answer, context)
        raise AssertionError("the last try returns")

    async def _call(self, arguments: dict[str, Any], context: ToolContext) -> Any:
        """Raises as `Server.call`. A server that forgot where a call was is asked again from the beginning, as the protocol has it; if it
        then asks the same, nobody has to answer twice.
        """
        answers = context.answers
        try:
            return await self._server.call(self._listed.name, arguments, context)
        except Forgotten:
            if answers is None:
                raise
        afresh = await self._server.call(self._listed.name, arguments, msgspec.structs.replace(context, answers=None))
        if not isinstance(afresh, Asks) or afresh.requests != answers.requests:
            return afresh
        same = msgspec.structs.replace(answers, state=afresh.state)
        return await self._server.call(self._listed.name, arguments, msgspec.structs.replace(context, answers=same))

    def _unknown(self, error: Lost, arguments: dict[str, Any]) -> ToolResult:
        why = f"The MCP server {self._server.name} gave no answer: {error}."
        if may_repeat(self.effect(arguments)):
            return _failed(why)
        return ToolResult(ToolOutcome.UNKNOWN, f"{why} It is not known whether it finished, and it was not run again.")

    async def _result(self, answer: Any, context: ToolContext) -> ToolResult:
        from holdfast.tools.mcp import results  # It needs the library, which is loaded by now.

        outcome = ToolOutcome.FAILED if answer.is_error else ToolOutcome.DONE
        return ToolResult(outcome, await results.content(answer, self._put, context.secrets))


def _failed(words: str) -> ToolResult:
    return ToolResult(ToolOutcome.FAILED, words)
