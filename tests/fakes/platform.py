"""A chat platform on the far side of the wire. `ChatServer` outlives every process; `Chat` is one process's connection to it."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from holdfast.core import content
from holdfast.core.capabilities import Capabilities, Rates
from holdfast.core.chat_errors import AnchorGone, Limited, MessageGone, PlaceGone, ThreadGone, Unreadable, Unsigned
from holdfast.core.commands import Usage
from holdfast.core.content import Content
from holdfast.core.errors import NotFound, Refused, Unavailable
from holdfast.core.inbound import Click, Echo, Edit, Inbound, Message, RemoteFile, Removal, Source
from holdfast.core.keys import SessionKey
from holdfast.core.places import Anchor, Place
from holdfast.core.rich import Mark, Rich
from holdfast.ports.blobs import Blob
from holdfast.ports.platforms import Account, Batch, Hooked, OutFile, Outgoing, Receipt
from tests.fakes.tools import Faults

NAME = "fakechat"
ACCOUNT = "account"
SECRET = "sesame"
# What the bytes of a file begin with whose digest a test has chosen.
BLOB = "the bytes of "
# So fast that nothing has to wait for its turn, unless a test says so.
UNHURRIED = Rates(every_s=(0.0001, 0.0001), burst=1000, edit_every_s=(0.2, 0.2), account_per_s=10_000.0, account_burst=10_000, kept=0)


class Update(NamedTuple):
    """What the server has to hand over. `dedup_key`: under which the gateway keeps a message. `content`: what somebody wrote.
    `meant`: it is a message to us. `ours`: it is an echo of one of ours.
    """

    body: bytes
    dedup_key: str = ""
    anchor: str | None = None
    sender: str = ""
    content: Content = ""
    meant: bool = False
    ours: bool = False

    @property
    def text(self) -> str:
        return content.text(self.content)


class Sent:
    """A message of ours as people see it now. `thread`, `topic` and `reply_to` are where the server put it; `edits`: what it showed before.
    `key`: what the sender called it. `number`: its name.
    """

    def __init__(self, number: int, message: Outgoing, place: Place) -> None:
        self.number, self.key, self.place = number, message.key, place
        self.thread, self.topic, self.reply_to = place.thread, place.topic, place.reply_to
        self.file: OutFile | None = message.file
        self.text, self.buttons = rendered(message.text), message.buttons
        self.edits: list[str] = []
        self.removed = False

    @property
    def name(self) -> str:
        return f"{NAME}-{self.number}"

    @property
    def session_key(self) -> str:
        return str(SessionKey("main", NAME, self.place.chat_type, self.place.chat, self.place.thread))

    @property
    def anchor(self) -> str | None:
        """What it hangs on, as the gateway writes it."""
        return str(Anchor(self.reply_to or "", self.thread or "", self.topic or "")) or None

    def __repr__(self) -> str:
        return f"{self.place.chat}: {self.text!r}{' (removed)' if self.removed else ''}"


def rendered(text: Rich) -> str:
    """As people of this chat write it: Markdown, as far as the gateway's own words use it."""
    out = text.text
    marks = {Mark.CODE: "`", Mark.BOLD: "**", Mark.ITALIC: "_", Mark.STRIKE: "~~"}
    for span in sorted(text.spans, key=lambda span: -span.start):
        inner = out[span.start : span.end]
        if span.mark is Mark.QUOTE:
            inner = "> " + inner.replace("\n", "\n> ")
        elif span.mark is Mark.PRE:
            inner = f"```{span.value}\n{inner}\n```"
        elif span.mark in marks:
            inner = f"{marks[span.mark]}{inner}{marks[span.mark]}"
        out = out[: span.start] + inner + out[span.end :]
    return re.sub(r"^(\s*)• ", r"\1- ", out, flags=re.MULTILINE)


class ChatServer:
    """Keeps what people did until it is confirmed, and every message it was sent.

    `moods` says, for each send, what the wire does with it: "" (all well), "refused" (it surely did not arrive), "limited" (too fast),
    "slowly" (the same, and nobody says for how long), "never" (nor ever will), "lost" (the connection breaks before it arrives), "cut" (it
    arrives, and the connection breaks) or "late" (it arrives, and no answer comes in time).

    A send takes `takes_s`. A chat may have threads, and threads topics. Those in `gone` are closed; so are the threads in `gone_threads`.
    Who is `banned` may not talk, and `operators` may operate, where the operator says so by these. `hides`: what every lookup fails with.
    `fixed`: nothing that was sent can be edited any more.
    """

    def __init__(
        self,
        *,
        reconciles: bool,
        moods: Callable[[], str] = lambda: "",
        repeats: Callable[[], bool] = lambda: False,
        capabilities: Capabilities | None = None,
        by_cursor: bool = True,
    ) -> None:
        self.capabilities = capabilities or Capabilities(
            text_limit=10**9, rates=UNHURRIED, finds=reconciles, bytes_in=10**9, bytes_out=10**9, typing_s=5.0, buttons=64, commands=100
        )
        self.reconciles, self.by_cursor = self.capabilities.finds, by_cursor
        self.moods, self.repeats = moods, repeats
        self.updates: list[Update] = []
        self.confirmed: set[str] = set()
        self.sent: list[Sent] = []
        self.files: dict[str, bytes] = {}
        self.banned: set[str] = set()
        self.operators: set[str] = set()
        self.gone: set[str] = set()
        self.gone_threads: set[str] = set()
        self.hides: Exception | None = None
        self.fixed = False
        self.lookups = 0
        self.takes_s = 0.0
        self.typed = 0
        self.clicks: list[tuple[str, str]] = []
        self.menu: list[str] = []
        self.disconnected = 0
        self._gone: set[str] = set()

    # what people do

    def write(
        self,
        chat: str,
        sender: str,
        text: Content,
        *,
        thread: str | None = None,
        topic: str | None = None,
        reply_to: str | None = None,
        group: bool = False,
        addressed: bool = True,
        files: tuple[RemoteFile, ...] = (),
        album: str | None = None,
    ) -> Update:
        """A person writes. `reply_to`: in reply to this message of ours, by its receipt."""
        number = len(self.updates) + 1
        anchor = Anchor(f"anchor-{number}", thread or "", topic or "")
        named = tuple(self._remote(part) for part in content.attached(text))
        message = Message(
            key=f"{chat}|{number}",
            source=Source(chat=chat, user=sender, thread=thread, name=sender.title(), chat_type="group" if group else "dm"),
            text=content.text(text),
            files=(*named, *files),
            anchor=anchor,
            reply_to=reply_to,
            addressed=addressed,
            album=album,
        )
        name, meant = f"{NAME}|{ACCOUNT}|{chat}|{number}|0", addressed or not group
        return self.deliver(message, dedup_key=name, anchor=str(anchor), sender=sender, content=text, meant=meant)

    def _remote(self, part: content.BytesPart) -> RemoteFile:
        self.files.setdefault(part.blob, f"{BLOB}{part.blob}".encode())
        return RemoteFile(id=part.blob, name=part.name or "", media_type=part.media_type, size=part.size)

    def edit(self, update: Update, text: str) -> Update:
        """A person changes what they wrote."""
        chat, number = update.dedup_key.split("|")[2:4]
        edit = Edit(key=f"{chat}|{number}", version=str(len(self.updates)), source=Source(chat=chat, user=update.sender), text=text)
        return self.deliver(edit, sender=update.sender)

    def take_back(self, update: Update) -> Update:
        chat, number = update.dedup_key.split("|")[2:4]
        return self.deliver(Removal(key=f"{chat}|{number}", source=Source(chat=chat, user=update.sender)))

    def press(self, sent: Sent, label: str, sender: str) -> Update:
        data = next(button.data for button in sent.buttons if button.label == label)
        source = Source(chat=sent.place.chat, user=sender, name=sender.title(), thread=sent.place.thread)
        return self.deliver(Click(id=f"click-{len(self.updates)}", source=source, data=data, message=sent.name))

    def echo(self, sent: Sent) -> Update:
        return self.deliver(Echo(message=sent.name, chat=sent.place.chat, key=sent.key), ours=True)

    def deliver(self, inbound: Inbound | bytes, **more: str | Content | bool | None) -> Update:
        body = inbound if isinstance(inbound, bytes) else msgspec.json.encode([type(inbound).__name__, inbound])
        update = Update(body, **{"dedup_key": f"update {len(self.updates)}", **more})  # type: ignore[arg-type]
        self.updates.append(update)
        return update

    def delete(self, update: Update) -> None:
        """A person takes back what they wrote, and nobody is told: nothing can reply to it any more."""
        self._gone.add((update.anchor or "").split("@")[0])

    # what is sent to them

    def put(self, message: Outgoing) -> Sent:
        """What was sent stands in the chat: where its place says."""
        place = message.place
        if place.chat in self.gone:
            raise PlaceGone("The chat is gone.")
        if place.thread in self.gone_threads:
            raise ThreadGone("The thread is gone.")
        if place.reply_to in self._gone:
            raise AnchorGone("The message is gone.")
        sent = Sent(len(self.sent) + 1, message, place)
        known = self.known(message.key) if self.capabilities.key_lasts_s else None
        if known is not None:
            return known
        self.sent.append(sent)
        if self.capabilities.echoes_s:
            self.echo(sent)
        return sent

    def known(self, key: str) -> Sent | None:
        """What was sent under a key, where a second send under it is none."""
        return next((one for one in self.sent if one.key == key), None)

    def find(self, name: str) -> Sent:
        sent = next((one for one in self.sent if one.name == name), None)
        if sent is None or sent.removed:
            raise MessageGone("The message is gone.")
        return sent

    @property
    def shown(self) -> list[Sent]:
        """What stands in the chats now."""
        return [one for one in self.sent if not one.removed]


def session_key(chat: str, *, thread: str | None = None, member: str | None = None) -> str:
    """`member`: whose conversation it is, in a group."""
    return str(SessionKey("main", NAME, "dm" if member is None else "group", chat, thread, None if thread else member))


_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (Message, Edit, Removal, Click, Echo)}


class Chat:
    """The wire between one process and the server (`ports.Platform`)."""

    name = NAME

    def __init__(self, server: ChatServer, *, faults: Faults) -> None:
        self._server, self._faults = server, faults

    @property
    def capabilities(self) -> Capabilities:
        return self._server.capabilities

    async def connect(self) -> Account:
        return Account(ACCOUNT, "Fake")

    # what people do

    def receive(self, cursor: str | None) -> AsyncIterator[Batch]:
        return _Updates(self._server, self._faults, int(cursor or 0))

    async def acknowledge(self, batch: Batch) -> None:
        await self._faults.at("before a confirmation")
        await self._faults.pause()
        for number in batch.ticket:
            self._server.confirmed.add(self._server.updates[number].dedup_key)
        await self._faults.at("after a confirmation")

    def hooked(self, headers: Mapping[str, str], body: bytes) -> Hooked:
        if headers.get("x-fake-secret") != SECRET:
            raise Unsigned("It is not signed.")
        return Hooked(updates=(body,), reply=b"taken")

    def read(self, update: bytes) -> Sequence[Inbound]:
        try:
            kind, fields = msgspec.json.decode(update)
            found: Inbound = msgspec.convert(fields, _KINDS[kind])
            return (found,)
        except (msgspec.DecodeError, KeyError) as error:
            raise Unreadable(f"It is no update: {error}") from error

    async def fetch(self, file: RemoteFile) -> AsyncIterator[bytes]:
        await self._faults.pause()
        if file.id not in self._server.files:
            raise NotFound("file", file.name)
        yield self._server.files[file.id]

    # what we say

    def size(self, text: Rich) -> int:
        return len(text.text)

    async def send(self, message: Outgoing) -> Receipt:
        mood = await self._sending("a send")
        sent = self._server.put(message)
        await self._sent(mood, "a send")
        return Receipt(sent.name)

    async def edit(self, target: str, message: Outgoing) -> None:
        mood = await self._sending("an edit")
        sent = self._server.find(target)
        if self._server.fixed:
            raise MessageGone("It can no longer be edited.")
        sent.edits.append(sent.text)
        sent.text, sent.buttons = rendered(message.text), message.buttons
        await self._sent(mood, "an edit")

    async def remove(self, place: Place, target: str) -> None:
        mood = await self._sending("a removal")
        for sent in self._server.sent:
            if sent.name == target:
                sent.removed = True
        await self._sent(mood, "a removal")

    async def _sending(self, what: str) -> str:
        mood = self._server.moods()
        if self._server.takes_s:
            await asyncio.sleep(self._server.takes_s)
        await self._faults.at(f"before {what}")
        await self._faults.pause()
        if mood == "refused":
            raise Unavailable("The platform asks to wait.")
        if mood == "never":
            raise Refused("The platform does not take this.")
        if mood == "limited":
            raise Limited(2.0)
        if mood == "slowly":
            raise Limited(None)
        if mood == "limited account":
            raise Limited(10.0, account=True)
        if mood == "limited edits":
            raise Limited(10.0, edits=True)
        if mood == "lost":
            raise ConnectionResetError("the connection broke on the way out")
        return mood

    async def _sent(self, mood: str, what: str) -> None:
        await self._faults.at(f"after {what}")
        if mood == "cut":
            raise ConnectionResetError("the connection broke on the way back")
        if mood == "late":
            await self._faults.hang()
        await self._faults.pause()

    async def find(self, key: str, place: Place) -> Receipt | None:
        await self._faults.pause()
        self._server.lookups += 1
        if self._server.moods() == "refused":
            raise Unavailable("The platform asks to wait.")
        if self._server.hides is not None:
            raise self._server.hides
        if place.chat in self._server.gone:
            raise PlaceGone("The chat is gone.")
        return next((Receipt(sent.name) for sent in self._server.sent if sent.key == key), None)

    # courtesies

    async def typing(self, place: Place) -> None:
        self._server.typed += 1

    async def answer_click(self, click: Click, words: str) -> None:
        self._server.clicks.append((click.id, words))

    async def offer(self, commands: Mapping[str, Usage]) -> None:
        self._server.menu = list(commands)

    async def aclose(self) -> None:
        self._server.disconnected += 1


class _Updates:
    """A new connection is given everything that was not confirmed, and sometimes something twice. What is confirmed, a cursor says; or each
    is acknowledged by itself.
    """

    def __init__(self, server: ChatServer, faults: Faults, cursor: int) -> None:
        self._server, self._faults = server, faults
        self._at = cursor if server.by_cursor else 0
        self._handed: set[int] = set()
        server.confirmed |= {update.dedup_key for update in server.updates[: self._at]}  # The next reader starts there and gets the rest.

    def __aiter__(self) -> "_Updates":
        return self

    async def __anext__(self) -> Batch:
        server = self._server
        while True:
            await self._faults.poll()
            if self._handed and server.repeats():
                return Batch(updates=(server.updates[min(self._handed)].body,), ticket=())
            for number in range(self._at, len(server.updates)):
                if number not in self._handed and (server.by_cursor or server.updates[number].dedup_key not in server.confirmed):
                    self._handed.add(number)
                    return Batch(
                        updates=(server.updates[number].body,), cursor=str(number + 1) if server.by_cursor else None, ticket=(number,)
                    )


class Rows(Protocol):
    async def put_blob(self, blob: Blob, *, at: int) -> Blob: ...


class Shelf:
    """Where bytes lie (`ports.blobs.Files`), as far as their rows go: a simulated world keeps no files."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def read(self, digest: str) -> bytes:
        return f"{BLOB}{digest}".encode()

    async def put(self, chunks: AsyncIterable[bytes], *, media_type: str) -> Blob:
        data = b"".join([chunk async for chunk in chunks])
        named = data.decode().removeprefix(BLOB)
        digest = named if named != data.decode() else hashlib.sha256(data).hexdigest()
        return await self._rows.put_blob(Blob(digest=digest, size=len(data), media_type=media_type, file=f"{digest}-1"), at=1)
