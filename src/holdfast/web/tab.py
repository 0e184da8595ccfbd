"""One stream for a whole tab: the events of the sessions it shows, changes of the list, and the status (P7).

Session events keep their frames and ids, so the id alone says which session and where. Events of the channels have no id. The server keeps
nothing of a tab: to open another conversation it connects again with its cursors.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.api import views
from holdfast.api.requests import TabQuery
from holdfast.api.status import Status
from holdfast.core.errors import BadInput, NotFound, Unavailable
from holdfast.core.sessions import Session
from holdfast.gateway.feed import ListWatcher
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.tasks import Tasks
from holdfast.ports.desk import NOTHING
from holdfast.ports.log import Cursor
from holdfast.web import frames
from holdfast.web.access import Access, Grant
from holdfast.web.endpoints import Endpoint, Request
from holdfast.web.stream import HEADERS, Reader, Timing, seq_of

MOST_SESSIONS = 4
# More changes than this are one: read the list again.
MOST_CHANGES = 200
GATHER_S = 0.3
STATUS_S = 2.0


log = structlog.get_logger()


class Tabs:
    def __init__(self, gateway: Gateway, access: Access, status: Callable[[], Awaitable[Status]], tasks: Tasks, timing: Timing) -> None:
        self._gateway, self._access, self._status, self._tasks, self._timing = gateway, access, status, tasks, timing

    def endpoints(self) -> Iterable[Endpoint]:
        yield Endpoint(
            method="GET",
            path="/api/events",
            handle=self.events,
            summary="One stream for a whole tab: sessions, the list, the status",
            responses={200: bytes},
            content_types={200: "text/event-stream"},
            query=TabQuery,
            streams=True,
        )

    async def events(self, request: Request) -> ASGIApp:
        asked: TabQuery = request.query
        fields = parse_qsl(request.scope["query_string"].decode("utf-8", "replace"))
        sessions = [value for name, value in fields if name == "session"]
        cursors = [value for name, value in fields if name == "after"]
        if len(sessions) > MOST_SESSIONS or len(cursors) > len(sessions):
            raise BadInput(f"A stream takes at most {MOST_SESSIONS} `session`, each with at most one `after`.")
        assert request.grant is not None
        found, gone = [], []
        for index, session_id in enumerate(sessions):
            try:
                found.append((await self._gateway.session(session_id), cursors[index] if index < len(cursors) else "0"))
            except NotFound:
                gone.append(session_id)
        if not sessions:
            await self._gateway.counts()  # A store that cannot be read is told now, not in the middle of a stream.
        return Tab(self._gateway, self._access, self._status, self._tasks, self._timing, request.grant, found, gone, asked)


class Tab:
    """One tab's stream. It lasts as long as the credential it came with; each session in it ends for itself."""

    def __init__(
        self,
        gateway: Gateway,
        access: Access,
        status: Callable[[], Awaitable[Status]],
        tasks: Tasks,
        timing: Timing,
        grant: Grant,
        sessions: list[tuple[Session, str]],
        gone: list[str],
        asked: TabQuery,
    ) -> None:
        self._gateway, self._access, self._status = gateway, access, status
        self._tasks, self._timing, self._grant, self._asked = tasks, timing, grant, asked
        self._sessions, self._gone = sessions, gone
        self._followed = len(sessions)
        self._whole = asyncio.Lock()
        self._over = asyncio.Event()
        self._reason: str | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._send = send
        listing = await self._gateway.feed.watch_list()
        forget = self._access.watch(self._grant, lambda: self._end("signed_out"))
        running: list[asyncio.Task[None]] = []
        try:
            await send({"type": "http.response.start", "status": 200, "headers": list(HEADERS)})
            await self._open(listing)
            work = [self._follow(session, cursor) for session, cursor in self._sessions]
            work += [self._leaving(receive), self._list(listing)]
            if self._asked.status:
                work.append(self._tell_status())
            running = [self._tasks.spawn(each, name="tab") for each in work]
            await self._over.wait()
            if self._reason not in (None, "gone"):
                await self._put(frames.end(str(self._reason)), more=False)
        except TimeoutError:
            log.info("a tab took nothing for too long")
        finally:
            forget()
            self._gateway.feed.leave_list(listing)
            for task in running:
                task.cancel()

    def _end(self, reason: str | None) -> None:
        if not self._over.is_set():
            self._reason = reason
            self._over.set()

    async def _put(self, data: bytes, *, more: bool = True) -> None:
        async with self._whole, asyncio.timeout(self._timing.send_timeout_s):
            await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def _channel(self, name: str, value: Any) -> None:
        await self._put(frames.channel(name, value))

    async def _open(self, listing: ListWatcher) -> None:
        opened = [
            {"session_id": session.session_id, "log": session.log, "cursor": f"{session.log}.{session.seq}"}
            for session, _ in self._sessions
        ]
        await self._channel("stream.opened", {"sessions": opened, "rev": listing.cursor})
        for session_id in self._gone:
            await self._channel("end", {"reason": "not_found", "session_id": session_id})
        if self._asked.list:
            await self._catch_up(listing)

    async def _catch_up(self, listing: ListWatcher) -> None:
        """What changed in the list since the tab last heard of it."""
        rev = self._asked.list or ""
        if rev == "0":
            return
        if not rev.isdecimal():
            return await self._channel("list.reset", {"rev": listing.cursor})
        changes = await self._gateway.store.changes(Cursor(rev))
        if changes.more or len(changes.newest) > MOST_CHANGES or int(rev) > int(listing.cursor):
            return await self._channel("list.reset", {"rev": listing.cursor})
        await self._tell(list(changes.newest), listing.cursor, {})

    async def _follow(self, session: Session, cursor: str) -> None:
        seq, lost = seq_of(cursor, session)
        reader = Reader(self._gateway, self._access, self._grant, self._tasks, self._timing, session, seq, lost)
        try:
            reason = await reader.follow(self._send, self._whole)
            if reason == "deleted":
                self._followed -= 1
                await self._channel("end", {"reason": reason, "session_id": session.session_id})
            else:
                self._end(reason)  # The tab comes back with its cursors.
        except TimeoutError:
            self._end(None)

    async def _leaving(self, receive: Receive) -> None:
        """The server tells only those who ask: sending to a client that is gone does not fail."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._end("gone")

    async def _list(self, listing: ListWatcher) -> None:
        sent: dict[str, bytes] = {}
        try:
            while listing.ended is None:
                changed = await listing.next(self._timing.heartbeat_s)
                if not self._access.good(self._grant):
                    return self._end("signed_out")
                if not changed and listing.ended is None:
                    await self._put(frames.HEARTBEAT)
                elif changed and self._asked.list is not None:
                    await asyncio.sleep(GATHER_S)
                    changed = list(dict.fromkeys([*changed, *(await listing.next(0.001))]))
                    await self._tell(changed, listing.cursor, sent)
        except (TimeoutError, Unavailable):
            return self._end(None)
        if self._followed:
            await asyncio.sleep(self._timing.heartbeat_s)  # Its readers first pass on what is stored, and then say why.
        self._end(listing.ended)

    async def _tell(self, changed: list[str], rev: str, sent: dict[str, bytes]) -> None:
        """Once for each session that looks different from what was last told."""
        if len(changed) > MOST_CHANGES:
            return await self._channel("list.reset", {"rev": rev})
        glances = await self._gateway.store.glances(changed)
        for session_id in changed:
            try:
                session = await self._gateway.session(session_id)
            except NotFound:
                await self._channel("list.removed", {"rev": rev, "session_id": session_id})
                continue
            data = frames.channel("list.changed", {"rev": rev, "session": views.listed(session, glances.get(session_id, NOTHING))})
            if sent.get(session_id, b"").partition(b'"session"')[2] != data.partition(b'"session"')[2]:
                sent[session_id] = data
                await self._put(data)

    async def _tell_status(self) -> None:
        before = b""
        try:
            while True:
                data = frames.channel("status", await self._status())
                if data != before:
                    await self._put(data)
                before = data
                await asyncio.sleep(STATUS_S)
        except (TimeoutError, Unavailable):
            self._end(None)
