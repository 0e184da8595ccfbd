"""A reverse proxy in front of a homeserver. What goes wrong on the wire is said before, and what the server would never say is put into
its answers.
"""

import asyncio
import json
from collections import defaultdict, deque
from typing import Any
from urllib.parse import unquote

import aiohttp
from aiohttp import web
from yarl import URL

from tests.fakes.gate import Gate

_PASSED = ("Authorization", "Content-Type")


class Proxy:
    """`faults`: what becomes of the next messages: "" (all well), "lost" (the connection breaks before anything is done), "cut" (it is
    done, and the connection breaks), "failed", "limited", "slowly". `gone`: rooms that take nothing.
    `failing`: parts of addresses at which the server always fails; `barred`: at which it does not accept the token. `stuck`: a page of
    history leads to itself. `asked`: what was asked for.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self.gate = Gate()
        self.faults: deque[str] = deque()
        self.gone: set[str] = set()
        self.failing: set[str] = set()
        self.barred: set[str] = set()
        self.revoked = self.stuck = False
        self.asked: list[tuple[str, str]] = []
        self._broken: dict[str, str] = {}
        self._made: dict[str, list[Any]] = defaultdict(list)
        self._news = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._client: aiohttp.ClientSession | None = None
        self.url = ""

    async def __aenter__(self) -> "Proxy":
        self._client = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        app = web.Application(client_max_size=100 * 2**20, middlewares=[self.gate.passes])
        app.router.add_route("*", "/{path:.*}", self._take)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None and self._client is not None
        await self._runner.cleanup()
        await self._client.close()

    def deliver(self, room: str, *events: Any) -> None:
        """The next sync brings these, too."""
        self._made[room].extend(events)
        self._news.set()

    def revoke(self) -> None:
        self.revoked = True
        self._news.set()

    async def _take(self, request: web.Request) -> web.StreamResponse:
        path = unquote(request.path)
        self.asked.append((request.method, path))
        if self.revoked or any(part in path for part in self.barred):
            return _refusal(401, "M_UNKNOWN_TOKEN", "Invalid access token passed.")
        if any(part in path for part in self.failing):
            return web.Response(status=500, text="oh no")
        if path.endswith("/sync") and "since" in request.query:
            return await self._sync(request)
        if request.method == "PUT" and "/send/m.room.message/" in path:
            return await self._message(request, path)
        found = await self._pass(request)
        if self.stuck and path.endswith("/messages"):
            return web.json_response({**json.loads(found.text or ""), "end": request.query["from"]})
        return found

    async def _message(self, request: web.Request, path: str) -> web.StreamResponse:
        if any(f"/rooms/{room}/" in path for room in self.gone):
            return _refusal(403, "M_FORBIDDEN", "The account is not in the room.")
        # What breaks does so for the repeat, too, that a client makes by itself on a new connection.
        fault = self._broken.pop(path, None)
        if fault is None:
            fault = self.faults.popleft() if self.faults else ""
            if fault in ("lost", "cut"):
                self._broken[path] = fault
        match fault:
            case "failed":
                return web.Response(status=500, text="oh no")
            case "limited":
                return _refusal(429, "M_LIMIT_EXCEEDED", "Too Many Requests", retry_after_ms=1000)
            case "slowly":
                return _refusal(429, "M_LIMIT_EXCEEDED", "Too Many Requests")
            case "lost":
                return _break(request)
            case "cut":
                await self._pass(request)
                return _break(request)
            case _:
                return await self._pass(request)

    async def _sync(self, request: web.Request) -> web.StreamResponse:
        """Held by the server, unless there is something that it does not know of."""
        passing, news = asyncio.ensure_future(self._pass(request)), asyncio.ensure_future(self._news.wait())
        try:
            await asyncio.wait((passing, news), return_when=asyncio.FIRST_COMPLETED)
            if not self._news.is_set():
                return passing.result()
        finally:
            for task in (passing, news):
                task.cancel()
            await asyncio.gather(passing, news, return_exceptions=True)
        self._news.clear()
        if self.revoked:
            return _refusal(401, "M_UNKNOWN_TOKEN", "Invalid access token passed.")
        made, self._made = self._made, defaultdict(list)
        rooms = {room: {"timeline": {"events": events, "limited": False}} for room, events in made.items()}
        return web.json_response({"next_batch": request.query["since"], "rooms": {"join": rooms}})

    async def _pass(self, request: web.Request) -> web.Response:
        assert self._client is not None
        headers = {name: request.headers[name] for name in _PASSED if name in request.headers}
        url = URL(f"{self._server}{request.raw_path}", encoded=True)
        async with self._client.request(request.method, url, headers=headers, data=await request.read()) as found:
            body = await found.read()
            return web.Response(status=found.status, body=body, content_type=found.content_type)


def _break(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def _refusal(status: int, code: str, words: str, **more: Any) -> web.Response:
    return web.Response(status=status, text=json.dumps({"errcode": code, "error": words, **more}), content_type="application/json")
