"""One HTTP connection, bounded: how much head it may send, how long it may take, and how many there may be at once.

uvicorn reads and answers; this only says no, before anyone is signed in. What the bounds mean for a client is in docs/http-api.md.
"""

import asyncio
from collections import OrderedDict
from enum import Enum
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from holdfast.web.envelope import ALWAYS, MAX_HEAD
from holdfast.web.errors import HeadTooLarge, TooManyConnections, TooSlow, WebError, response_to

HEAD_S = 20.0
LINGER_S = 5.0
# Connections beyond the bound that are heard, so that they can be told why they are refused.
REFUSED_AT_ONCE = 16
REFUSAL_S = 2.0


class Connections:
    """All of this process. `idle` are those without a request that runs, the one that has been so for longest first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.served = 0
        self.refused = 0
        self.idle: OrderedDict[Connection, None] = OrderedDict()

    def make_room(self) -> bool:
        """Whether one more can be served. An idle connection gives way to a new one, so holding connections keeps nobody out."""
        if self.served < self.most:
            return True
        if not self.idle:
            return False
        oldest, _ = self.idle.popitem(last=False)
        oldest.transport.abort()
        return True


class Config(uvicorn.Config):
    def __init__(self, app: Any, *, connections: Connections, **named: Any) -> None:
        super().__init__(app, **named, http=Connection)
        self.shared = connections


class Standing(Enum):
    """How a connection counts: SERVED against the bound; REFUSED only so that it can be told why; none at all once it is gone."""

    SERVED = "served"
    REFUSED = "refused"
    GONE = "gone"


class Phase(Enum):
    """Where its reader stands: IDLE -> HEAD -> BODY -> IDLE for every request. DEAF: it has been told why it is not heard, and closes."""

    IDLE = "idle"
    HEAD = "head"
    BODY = "body"
    DEAF = "deaf"


class Connection(HttpToolsProtocol):
    """`_silent_bytes`: how much has come since the parser last made something of it."""

    def __init__(self, config: uvicorn.Config, *arguments: Any, **named: Any) -> None:
        super().__init__(config, *arguments, **named)
        assert isinstance(config, Config)
        self._shared = config.shared
        self._standing, self._phase = Standing.GONE, Phase.IDLE
        self._silent_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None

    # the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._shared.make_room():
            self._standing = Standing.SERVED
            self._shared.served += 1
            self._shared.idle[self] = None
            self._within(HEAD_S)
        elif self._shared.refused < REFUSED_AT_ONCE:
            self._standing = Standing.REFUSED
            self._shared.refused += 1
            self._within(REFUSAL_S)
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        self._shared.idle.pop(self, None)
        self._shared.served -= self._standing is Standing.SERVED
        self._shared.refused -= self._standing is Standing.REFUSED
        self._standing = Standing.GONE
        super().connection_lost(exc)

    # its bytes

    def data_received(self, data: bytes) -> None:
        """The parser keeps a head that does not end, and framing that never becomes a body: they are counted here."""
        if self._phase is Phase.DEAF:
            return
        self._silent_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        too_much = self._silent_bytes > MAX_HEAD
        if self._phase is Phase.HEAD and too_much:
            self._refuse(HeadTooLarge())
        elif self._phase is Phase.HEAD and self._deadline is None:
            self._within(HEAD_S)
        elif self._phase is Phase.BODY and too_much:
            self.transport.abort()

    def on_message_begin(self) -> None:
        self._phase, self._silent_bytes = Phase.HEAD, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._phase is Phase.HEAD:  # Otherwise it is a trailer, which nobody asks for.
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._phase, self._silent_bytes = Phase.BODY, 0
        self._in_time()
        if self._standing is Standing.REFUSED:
            self._refuse(TooManyConnections())
        elif len(self.url) >= MAX_HEAD:
            self._refuse(HeadTooLarge())
        else:
            self._shared.idle.pop(self, None)
            super().on_headers_complete()

    def on_chunk_header(self) -> None:
        self._silent_bytes = 0

    def on_body(self, body: bytes) -> None:
        self._silent_bytes = 0
        if self._phase is not Phase.DEAF:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_time()
        if self._phase is Phase.DEAF:
            return
        self._phase = Phase.IDLE
        super().on_message_complete()
        if self.cycle.response_complete:  # The answer came first, and with it the time to keep the connection for the next request.
            self._within(self.timeout_keep_alive)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing() or self.cycle is None or not self.cycle.response_complete:
            return
        self._shared.idle[self] = None
        if self._phase is Phase.BODY:  # Answered before it was whole. The rest is read for a while, or the answer may be lost.
            self._within(LINGER_S)

    # its bounds

    def _within(self, seconds: float) -> None:
        self._in_time()
        self._deadline = self.loop.call_later(seconds, self._late)

    def _in_time(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        self._deadline = None
        if self.transport.is_closing():
            return
        if self._phase is Phase.HEAD:
            self._refuse(TooSlow("The head of the request"))
        else:
            self.transport.close()

    def _refuse(self, error: WebError) -> None:
        """The same words and headers as from the application, which this request does not reach."""
        self._phase = Phase.DEAF
        response = response_to(error)
        headers = [*response.headers, *ALWAYS, (b"content-type", response.content_type), (b"content-length", b"%d" % len(response.body))]
        lines = [b"%b: %b\r\n" % header for header in headers]
        self.transport.write(b"".join([STATUS_LINE[error.status], *lines, b"connection: close\r\n\r\n", response.body]))
        self.transport.close()
