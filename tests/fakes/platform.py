"""A chat platform on the far side of the wire. `ChatServer` outlives every process; `Chat` is one process's connection to it."""

from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from holdfast.core.errors import Unavailable
from holdfast.core.keys import SessionKey
from holdfast.ports import Receipt, Update
from tests.fakes.tools import Faults

NAME = "fakechat"


class Sent(NamedTuple):
    delivery_id: str
    session_key: str
    text: str
    anchor: str | None = None


class ChatServer:
    """Keeps what people wrote until it is confirmed, and every message it was sent, with the id the sender gave it.

    `moods` says, for each send, what the wire does with it: "" (all well), "refused" (it surely did not arrive),
    "lost" (the connection breaks before it arrives), "cut" (it arrives, and the connection breaks) or "late" (it arrives,
    and no answer comes in time).
    """

    def __init__(self, *, reconciles: bool, moods: Callable[[], str] = lambda: "", repeats: Callable[[], bool] = lambda: False) -> None:
        self.reconciles = reconciles
        self.moods, self.repeats = moods, repeats
        self.updates: list[Update] = []
        self.confirmed: set[str] = set()
        self.sent: list[Sent] = []
        self.banned: set[str] = set()

    def write(self, chat: str, sender: str, text: str) -> Update:
        """A person writes."""
        update = Update(
            dedup_key=f"{NAME}|account|{chat}|{len(self.updates) + 1}|0",
            session_key=session_key(chat),
            sender=sender,
            text=text,
            anchor=f"anchor-{len(self.updates) + 1}",
        )
        self.updates.append(update)
        return update


def session_key(chat: str) -> str:
    return str(SessionKey("main", NAME, "dm", chat))


class Chat:
    """The wire between one process and the server (`ports.Platform`)."""

    name = NAME

    def __init__(self, server: ChatServer, *, faults: Faults) -> None:
        self._server, self._faults = server, faults
        self.reconciles = server.reconciles

    def allows(self, session_key: str, sender: str) -> bool:
        return sender not in self._server.banned

    async def send(self, delivery_id: str, session_key: str, text: str, *, anchor: str | None) -> Receipt:
        mood = self._server.moods()
        await self._faults.at("before a send")
        await self._faults.pause()
        if mood == "refused":
            raise Unavailable("The platform asks to wait.")
        if mood == "lost":
            raise ConnectionResetError("the connection broke on the way out")
        self._server.sent.append(Sent(delivery_id, session_key, text, anchor))
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
