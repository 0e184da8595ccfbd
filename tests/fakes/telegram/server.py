"""A server of the Bot API. It holds polls, goes by offsets, tells the older of two polls that another one waits, tells a webhook what is
new until it is taken, and keeps every message.
What goes wrong on the wire is said before (`faults`): by method, in the order of its requests.
"""

import asyncio
import json
import time
from collections import defaultdict, deque
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from aiohttp import web

from tests.fakes.gate import Gate
from tests.fakes.hooks import Hook
from tests.fakes.telegram.flood import Flood

TOKEN = "4711:sesame-open-the-door"
BOT = {"id": 4711, "is_bot": True, "first_name": "Holdfast", "username": "holdfast_bot", "has_topics_enabled": True}
MOST_TEXT = 4096


class Refusal(Exception):
    def __init__(self, code: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.body = {"ok": False, "error_code": code, "description": description}
        if parameters:
            self.body["parameters"] = parameters
        self.code = code


class Shown:
    """A message of the bot as people see it. `at`: when it came."""

    def __init__(self, number: int, chat: int, fields: dict[str, Any]) -> None:
        self.number, self.chat, self.at = number, chat, time.time()
        self.thread: int | None = fields.get("message_thread_id")
        self.topic: int | None = fields.get("direct_messages_topic_id")
        self.reply_to: int | None = (fields.get("reply_parameters") or {}).get("message_id")
        self.text, self.entities, self.markup = fields.get("text", ""), fields.get("entities") or [], fields.get("reply_markup")
        self.file: tuple[str, str, bytes] | None = fields.get("file")
        self.edits: list[str] = []

    @property
    def buttons(self) -> list[dict[str, str]]:
        return [button for row in (self.markup or {}).get("inline_keyboard", []) for button in row]

    def __repr__(self) -> str:
        return f"{self.chat}: {self.text!r}"


class TelegramServer:
    """`faults`: for a method, what becomes of its next requests: "lost" (the connection breaks before anything is done), "cut" (it is done,
    and the connection breaks), "late" (it is done, and no answer comes), an int (a status without a body), or a `Refusal`. `flood`:
    what it holds the bot to; anything goes without.
    """

    def __init__(self, token: str = TOKEN, *, flood: Flood | None = None) -> None:
        self.token, self.flood = token, flood
        self.updates: deque[dict[str, Any]] = deque()
        self.shown: list[Shown] = []
        self.removed: list[Shown] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.held: list[dict[str, Any]] | None = None
        self.faults: dict[str, deque[Any]] = defaultdict(deque)
        self.gone: set[int] = set()
        self.muted: set[int] = set()
        self.gone_threads: set[int] = set()
        self.moved: dict[int, int] = {}
        self.files: dict[str, bytes] = {}
        self.clicks: dict[str, str] = {}
        self.old_clicks: set[str] = set()
        self.webhook: dict[str, Any] = {}
        self.hook, self.gate = Hook(), Gate()
        self.menu: list[dict[str, str]] = []
        self.typed = 0
        self.conflicts = 0
        self._next_update, self._next_message = 1000, 1
        self._poll: asyncio.Event | None = None
        self._news = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self.base_url = ""

    async def __aenter__(self) -> "TelegramServer":
        app = web.Application(client_max_size=100_000_000, middlewares=[self.gate.passes])
        app.router.add_route("*", "/bot{token}/{method}", self._answer)
        app.router.add_get("/file/bot{token}/{path:.+}", self._file)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self.hook.aclose()
        await self._runner.cleanup()

    # what people do

    def say(self, chat: int, text: str = "", *, user: int | None = None, **fields: Any) -> dict[str, Any]:
        """A person writes. Gives the message."""
        number = self._next_message
        self._next_message += 1
        who = user if user is not None else chat
        said: dict[str, Any] = {
            "message_id": number,
            "date": 1,
            "chat": self._chat(chat),
            "from": {"id": who, "is_bot": False, "first_name": f"Person {who}"},
            **({"text": text, "entities": _entities(text)} if text else {}),
            **fields,
        }
        self.deliver(message=said)
        return said

    def edit(self, said: dict[str, Any], text: str, *, date: int = 2) -> None:
        self.deliver(edited_message={**said, "text": text, "edit_date": date})

    def press(self, shown: Shown, label: str, *, user: int) -> str:
        """A person presses a button. Gives the id of the click."""
        number = f"click-{self._next_update}"
        data = next(button["callback_data"] for button in shown.buttons if button["text"] == label)
        message = {"message_id": shown.number, "date": 1, "chat": self._chat(shown.chat)}
        self.deliver(callback_query={"id": number, "from": {"id": user, "first_name": f"Person {user}"}, "message": message, "data": data})
        return number

    def release(self) -> None:
        """What was held back comes, the last first."""
        held, self.held = self.held or [], None
        for update in reversed(held):
            self.deliver(**update)

    def deliver(self, **update: Any) -> dict[str, Any]:
        if self.held is not None:
            self.held.append(deepcopy(update))
            return update
        made = {"update_id": self._next_update, **update}
        self._next_update += 1
        self.updates.append(made)
        self._tell_hook()
        self._news.set()
        return made

    def _tell_hook(self) -> None:
        while self.webhook and self.updates:
            signed = {"X-Telegram-Bot-Api-Secret-Token": self.webhook.get("secret_token", ""), "Content-Type": "application/json"}
            self.hook.tell(json.dumps(self.updates.popleft()).encode(), lambda signed=signed: signed)  # type: ignore[misc]

    def again(self, update: dict[str, Any]) -> None:
        """The server delivers something once more, as it may."""
        self.deliver(**{name: value for name, value in update.items() if name != "update_id"})

    def _chat(self, chat: int) -> dict[str, Any]:
        return {"id": chat, "type": "private" if chat > 0 else "supergroup", **({"title": "Team", "is_forum": True} if chat < 0 else {})}

    def texts(self, chat: int) -> list[str]:
        return [shown.text for shown in self.shown if shown.chat == chat]

    # requests

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        fields = await self._fields(request)
        self.asked.append((method, fields))
        if request.match_info["token"] != self.token:
            return web.json_response(Refusal(401, "Unauthorized").body, status=401)
        fault = self.faults[method.lower()].popleft() if self.faults[method.lower()] else ""
        if fault == "lost":
            return self._break(request)
        if isinstance(fault, int):
            return web.Response(status=fault, text="")
        try:
            if isinstance(fault, Refusal):
                raise fault
            result = await _METHODS[method](self, fields)
        except Refusal as refusal:
            return web.json_response(refusal.body, status=refusal.code)
        if fault == "cut":
            return self._break(request)
        if fault == "late":
            await asyncio.sleep(3600)
        return web.json_response({"ok": True, "result": result})

    def _break(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def _fields(self, request: web.Request) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for name, value in (await request.post()).items():
            if isinstance(value, web.FileField):
                fields["file"] = (name, value.filename, value.file.read())
            else:
                fields[name] = str(value) if name in _WORDS else _read(str(value))
        return fields

    async def _file(self, request: web.Request) -> web.Response:
        data = self.files.get(request.match_info["path"])
        return web.Response(body=data) if data is not None else web.Response(status=404)

    # methods

    async def _get_me(self, fields: dict[str, Any]) -> Any:
        return BOT

    async def _get_updates(self, fields: dict[str, Any]) -> Any:
        if self.webhook:
            raise Refusal(
                409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
            )
        offset = fields.get("offset")
        while offset is not None and self.updates and self.updates[0]["update_id"] < offset:
            self.updates.popleft()
        if not self.updates:
            await self._wait(fields.get("timeout", 0))
        return list(self.updates)[: fields.get("limit", 100)]

    async def _wait(self, timeout_s: float) -> None:
        """Only one poll waits: an older one hears of the newer."""
        if self._poll is not None:
            self._poll.set()
        mine = self._poll = asyncio.Event()
        self._news.clear()
        waits = [asyncio.ensure_future(mine.wait()), asyncio.ensure_future(self._news.wait())]
        try:
            await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            if self._poll is mine:
                self._poll = None
        if mine.is_set():
            self.conflicts += 1
            raise Refusal(409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running")

    async def _set_webhook(self, fields: dict[str, Any]) -> Any:
        self.webhook, self.hook.url = fields, fields["url"]
        self._tell_hook()
        return True

    async def _delete_webhook(self, fields: dict[str, Any]) -> Any:
        assert fields.get("drop_pending_updates") is not True, "the backlog would be lost"
        self.webhook = {}
        self.updates.extendleft(json.loads(told.body) for told in reversed(self.hook.waiting))
        self.hook.waiting.clear()
        return True

    async def _get_webhook_info(self, fields: dict[str, Any]) -> Any:
        return {"url": self.webhook.get("url", ""), "pending_update_count": len(self.updates) + len(self.hook.waiting)}

    async def _send(self, fields: dict[str, Any]) -> Any:
        chat = self._reachable(fields)
        text = fields.get("text", "")
        if len(text.encode("utf-16-le")) // 2 > MOST_TEXT:
            raise Refusal(400, "Bad Request: message is too long")
        if not text and "file" not in fields:
            raise Refusal(400, "Bad Request: message text is empty")
        if fields.get("message_thread_id") in self.gone_threads:
            raise Refusal(400, "Bad Request: message thread not found")
        self._check_entities(text, fields.get("entities") or [])
        shown = Shown(self._next_message, chat, {**fields, "text": text or fields.get("caption", "")})
        self._next_message += 1
        self.shown.append(shown)
        return {"message_id": shown.number, "date": 1, "chat": self._chat(chat), "text": text}

    def _check_entities(self, text: str, entities: list[dict[str, Any]]) -> None:
        units = len(text.encode("utf-16-le")) // 2
        for entity in entities:
            if not (0 <= entity["offset"] < entity["offset"] + entity["length"] <= units):
                raise Refusal(400, "Bad Request: ENTITY_BOUNDS_INVALID")

    def _reachable(self, fields: dict[str, Any]) -> int:
        chat = int(fields["chat_id"])
        if chat in self.gone:
            raise Refusal(403, "Forbidden: bot was blocked by the user")
        if chat in self.muted:
            raise Refusal(400, "Bad Request: not enough rights to send text messages to the chat")
        if self.flood is not None and (wait_s := self.flood.wait_s(chat)):
            raise Refusal(429, f"Too Many Requests: retry after {wait_s}", retry_after=wait_s)
        if chat in self.moved:
            raise Refusal(400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=self.moved[chat])
        return chat

    def _find(self, fields: dict[str, Any], words: str) -> Shown:
        chat = self._reachable(fields)
        for shown in self.shown:
            if (shown.chat, shown.number) == (chat, fields["message_id"]):
                return shown
        raise Refusal(400, f"Bad Request: {words}")

    async def _edit(self, fields: dict[str, Any]) -> Any:
        shown = self._find(fields, "message to edit not found")
        same = (fields["text"], fields.get("entities") or [], fields.get("reply_markup")) == (shown.text, shown.entities, shown.markup)
        if same:
            raise Refusal(400, "Bad Request: message is not modified: specified new message content and reply markup are exactly the same")
        self._check_entities(fields["text"], fields.get("entities") or [])
        shown.edits.append(shown.text)
        shown.text, shown.entities, shown.markup = fields["text"], fields.get("entities") or [], fields.get("reply_markup")
        return {"message_id": shown.number}

    async def _delete(self, fields: dict[str, Any]) -> Any:
        shown = self._find(fields, "message to delete not found")
        self.shown.remove(shown)
        self.removed.append(shown)
        return True

    async def _get_file(self, fields: dict[str, Any]) -> Any:
        if fields["file_id"] not in self.files:
            raise Refusal(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        return {"file_id": fields["file_id"], "file_path": fields["file_id"]}

    async def _answer_click(self, fields: dict[str, Any]) -> Any:
        if fields["callback_query_id"] in self.old_clicks:
            raise Refusal(400, "Bad Request: query is too old and response timeout expired or query ID is invalid")
        self.clicks[fields["callback_query_id"]] = fields.get("text", "")
        return True

    async def _set_commands(self, fields: dict[str, Any]) -> Any:
        self.menu = fields["commands"]
        return True

    async def _type(self, fields: dict[str, Any]) -> Any:
        self.typed += 1
        return True


def _entities(text: str) -> list[dict[str, Any]]:
    """Commands and mentions, as the server finds them."""
    found, at = [], 0
    for word in text.split(" "):
        units = len(word.encode("utf-16-le")) // 2
        kind = "bot_command" if word.startswith("/") and at == 0 else "mention" if word.startswith("@") else None
        if kind:
            found.append({"type": kind, "offset": at, "length": units})
        at += units + 1
    return found


def _read(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


_WORDS = ("text", "caption", "url", "secret_token", "file_id", "callback_query_id")
_Method = Callable[[TelegramServer, dict[str, Any]], Any]
_METHODS: dict[str, _Method] = {
    "getMe": TelegramServer._get_me,
    "getUpdates": TelegramServer._get_updates,
    "setWebhook": TelegramServer._set_webhook,
    "deleteWebhook": TelegramServer._delete_webhook,
    "getWebhookInfo": TelegramServer._get_webhook_info,
    **dict.fromkeys(("sendMessage", "sendPhoto", "sendVoice", "sendAudio", "sendVideo", "sendDocument"), TelegramServer._send),
    "editMessageText": TelegramServer._edit,
    "deleteMessage": TelegramServer._delete,
    "getFile": TelegramServer._get_file,
    "answerCallbackQuery": TelegramServer._answer_click,
    "setMyCommands": TelegramServer._set_commands,
    "sendChatAction": TelegramServer._type,
}
