"""A workspace of Slack: its Web API, its Socket Mode, and its requests over HTTP. It keeps every message, tells each one to one of the open
sockets, and tells again what was not acknowledged when a socket ends. What goes wrong on the wire is said before (`faults`): by method, in
the order of its requests.
"""

import asyncio
import json
import time
from collections import defaultdict, deque
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from aiohttp import WSMsgType, web

from tests.fakes.gate import Gate
from tests.fakes.hooks import Hook
from tests.fakes.slack import hooking
from tests.fakes.slack.shown import check_blocks, seen_buttons, seen_text

BOT_TOKEN, APP_TOKEN = "xoxb-1-sesame-open", "xapp-1-the-door"
BOT = {"user_id": "UBOT", "user": "holdfast", "bot_id": "BBOT", "team_id": "T1", "team": "Acme", "url": "https://acme.example/"}
MOST_TEXT, MOST_UPDATE, MOST_BLOCKS = 40_000, 4_000, 13_200
SCOPES = "chat:write,im:history,channels:history,groups:history,mpim:history,files:read,files:write,users:read"
# They take no JSON.
READING = ("conversations.", "users.", "files.info", "files.getUploadURLExternal")
Said = dict[str, Any]


class Refusal(Exception):
    """`ok: false`, with a status that says so only where the API does."""

    def __init__(self, error: str, *, status: int = 200, retry_after: int | None = None, **more: str) -> None:
        super().__init__(error)
        self.body, self.status = {"ok": False, "error": error, **more}, status
        self.headers = {"Retry-After": str(retry_after)} if retry_after is not None else {}


class Socket:
    def __init__(self) -> None:
        self.sending: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self.unacknowledged: dict[str, dict[str, Any]] = {}


class SlackServer:
    """`faults`: for a method, what becomes of its next requests: "lost" (the connection breaks before anything is done), "cut" (it is done,
    and the connection breaks), "late" (it is done, and no answer comes), an int (a status without a body), or a `Refusal`. `hook`:
    how the app is told over HTTP, once it has an address.
    """

    def __init__(self) -> None:
        self.works = True
        self.said: list[Said] = []
        self.removed: list[Said] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.held: list[tuple[str, Any]] | None = None
        self.faults: dict[str, deque[Any]] = defaultdict(deque)
        self.gone: set[str] = set()
        self.muted: set[str] = set()
        self.unreadable: set[str] = set()
        self.gone_threads: set[str] = set()
        self.files: dict[str, dict[str, Any]] = {}
        self.told: list[dict[str, Any]] = []
        self.nobody_told: set[str] = set()
        self.statuses: list[dict[str, Any]] = []
        self.scopes = SCOPES
        self.names: dict[str, str] = {}
        self.sockets: list[Socket] = []
        self.opened = 0
        self.acknowledged: list[str] = []
        self.pending: deque[dict[str, Any]] = deque()
        self.hook, self.gate = Hook(), Gate()
        self._ts, self._envelopes, self._turn = 0, 0, 0
        self._runner: web.AppRunner | None = None
        self.url = ""

    @property
    def base_url(self) -> str:
        return f"{self.url}/api/"

    async def __aenter__(self) -> "SlackServer":
        app = web.Application(client_max_size=100_000_000, middlewares=[self.gate.passes])
        app.router.add_route("*", "/api/{method}", self._answer)
        app.router.add_get("/link", self._link)
        app.router.add_post("/upload/{file}", self._take_file)
        app.router.add_get("/files/{file}", self._give_file)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        self.hang_up()
        await self.hook.aclose()
        await self._runner.cleanup()

    # what people do

    def say(self, channel: str, text: str = "", *, user: str, **fields: Any) -> Said:
        """A person writes. Gives the message."""
        said: Said = {"type": "message", "user": user, "text": text, "ts": self.now(), "channel": channel, **fields}
        if "thread_ts" in fields:
            said.setdefault("parent_user_id", next((one["user"] for one in self.said if one["ts"] == fields["thread_ts"]), user))
        self.said.append(said)
        self.tell(said)
        return said

    def tell(self, said: Said, **changes: Any) -> None:
        """The event of a message."""
        kind = {"D": "im", "G": "mpim"}.get(said["channel"][0], "channel")
        self.deliver("events_api", {"type": "event_callback", "event": {**said, "channel_type": kind, **changes}})

    def edit(self, said: Said, text: str) -> None:
        before = dict(said)
        said |= {"text": text, "edited": {"user": said["user"], "ts": self.now()}}
        self._tell_of(said, "message_changed", message=_bare(said), previous_message=_bare(before))

    def delete(self, said: Said) -> None:
        self.said.remove(said)
        self._tell_of(said, "message_deleted", deleted_ts=said["ts"], previous_message=_bare(said))

    def _tell_of(self, said: Said, subtype: str, **fields: Any) -> None:
        self.tell({"type": "message", "channel": said["channel"], "subtype": subtype, "hidden": True, "ts": self.now(), **fields})

    def press(self, said: Said, label: str, *, user: str) -> None:
        button = next(button for button in seen_buttons(said) if button["text"]["text"] == label)
        self.deliver("interactive", self.click(said, button, user))

    def click(self, said: Said, button: dict[str, Any], user: str) -> dict[str, Any]:
        action = {"type": "button", "action_id": button["action_id"], "value": button["value"], "action_ts": self.now()}
        return {
            "type": "block_actions",
            "trigger_id": f"trigger.{self._envelopes}",
            "user": {"id": user, "name": f"person-{user}"},
            "channel": {"id": said["channel"]},
            "message": _bare(said),
            "actions": [action],
        }

    def command(self, channel: str, text: str, *, user: str) -> None:
        name = "directmessage" if channel.startswith("D") else "team"
        form = {"command": "/holdfast", "text": text, "channel_id": channel, "channel_name": name, "user_id": user}
        self.deliver("slash_commands", {**form, "trigger_id": f"trigger.{self._envelopes}"})

    def release(self) -> None:
        """What was held back comes, the last first."""
        held, self.held = self.held or [], None
        for kind, payload in reversed(held):
            self.deliver(kind, payload)

    def deliver(self, kind: str, payload: Any) -> None:
        if self.held is not None:
            self.held.append((kind, deepcopy(payload)))
            return
        self._envelopes += 1
        if self.hook.url:
            return hooking.tell(self.hook, kind, payload)
        self.pending.append({"type": kind, "envelope_id": f"e{self._envelopes}", "payload": payload, "retry_attempt": 0})
        self._pump()

    def now(self) -> str:
        """The time as Slack names messages by it; never twice the same."""
        self._ts = max(self._ts + 1, int(time.time() * 1_000_000))
        return f"{self._ts // 1_000_000}.{self._ts % 1_000_000:06d}"

    def texts(self, channel: str) -> list[str]:
        return [seen_text(said) for said in self.ours(channel)]

    def ours(self, channel: str) -> list[Said]:
        return [said for said in self.said if said["channel"] == channel and said.get("bot_id") == BOT["bot_id"]]

    # sockets

    def hang_up(self, reason: str = "") -> None:
        """All sockets end; with a reason, Slack says it before."""
        for socket in self.sockets:
            if reason:
                socket.sending.put_nowait({"type": "disconnect", "reason": reason})
            socket.sending.put_nowait(None)

    def warn(self, reason: str) -> None:
        """The oldest socket is about to end, and does not yet."""
        self.sockets[0].sending.put_nowait({"type": "disconnect", "reason": reason})

    def _pump(self) -> None:
        """Each payload goes to any one of the sockets."""
        while self.pending and self.sockets:
            socket = self.sockets[self._turn % len(self.sockets)]
            self._turn += 1
            envelope = self.pending.popleft()
            socket.unacknowledged[envelope["envelope_id"]] = envelope
            socket.sending.put_nowait(envelope)

    async def _link(self, request: web.Request) -> web.WebSocketResponse:
        response, socket = web.WebSocketResponse(), Socket()
        await response.prepare(request)
        self.opened += 1
        self.sockets.append(socket)
        sending = asyncio.ensure_future(self._send_all(response, socket))
        socket.sending.put_nowait({"type": "hello", "num_connections": len(self.sockets)})
        self._pump()
        try:
            async for message in response:
                if message.type is WSMsgType.TEXT:
                    name = json.loads(message.data)["envelope_id"]
                    socket.unacknowledged.pop(name, None)
                    self.acknowledged.append(name)
        finally:
            sending.cancel()
            self.sockets.remove(socket)
            for envelope in reversed(socket.unacknowledged.values()):
                if envelope["type"] == "events_api":  # Clicks and commands are never told again.
                    envelope["retry_attempt"] += 1
                    self.pending.appendleft(envelope)
            self._pump()
        return response

    async def _send_all(self, response: web.WebSocketResponse, socket: Socket) -> None:
        while (frame := await socket.sending.get()) is not None:
            await response.send_str(json.dumps(frame))
        await response.close()

    # requests

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        fields = await _fields(request, method)
        self.asked.append((method, fields))
        fault = self.faults[method].popleft() if self.faults[method] else ""
        if fault == "lost":
            return _break(request)
        if isinstance(fault, int):
            return web.Response(status=fault, text="")
        try:
            if isinstance(fault, Refusal):
                raise fault
            self._check(request, method)
            result = getattr(self, f"_{method.replace('.', '_')}")(fields)
        except Refusal as refusal:
            return web.json_response(refusal.body, status=refusal.status, headers=refusal.headers)
        if fault == "cut":
            return _break(request)
        if fault == "late":
            await asyncio.sleep(3600)
        return web.json_response({"ok": True, **result}, headers={"x-oauth-scopes": self.scopes})

    def _check(self, request: web.Request, method: str) -> None:
        token = APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN
        if not self.works or request.headers.get("Authorization") != f"Bearer {token}":
            raise Refusal("invalid_auth")

    def _auth_test(self, fields: Said) -> Said:
        return BOT

    def _apps_connections_open(self, fields: Said) -> Said:
        return {"url": f"{self.url.replace('http', 'ws', 1)}/link"}

    def _chat_postMessage(self, fields: Said) -> Said:
        channel = self._reachable(fields)
        if channel in self.muted:
            raise Refusal("not_in_channel")
        if fields.get("thread_ts") in self.gone_threads:
            raise Refusal("thread_not_found")
        if not fields.get("text") and not fields.get("blocks"):
            raise Refusal("no_text")
        check_blocks(fields.get("blocks") or [], MOST_BLOCKS, Refusal)
        kept: Said = {name: fields[name] for name in ("text", "blocks", "thread_ts", "metadata") if name in fields}
        kept["text"] = kept.get("text", "")[:MOST_TEXT]
        said: Said = {"type": "message", "user": BOT["user_id"], "bot_id": BOT["bot_id"], "ts": self.now(), "channel": channel, **kept}
        self.said.append(said)
        self.tell(said)
        return {"ts": said["ts"], "channel": channel}

    def _chat_update(self, fields: Said) -> Said:
        said = self._find(fields)
        if len(fields["text"]) > MOST_UPDATE:
            raise Refusal("msg_too_long")
        check_blocks(fields.get("blocks") or [], MOST_BLOCKS, Refusal)
        said.setdefault("edits", []).append(seen_text(said))
        said |= {"text": fields["text"], "blocks": fields.get("blocks") or []}
        return {"ts": said["ts"]}

    def _chat_delete(self, fields: Said) -> Said:
        said = self._find(fields)
        self.said.remove(said)
        self.removed.append(said)
        return {}

    def _chat_postEphemeral(self, fields: Said) -> Said:
        if fields["user"] in self.nobody_told:
            raise Refusal("user_not_in_channel")
        self.told.append(fields)
        return {"message_ts": self.now()}

    def _conversations_history(self, fields: Said) -> Said:
        channel = self._readable(fields)
        said = [one for one in self.said if one["channel"] == channel]
        latest = {one["thread_ts"]: {"latest_reply": one["ts"]} for one in said if "thread_ts" in one}
        roots = [one | latest.get(one["ts"], {}) for one in said if one.get("thread_ts", one["ts"]) == one["ts"]]
        return _page(reversed(roots), fields)

    def _conversations_replies(self, fields: Said) -> Said:
        """With the message that began the thread, whatever was asked for."""
        channel, root = self._readable(fields), fields["ts"]
        said = [one for one in self.said if one["channel"] == channel]
        page = _page((one for one in said if one.get("thread_ts") == root != one["ts"]), fields)
        page["messages"][:0] = [_shown(one, fields) for one in said if one["ts"] == root]
        return page

    def _users_conversations(self, fields: Said) -> Said:
        channels = list(dict.fromkeys(said["channel"] for said in self.said))
        page, following = _some(channels, fields)
        return {"channels": [{"id": channel, "is_im": channel.startswith("D")} for channel in page], **following}

    def _users_info(self, fields: Said) -> Said:
        return {"user": {"id": fields["user"], "real_name": self.names.get(fields["user"], f"Person {fields['user']}")}}

    def _files_getUploadURLExternal(self, fields: Said) -> Said:
        name = f"F{len(self.files) + 1}"
        self.files[name] = {"id": name, "name": fields["filename"], "length": int(fields["length"])}
        return {"file_id": name, "upload_url": f"{self.url}/upload/{name}"}

    def _files_completeUploadExternal(self, fields: Said) -> Said:
        for file in fields["files"]:
            assert len(self.files[file["id"]]["data"]) == self.files[file["id"]]["length"]
            self.files[file["id"]]["permalink"] = f"https://acme.example/files/{file['id']}"
        return {"files": [{"id": file["id"]} for file in fields["files"]]}

    def _files_info(self, fields: Said) -> Said:
        if fields["file"] not in self.files:
            raise Refusal("file_not_found")
        file = self.files[fields["file"]]
        url = file.get("url_private") or f"{self.url}/files/{file['id']}"
        return {"file": {"id": file["id"], "url_private": url, "permalink": file.get("permalink")}}

    def _assistant_threads_setStatus(self, fields: Said) -> Said:
        self.statuses.append(fields)
        return {}

    def _reachable(self, fields: Said) -> str:
        if fields["channel"] in self.gone:
            raise Refusal("channel_not_found")
        return str(fields["channel"])

    def _readable(self, fields: Said) -> str:
        if fields["channel"] in self.unreadable:
            raise Refusal("internal_error")
        if fields["channel"] in self.muted:
            raise Refusal("not_in_channel")
        return self._reachable(fields)

    def _find(self, fields: Said) -> Said:
        channel = self._reachable(fields)
        for said in self.ours(channel):
            if said["ts"] == fields["ts"]:
                return said
        raise Refusal("message_not_found")

    # files

    async def _take_file(self, request: web.Request) -> web.Response:
        self.files[request.match_info["file"]]["data"] = await request.read()
        return web.Response(text="OK")

    async def _give_file(self, request: web.Request) -> web.Response:
        file = self.files.get(request.match_info["file"])
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}":
            return web.Response(text="<html>Sign in</html>", content_type="text/html")
        return web.Response(status=404) if file is None else web.Response(body=file["data"], content_type="application/octet-stream")


def _bare(said: Said) -> Said:
    return {name: value for name, value in said.items() if name not in ("channel", "edits")}


def _page(said: Iterable[Said], fields: Said) -> Said:
    """As the API does: only what is newer than `oldest` and older than `latest`."""
    page, following = _some([one for one in said if fields.get("oldest", "") < one["ts"] < fields.get("latest", "~")], fields)
    return {"messages": [_shown(one, fields) for one in page], "has_more": bool(following), **following}


def _shown(said: Said, fields: Said) -> Said:
    return {name: value for name, value in _bare(said).items() if name != "metadata" or fields.get("include_all_metadata")}


def _some(found: list[Any], fields: Said) -> tuple[list[Any], Said]:
    """A page, and the cursor that leads to the next."""
    start, limit = int(fields.get("cursor") or 0), int(fields["limit"])
    more = start + limit < len(found)
    return found[start : start + limit], {"response_metadata": {"next_cursor": str(start + limit)}} if more else {}


def _break(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def _fields(request: web.Request, method: str) -> dict[str, Any]:
    if method.startswith(READING):
        assert request.content_type != "application/json", f"{method} takes no JSON"
        return dict(request.query)
    return dict(await request.json()) if request.can_read_body else {}
