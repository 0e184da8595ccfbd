"""Discord, with a server that speaks its REST API and its gateway."""

from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.platforms.discord.platform import Discord
from holdfast.platforms.discord.receiving import Pace
from holdfast.ports.platforms import Platform
from tests.fakes.discord import DiscordServer
from tests.fakes.discord.markdown import seen as as_seen
from tests.fakes.discord.server import BOT, LIMITED, SLOWLY, TOKEN
from tests.platforms.rigs import ANN, BOB, TEAM, Seen, hurried

USERS = {ANN: "100", BOB: "200"}
CHANNEL = "30000"
QUICKLY = Pace(again_s=(0.01, 0.02), login_s=0.05, rest_s=0.2)


def by_gateway(url: str) -> Platform:
    made = Discord(TOKEN, base_url=url, pace=QUICKLY)
    made.capabilities = hurried(made.capabilities)
    return made


class DiscordRig:
    name = "discord"

    def __init__(self, server: DiscordServer) -> None:
        self.server = server
        server.channel(CHANNEL)

    @property
    def platform(self) -> Callable[[], Platform]:
        return partial(by_gateway, self.server.base_url)

    def user(self, name: str) -> str:
        return USERS[name]

    def channel(self, chat: str) -> str:
        return CHANNEL if chat == TEAM else self.server.private(USERS[chat])

    def key(self, chat: str) -> str:
        return f"agent:main:discord:dm:{self.channel(chat)}"

    async def say(self, text: str, *, chat: str = ANN, who: str = ANN, addressed: bool = True, thread: str | None = None) -> Any:
        if chat == TEAM and addressed:
            text = f"<@{BOT['id']}> {text}"
        where = self.server.channel(thread, parent=CHANNEL) if thread else self.channel(chat)
        return self.server.say(where, text, user=USERS[who])

    async def again(self, said: Any) -> None:
        self.server.deliver("MESSAGE_CREATE", said)

    async def edit(self, said: Any, text: str) -> None:
        self.server.edit(said, text)

    def hold(self) -> bool:
        self.server.held = []
        return True

    def release(self) -> None:
        self.server.release()

    async def garbage(self) -> None:
        self.server.gateway.dispatch("MESSAGE_CREATE", {"id": 7, "channel_id": ["what?"], "author": "nobody"})

    async def press(self, seen: Seen, label: str, *, who: str = ANN, late: bool = False) -> None:
        shown = next(one for channel in self.server.history.values() for one in channel if one["id"] == seen.name)
        self.server.press(shown, label, user=USERS[who], late=late)

    async def attach(self, data: bytes, *, name: str, media_type: str, text: str = "") -> Any:
        self.server.files[name] = data
        file = {"id": "1", "filename": name, "content_type": media_type, "size": len(data), "url": f"{self.server.base_url}/files/{name}"}
        return self.server.say(self.channel(ANN), text, user=USERS[ANN], attachments=[file])

    async def shown(self, chat: str = ANN) -> list[Seen]:
        channel = self.channel(chat)
        threads = [id for id, one in self.server.channels.items() if one.get("parent_id") == channel]
        return [
            Seen(
                name=one["id"],
                text=as_seen(one["content"]),
                buttons=tuple(button["label"] for row in one["components"] for button in row["components"]),
                reply_to=(one["message_reference"] or {}).get("message_id"),
                thread=place if place != channel else None,
                file=one["attachments"][0]["filename"] if one["attachments"] else None,
            )
            for place in (channel, *threads)
            for one in self.server.shown(place)
        ]

    def next_send(self, *faults: str) -> None:
        made = {"failed": 500, "limited": LIMITED, "slowly": SLOWLY}
        self.server.faults["POST messages"].extend(made.get(fault, fault) for fault in faults)

    def close(self, chat: str) -> None:
        self.server.closed.add(self.channel(chat))

    def open(self, chat: str) -> None:
        self.server.closed.discard(self.channel(chat))

    async def mute(self, chat: str) -> None:
        self.server.muted.add(self.channel(chat))

    async def unmute(self, chat: str) -> None:
        self.server.muted.discard(self.channel(chat))

    def revoke(self) -> None:
        self.server.token = self.server.gateway.token = "another"
        self.server.gateway.hang_up(4004)

    def restore(self) -> None:
        self.server.token = self.server.gateway.token = TOKEN

    def is_reply(self, seen: Seen, said: Any) -> bool:
        return bool(seen.reply_to == said["id"])
