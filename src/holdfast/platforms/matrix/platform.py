"""An account on Matrix (`ports.platforms.Platform`): translation and capabilities only."""

import hashlib
import json
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from holdfast.core.capabilities import MB, Capabilities, Rates
from holdfast.core.chat_errors import MessageGone, PlaceGone
from holdfast.core.commands import Usage
from holdfast.core.delivery import upload_s
from holdfast.core.errors import NotFound, Refused, Unavailable
from holdfast.core.inbound import Click, Inbound, RemoteFile
from holdfast.core.places import Place
from holdfast.core.rich import Rich
from holdfast.platforms.matrix import reading, rendering
from holdfast.platforms.matrix.errors import Answer, Unanswered, meaning
from holdfast.platforms.matrix.reading import Me
from holdfast.platforms.matrix.syncing import PAGE, News, Sync
from holdfast.platforms.matrix.wire import CLIENT_1, MEDIA, Wire
from holdfast.ports.platforms import Account, Batch, Hooked, OutFile, Outgoing, Receipt

T = TypeVar("T")
NAME = "matrix"
POLL_S = 30.0
# It is shown until then also if the answer is there before.
TYPING_S = 4.0
DAY_MS = 24 * 3600 * 1000
# What a server that nobody configured takes of an account, edits included.
DEFAULT_PER_S, DEFAULT_BURST = 0.2, 10
# Servers know the id of a transaction for a day; an hour is left for clocks that differ.
KEY_LASTS_S = 23 * 3600.0
# So far back in a room a message of ours is looked for.
MOST_PAGES = 10


def rates(per_s: float, burst: int) -> Rates:
    """One budget for all rooms; half of it is kept for final texts."""
    edit_every_s = max(1.5, 1.0 / per_s)
    return Rates(
        every_s=(0.5, 0.5),
        burst=burst,
        edit_every_s=(edit_every_s, edit_every_s),
        account_per_s=per_s,
        account_burst=burst,
        kept=burst // 2,
    )


class Matrix:
    """`since`: from where an account that was never read is read first; without it, from now on. `per_s` and `burst`: what the server takes
    of the account. `poll_s`: how long the server may hold a request. `page`: how many events of a room it is asked for at once.
    """

    name = NAME

    def __init__(
        self,
        homeserver: str,
        token: str,
        *,
        since: str = "",
        per_s: float = DEFAULT_PER_S,
        burst: int = DEFAULT_BURST,
        poll_s: float = POLL_S,
        page: int = PAGE,
    ) -> None:
        self.capabilities = Capabilities(
            text_limit=12_000,
            rates=rates(per_s, burst),
            key_lasts_s=KEY_LASTS_S,
            finds=True,
            echoes_s=30.0,
            buttons=255,
            choices=8,
            typing_s=TYPING_S,
            bytes_in=50 * MB,
            bytes_out=50 * MB,
        )
        self._wire, self._since, self._poll_s = Wire(homeserver, token), since, poll_s
        self._sync = Sync(self._wire, page)
        self._me = Me(user="")

    async def connect(self) -> Account:
        user = str((await self._asked_again("GET", "account", "whoami"))["user_id"])
        self._me = Me(user=user, name=await self._own_name(user))
        await self._reading(self._sync.begin(self._me))
        await self._learn_limits()
        return Account(user, user)

    async def _own_name(self, user: str) -> str:
        try:
            return str((await self._asked_again("GET", "profile", user, "displayname")).get("displayname") or "")
        except Refused:
            return ""

    async def _learn_limits(self) -> None:
        """How large a file may be, where the server says so."""
        try:
            most = (await self._asked_again("GET", "config", base=f"{CLIENT_1}/media")).get("m.upload.size")
        except Refused:
            return
        if isinstance(most, int):
            self.capabilities = msgspec.structs.replace(self.capabilities, bytes_out=most, bytes_in=max(most, 50 * MB))

    # what people do

    async def receive(self, cursor: str | None) -> AsyncGenerator[Batch, None]:
        """The token of the next sync confirms nothing: everything stays on the server. So the stored one is all that has to be kept. It is
        from before whatever could not be read yet; what comes after that is recognized by its key when it is read again.
        """
        self._sync.rewind()
        since, wait_s = cursor, 0.0  # The first answer comes at once, and says that we are there.
        while True:
            news = await self._reading(self._news(since, wait_s))
            since = news.token
            yield (batch := self._batch(news.updates, since, cursor))
            cursor = batch.cursor or cursor
            if not self._sync.complete:
                late = await self._reading(self._sync.late())
                yield (batch := self._batch(tuple(late), since, cursor))
                cursor = batch.cursor or cursor
            wait_s = self._sync.patience_s(self._poll_s)

    def _batch(self, updates: tuple[bytes, ...], token: str, stored: str | None) -> Batch:
        return Batch(updates=updates, cursor=token if token != stored and self._sync.complete else None)

    async def _news(self, since: str | None, wait_s: float) -> News:
        recent = int(1000 * time.time()) - DAY_MS
        try:
            if since is not None:
                return await self._sync.next(since, wait_s=wait_s)
            start = await self._sync.start()
            if not self._since:
                return start
            news = await self._sync.next(self._since, wait_s=wait_s, newer_than=recent)
            return News((*start.updates, *news.updates), news.token)
        except Answer as error:
            if error.status != 400:
                raise
            # The server does not know the token, as after it was restored. What it has of the last day is read again; what of it is known
            # is recognized by its key.
            return await self._sync.next(None, wait_s=0.0, newer_than=recent)

    async def acknowledge(self, batch: Batch) -> None:
        """The next sync does."""

    def hooked(self, headers: Mapping[str, str], body: bytes) -> Hooked:
        raise NotFound("webhook", NAME)

    def read(self, update: bytes) -> Sequence[Inbound]:
        return reading.read(update, self._me)

    async def fetch(self, file: RemoteFile) -> AsyncIterator[bytes]:
        parts = urlsplit(file.id)
        where = (parts.netloc, parts.path.lstrip("/"))
        try:
            try:
                async for chunk in self._wire.download("download", *where, base=f"{CLIENT_1}/media"):
                    yield chunk
            except Answer as error:
                if error.status != 404 or error.code != "M_UNRECOGNIZED":
                    raise
                async for chunk in self._wire.download("download", *where, base=MEDIA):  # A server from before 2024.
                    yield chunk
        except Answer as error:
            if error.status in (403, 404):
                raise Refused(f"the homeserver does not have it ({error.words})") from None
            raise Unavailable(f"The homeserver did not give the file ({error}).") from None
        except Unanswered as error:
            raise Unavailable(f"The homeserver did not give the file ({error}).") from None
        except Exception as error:
            raise meaning(error) from None

    async def join(self, chat: str) -> None:
        await self._asked_again("POST", "rooms", chat, "join", body={})

    async def decline(self, chat: str, why: str) -> None:
        await self._asked_again("POST", "rooms", chat, "leave", body={"reason": why})

    # what we say

    def size(self, text: Rich) -> int:
        return rendering.size(text)

    async def send(self, message: Outgoing) -> Receipt:
        """The key is the id of the transaction: the server takes it once, and answers a repeat with the first message."""
        content = rendering.content(message.text, buttons=message.buttons, key=message.key)
        if message.file is not None:
            content |= await self._uploaded(message.file, caption=message.text.text)
        if relates := _relates(message.place):
            content["m.relates_to"] = relates
        sent = await self._ask("PUT", "rooms", message.place.chat, "send", "m.room.message", message.key, body=content)
        return Receipt(str(sent["event_id"]))

    async def _uploaded(self, file: OutFile, *, caption: str) -> dict[str, Any]:
        """An upload that nobody answered was never sent to anybody."""
        try:
            found = await self._ask(
                "POST",
                "upload",
                base=MEDIA,
                query={"filename": file.name},
                data=file.data,
                media_type=file.media_type,
                timeout_s=upload_s(len(file.data)),
            )
        except (Answer, Unanswered) as error:
            raise Unavailable(f"The homeserver did not take the file ({error}).") from None
        except PlaceGone as error:
            raise Refused(str(error)) from None
        kind = file.media_type.partition("/")[0]
        return {
            "msgtype": f"m.{kind}" if kind in ("image", "audio", "video") else "m.file",
            "body": caption or file.name,
            "filename": file.name,
            "url": found["content_uri"],
            "info": {"mimetype": file.media_type, "size": len(file.data)},
        }

    async def edit(self, target: str, message: Outgoing) -> None:
        """A server takes an edit of a message that was taken away, and shows it to nobody; so it is looked at first."""
        chat, new = message.place.chat, rendering.content(message.text, buttons=message.buttons)
        shown = await self._shown(chat, target)
        if shown != new:
            edit = rendering.replacing(target, new)
            await self._ask("PUT", "rooms", chat, "send", "m.room.message", uuid.uuid4().hex, body=edit)

    async def _shown(self, chat: str, target: str) -> dict[str, Any]:
        """What a message of ours says now."""
        try:
            event = await self._asked_again("GET", "rooms", chat, "event", target)
        except PlaceGone as error:
            raise MessageGone(str(error)) from None
        if not event.get("content"):
            raise MessageGone("The message was taken away.")
        latest = (event.get("unsigned") or {}).get("m.relations", {}).get("m.replace") or {}
        found = (latest.get("content") or {}).get("m.new_content") or event["content"]
        return {name: value for name, value in found.items() if name not in ("m.relates_to", rendering.KEY)}

    async def remove(self, place: Place, target: str) -> None:
        transaction = hashlib.sha256(f"remove {target}".encode()).hexdigest()[:24]
        try:
            await self._wire.call("PUT", "rooms", place.chat, "redact", target, transaction, body={})
        except Answer as error:
            if error.status == 404:
                return
            if error.status == 403:
                raise MessageGone(f"The homeserver says: {error.words}") from None
            raise meaning(error) from None
        except Exception as error:
            raise meaning(error) from None

    async def find(self, key: str, place: Place) -> Receipt | None:
        """Among the last messages of ours in the room. One that stands further back is still not sent twice while its key lasts."""
        ours = json.dumps({"senders": [self._me.user], "types": ["m.room.message"]})
        query = {"dir": "b", "limit": str(PAGE), "filter": ours}
        for _ in range(MOST_PAGES):
            try:
                page = await self._asked_again("GET", "rooms", place.chat, "messages", query=query)
            except PlaceGone:
                return None
            for event in page.get("chunk") or ():
                if key in ((event.get("unsigned") or {}).get("transaction_id"), (event.get("content") or {}).get(rendering.KEY)):
                    return Receipt(str(event["event_id"]))
            if page.get("end") is None:
                break
            query["from"] = page["end"]
        return None

    # courtesies

    async def typing(self, place: Place) -> None:
        body = {"typing": True, "timeout": int(1000 * (TYPING_S + 1))}
        await self._ask("PUT", "rooms", place.chat, "typing", self._me.user, body=body)

    async def answer_click(self, click: Click, words: str) -> None:
        """A reaction has no answer of its own; the message that it stands below says what came of it."""

    async def offer(self, commands: Mapping[str, Usage]) -> None:
        """There is no menu."""

    async def aclose(self) -> None:
        await self._wire.aclose()

    async def _ask(self, method: str, *path: str, **named: Any) -> Any:
        try:
            return await self._wire.call(method, *path, **named)
        except Exception as error:
            raise meaning(error) from None

    async def _asked_again(self, method: str, *path: str, **named: Any) -> Any:
        """Where asking again does no harm, a server that did not answer may do so later."""
        try:
            return await self._ask(method, *path, **named)
        except (Answer, Unanswered) as error:
            raise Unavailable(f"The homeserver did not answer ({error}).", retry_after_s=2.0) from None

    async def _reading(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except (Answer, Unanswered) as error:
            meant = meaning(error)
            if isinstance(meant, Answer | Unanswered | PlaceGone):
                meant = Unavailable(f"The homeserver did not answer ({error}).", retry_after_s=2.0)
            raise meant from None
        except Exception as error:
            raise meaning(error) from None


def _relates(place: Place) -> dict[str, Any]:
    """In a thread a message hangs on the thread, and in it on the message that it replies to."""
    reply = {"m.in_reply_to": {"event_id": place.reply_to}} if place.reply_to is not None else {}
    if place.thread is None:
        return reply
    return {"rel_type": "m.thread", "event_id": place.thread, "is_falling_back": False, **(reply or {"is_falling_back": True})}
