"""A connection to a server: the protocol's library, with what it may do to us bounded, and its errors in our words."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, TypeAlias, cast

import anyio
from mcp.client import Client, ClientRequestContext, IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    Implementation,
    InputRequiredResult,
    PaginatedRequestParams,
    RequestParamsMeta,
    Tool,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from holdfast import __version__
from holdfast.core.elicitation import Given, Request
from holdfast.core.mcp import Hints, Listed
from holdfast.ports.tools import Answers, Asks
from holdfast.tools.mcp import asking, http, stdio
from holdfast.tools.mcp.bounds import MOST_BYTES
from holdfast.tools.mcp.errors import GONE, LOST, NOT_SENT, Forgotten, Lost, NotSent, ServerError
from holdfast.tools.mcp.program import Program

# More of a list is not read, whatever a server says.
MOST_PAGES, MOST_LISTED = 20, 1_000
MOST_WORDS = 2_000
# The server is told what a call is known by, so that it can tell a repetition from another call.
KEY = "holdfast/key"
# Until a lost subscription to changes is made again.
AGAIN_S, LONGEST_AGAIN_S = 5.0, 60.0
# Between calls that a server only wants to have made again.
WAITS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
# What the library's own words say where nobody answered.
_UNANSWERED = ("Connection closed", "SSE stream")

Answer: TypeAlias = CallToolResult | Asks
Elicit: TypeAlias = Callable[[Request], Awaitable[Given | None]]
_ANSWER: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)

# It reports each line that a server gets wrong, and every id of a session.
for name in ("mcp", "client", "httpx2", "httpcore2"):
    logging.getLogger(name).setLevel(logging.CRITICAL)


class Link:
    """An open connection. `on_change` is called when its tools may be others than before."""

    def __init__(self, client: Client, on_change: Callable[[], None]) -> None:
        self._client, self._on_change = client, on_change

    @property
    def modern(self) -> bool:
        """It speaks the protocol without sessions, in which a server's question is an answer that can be kept."""
        return self._client.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def software(self) -> str:
        """What it says it is."""
        info = self._client.server_info
        return f"{info.name} {info.version}"[:100] if info is not None else ""

    async def tools(self) -> list[Listed]:
        """All that it lists. Raises `ServerError`."""
        if self._client.server_capabilities.tools is None:
            return []
        found: list[Listed] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            with _translated():
                page = await self._client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
            found += map(_listed, page.tools)
            cursor = page.next_cursor
            if cursor is None or len(found) >= MOST_LISTED:
                break
        return found[:MOST_LISTED]

    async def probe(self) -> None:
        """Asks for a sign of life that does nothing. Raises `ServerError`."""
        with _translated():
            if self.modern:
                await self._client.session.list_tools()
            else:
                await self._client.session.send_ping()

    async def call(
        self, name: str, arguments: dict[str, Any], *, key: str, progress: ProgressFnT, answers: Answers | None = None
    ) -> CallToolResult | Asks:
        """Makes a call and waits for its answer, however long that takes. Cancelling tells the server. `answers`: to what it asked when it
        was made before. Raises `ServerError`.
        """
        state, given = (None, None) if answers is None else (answers.state, asking.responses(answers))
        for wait_s in WAITS_S:
            found = await self._call(
                CallToolRequestParams(
                    name=name,
                    arguments=arguments,
                    input_responses=given,
                    request_state=state,
                    _meta=cast(RequestParamsMeta, {KEY: key}),
                ),
                progress,
            )
            if not isinstance(found, InputRequiredResult):
                return found
            if found.input_requests:
                return asking.asks(found)
            state, given = found.request_state, None  # It needs nothing but time.
            await asyncio.sleep(wait_s)
        raise ServerError("it wants to be asked again and again")

    async def _call(self, params: CallToolRequestParams, progress: ProgressFnT) -> CallToolResult | InputRequiredResult:
        with _translated(self._on_change):
            # Not `call_tool`: that checks results against the server's schema, with patterns that could take for ever.
            return await self._client.session.send_request(CallToolRequest(params=params), _ANSWER, progress_callback=progress)

    async def follow(self) -> None:
        """Hears of changes, where the protocol wants to be asked for them. Runs until it is cancelled."""
        tools = self._client.server_capabilities.tools
        wait_s = AGAIN_S
        while self.modern and tools is not None and tools.list_changed:
            try:
                async with self._client.listen(tools_list_changed=True) as events:
                    async for _ in events:
                        wait_s = AGAIN_S
                        self._on_change()
            except (MCPError, SubscriptionLost, TimeoutError, anyio.ClosedResourceError, anyio.BrokenResourceError):
                pass
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_AGAIN_S)
            self._on_change()  # Nobody says what was missed.


@asynccontextmanager
async def connected(transport: AbstractAsyncContextManager[Any], on_change: Callable[[], None], elicit: Elicit) -> AsyncIterator[Link]:
    """`elicit`: asks the user while a call runs, for the protocol that knows no other way. Raises `ServerError`. The task that enters it
    leaves it: the library's scopes belong to a task.
    """

    async def hear(message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            on_change()

    async def ask(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        try:
            return asking.result(await elicit(asking.request(params)))
        except ServerError as error:
            return ErrorData(code=INVALID_REQUEST, message=str(error))

    client = Client(
        transport,
        cache=None,
        client_info=Implementation(name="holdfast", version=__version__),
        message_handler=hear,
        elicitation_callback=ask,
    )
    with _translated():
        await client.__aenter__()
    try:
        yield Link(client, on_change)
    finally:
        await client.__aexit__(None, None, None)


def over_pipes(program: Program, server: str, on_end: Callable[[], None]) -> AbstractAsyncContextManager[Any]:
    """The streams to a program. `on_end` is called when it has said its last word."""
    return stdio.streams(program, server, on_end)


@asynccontextmanager
async def over_http(url: str, headers: Mapping[str, str]) -> AsyncIterator[Any]:
    """The streams to a server at an address."""
    async with (
        await asyncio.to_thread(http.client, headers) as client,  # It reads every certificate of the system.
        streamable_http_client(url, http_client=client, max_sse_event_size=MOST_BYTES) as streams,
    ):
        yield streams


def _listed(tool: Tool) -> Listed:
    hints = tool.annotations
    return Listed(
        name=tool.name,
        description=tool.description or tool.title or "",
        schema=tool.input_schema,
        hints=Hints()
        if hints is None
        else Hints(read_only=hints.read_only_hint, destructive=hints.destructive_hint, idempotent=hints.idempotent_hint),
    )


@contextmanager
def _translated(on_change: Callable[[], None] = lambda: None) -> Iterator[None]:
    """`on_change` is called where the server says that a tool is not what we take it for."""
    try:
        yield
    except ServerError:
        raise
    except Exception as error:  # The boundary to the library, whose errors come in groups.
        cause = error
        while isinstance(cause, ExceptionGroup):
            cause = cause.exceptions[0]
        if isinstance(cause, MCPError) and cause.code == HEADER_MISMATCH:
            on_change()
        raise _ours(cause) from error


def _ours(error: Exception) -> ServerError:
    match error:
        case MCPError(code=code, message=message):
            words = message[:MOST_WORDS].rstrip(". \n")
            if code in (NOT_SENT, GONE):
                return NotSent(words)
            if code in (LOST, PARSE_ERROR) or (code == CONNECTION_CLOSED and message.startswith(_UNANSWERED)):
                return Lost(words)
            return Forgotten(words) if code == INVALID_PARAMS and "state" in words.lower() else ServerError(words)
        case ValidationError():
            where = ".".join(map(str, error.errors(include_url=False, include_input=False)[0]["loc"]))
            return ServerError(f"its answer does not follow the protocol (at {where or 'its top'})"[:MOST_WORDS])
        case anyio.ClosedResourceError() | anyio.BrokenResourceError():
            return Lost("the connection was closed")
        case _:
            return ServerError(f"{type(error).__name__}: {error}"[:MOST_WORDS])
