"""A server of Discord's REST API, with its gateway next to it. It keeps channels with their history, knows nonces again, and counts.
What goes wrong on the wire is said before (`faults`): by route, in the order of its requests.
"""

import itertools
import json
import time
from collections import defaultdict, deque
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from aiohttp import web

from tests.fakes.discord.gateway import Gateway
from tests.fakes.gate import Gate

TOKEN = "NDcxMQ.sesame.open-the-door-to-the-fake"
BOT = {"id": "4711", "username": "holdfast", "discriminator": "0815", "avatar": None, "bot": True}
APPLICATION = "4712"
_APPLICATION: dict[str, Any] = {
    "id": APPLICATION,
    "name": "Holdfast",
    "description": "",
    "icon": None,
    "bot_public": True,
    "bot_require_code_grant": False,
    "verify_key": "",
    "owner": BOT,
}
GUILD = "9000"
MOST_TEXT, MOST_NONCE, MOST_PAGE = 2000, 25, 100
EPOCH_MS = 1_420_070_400_000
DM, TEXT, THREAD = 1, 0, 11


# What every message has, and nobody here looks at.
_ALWAYS: dict[str, Any] = {
    "timestamp": "2026-01-01T00:00:00+00:00",
    "tts": False,
    "mention_everyone": False,
    "mention_roles": [],
    "embeds": [],
    "pinned": False,
}


class Refusal(Exception):
    def __init__(self, status: int, code: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status, self.body = status, {"code": code, "message": message, **more}


LIMITED = Refusal(429, 0, "You are being rate limited.", retry_after=1.0, **{"global": False})
SLOWLY = Refusal(429, 0, "You are being rate limited.")


class DiscordServer:
    """`faults`: for a route ("POST messages"), what becomes of its next requests: "lost" (the connection breaks before anything is done),
    "cut" (it is done, and the connection breaks), an int (a status without a body), or a `Refusal`. `closed`: channels in which nothing of
    ours arrives. `failing`: channels that cannot be read. `buckets`: how many requests of a route and channel are allowed, and in how many
    seconds.
    """

    def __init__(self) -> None:
        self.token, self.gate = TOKEN, Gate()
        self.gateway = Gateway(TOKEN, ready={"v": 10, "user": BOT, "guilds": [], "application": {"id": APPLICATION, "flags": 0}})
        self.channels: dict[str, dict[str, Any]] = {}
        self.history: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.removed: list[dict[str, Any]] = []
        self.edits: dict[str, list[str]] = defaultdict(list)
        self.asked: list[tuple[str, str, Any]] = []
        self.held: list[tuple[str, dict[str, Any]]] | None = None
        self.faults: dict[str, deque[Any]] = defaultdict(deque)
        self.closed: set[str] = set()
        self.muted: set[str] = set()
        self.hidden: set[str] = set()
        self.failing: set[str] = set()
        self.files: dict[str, bytes] = {}
        self.expired: set[str] = set()
        self.answers: dict[str, list[Any]] = defaultdict(list)
        self.old_clicks: set[str] = set()
        self.menu: list[dict[str, Any]] = []
        self.typed: list[str] = []
        self.buckets: tuple[int, float] | None = None
        self.limited = 0
        self._spent: dict[str, list[float]] = defaultdict(list)
        self._nonces: dict[tuple[str, str], dict[str, Any]] = {}
        self._numbers = itertools.count(1)
        self._runner: web.AppRunner | None = None
        self.base_url = ""

    async def __aenter__(self) -> "DiscordServer":
        app = web.Application(client_max_size=100_000_000, middlewares=[self.gate.passes])
        app.router.add_get("/gateway", self.gateway.serve)
        app.router.add_get("/files/{name}", self._file)
        app.router.add_route("*", "/api/v10/{path:.+}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.base_url, self.gateway.url = f"http://{host}:{port}", f"ws://{host}:{port}/gateway"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        self.gateway.hang_up()
        await self._runner.cleanup()

    # what people do

    def private(self, user: str) -> str:
        """The private chat with somebody."""
        channel = str(10_000 + int(user))
        self.channels.setdefault(channel, {"id": channel, "type": DM, "recipients": [_person(user)]})
        return channel

    def channel(self, id: str, *, parent: str | None = None) -> str:
        made = {"id": id, "type": THREAD if parent else TEXT, "guild_id": GUILD, "parent_id": parent}
        self.channels.setdefault(id, made)
        return id

    def say(self, channel: str, text: str = "", *, user: str, **fields: Any) -> dict[str, Any]:
        """A person writes. Gives the message."""
        said: dict[str, Any] = {
            "id": self.snowflake(),
            "channel_id": channel,
            "author": _person(user),
            "content": text,
            "type": 0,
            "mentions": [BOT] if f"<@{BOT['id']}>" in text else [],
            "attachments": [],
            "edited_timestamp": None,
            **_ALWAYS,
            **fields,
        }
        self._keep(said)
        self.deliver("MESSAGE_CREATE", said)
        return said

    def edit(self, said: dict[str, Any], text: str) -> None:
        said |= {"content": text, "edited_timestamp": f"2026-01-01T00:00:{next(self._numbers):02}"}
        self.deliver("MESSAGE_UPDATE", said)

    def take_back(self, said: dict[str, Any]) -> None:
        self.history[said["channel_id"]].remove(said)
        self.deliver("MESSAGE_DELETE", {"id": said["id"], "channel_id": said["channel_id"]})

    def press(self, shown: dict[str, Any], label: str, *, user: str, late: bool = False) -> str:
        """A person presses a button. Gives the id of the click."""
        [data] = [button["custom_id"] for row in shown["components"] for button in row["components"] if button["label"] == label]
        return self._interact(shown["channel_id"], user, late, type=3, data={"custom_id": data}, message={"id": shown["id"]})

    def choose(self, channel: str, name: str, words: str = "", *, user: str) -> str:
        """A person chooses a command of the menu."""
        options = [{"name": "text", "type": 3, "value": words}] if words else []
        return self._interact(channel, user, False, type=2, data={"name": name, "options": options})

    def _interact(self, channel: str, user: str, late: bool, **fields: Any) -> str:
        id, who = self.snowflake(), _person(user)
        if late:
            self.old_clicks.add(id)
        shared = self._guild(channel) is not None
        made = {
            "id": id,
            "token": f"token-{id}",
            "channel_id": channel,
            **({"member": {"user": who}} if shared else {"user": who}),
            **fields,
        }
        self.deliver("INTERACTION_CREATE", made)
        return id

    def release(self) -> None:
        """What was held back comes, the last first."""
        held, self.held = self.held or [], None
        for kind, data in reversed(held):
            self.deliver(kind, data)

    def deliver(self, kind: str, data: dict[str, Any]) -> None:
        if self.held is not None:
            self.held.append((kind, deepcopy(data)))
            return
        guild = self._guild(data.get("channel_id", ""))
        self.gateway.dispatch(kind, {**data, **({"guild_id": guild} if guild else {})})

    def _guild(self, channel: Any) -> str | None:
        return self.channels.get(channel, {}).get("guild_id") if isinstance(channel, str) else None

    def snowflake(self) -> str:
        return str(((int(time.time() * 1000) - EPOCH_MS) << 22) + next(self._numbers))

    def _keep(self, message: dict[str, Any]) -> None:
        self.history[message["channel_id"]].append(message)
        self.channels[message["channel_id"]]["last_message_id"] = message["id"]

    def shown(self, channel: str) -> list[dict[str, Any]]:
        """Our messages there, in their order."""
        return [message for message in self.history[channel] if message["author"]["id"] == BOT["id"]]

    def texts(self, channel: str) -> list[str]:
        return [message["content"] for message in self.shown(channel)]

    # requests

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        body, file = await self._body(request)
        self.asked.append((request.method, path, body))
        parts = path.split("/")
        if parts[0] not in ("interactions", "webhooks") and request.headers.get("Authorization") != f"Bot {self.token}":
            return _json({"message": "401: Unauthorized", "code": 0}, status=401)
        assert request.headers["User-Agent"].startswith("DiscordBot (")
        name = f"{request.method} {'messages' if parts[2:3] == ['messages'] else parts[-1]}"
        fault = self.faults[name].popleft() if self.faults[name] else ""
        if fault == "lost":
            return self._break(request)
        if request.method == "GET" and self.failing.intersection(parts):
            fault = 503
        if isinstance(fault, int):
            return web.Response(status=fault, text="")
        headers = {"Date": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())}
        try:
            if isinstance(fault, Refusal):
                raise fault
            headers |= self._spend(f"{name} {parts[1]}" if len(parts) > 1 else name)
            result = self._do(request.method, parts, body, dict(request.query), file)
        except Refusal as refusal:
            return _json(refusal.body, status=refusal.status, headers=headers)
        if fault == "cut":
            return self._break(request)
        return _json(result, headers=headers) if result is not None else web.Response(status=204, headers=headers)

    def _break(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    def _spend(self, route: str) -> dict[str, str]:
        if self.buckets is None:
            return {}
        most, per_s = self.buckets
        now = time.monotonic()
        spent = self._spent[route] = [at for at in self._spent[route] if now - at < per_s]
        if len(spent) >= most:
            self.limited += 1
            raise Refusal(429, 0, "You are being rate limited.", retry_after=per_s - (now - spent[0]), **{"global": False})
        spent.append(now)
        left = {"X-RateLimit-Remaining": str(most - len(spent)), "X-RateLimit-Reset-After": f"{per_s - (now - spent[0]):.3f}"}
        return {"X-RateLimit-Bucket": route.split(" ")[1], **left}

    async def _body(self, request: web.Request) -> tuple[Any, tuple[str, bytes] | None]:
        if request.content_type == "multipart/form-data":
            form = await request.post()
            file, said = form["files[0]"], form["payload_json"]
            assert isinstance(file, web.FileField) and isinstance(said, bytes | bytearray | str)
            return json.loads(said), (file.filename, file.file.read())
        data = await request.read()
        assert not data or request.headers["Content-Type"] == "application/json"
        return (json.loads(data) if data else None), None

    async def _file(self, request: web.Request) -> web.Response:
        assert "Authorization" not in request.headers, "the token is nobody else's"
        name = request.match_info["name"]
        if name in self.expired and "fresh" not in request.query:
            return web.Response(status=404)
        data = self.files.get(name)
        return web.Response(body=data) if data is not None else web.Response(status=404)

    def _do(self, method: str, parts: list[str], body: Any, query: dict[str, str], file: tuple[str, bytes] | None) -> Any:
        match (method, *parts):
            case ("GET", "users", "@me"):
                return BOT
            case ("GET", "applications", "@me") | ("GET", "oauth2", "applications", "@me"):
                return {**_APPLICATION, "flags": (1 << 19) if self.gateway.content else 0}
            case ("GET", "gateway", "bot"):
                left = {"total": 1000, "remaining": self.gateway.remaining, "reset_after": 500, "max_concurrency": 1}
                return {"url": self.gateway.url, "shards": 1, "session_start_limit": left}
            case ("POST", "users", "@me", "channels"):
                return self.channels[self.private(body["recipient_id"])]
            case ("GET", "users", "@me", "guilds"):
                return [{"id": GUILD}] if "after" not in query else []
            case ("GET", "guilds", _, "channels"):
                return [one for one in self.channels.values() if one["type"] == TEXT]
            case ("GET", "guilds", _, "threads", "active"):
                return {"threads": [one for one in self.channels.values() if one["type"] == THREAD and not one.get("archived")]}
            case ("PUT", "applications", _, "commands"):
                self.menu = body
                return body
            case ("POST", "interactions", id, _, "callback"):
                if id in self.old_clicks:
                    raise Refusal(404, 10062, "Unknown interaction")
                self.answers[id].append(body)
                return None
            case ("POST", "webhooks", _, token):
                id = token.removeprefix("token-")
                if id in self.old_clicks:
                    raise Refusal(404, 10015, "Unknown Webhook")
                self.answers[id].append(body)
                return {"id": self.snowflake()}
            case (_, "channels", channel, *rest):
                return self._channel(method, channel, rest, body, query, file)
        raise Refusal(404, 0, "404: Not Found")

    def _channel(self, method: str, channel: str, rest: list[str], body: Any, query: dict[str, str], file: tuple[str, bytes] | None) -> Any:
        if channel not in self.channels:
            raise Refusal(404, 10003, "Unknown Channel")
        if channel in self.hidden:
            raise Refusal(403, 50001, "Missing Access")
        if channel in self.closed and method != "GET":
            raise Refusal(403, 50007, "Cannot send messages to this user")
        if channel in self.muted and method != "GET":
            raise Refusal(403, 50013, "Missing Permissions")
        match (method, *rest):
            case ("GET",):
                return self.channels[channel]
            case ("GET", "threads", "archived", "public"):
                old = [one for one in self.channels.values() if one.get("archived") and one["parent_id"] == channel]
                return {"threads": old}
            case ("POST", "typing"):
                self.typed.append(channel)
                return None
            case ("GET", "messages"):
                after, most = int(query["after"]), int(query["limit"])
                assert most <= MOST_PAGE
                found = [message for message in self.history[channel] if int(message["id"]) > after][:most]
                return [{name: value for name, value in message.items() if name != "nonce"} for message in reversed(found)]
            case ("POST", "messages"):
                return self._send(channel, body, file)
            case (_, "messages", id):
                return self._message(method, channel, id, body)
        raise Refusal(404, 0, "404: Not Found")

    def _send(self, channel: str, body: dict[str, Any], file: tuple[str, bytes] | None) -> dict[str, Any]:
        known = self._nonces.get((channel, body["nonce"])) if body.get("enforce_nonce") else None
        if known is not None:
            if known not in self.history[channel]:
                raise Refusal(404, 10008, "Unknown Message")
            return known
        self._check(body, file)
        assert len(body["nonce"]) <= MOST_NONCE
        message = {
            "id": self.snowflake(),
            "channel_id": channel,
            "author": BOT,
            "content": body["content"],
            "components": body.get("components") or [],
            "message_reference": body.get("message_reference"),
            "nonce": body["nonce"],
            "attachments": [{"id": "1", "filename": file[0], "size": len(file[1]), "url": "", "proxy_url": ""}] if file else [],
            "type": 0,
            "mentions": [],
            "edited_timestamp": None,
            **_ALWAYS,
        }
        if file is not None:
            self.files[file[0]] = file[1]
        self._nonces[channel, body["nonce"]] = message
        self.channels[channel].pop("archived", None)
        self._keep(message)
        self.deliver("MESSAGE_CREATE", message)
        return message

    def _check(self, body: dict[str, Any], file: tuple[str, bytes] | None) -> None:
        assert body["allowed_mentions"]["parse"] == [], "an agent's words would call people"
        if len(body["content"].encode("utf-16-le")) // 2 > MOST_TEXT:
            raise Refusal(400, 50035, "Invalid Form Body", errors={"content": {"_errors": [{"code": "BASE_TYPE_MAX_LENGTH"}]}})
        if not body["content"] and file is None:
            raise Refusal(400, 50006, "Cannot send an empty message")

    def _message(self, method: str, channel: str, id: str, body: Any) -> Any:
        message = next((one for one in self.history[channel] if one["id"] == id), None)
        if message is None:
            raise Refusal(404, 10008, "Unknown Message")
        match method:
            case "GET":
                fresh = [{**file, "url": f"{file['url']}?fresh"} for file in message["attachments"]]
                return {**message, "attachments": fresh}
            case "PATCH":
                if self.channels[channel].get("archived"):
                    raise Refusal(400, 50083, "Thread is archived")
                self._check(body, None)
                self.edits[id].append(message["content"])
                message |= {"content": body["content"], "components": body.get("components", message["components"])}
                return message
            case _:
                self.history[channel].remove(message)
                self.removed.append(message)
                return None


def _person(user: str) -> dict[str, Any]:
    return {"id": user, "username": f"person{user}", "discriminator": "0", "global_name": f"Person {user}", "avatar": None}


def _json(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """Without a charset, as the real one."""
    named = {"Content-Type": "application/json", **(headers or {})}
    return web.Response(body=json.dumps(body).encode(), status=status, headers=named)
