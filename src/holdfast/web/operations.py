"""The operator's view over HTTP, and what an operator decides about chats. What concerns the whole gateway is in `admin`."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from starlette.types import ASGIApp

from holdfast.api import operations
from holdfast.api.requests import LogQuery, NewPerson, OutboxChange, OutboxQuery, SeriesQuery
from holdfast.api.status import Status
from holdfast.api.times import rfc3339, rfc3339_or_none
from holdfast.core import keys
from holdfast.core.delivery import NotOver
from holdfast.core.errors import NotFound
from holdfast.core.pairing import TooManyWrongCodes, WrongCode
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.links import Link
from holdfast.gateway.series import Series
from holdfast.ports.updates import StoredUpdate
from holdfast.web.endpoints import Endpoint, Request, command
from holdfast.web.responses import Response, json_response

MOST = 200
MOST_MARKS = 20_000
LOG_LINES = 200
HOUR_MS = 3600 * 1000
DAY_MS = 24 * HOUR_MS
TIMELINE: dict[int, Any] = {200: operations.Timeline}
LOG: dict[int, Any] = {200: operations.LogView}
SERIES: dict[int, Any] = {200: operations.SeriesView}


class Operations:
    def __init__(self, gateway: Gateway, series: Series, status: Callable[[], Awaitable[Status]], now: Callable[[], int]) -> None:
        self._gateway, self._store, self._series, self._status, self._now = gateway, gateway.store, series, status, now
        self._began = now()

    def endpoints(self) -> Iterable[Endpoint]:
        for name, handle, summary, response in (
            ("turns", self.turns, "The turns that run now", operations.WorkingList),
            ("attention", self.attention, "What waits for a person, the oldest first", operations.Attention),
            ("inbox", self.inbox, "Messages that no turn has taken yet", operations.InboxView),
            ("people", self.people, "Who was let in, and who asks to be", operations.PeopleView),
            ("platforms", self.platforms, "Chat platforms: whether they are connected, and what is owed there", operations.PlatformsView),
        ):
            found: dict[int, Any] = {200: response}
            yield Endpoint(method="GET", path=f"/api/ops/{name}", handle=handle, summary=summary, responses=found)
        for name, handle, summary, found in (
            ("timeline", self.timeline, "Which processes served, and how turns ended", TIMELINE),
            ("log", self.log, "What was decided about turns, the newest first", LOG),
        ):
            yield Endpoint(method="GET", path=f"/api/ops/{name}", handle=handle, summary=summary, query=LogQuery, responses=found)
        yield Endpoint(
            method="GET",
            path="/api/ops/series",
            handle=self.figures,
            summary="What the serving process measured in the last hours",
            query=SeriesQuery,
            responses=SERIES,
            inside=False,
        )
        yield from self._chats()

    def _chats(self) -> Iterable[Endpoint]:
        outbox, person = {200: operations.OutboxView}, {200: operations.PersonView}
        yield Endpoint(
            method="GET",
            path="/api/ops/outbox",
            handle=self.outbox,
            summary="Messages to chats whose delivery is not over",
            query=OutboxQuery,
            responses=outbox,
        )
        yield command(
            "/api/ops/outbox/{id}",
            self.decide,
            "Try a delivery again now, or drop it",
            outbox,
            body=OutboxChange,
            refusals=(NotFound, NotOver),
        )
        yield command(
            "/api/ops/people",
            self.let_in,
            "Let somebody in, by their pairing code or their id",
            person,
            body=NewPerson,
            refusals=(WrongCode, TooManyWrongCodes),
        )
        yield Endpoint(
            method="DELETE",
            path="/api/ops/people/{platform}/{user}",
            handle=self.shut_out,
            summary="Shut somebody out who was let in, or deny somebody who asks to be",
            responses={204: None},
            refusals=(NotFound,),
        )

    async def turns(self, request: Request) -> ASGIApp:
        pids = {owner.id: owner.pid for owner in await self._store.owners()}
        return json_response(200, operations.working(await self._store.working(limit=MOST), pids, (await self._status()).pid))

    async def attention(self, request: Request) -> ASGIApp:
        asks, owed = await self._store.asks(limit=MOST), await self._store.owed(limit=MOST, given_up=True)
        suspended, pending, strangers = await self._in("suspended"), await self._in("pending"), await self._store.pairings()
        return json_response(200, operations.attention(asks, suspended, pending, owed, strangers, now=self._now()))

    async def _in(self, state: str) -> list[Any]:
        return (await self._store.sessions(limit=MOST, state=state)).sessions

    async def inbox(self, request: Request) -> ASGIApp:
        paused = str(self._gateway.state) == "paused"
        return json_response(200, operations.inbox(await self._store.waiting(limit=MOST), paused=paused))

    async def outbox(self, request: Request) -> ASGIApp:
        asked: OutboxQuery = request.query
        return json_response(200, await self._outbox(asked))

    async def _outbox(self, asked: OutboxQuery) -> operations.OutboxView:
        owed = await self._store.owed(limit=MOST, given_up=asked.given_up, arrived=asked.arrived)
        return operations.outbox(owed, await self._store.dead_places())

    async def decide(self, request: Request) -> ASGIApp:
        wanted: OutboxChange = request.body
        await self._gateway.decide_delivery(request.params["id"], wanted.action)
        return json_response(200, await self._outbox(OutboxQuery(given_up=True)))

    async def platforms(self, request: Request) -> ASGIApp:
        found = await self._outbox(OutboxQuery(given_up=True))
        links, refused = self._gateway.links, await self._store.refused_updates(limit=MOST)
        shown = [self._platform(link, found, next((one for one in refused if one.account == link.id), None)) for link in links.values()]
        owing = sorted({owed.platform for owed in found.deliveries if owed.state != "dead"} - set(links))
        shown += [operations.PlatformView(name=name, outbox=found.counts[name], dead=[]) for name in owing]
        view = operations.PlatformsView(
            platforms=shown,
            readers=self._gateway.feed.tabs,
            taken_in=self._gateway.tally.traffic(keys.PAGE)[0],
            counted_since=rfc3339(max(self._now() - DAY_MS, self._began)),
        )
        return json_response(200, view)

    def _platform(self, link: Link, found: operations.OutboxView, refused: StoredUpdate | None) -> operations.PlatformView:
        failed_at, why = link.failed or (None, None)
        taken_in, delivered = self._gateway.tally.traffic(link.name)
        return operations.PlatformView(
            name=link.name,
            account=link.account.name if link.account else None,
            state=link.state,
            since=rfc3339(link.since),
            last_update_at=rfc3339_or_none(link.updated_at),
            retry_at=rfc3339_or_none(link.retry_at),
            error=link.problem,
            last_error=why,
            last_error_at=rfc3339_or_none(failed_at),
            waiting=link.waiting,
            refused=link.refused,
            last_refused=refused.refused if refused else None,
            last_refused_at=rfc3339(refused.at) if refused else None,
            taken_in=taken_in,
            delivered=delivered,
            outbox=found.counts.get(link.name, {}),
            dead=[gone for gone in found.dead if gone.platform == link.name],
        )

    async def people(self, request: Request) -> ASGIApp:
        paired, pending = await self._store.paired(), await self._store.pairings()
        return json_response(200, operations.people(paired, pending, now=self._now()))

    async def let_in(self, request: Request) -> ASGIApp:
        wanted: NewPerson = request.body
        strangers = self._gateway.strangers
        if wanted.code is not None:
            found = await strangers.approve(wanted.code, platform=wanted.platform)
        else:
            found = await strangers.let_in(wanted.platform or "", wanted.user or "", name=wanted.name)
        return json_response(200, operations.person(found))

    async def shut_out(self, request: Request) -> ASGIApp:
        platform, user = request.params["platform"], request.params["user"]
        if not await self._gateway.strangers.turn_away(platform, user):
            raise NotFound("paired person", f"{platform} {user}")
        return Response(204)

    async def figures(self, request: Request) -> ASGIApp:
        asked: SeriesQuery = request.query
        found = self._series.window(asked.hours)
        return json_response(200, operations.SeriesView(since=rfc3339(found.since), step_s=found.step_s, series=found.series))

    async def timeline(self, request: Request) -> ASGIApp:
        asked: LogQuery = request.query
        now = self._now()
        since = now - asked.hours * HOUR_MS
        marks = await self._store.marks(since=since, limit=MOST_MARKS)
        lives, pauses = await self._store.lives(), await self._store.pauses(since=since, now=now)
        return json_response(200, operations.timeline(lives, pauses, marks, since=since, now=now, partial=len(marks) >= MOST_MARKS))

    async def log(self, request: Request) -> ASGIApp:
        asked: LogQuery = request.query
        marks = await self._store.marks(since=self._now() - asked.hours * HOUR_MS, limit=LOG_LINES)
        titles = {}
        for session_id in {mark.session_id for mark in marks}:
            titles[session_id] = (await self._store.session(session_id)).title
        return json_response(200, operations.log(marks, titles))
