"""The operator's view over HTTP. Reads only: what changes something is in `admin` and `sessions`."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from starlette.types import ASGIApp

from holdfast.api import operations
from holdfast.api.requests import LogQuery
from holdfast.api.status import Status
from holdfast.gateway.gateway import Gateway
from holdfast.web.endpoints import Endpoint, Request
from holdfast.web.responses import json_response

MOST = 200
MOST_MARKS = 20_000
LOG_LINES = 200
HOUR_MS = 3600 * 1000
TIMELINE: dict[int, Any] = {200: operations.Timeline}
LOG: dict[int, Any] = {200: operations.LogView}


class Operations:
    def __init__(self, gateway: Gateway, status: Callable[[], Awaitable[Status]], now: Callable[[], int]) -> None:
        self._gateway, self._store, self._status, self._now = gateway, gateway.store, status, now

    def endpoints(self) -> Iterable[Endpoint]:
        for name, handle, summary, response in (
            ("turns", self.turns, "The turns that run now", operations.WorkingList),
            ("attention", self.attention, "What waits for a person, the oldest first", operations.Attention),
            ("inbox", self.inbox, "Messages that no turn has taken yet", operations.InboxView),
            ("outbox", self.outbox, "Replies whose delivery is not over", operations.OutboxView),
        ):
            found: dict[int, Any] = {200: response}
            yield Endpoint(method="GET", path=f"/api/ops/{name}", handle=handle, summary=summary, responses=found)
        for name, handle, summary, found in (
            ("timeline", self.timeline, "Which processes served, and how turns ended", TIMELINE),
            ("log", self.log, "What was decided about turns, the newest first", LOG),
        ):
            yield Endpoint(method="GET", path=f"/api/ops/{name}", handle=handle, summary=summary, query=LogQuery, responses=found)

    async def turns(self, request: Request) -> ASGIApp:
        pids = {owner.id: owner.pid for owner in await self._store.owners()}
        return json_response(200, operations.working(await self._store.working(limit=MOST), pids, (await self._status()).pid))

    async def attention(self, request: Request) -> ASGIApp:
        asks, owed = await self._store.asks(limit=MOST), await self._store.owed(limit=MOST)
        return json_response(200, operations.attention(asks, await self._in("suspended"), await self._in("pending"), owed))

    async def _in(self, state: str) -> list[Any]:
        return (await self._store.sessions(limit=MOST, state=state)).sessions

    async def inbox(self, request: Request) -> ASGIApp:
        paused = str(self._gateway.state) == "paused"
        return json_response(200, operations.inbox(await self._store.waiting(limit=MOST), paused=paused))

    async def outbox(self, request: Request) -> ASGIApp:
        return json_response(200, operations.outbox(await self._store.owed(limit=MOST)))

    async def timeline(self, request: Request) -> ASGIApp:
        asked: LogQuery = request.query
        now = self._now()
        since = now - asked.hours * HOUR_MS
        marks = await self._store.marks(since=since, limit=MOST_MARKS)
        lives = await self._store.lives()
        return json_response(200, operations.timeline(lives, marks, since=since, now=now, partial=len(marks) >= MOST_MARKS))

    async def log(self, request: Request) -> ASGIApp:
        asked: LogQuery = request.query
        marks = await self._store.marks(since=self._now() - asked.hours * HOUR_MS, limit=LOG_LINES)
        titles = {}
        for session_id in {mark.session_id for mark in marks}:
            titles[session_id] = (await self._store.session(session_id)).title
        return json_response(200, operations.log(marks, titles))
