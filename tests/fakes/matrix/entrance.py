"""A homeserver as far as an account is set up at it: whose password and token it knows, and who invited it."""

import asyncio
from typing import Any

from aiohttp import web

from tests.fakes.threads import ServerThread

DOMAIN = "example.org"
USER, PASSWORD, TOKEN = f"@holdfast:{DOMAIN}", "sesame, open", "syt_the-door"


class EntranceServer:
    def __init__(self) -> None:
        self._invited_by: dict[str, str] = {}
        self._news = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> "EntranceServer":
        app = web.Application()
        app.router.add_get("/_matrix/client/versions", self._versions)
        app.router.add_post("/_matrix/client/v3/login", self._log_in)
        app.router.add_get("/_matrix/client/v3/account/whoami", self._whoami)
        app.router.add_get("/_matrix/client/v3/profile/{user}/displayname", self._name)
        app.router.add_get("/_matrix/client/v3/sync", self._sync)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    def invite(self, who: str, name: str) -> None:
        self._invited_by[who] = name
        self._news.set()

    async def _versions(self, request: web.Request) -> web.Response:
        return web.json_response({"versions": ["v1.11"]})

    async def _log_in(self, request: web.Request) -> web.Response:
        asked = await request.json()
        if (asked["identifier"]["user"], asked["password"]) != (USER, PASSWORD):
            return web.json_response({"errcode": "M_FORBIDDEN", "error": "Invalid username or password"}, status=403)
        return web.json_response({"user_id": USER, "access_token": TOKEN, "device_id": "DEVICE"})

    async def _whoami(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.json_response({"errcode": "M_UNKNOWN_TOKEN", "error": "Unrecognised access token"}, status=401)
        return web.json_response({"user_id": USER, "device_id": "DEVICE"})

    async def _name(self, request: web.Request) -> web.Response:
        return web.json_response({"displayname": "Holdfast"})

    async def _sync(self, request: web.Request) -> web.Response:
        """One without a time to wait only asks where it stands."""
        if request.query["timeout"] != "0":
            await asyncio.wait_for(self._news.wait(), int(request.query["timeout"]) / 1000)
        rooms = {f"!{number}:{DOMAIN}": _invitation(who, name) for number, (who, name) in enumerate(self._invited_by.items())}
        return web.json_response({"next_batch": "s1", "rooms": {"invite": rooms}})


def _invitation(who: str, name: str) -> dict[str, Any]:
    joined = {"type": "m.room.member", "state_key": who, "sender": who, "content": {"membership": "join", "displayname": name}}
    invited = {"type": "m.room.member", "state_key": USER, "sender": who, "content": {"membership": "invite"}}
    return {"invite_state": {"events": [joined, invited]}}


class EntranceThread(ServerThread[EntranceServer]):
    def __init__(self) -> None:
        super().__init__(EntranceServer())

    @property
    def url(self) -> str:
        return self.server.url

    def invite(self, who: str, name: str) -> None:
        self.do(lambda server: server.invite(who, name))
