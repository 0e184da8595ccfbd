"""Telegram, with the real SDK part in front of a server that speaks the Bot API."""

from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.platforms.telegram.platform import Telegram
from holdfast.ports.platforms import Platform
from tests.fakes.telegram import TelegramServer
from tests.fakes.telegram.server import BOT, TOKEN, Refusal
from tests.platforms.hooks import PUBLIC
from tests.platforms.rigs import ANN, BOB, TEAM, Seen, hurried

CHATS = {ANN: 100, BOB: 200, TEAM: -300}


def by_polling(url: str) -> Platform:
    made = Telegram(TOKEN, base_url=url, poll_s=1)
    made.capabilities = hurried(made.capabilities)
    return made


def by_webhook(url: str) -> Platform:
    made = Telegram(TOKEN, base_url=url, webhook=f"{PUBLIC}/hooks/telegram", beat_s=0.3)
    made.capabilities = hurried(made.capabilities)
    return made


class TelegramRig:
    name = "telegram"

    def __init__(self, server: TelegramServer) -> None:
        self.server = server

    @property
    def platform(self) -> Callable[[], Platform]:
        return partial(by_polling, self.server.base_url)

    def user(self, name: str) -> str:
        return str(CHATS[name])

    def key(self, chat: str) -> str:
        return f"agent:main:telegram:dm:{CHATS[chat]}"

    async def say(self, text: str, *, chat: str = ANN, who: str = ANN, addressed: bool = True, thread: str | None = None) -> Any:
        if chat == TEAM and addressed and not text.startswith("/"):
            text = f"@{BOT['username']} {text}"
        fields: dict[str, Any] = {"message_thread_id": int(thread), "is_topic_message": True} if thread else {}
        return self.server.say(CHATS[chat], text, user=CHATS[who], **fields)

    async def again(self, said: Any) -> None:
        self.server.deliver(message=said)

    async def edit(self, said: Any, text: str) -> None:
        self.server.edit(said, text, date=len(self.server.asked) + 2)

    def hold(self) -> bool:
        self.server.held = []
        return True

    def release(self) -> None:
        self.server.release()

    async def garbage(self) -> None:
        self.server.deliver(message={"message_id": "what?", "chat": 7, "from": "nobody"})

    async def press(self, seen: Seen, label: str, *, who: str = ANN, late: bool = False) -> None:
        shown = next(one for one in self.server.shown if str(one.number) == seen.name)
        click = self.server.press(shown, label, user=CHATS[who])
        if late:
            self.server.old_clicks.add(click)

    async def attach(self, data: bytes, *, name: str, media_type: str, text: str = "") -> Any:
        self.server.files[name] = data
        document = {"file_id": name, "file_name": name, "mime_type": media_type, "file_size": len(data)}
        return self.server.say(CHATS[ANN], document=document, caption=text)

    async def shown(self, chat: str = ANN) -> list[Seen]:
        return [
            Seen(
                name=str(one.number),
                text=one.text,
                buttons=tuple(button["text"] for button in one.buttons),
                reply_to=one.reply_to,
                thread=None if one.thread is None else str(one.thread),
                file=one.file[1] if one.file else None,
            )
            for one in self.server.shown
            if one.chat == CHATS[chat]
        ]

    def next_send(self, *faults: str) -> None:
        made = {
            "failed": 500,
            "limited": Refusal(429, "Too Many Requests: retry after 1", retry_after=1),
            "slowly": Refusal(429, "Too Many Requests"),
        }
        self.server.faults["sendmessage"].extend(made.get(fault, fault) for fault in faults)

    def close(self, chat: str) -> None:
        self.server.gone.add(CHATS[chat])

    def open(self, chat: str) -> None:
        self.server.gone.discard(CHATS[chat])

    async def mute(self, chat: str) -> None:
        self.server.muted.add(CHATS[chat])

    async def unmute(self, chat: str) -> None:
        self.server.muted.discard(CHATS[chat])

    def revoke(self) -> None:
        self.server.token = "another"

    def restore(self) -> None:
        self.server.token = TOKEN

    def is_reply(self, seen: Seen, said: Any) -> bool:
        return bool(seen.reply_to == said["message_id"])


class TelegramByWebhook(TelegramRig):
    @property
    def platform(self) -> Callable[[], Platform]:
        return partial(by_webhook, self.server.base_url)
