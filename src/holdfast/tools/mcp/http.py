"""The client for servers that are reached over HTTP. It bounds what they answer, and makes of a request that failed an answer that says so:
in the library, one lost connection would take all other requests to the server with it.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping

import httpx2
import msgspec

from holdfast.tools.mcp.bounds import MOST_BYTES, told, too_complex
from holdfast.tools.mcp.errors import GONE, LOST, NOT_SENT, UNUSABLE
from holdfast.tools.mcp.pace import Pace

CONNECT_S, WRITE_S = 10.0, 30.0
# For the end of a session, of which only the server has something.
FAREWELL_S = 0.5
# For what a server is told and does not answer: the library tells it one thing after the other.
NOTED_S = 5.0
SESSION = "mcp-session-id"
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)
_STREAM = "text/event-stream"
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")


class TooMuch(httpx2.StreamError):
    """An answer that nobody should read."""


class Interrupted(httpx2.StreamError):
    """The connection broke in the middle of an answer."""


def client(headers: Mapping[str, str]) -> httpx2.AsyncClient:
    """Uses no proxy, and follows no redirect: `headers` are for this server alone. How long an answer may take is the caller's affair."""
    return httpx2.AsyncClient(
        headers={"accept-encoding": "identity", **headers},  # What is small on its way could be large here.
        timeout=httpx2.Timeout(None, connect=CONNECT_S, write=WRITE_S, pool=CONNECT_S),
        transport=_Bounded(),
        trust_env=False,
    )


class _Bounded(httpx2.AsyncBaseTransport):
    def __init__(self) -> None:
        self._transport = httpx2.AsyncHTTPTransport(trust_env=False)
        self._pace = Pace()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        farewell = request.method == "DELETE"
        try:
            async with asyncio.timeout(FAREWELL_S if farewell else None if _waits(request) else NOTED_S):
                response = await self._transport.handle_async_request(request)
        except TimeoutError:
            return _failed(LOST, "it did not answer")
        except _NEVER_SENT as error:
            return _failed(NOT_SENT, f"there is no connection ({_words(error)})")
        except httpx2.TransportError as error:
            return _failed(LOST, f"the connection broke ({_words(error)})")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        kind = response.headers.get("content-type", "").lower()
        trouble = httpx2.Response(response.status_code) if farewell else _trouble(request, response, kind)
        if trouble is not None:
            await response.stream.aclose()
            return trouble
        bounded = _Stream(response.stream, self._pace, events=kind.startswith(_STREAM))
        return httpx2.Response(response.status_code, headers=response.headers, stream=bounded, extensions=response.extensions)

    async def aclose(self) -> None:
        await self._transport.aclose()


class _Stream(httpx2.AsyncByteStream):
    """An answer, given on message by message: events of a stream of `events` as each is whole, or all of it."""

    def __init__(self, stream: httpx2.AsyncByteStream, pace: Pace, *, events: bool) -> None:
        self._stream, self._pace, self._events = stream, pace, events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held = bytearray()
        try:
            async for chunk in self._stream:
                looked_at = max(0, len(held) - 3)
                held += chunk
                ends = [found.end() for found in _EVENT_END.finditer(held, looked_at)] if self._events else []
                await self._pace.keep(size=len(chunk), messages=len(ends))
                if ends:
                    yield self._checked(bytes(held[: ends[-1]]))
                    del held[: ends[-1]]
                if len(held) > MOST_BYTES:
                    raise self._too_much(len(held))
        except httpx2.SSEError:
            raise
        except httpx2.TransportError as error:
            raise Interrupted(_words(error)) from error
        yield self._checked(bytes(held))

    def _checked(self, message: bytes) -> bytes:
        if too_complex(message):
            raise self._too_much(len(message))
        return message

    def _too_much(self, size: int) -> Exception:
        words = f"its answer is {told(size)} and was not taken"
        return httpx2.SSEError(words) if self._events else TooMuch(words)

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Message(msgspec.Struct):
    id: int | str | None = None
    method: str | None = None


def _waits(request: httpx2.Request) -> bool:
    """Whether it has an answer that may take its time."""
    if request.method != "POST":
        return True
    try:
        message = msgspec.json.decode(request.content, type=_Message)
    except msgspec.DecodeError:
        return True
    return message.id is not None and message.method is not None


def _trouble(request: httpx2.Request, response: httpx2.Response, kind: str) -> httpx2.Response | None:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return _failed(UNUSABLE, "its answer is compressed, which nobody asked for")
    if response.status_code < 400 or kind.startswith("application/json"):
        return None
    gone = response.status_code == 404 and SESSION in request.headers
    said = f"it answered {response.status_code} {httpx2.codes.get_reason_phrase(response.status_code)}".rstrip()
    return _failed(GONE if gone else UNUSABLE, said)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _failed(code: int, words: str) -> httpx2.Response:
    """An answer of the protocol in the place of one that never came."""
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": words}})
    return httpx2.Response(503, headers={"content-type": "application/json"}, content=body)
