"""The protocol over the pipes of a program. The library's own transport holds lines of any length and puts each together again and again
while it grows, which one server could use to stop everything else.
"""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import anyio
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter

from holdfast.tools.mcp.bounds import told
from holdfast.tools.mcp.program import Program, TooMuch

# What a program prints that is no message is passed over, but not for ever.
MOST_NOISE = 10_000
_ID = re.compile(rb'"id"\s*:\s*(\d+)')

Inward: TypeAlias = MemoryObjectReceiveStream[SessionMessage | Exception]
Outward: TypeAlias = MemoryObjectSendStream[SessionMessage]

log = structlog.get_logger()


@asynccontextmanager
async def streams(program: Program, server: str, on_end: Callable[[], None]) -> AsyncIterator[tuple[Inward, Outward]]:
    """As the library wants them: what comes, and what is to be sent. They end with the program, and `on_end` is called then."""
    heard, coming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    going, sent = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as group:
        group.start_soon(_listen, program, heard, server, on_end)
        group.start_soon(_send, program, sent, heard)
        try:
            yield coming, going
        finally:
            for each in (heard, coming, going, sent):
                each.close()
            group.cancel_scope.cancel()


async def _listen(
    program: Program, heard: MemoryObjectSendStream[SessionMessage | Exception], server: str, on_end: Callable[[], None]
) -> None:
    noise = 0
    async with heard:
        async for line in program.lines():
            message = _message(line)
            if message is not None:
                try:
                    await heard.send(SessionMessage(message))
                except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                    break
                continue
            noise += 1
            if noise == 1:
                log.warning("an MCP server prints what is no message", server=server)
            if noise > MOST_NOISE:
                break
    on_end()


def _message(line: bytes | TooMuch) -> JSONRPCMessage | None:
    """None: it is none. A line that was not kept is an answer that says so, where it is known to what."""
    if isinstance(line, TooMuch):
        found = _ID.search(line.head)
        words = f"its answer is {told(line.size)} and was not taken"
        return JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=ErrorData(code=INTERNAL_ERROR, message=words)) if found else None
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return None


async def _send(
    program: Program, sent: MemoryObjectReceiveStream[SessionMessage], heard: MemoryObjectSendStream[SessionMessage | Exception]
) -> None:
    async with sent:
        async for message in sent:
            try:
                await program.send(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            except OSError:  # It reads no more: nobody waits for answers that cannot come.
                heard.close()
                return
