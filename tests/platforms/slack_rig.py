"""Slack, with the real SDK parts in front of a server that speaks its Web API, and its Socket Mode or its requests over HTTP."""

from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.platforms.slack.platform import Slack
from holdfast.ports.platforms import Platform
from tests.fakes.slack import SlackServer
from tests.fakes.slack.hooking import SECRET
from tests.fakes.slack.server import APP_TOKEN, BOT, BOT_TOKEN, Refusal
from tests.fakes.slack.shown import seen_buttons, seen_text
from tests.platforms.hooks import PUBLIC
from tests.platforms.rigs import ANN, BOB, TEAM, Seen, hurried

USERS = {ANN: "U100", BOB: "U200"}
CHANNELS = {ANN: "D100", BOB: "D200", TEAM: "C300"}


def by_socket(url: str) -> Platform:
    made = Slack(BOT_TOKEN, app_token=APP_TOKEN, base_url=url, lag_s=0.05)
    made.capabilities = hurried(made.capabilities)
    return made


def over_http(url: str) -> Platform:
    made = Slack(BOT_TOKEN, signing_secret=SECRET, base_url=url, lag_s=0.05, beat_s=0.3)
    made.capabilities = hurried(made.capabilities)
    return made


class SlackRig:
    name = "slack"

    def __init__(self, server: SlackServer) -> None:
        self.server = server

    @property
    def platform(self) -> Callable[[], Platform]:
        return partial(by_socket, self.server.base_url)

    def user(self, name: str) -> str:
        return USERS[name]

    def key(self, chat: str) -> str:
        return f"agent:main:slack:dm:{CHANNELS[chat]}"

    async def say(self, text: str, *, chat: str = ANN, who: str = ANN, addressed: bool = True, thread: str | None = None) -> Any:
        if chat == TEAM and addressed:
            text = f"<@{BOT['user_id']}> {text}"
        fields = {"thread_ts": thread} if thread else {}
        escaped = text.replace("&", "&amp;") if "<@" in text else text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return self.server.say(CHANNELS[chat], escaped, user=USERS[who], **fields)

    async def again(self, said: Any) -> None:
        self.server.tell(said)

    async def edit(self, said: Any, text: str) -> None:
        self.server.edit(said, text)

    def hold(self) -> bool:
        self.server.held = []
        return True

    def release(self) -> None:
        self.server.release()

    async def garbage(self) -> None:
        self.server.deliver("events_api", {"type": "event_callback", "event": {"type": "message", "channel": 7, "user": []}})

    async def press(self, seen: Seen, label: str, *, who: str = ANN, late: bool = False) -> None:
        if late:
            self.server.nobody_told.add(USERS[who])
        self.server.press(next(said for said in self.server.said if said["ts"] == seen.name), label, user=USERS[who])

    async def attach(self, data: bytes, *, name: str, media_type: str, text: str = "") -> Any:
        self.server.files[name] = {"id": name, "data": data}
        file = {"id": name, "name": name, "mimetype": media_type, "size": len(data)}
        return self.server.say(CHANNELS[ANN], text, user=USERS[ANN], subtype="file_share", files=[file])

    async def shown(self, chat: str = ANN) -> list[Seen]:
        return [
            Seen(
                name=said["ts"],
                text=seen_text(said),
                buttons=tuple(button["text"]["text"] for button in seen_buttons(said)),
                thread=said.get("thread_ts"),
            )
            for said in self.server.ours(CHANNELS[chat])
        ]

    def next_send(self, *faults: str) -> None:
        made = {
            "failed": 500,
            "limited": Refusal("ratelimited", status=429, retry_after=1),
            "slowly": Refusal("ratelimited", status=429),
        }
        self.server.faults["chat.postMessage"].extend(made.get(fault, fault) for fault in faults)

    def close(self, chat: str) -> None:
        self.server.gone.add(CHANNELS[chat])

    def open(self, chat: str) -> None:
        self.server.gone.discard(CHANNELS[chat])

    async def mute(self, chat: str) -> None:
        self.server.muted.add(CHANNELS[chat])

    async def unmute(self, chat: str) -> None:
        self.server.muted.discard(CHANNELS[chat])

    def revoke(self) -> None:
        self.server.works = False
        self.server.hang_up("link_disabled")

    def restore(self) -> None:
        self.server.works = True

    def is_reply(self, seen: Seen, said: Any) -> bool:
        """In a private chat it stands below; in a channel it is in the thread of the message."""
        thread = said.get("thread_ts") or (said["ts"] if said["channel"].startswith("C") else None)
        return bool(seen.thread == thread)


class SlackOverHttp(SlackRig):
    def __init__(self, server: SlackServer) -> None:
        super().__init__(server)
        server.hook.url = f"{PUBLIC}/hooks/slack"

    @property
    def platform(self) -> Callable[[], Platform]:
        return partial(over_http, self.server.base_url)
