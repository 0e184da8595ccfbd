"""The event stream of one session: watch first, catch up from the store, then live; nothing twice, nothing left out (P7).

Reads and sends only: a reader that comes, goes or lags changes nothing for the turn that it watches.
"""

import asyncio
import re
from collections.abc import Iterable
from typing import NamedTuple

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.api import conversation
from holdfast.api.requests import EventsQuery
from holdfast.core.errors import Deleted, NotFound, Unavailable
from holdfast.core.sessions import Session
from holdfast.gateway.feed import DELETED, Frame, Watcher
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.tasks import Alarm, Tasks
from holdfast.web import frames
from holdfast.web.access import Access, Grant
from holdfast.web.endpoints import Endpoint, Request

PAGE = 200
PIECE = 256 * 1024
HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]
BEGINNING = "0"
_CURSOR = re.compile(r"(.+)\.([0-9]{1,18})")
_GONE = "gone"
_SIGNED_OUT = "signed_out"
_AT_ONCE = (_GONE, _SIGNED_OUT)  # Nothing more is given to it, not even what is stored already.

log = structlog.get_logger()


class Timing(NamedTuple):
    """A reader that takes nothing for `send_timeout_s` while there is something for it is gone, or as good as gone."""

    heartbeat_s: float = 15.0
    send_timeout_s: float = 30.0


def seq_of(cursor: str, session: Session) -> tuple[int, str | None]:
    """The sequence a cursor stands for; or, as the second, why only a snapshot can go on from it."""
    if cursor == BEGINNING:
        return 0, None
    parts = _CURSOR.fullmatch(cursor)
    if parts is None:
        return 0, "unreadable"
    if parts[1] != session.log:
        return 0, "foreign"
    seq = int(parts[2])
    return (0, "future") if seq > session.seq else (seq, None)


class Streams:
    def __init__(self, gateway: Gateway, access: Access, tasks: Tasks, timing: Timing) -> None:
        self._gateway, self._access, self._tasks, self._timing = gateway, access, tasks, timing

    def endpoints(self) -> Iterable[Endpoint]:
        yield Endpoint(
            method="GET",
            path="/api/sessions/{id}/events",
            handle=self.events,
            summary="The event stream of a session",
            responses={200: bytes},
            content_types={200: "text/event-stream"},
            refusals=(NotFound, Deleted),
            query=EventsQuery,
            streams=True,
        )

    async def events(self, request: Request) -> ASGIApp:
        session = await self._gateway.session(request.params["id"])
        cursor = request.headers.get(b"last-event-id", b"").decode("latin-1") or request.query.after
        seq, lost = seq_of(cursor, session)
        assert request.grant is not None
        return Reader(self._gateway, self._access, request.grant, self._tasks, self._timing, session, seq, lost)


class Reader:
    """One reader. `seq` is the last event it has; `lost` says why it cannot continue from there, if it cannot. It lasts as long as the
    credential it came with."""

    def __init__(
        self,
        gateway: Gateway,
        access: Access,
        grant: Grant,
        tasks: Tasks,
        timing: Timing,
        session: Session,
        seq: int,
        lost: str | None,
    ) -> None:
        self._gateway, self._access, self._grant = gateway, access, grant
        self._tasks, self._timing, self._session = tasks, timing, session
        self._seq, self._lost = seq, lost
        self._whole = asyncio.Lock()

    async def follow(self, send: Send, whole: asyncio.Lock) -> str | None:
        """One of several readers on one connection: what `whole` guards is sent in one go. Gives why it ended, None where there is no
        word for it.
        """
        self._send, self._whole = send, whole
        watcher = await self._gateway.feed.watch(self._session.session_id, after=self._session.seq)
        forget = self._access.watch(self._grant, lambda: watcher.end(_SIGNED_OUT))
        try:
            async with asyncio.timeout(None) as limit:
                self._stuck = Alarm(lambda: limit.reschedule(0))
                return await self._serve(watcher)
        finally:
            self._stuck.close()
            forget()
            self._gateway.feed.leave(watcher)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._send = send
        feed = self._gateway.feed
        watcher = await feed.watch(self._session.session_id, after=self._session.seq)
        forget = self._access.watch(self._grant, lambda: watcher.end(_SIGNED_OUT))
        leaving = self._tasks.spawn(_hear_of_leaving(receive, watcher), name=f"reader of {self._session.session_id}")
        try:
            async with asyncio.timeout(None) as limit:
                self._stuck = Alarm(lambda: limit.reschedule(0))
                await send({"type": "http.response.start", "status": 200, "headers": list(HEADERS)})
                reason = await self._serve(watcher)
                if reason != _GONE:
                    await self._put(frames.end(reason) if reason else b"", more=False)
        except TimeoutError:
            log.info("a reader took nothing for too long", session=self._session.session_id)
        finally:
            self._stuck.close()
            forget()
            feed.leave(watcher)
            leaving.cancel()

    async def _serve(self, watcher: Watcher) -> str | None:
        """Gives why it ended; None where there is no word for it. The reader comes back with its cursor either way."""
        try:
            return await self._follow(watcher)
        except NotFound:
            return DELETED
        except Unavailable as error:
            log.warning("a reader's stream broke off", session=self._session.session_id, error=str(error))
            return None

    async def _follow(self, watcher: Watcher) -> str:
        await self._catch_up(watcher)
        if self._seq > self._session.seq:  # Whatever came before the watch began is seen only here.
            await self._gateway.session(self._session.session_id)
        while True:
            new = await watcher.next(self._timing.heartbeat_s)
            if watcher.ended in _AT_ONCE:
                return str(watcher.ended)
            if not self._access.good(self._grant):  # A cookie whose time is over.
                return _SIGNED_OUT
            if watcher.slow:
                return "slow_reader"
            if new:
                fresh, whole = self._fresh(new)
                if fresh:
                    await self._put(frames.join(self._session.log, fresh))
                if not whole:
                    await self._catch_up(watcher)
            elif watcher.ended is None:
                await self._put(frames.HEARTBEAT)
            if watcher.ended is not None:
                await self._catch_up(watcher)  # What was stored until now; it need not wait for its next connection.
                return watcher.ended

    def _fresh(self, new: list[Frame]) -> tuple[list[bytes], bool]:
        """What this reader has not had, up to the first gap; false when there is one. A frame may come twice."""
        fresh: list[bytes] = []
        for frame in new:
            if frame.seq > self._seq + 1:
                return fresh, False
            if frame.seq == self._seq + 1:
                fresh.append(frame.data)
                self._seq += 1
        return fresh, True

    async def _catch_up(self, watcher: Watcher) -> None:
        """Everything the store has after the last event given. A hole means pruned events: from there on a snapshot takes their place."""
        while watcher.ended not in _AT_ONCE:
            if self._lost is not None:
                await self._snapshot(self._lost)
                self._lost = None
            page = await self._gateway.store.events(self._session.session_id, after=self._seq, limit=PAGE, make=frames.encode)
            if not page:
                return
            first = self._seq + 1
            found = [item for index, item in enumerate(page) if item.seq == first + index]
            if len(found) < len(page):
                self._lost = "pruned"
            if found:
                await self._put(
                    frames.join(self._session.log, (page.made.get((item.session_id, item.seq)) or frames.encode(item) for item in found))
                )
                self._seq = found[-1].seq
            if not page.more and self._lost is None:
                return

    async def _snapshot(self, because: str) -> None:
        async with self._gateway.view(self._session.session_id) as (session, transcript):
            schedules = await self._gateway.store.schedules(session.session_key)
            view = conversation.snapshot(session, transcript, because, schedules=schedules)
            seq, data = transcript.seq, frames.snapshot(session.log, transcript.seq, view)
        await self._put(data)
        self._seq = seq

    async def _put(self, data: bytes, *, more: bool = True) -> None:
        """In pieces, so that no more of it than one lies in the server's buffer for a reader that does not read."""
        async with self._whole:
            for start in range(0, len(data) or 1, PIECE):
                piece = data[start : start + PIECE]
                self._stuck.set(self._timing.send_timeout_s)
                await self._send({"type": "http.response.body", "body": piece, "more_body": more or start + PIECE < len(data)})
                self._stuck.clear()


async def _hear_of_leaving(receive: Receive, watcher: Watcher) -> None:
    """The server tells only those who ask: sending to a client that is gone does not fail."""
    while (await receive())["type"] != "http.disconnect":
        pass
    watcher.end(_GONE)
