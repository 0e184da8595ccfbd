"""Responses to clients, as ASGI applications: one that waits until there is an answer, and one that streams it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

import structlog
from starlette.types import Receive, Scope, Send

from holdfast.core.answering import Answering
from holdfast.core.errors import Deleted, Unavailable
from holdfast.core.events import Logged
from holdfast.core.pieces import Piece
from holdfast.core.recitals import Recited
from holdfast.gateway import feed
from holdfast.web import frames
from holdfast.web.access import Grant
from holdfast.web.errors import Gone, NotSignedIn
from holdfast.web.openai import following, naming
from holdfast.web.openai.errors import Restarting
from holdfast.web.openai.following import Ended, Following, Means
from holdfast.web.responses import Header, json_response
from holdfast.web.stream import HEADERS, PIECE

SESSION = b"x-holdfast-session"
_BROKEN = {
    feed.DELETED: "The session of this response was deleted.",
    following.SIGNED_OUT: "The token of this request is no longer valid. `holdfast token` prints the current one.",
}

log = structlog.get_logger()


class Shown(Protocol):
    """What is made of a response while it is read."""

    def take(self, pieces: list[Piece]) -> None:
        """What one event of the log gave."""

    def body(self) -> Any:
        """The body of the answer, once no more comes. It may raise."""


class Renderer(Protocol):
    """Turns what is read into frames of a stream. `waits`: it stays open while its message waits behind a turn that waits for a person."""

    waits: bool

    def event(self, item: Logged, pieces: list[Piece]) -> bytes:
        """Frames for one event of the log; with the last one, also those that end the stream."""

    def rest(self) -> bytes:
        """Frames that end the stream before the response is over."""

    def broken(self, reason: str, message: str) -> bytes:
        """A frame that says why the stream ends where the response does not."""


def _told(reason: str, recited: Recited) -> str:
    """Why nothing more can be read here, in words."""
    return _BROKEN.get(reason) or str(Restarting(naming.response_id(recited)))


def session_header(recited: Recited) -> Header:
    return (SESSION, recited.session_id.encode())


class _Reader:
    """One client that reads a response. Its connection is all that ends with it."""

    def __init__(self, means: Means, grant: Grant, recited: Recited, answering: Answering) -> None:
        self._means, self._grant, self._recited, self._answering = means, grant, recited, answering

    @asynccontextmanager
    async def _following(self, receive: Receive) -> AsyncIterator[Following]:
        async with Following(self._means, self._grant, self._recited) as reader:
            leaving = self._means.tasks.spawn(_hear_of_leaving(receive, reader.leave), name=f"reader of {self._recited.message_id}")
            try:
                yield reader
            finally:
                leaving.cancel()


class Whole(_Reader):
    """Waits until the response is over, or nothing more comes until somebody acts, or for `patience_s`."""

    def __init__(
        self,
        means: Means,
        grant: Grant,
        recited: Recited,
        answering: Answering,
        shown: Shown,
        *,
        patience_s: float | None = None,
    ) -> None:
        super().__init__(means, grant, recited, answering)
        self._shown, self._patience_s = shown, patience_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with self._following(receive) as reader:
                await self._read(reader)
        except Ended as ended:
            raise self._failure(ended) from ended
        response = json_response(200, self._shown.body())
        response.headers = (session_header(self._recited),)
        await response(scope, receive, send)
        self._means.delivered.note(self._recited.message_id)

    async def _read(self, reader: Following) -> None:
        answering = self._answering
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._patience_s):
                while True:
                    batch = await reader.next()
                    if len(batch) < following.MANY:
                        self._take(batch)
                    else:
                        await asyncio.to_thread(self._take, batch)
                    if answering.over or ((answering.left or answering.held) and await reader.caught_up()):
                        return

    def _take(self, batch: Sequence[Logged]) -> None:
        for item in batch:
            self._shown.take(self._answering.apply(item))

    def _failure(self, ended: Ended) -> Exception:
        match ended.reason:
            case following.GONE:
                return Gone()
            case feed.DELETED:
                return Deleted(self._recited.session_id, undoable=True)
            case following.SIGNED_OUT:
                return NotSignedIn(_told(ended.reason, self._recited))
        return Restarting(naming.response_id(self._recited))


class Stream(_Reader):
    """Gives the response as it comes."""

    def __init__(self, means: Means, grant: Grant, recited: Recited, answering: Answering, renderer: Renderer) -> None:
        super().__init__(means, grant, recited, answering)
        self._renderer = renderer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._send = send
        async with self._following(receive) as reader:
            headers = [*HEADERS, session_header(self._recited)]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            try:
                await self._put(await self._serve(reader), more=False)
            except Gone:
                pass
            except TimeoutError:
                log.info("a reader took nothing for too long", session=self._recited.session_id, message=self._recited.message_id)

    async def _serve(self, reader: Following) -> bytes:
        """The last frame: none, or why the stream ends before the response does. Raises `Gone`."""
        try:
            await self._follow(reader)
        except Ended as ended:
            if ended.reason == following.GONE:
                raise Gone from ended
            return self._renderer.broken(ended.reason, _told(ended.reason, self._recited))
        except Unavailable as error:
            log.warning("a reader's stream broke off", session=self._recited.session_id, error=str(error))
            return self._renderer.broken(error.code, str(error))
        return b""

    async def _follow(self, reader: Following) -> None:
        answering, renderer = self._answering, self._renderer
        loop, heartbeat_s = asyncio.get_running_loop(), self._means.timing.heartbeat_s
        sent_at = loop.time()
        while True:
            batch = await reader.next()
            made = self._rendered(batch) if len(batch) < following.MANY else await asyncio.to_thread(self._rendered, batch)
            if made or loop.time() - sent_at >= heartbeat_s:  # Much may happen that is not for this reader.
                await self._put(made or frames.HEARTBEAT)
                sent_at = loop.time()
            if answering.over:
                self._means.delivered.note(self._recited.message_id)
                return
            rests = answering.left or (answering.held and not renderer.waits)
            if rests and await reader.caught_up():
                await self._put(renderer.rest())
                return

    def _rendered(self, batch: Sequence[Logged]) -> bytes:
        made = []
        for item in batch:
            made.append(self._renderer.event(item, self._answering.apply(item)))
            if self._answering.over:
                break
        return b"".join(made)

    async def _put(self, data: bytes, *, more: bool = True) -> None:
        """In pieces, so that no more of it than one lies in the server's buffer for a reader that does not read."""
        for start in range(0, len(data) or 1, PIECE):
            piece = data[start : start + PIECE]
            async with asyncio.timeout(self._means.timing.send_timeout_s):
                await self._send({"type": "http.response.body", "body": piece, "more_body": more or start + PIECE < len(data)})


async def _hear_of_leaving(receive: Receive, leave: Callable[[], None]) -> None:
    """The server tells only those who ask: sending to a client that is gone does not fail."""
    while (await receive())["type"] != "http.disconnect":
        pass
    leave()
