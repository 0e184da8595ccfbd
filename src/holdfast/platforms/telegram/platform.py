"""A bot on Telegram (`ports.platforms.Platform`): translation and capabilities only."""

import asyncio
import hashlib
import hmac
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.core.capabilities import MB, Capabilities, Rates
from holdfast.core.chat_errors import LoggedOut, MessageGone, Unsigned
from holdfast.core.commands import Usage
from holdfast.core.errors import NotFound, Refused, Unavailable
from holdfast.core.events import Button
from holdfast.core.inbound import Click, Inbound, RemoteFile
from holdfast.core.places import Place
from holdfast.core.rich import Rich
from holdfast.core.splitting import utf16
from holdfast.platforms.telegram import reading
from holdfast.platforms.telegram.errors import Answer, Unanswered, meaning
from holdfast.platforms.telegram.reading import Me
from holdfast.platforms.telegram.rendering import entities
from holdfast.platforms.telegram.wire import Wire
from holdfast.ports.platforms import Account, Batch, Hooked, OutFile, Outgoing, Receipt

NAME = "telegram"
POLL_S = 50
# How often the receiver of a webhook asks whether Telegram still knows us.
BEAT_S = 20.0
# A webhook that is lost again within this time belongs to another program; how often to look whether it still does.
CONTESTED_S, LOOK_AGAIN_S = 600.0, 60.0
CONTESTED = "Another program keeps changing the webhook of this bot. Stop that program, or give one of the two another bot."
MOST_CAPTION, MOST_TOAST, MOST_BUTTON_DATA = 1024, 200, 64
SECRET_HEADER = "x-telegram-bot-api-secret-token"
CAPABILITIES = Capabilities(
    text_limit=4096,
    # Telegram allows thirty messages within any second, and twenty within any minute in a group: a burst counts on top of the pace.
    rates=Rates(every_s=(1.0, 3.6), burst=3, edit_every_s=(1.5, 4.0), account_per_s=24.0, account_burst=5, kept=2),
    buttons=MOST_BUTTON_DATA,
    typing_s=4.5,
    bytes_in=20 * MB,
    bytes_out=50 * MB,
    commands=100,
    sees_removals=False,
)
_PHOTOS, MOST_PHOTO = ("image/jpeg", "image/png", "image/webp"), 10 * MB


class Telegram:
    """`webhook`: the address at which Telegram reaches us; without one we ask. `poll_s`: how long the server may hold a request. `beat_s`:
    as `BEAT_S`.
    """

    name = NAME

    def __init__(self, token: str, *, base_url: str = "", webhook: str = "", poll_s: int = POLL_S, beat_s: float = BEAT_S) -> None:
        self.capabilities = CAPABILITIES
        self._wire, self._webhook, self._poll_s = Wire(token, base_url=base_url), webhook, poll_s
        self._beat_s = beat_s
        self._secret = hashlib.sha256(f"webhook {token}".encode()).hexdigest()
        self._me = Me(id=0)
        self._contested, self._lost_at = False, -CONTESTED_S

    async def connect(self) -> Account:
        found = await self._call("getMe")
        if not isinstance(found, dict) or "id" not in found:
            raise Unavailable("What answers for Telegram does not say which bot the token belongs to. Check `base_url`.")
        self._me = Me(id=found["id"], username=found.get("username", ""))
        if self._webhook:
            await self._take_webhook()
        elif await self._webhook_now():
            await self._call("deleteWebhook", drop_pending_updates=False)
        return Account(str(self._me.id), f"@{self._me.username}")

    async def _take_webhook(self) -> None:
        """Another program that also takes it back would do so for ever: then it is left to that program, for as long as it is there."""
        if self._contested and await self._webhook_now() not in (None, "", self._webhook):
            raise Unavailable(CONTESTED, retry_after_s=LOOK_AGAIN_S)
        self._contested = False
        await self._call(
            "setWebhook", url=self._webhook, secret_token=self._secret, allowed_updates=list(reading.KINDS), max_connections=10
        )

    async def _webhook_now(self) -> str | None:
        """The address that Telegram tells what happens, empty if there is none. None if a server of one's own cannot tell; if it has one
        all the same, it says so when it is polled.
        """
        try:
            found = await self._ask("getWebhookInfo")
        except LoggedOut:
            raise
        except Refused:
            return None
        return str(found.get("url", "")) if isinstance(found, dict) else None

    # what people do

    async def receive(self, cursor: str | None) -> AsyncIterator[Batch]:
        """The offset of the next poll confirms what came before it, so there is nothing else to acknowledge. Ids of updates are never
        compared: after a quiet week they begin somewhere else.
        """
        if self._webhook:
            while True:
                yield Batch()
                await asyncio.sleep(self._beat_s)
                await self._check_webhook()
        while True:
            found = await self._poll(None if cursor is None else int(cursor))
            if found:
                cursor = str(found[-1]["update_id"] + 1)
            yield Batch(updates=tuple(msgspec.json.encode(update) for update in found), cursor=cursor if found else None)

    async def _check_webhook(self) -> None:
        """Nothing else would tell that the token was revoked, or that another program has taken the webhook away."""
        if await self._webhook_now() in (None, self._webhook):
            return
        now = time.monotonic()
        self._contested, self._lost_at = now - self._lost_at < CONTESTED_S, now
        raise Unavailable(CONTESTED if self._contested else "Another program has changed the webhook of this bot. It is set again.")

    async def _poll(self, offset: int | None) -> list[dict[str, Any]]:
        found = await self._ask(
            "getUpdates",
            read_timeout_s=self._poll_s + 10.0,
            offset=offset,
            limit=100,
            timeout=self._poll_s,
            allowed_updates=list(reading.KINDS),
        )
        return list(found)

    async def acknowledge(self, batch: Batch) -> None:
        """The next poll does."""

    def hooked(self, headers: Mapping[str, str], body: bytes) -> Hooked:
        if not self._webhook:
            raise NotFound("webhook", NAME)
        if not hmac.compare_digest(headers.get(SECRET_HEADER, ""), self._secret):
            raise Unsigned("The request does not carry the secret that Telegram was given.")
        return Hooked(updates=(body,))

    def read(self, update: bytes) -> Sequence[Inbound]:
        return reading.read(update, self._me)

    async def fetch(self, file: RemoteFile) -> AsyncIterator[bytes]:
        try:
            found = await self._call("getFile", file_id=file.id)
            yield await self._wire.download(found["file_path"])
        except (Answer, Unanswered) as error:
            raise Unavailable(f"Telegram did not give the file ({error}).") from error

    # what we say

    def size(self, text: Rich) -> int:
        return utf16(text.text)

    async def send(self, message: Outgoing) -> Receipt:
        where = {**_where(message.place), "reply_markup": _keyboard(message.buttons)}
        if message.place.reply_to is not None:
            where["reply_parameters"] = {"message_id": int(message.place.reply_to), "allow_sending_without_reply": True}
        if message.file is not None:
            sent = await self._send_file(message.file, caption=message.text.text[:MOST_CAPTION] or None, **where)
        else:
            sent = await self._call("sendMessage", **where, **_words(message.text))
        return Receipt(str(sent["message_id"]))

    async def _send_file(self, file: OutFile, **fields: Any) -> Any:
        """A picture or a recording that Telegram does not take as one, for its measures or for want of that right, was surely not sent, and
        goes as a document.
        """
        method, field = _method(file)
        data = self._wire.file(file.name, file.data)
        try:
            return await self._call(method, read_timeout_s=120.0, **fields, **{field: data})
        except Refused as error:
            if type(error) is not Refused or method == "sendDocument":
                raise
        return await self._call("sendDocument", read_timeout_s=120.0, **fields, document=data)

    async def edit(self, target: str, message: Outgoing) -> None:
        try:
            await self._call(
                "editMessageText",
                chat_id=message.place.chat,
                message_id=int(target),
                reply_markup=_keyboard(message.buttons),
                **_words(message.text),
            )
        except Refused as error:
            if "message is not modified" not in str(error).lower():
                raise

    async def remove(self, place: Place, target: str) -> None:
        try:
            await self._call("deleteMessage", chat_id=place.chat, message_id=int(target))
        except MessageGone as error:
            if "not found" not in str(error):
                raise

    async def find(self, key: str, place: Place) -> Receipt | None:
        raise Unavailable("Telegram cannot be asked what arrived.")

    # courtesies

    async def typing(self, place: Place) -> None:
        await self._call("sendChatAction", action="typing", chat_id=place.chat, message_thread_id=_thread(place))

    async def answer_click(self, click: Click, words: str) -> None:
        await self._call("answerCallbackQuery", callback_query_id=click.id, text=words[:MOST_TOAST])

    async def offer(self, commands: Mapping[str, Usage]) -> None:
        await self._call(
            "setMyCommands", commands=[{"command": name, "description": usage.sentence[:256]} for name, usage in commands.items()]
        )

    async def aclose(self) -> None:
        await self._wire.aclose()

    async def _ask(self, method: str, **parameters: Any) -> Any:
        """Asking again does no harm, so what failed in any way has not happened."""
        try:
            return await self._call(method, **parameters)
        except (Answer, Unanswered) as error:
            raise Unavailable(f"Telegram did not answer ({error}).", retry_after_s=2.0) from error

    async def _call(self, method: str, **parameters: Any) -> Any:
        try:
            return await self._wire.call(method, **parameters)
        except Exception as error:
            raise meaning(error) from None


def _where(place: Place) -> dict[str, Any]:
    return {
        "chat_id": place.chat,
        "message_thread_id": _thread(place),
        "direct_messages_topic_id": int(place.topic) if place.topic else None,
    }


def _thread(place: Place) -> int | None:
    """The general topic of a forum has no id that could be sent."""
    return int(place.thread) if place.thread and place.thread != "1" else None


def _words(text: Rich) -> dict[str, Any]:
    return {"text": text.text, "entities": entities(text) or None, "link_preview_options": {"is_disabled": True}}


def _keyboard(buttons: Sequence[Button]) -> dict[str, Any] | None:
    """Short labels stand next to each other."""
    if not buttons or any(len(button.data.encode()) > MOST_BUTTON_DATA for button in buttons):
        return None
    made = [{"text": button.label, "callback_data": button.data} for button in buttons]
    in_a_row = sum(len(button.label) for button in buttons) <= 30 and len(buttons) <= 4
    return {"inline_keyboard": [made] if in_a_row else [[button] for button in made]}


def _method(file: OutFile) -> tuple[str, str]:
    if file.media_type in _PHOTOS and len(file.data) <= MOST_PHOTO:
        return "sendPhoto", "photo"
    match file.media_type:
        case "audio/ogg":
            return "sendVoice", "voice"
        case "audio/mpeg" | "audio/mp4":
            return "sendAudio", "audio"
        case "video/mp4":
            return "sendVideo", "video"
        case _:
            return "sendDocument", "document"
