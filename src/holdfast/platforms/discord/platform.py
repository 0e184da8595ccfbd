"""A bot on Discord (`ports.platforms.Platform`): translation and capabilities only."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import structlog

from holdfast.core.capabilities import MB, Capabilities, Rates
from holdfast.core.chat_errors import MessageGone, ThreadGone
from holdfast.core.commands import Usage
from holdfast.core.errors import NotFound, Refused, Unavailable
from holdfast.core.events import Button
from holdfast.core.inbound import Click, Inbound, RemoteFile
from holdfast.core.places import Place
from holdfast.core.rich import Rich
from holdfast.core.splitting import utf16
from holdfast.platforms.discord import reading
from holdfast.platforms.discord.errors import Answer, Unanswered
from holdfast.platforms.discord.events import Interaction
from holdfast.platforms.discord.reading import Me
from holdfast.platforms.discord.reads import Reads
from holdfast.platforms.discord.receiving import Pace, Receiving
from holdfast.platforms.discord.rendering import render
from holdfast.platforms.discord.wire import Wire
from holdfast.ports.platforms import Account, Batch, Hooked, Outgoing, Receipt

NAME = "discord"
# What the gateway tells: of servers, of messages there, and of private ones. The words of messages that do not mention us are told only to
# bots for which that is switched on in the developer portal; others would be refused if they asked.
INTENTS, MESSAGE_CONTENT = 1 << 0 | 1 << 9 | 1 << 12, 1 << 15
READS_ALL = 1 << 18 | 1 << 19
MOST_BUTTON_DATA, MOST_LABEL, IN_A_ROW, ROWS = 100, 80, 5, 5
# Nobody is called by what an agent writes, whatever it writes.
QUIET: dict[str, Any] = {"parse": [], "replied_user": False}
NO_PREVIEWS, ONLY_THEM = 1 << 2, 1 << 6
MOST_DESCRIPTION = 100
MOST_TOKENS = 1000
# Later than that Discord has told them that it failed.
SEEN_S = 3.0
CAPABILITIES = Capabilities(
    text_limit=2000,
    rates=Rates(every_s=(1.0, 1.0), burst=4, edit_every_s=(1.5, 1.5), account_per_s=40.0, account_burst=40, kept=15),
    key_lasts_s=60.0,
    echoes_s=10.0,
    buttons=MOST_BUTTON_DATA,
    choices=IN_A_ROW * ROWS,
    typing_s=9.0,
    bytes_in=50 * MB,
    bytes_out=10 * MB,
    commands=100,
)

log = structlog.get_logger()


class Discord:
    """`people`: who is allowed by name."""

    name = NAME

    def __init__(self, token: str, *, base_url: str = "", people: tuple[str, ...] = (), pace: Pace | None = None) -> None:
        self.capabilities = CAPABILITIES
        self._wire = Wire(token, base_url=base_url)
        self._reads = Reads(self._wire)
        self._receiving = Receiving(self._wire, intents=INTENTS, people=people, pace=pace or Pace())
        self._me, self._application = Me(id=""), ""
        # By click, what its answer needs. Where another process took the click in, it is not answered, only heeded.
        self._tokens: dict[str, str] = {}

    async def connect(self) -> Account:
        found = await self._reads.get("/users/@me")
        self._me = Me(id=found["id"], name=found["username"])
        application = await self._reads.get("/applications/@me")
        self._application = application["id"]
        self._receiving.intents = INTENTS | (MESSAGE_CONTENT if reads_all(application) else 0)
        return Account(self._me.id, account_name(found))

    # what people do

    async def receive(self, cursor: str | None) -> AsyncGenerator[Batch, None]:
        async with aclosing(self._receiving.follow(cursor)) as batches:
            async for batch in batches:
                yield batch

    async def acknowledge(self, batch: Batch) -> None:
        """Somebody who pressed a button or chose a command sees within three seconds that it arrived. That it did is on record, so nothing
        depends on whether they see it.
        """
        made = batch.ticket
        if not isinstance(made, Interaction):
            return
        self._tokens[made.id] = made.token
        while len(self._tokens) > MOST_TOKENS:
            del self._tokens[next(iter(self._tokens))]
        try:
            async with asyncio.timeout(SEEN_S):
                await self._wire.call("POST", f"/interactions/{made.id}/{made.token}/callback", _seen(made))
        except (Refused, Unavailable, Answer, Unanswered, TimeoutError) as error:
            log.info("a click was not acknowledged", platform=NAME, error=str(error))

    def hooked(self, headers: Mapping[str, str], body: bytes) -> Hooked:
        raise NotFound("webhook", NAME)

    def read(self, update: bytes) -> Sequence[Inbound]:
        return reading.read(update, self._me)

    async def fetch(self, file: RemoteFile) -> AsyncIterator[bytes]:
        path, _, url = file.id.partition(" ")
        try:
            async for chunk in self._wire.download(url):
                yield chunk
            return
        except Answer as error:
            if error.status not in (403, 404, 410):
                raise Unavailable(f"Discord did not give the file ({error}).") from error
        except Unanswered as error:
            raise Unavailable(f"Discord did not give the file ({error}).") from error
        try:
            async for chunk in self._wire.download(await self._address(path)):
                yield chunk
        except (Answer, Unanswered) as error:
            raise Unavailable(f"Discord did not give the file ({error}).") from error

    async def _address(self, path: str) -> str:
        """Of a file whose first address is no longer valid. Raises `Refused` when the file is gone."""
        channel, message, attachment = path.split("/")
        found = await self._reads.get(f"/channels/{channel}/messages/{message}")
        for file in found.get("attachments", ()):
            if file["id"] == attachment:
                return str(file["url"])
        raise Refused("it is no longer there")

    # what we say

    def size(self, text: Rich) -> int:
        return utf16(render(text))

    async def send(self, message: Outgoing) -> Receipt:
        """The nonce makes it one message, however often it is sent within the next minutes."""
        body = {**_words(message), "nonce": message.key, "enforce_nonce": True}
        if message.place.reply_to is not None:
            body["message_reference"] = {"message_id": message.place.reply_to, "fail_if_not_exists": False}
        file = None
        if message.file is not None:
            body["attachments"] = [{"id": 0, "filename": message.file.name}]
            file = (message.file.name, message.file.media_type, message.file.data)
        try:
            path = f"{_path(message.place)}/messages"
            sent = await self._wire.call("POST", path, body, file=file, thread=_threaded(message.place), writes=True)
        except MessageGone as error:  # It had arrived, and somebody has removed it since.
            raise Refused(str(error)) from error
        return Receipt(sent["id"])

    async def edit(self, target: str, message: Outgoing) -> None:
        path = f"{_path(message.place)}/messages/{target}"
        try:
            await self._wire.call("PATCH", path, _words(message), thread=_threaded(message.place), writes=True)
        except ThreadGone as error:  # A thread at rest wakes up by a new message, not by an edit.
            raise MessageGone(str(error)) from error

    async def remove(self, place: Place, target: str) -> None:
        try:
            await self._wire.call("DELETE", f"{_path(place)}/messages/{target}", thread=_threaded(place))
        except MessageGone:
            return
        except ThreadGone as error:
            raise MessageGone(str(error)) from error

    async def find(self, key: str, place: Place) -> Receipt | None:
        raise Unavailable("The history of Discord does not hold the keys of messages.")

    # courtesies

    async def typing(self, place: Place) -> None:
        await self._wire.call("POST", f"{_path(place)}/typing", thread=_threaded(place))

    async def answer_click(self, click: Click, words: str) -> None:
        token = self._tokens.pop(click.id, None)
        if token is not None:
            body = {"content": words[: CAPABILITIES.text_limit // 2], "flags": ONLY_THEM, "allowed_mentions": QUIET}
            await self._wire.call("POST", f"/webhooks/{self._application}/{token}", body)

    async def offer(self, commands: Mapping[str, Usage]) -> None:
        await self._wire.call(
            "PUT", f"/applications/{self._application}/commands", [_command(name, usage) for name, usage in commands.items()]
        )

    async def aclose(self) -> None:
        await self._wire.aclose()


def reads_all(application: Mapping[str, Any]) -> bool:
    """Whether it may see the words of messages that do not mention it."""
    return bool(application.get("flags", 0) & READS_ALL)


def account_name(user: Mapping[str, Any]) -> str:
    """As people see it: bots still have a number behind their name."""
    number = user.get("discriminator", "0")
    return f"@{user['username']}" if number in ("0", "0000") else f"@{user['username']}#{number}"


def _path(place: Place) -> str:
    """A thread is a channel."""
    return f"/channels/{place.thread or place.chat}"


def _threaded(place: Place) -> bool:
    return place.thread is not None


def _words(message: Outgoing) -> dict[str, Any]:
    return {
        "content": render(message.text),
        "components": _rows(message.buttons),
        "allowed_mentions": QUIET,
        "flags": NO_PREVIEWS,
    }


def _rows(buttons: Sequence[Button]) -> list[dict[str, Any]]:
    """Buttons stand in rows of five."""
    if any(len(button.data) > MOST_BUTTON_DATA for button in buttons):
        return []
    made = [{"type": 2, "style": 2, "label": button.label[:MOST_LABEL], "custom_id": button.data} for button in buttons]
    return [{"type": 1, "components": made[at : at + IN_A_ROW]} for at in range(0, min(len(made), IN_A_ROW * ROWS), IN_A_ROW)]


def _seen(made: Interaction) -> dict[str, Any]:
    """For a button nothing changes yet; a command is answered by an ordinary message in its channel."""
    if made.type == 2:
        said = f"Received: /{made.data.get('name', '')}"
        return {"type": 4, "data": {"content": said, "flags": ONLY_THEM, "allowed_mentions": QUIET}}
    return {"type": 6}


def _command(name: str, usage: Usage) -> dict[str, Any]:
    """What may follow a command is one text. It works in servers and in private chats with the bot."""
    made: dict[str, Any] = {"name": name, "type": 1, "description": usage.sentence[:MOST_DESCRIPTION], "contexts": [0, 1]}
    words = usage.form.partition(" ")[2]
    if words:
        made["options"] = [{"type": 3, "name": "text", "description": words[:MOST_DESCRIPTION], "required": not words.startswith("[")}]
    return made
