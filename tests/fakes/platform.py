"""A chat platform on the far side of the wire. `ChatServer` outlives every process; `Chat` is one process's connection to it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from holdfast.core import content
from holdfast.core.content import Content
from holdfast.core.errors import Unavailable
from holdfast.core.keys import SessionKey, parse
from holdfast.ports.platforms import Receipt, Update
from tests.fakes.tools import Faults

NAME = "fakechat"


class Sent(NamedTuple):
    """`thread`, `topic` and `reply_to` are where the server put it, as people see it; `anchor` is what it was asked for."""

    delivery_id: str
    session_key: str
    content: Content
    anchor: str | None = None
    thread: str | None = None
    topic: str | None = None
    reply_to: str | None = None

    @property
    def text(self) -> str:
        return content.text(self.content)


class ChatServer:
    """Keeps what people wrote until it is confirmed, and every message it was sent, with the id the sender gave it.

    `moods` says, for each send, what the wire does with it: "" (all well), "refused" (it surely did not arrive),
    "lost" (the connection breaks before it arrives), "cut" (it arrives, and the connection breaks) or "late" (it arrives,
    and no answer comes in time).

    A send takes `takes_s`. A chat may have threads, and threads topics. An anchor names a message with both. `operators` may operate.
    """

    def __init__(self, *, reconciles: bool, moods: Callable[[], str] = lambda: "", repeats: Callable[[], bool] = lambda: False) -> None:
        self.reconciles = reconciles
        self.moods, self.repeats = moods, repeats
        self.updates: list[Update] = []
        self.confirmed: set[str] = set()
        self.sent: list[Sent] = []
        self.banned: set[str] = set()
        self.operators: set[str] = set()
        self.takes_s = 0.0
        self._gone: set[str] = set()
        self.disconnected = 0

    def write(
        self, chat: str, sender: str, text: Content, *, thread: str | None = None, topic: str | None = None, reply_to: str | None = None
    ) -> Update:
        """A person writes. `reply_to`: in reply to this message of ours, by its receipt."""
        message = f"anchor-{len(self.updates) + 1}"
        update = Update(
            dedup_key=f"{NAME}|account|{chat}|{len(self.updates) + 1}|0",
            session_key=session_key(chat, thread=thread),
            sender=sender,
            content=text,
            anchor=message if thread is None else f"{message}@{thread}@{topic or ''}",
            reply_to=reply_to,
        )
        self.updates.append(update)
        return update

    def delete(self, update: Update) -> None:
        """A person takes back what they wrote: nothing can reply to it any more."""
        self._gone.add(_anchor(update.anchor)[0])

    def put(self, delivery_id: str, session_key: str, content: Content, anchor: str | None) -> None:
        """What was sent stands in the chat: where its anchor says, and as a reply to that unless it is gone."""
        message, thread, topic = _anchor(anchor)
        reply_to = message if message and message not in self._gone else None
        where = thread or parse(session_key).thread_id
        self.sent.append(Sent(delivery_id, session_key, content, anchor, where, topic or None, reply_to))


def _anchor(anchor: str | None) -> tuple[str, str, str]:
    message, thread, topic = [*(anchor or "").split("@"), "", ""][:3]
    return message, thread, topic


def session_key(chat: str, *, thread: str | None = None) -> str:
    return str(SessionKey("main", NAME, "dm", chat, thread))


class Chat:
    """The wire between one process and the server (`ports.Platform`)."""

    name = NAME

    def __init__(self, server: ChatServer, *, faults: Faults) -> None:
        self._server, self._faults = server, faults
        self.reconciles = server.reconciles

    def allows(self, session_key: str, sender: str) -> bool:
        return sender not in self._server.banned

    def may_operate(self, session_key: str, sender: str) -> bool:
        return sender in self._server.operators

    async def send(self, delivery_id: str, session_key: str, content: Content, *, anchor: str | None) -> Receipt:
        mood = self._server.moods()
        if self._server.takes_s:
            await asyncio.sleep(self._server.takes_s)
        await self._faults.at("before a send")
        await self._faults.pause()
        if mood == "refused":
            raise Unavailable("The platform asks to wait.")
        if mood == "lost":
            raise ConnectionResetError("the connection broke on the way out")
        self._server.put(delivery_id, session_key, content, anchor)
        await self._faults.at("after a send")
        if mood == "cut":
            raise ConnectionResetError("the connection broke on the way back")
        if mood == "late":
            await self._faults.hang()
        await self._faults.pause()
        return Receipt(f"{NAME}-{len(self._server.sent)}")

    async def find(self, delivery_id: str, session_key: str) -> Receipt | None:
        await self._faults.pause()
        if self._server.moods() == "refused":
            raise Unavailable("The platform asks to wait.")
        for number, sent in enumerate(self._server.sent, 1):
            if sent.delivery_id == delivery_id:
                return Receipt(f"{NAME}-{number}")
        return None

    def updates(self) -> AsyncIterator[Update]:
        return _Updates(self._server, self._faults)

    async def aclose(self) -> None:
        self._server.disconnected += 1

    async def confirm(self, update: Update) -> None:
        await self._faults.at("before a confirmation")
        await self._faults.pause()
        self._server.confirmed.add(update.dedup_key)
        await self._faults.at("after a confirmation")


class _Updates:
    """A new connection is given everything that was not confirmed, and sometimes something twice."""

    def __init__(self, server: ChatServer, faults: Faults) -> None:
        self._server, self._faults = server, faults
        self._handed: set[str] = set()

    def __aiter__(self) -> "_Updates":
        return self

    async def __anext__(self) -> Update:
        while True:
            await self._faults.poll()
            if self._handed and self._server.repeats():
                return next(update for update in self._server.updates if update.dedup_key in self._handed)
            for update in self._server.updates:
                if update.dedup_key not in self._handed | self._server.confirmed:
                    self._handed.add(update.dedup_key)
                    return update
