"""The seam between the gateway and a chat platform.

A platform translates, and states what it can do. It decides nothing, stores nothing and repeats nothing: a request that failed has failed,
and what follows from that is decided in the core from what it raises (`core.chat_errors`).
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from holdfast.core.capabilities import Capabilities
from holdfast.core.commands import Usage
from holdfast.core.events import Button
from holdfast.core.inbound import Click, Inbound, RemoteFile
from holdfast.core.places import Place
from holdfast.core.rich import Rich


class Account(msgspec.Struct, frozen=True):
    """Whose messages these are. `id`: the same in every process, also with other credentials. `name`: as people see it."""

    id: str
    name: str


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What arrived together. `updates`: each as it came over the wire, read by nobody yet. `cursor`: from where the next process receives
    once these are stored; None leaves it as it is. `ticket`: what `acknowledge` needs.
    """

    updates: tuple[bytes, ...] = ()
    cursor: str | None = None
    ticket: Any = None


class Hooked(msgspec.Struct, frozen=True, kw_only=True):
    """What an HTTP request of the platform carries, and how it is answered once that is stored."""

    updates: tuple[bytes, ...] = ()
    reply: bytes = b""
    media_type: str = "text/plain"


class OutFile(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    media_type: str
    data: bytes


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """One message. `place` names the chat as the platform does now. `key`: under which the platform may know it again; the same for every
    try of the same message.
    """

    place: Place
    key: str
    text: Rich = Rich("")
    file: OutFile | None = None
    buttons: tuple[Button, ...] = ()


class Receipt(msgspec.Struct, frozen=True):
    """`message`: the platform's name of what arrived. Edits go to it, and replies of people name it."""

    message: str


class Incoming(Protocol):
    """What people do. Every method raises `Unavailable` when it may work later, and `LoggedOut` when an operator has to act."""

    async def connect(self) -> Account:
        """Proves the credentials. Called again after a failure; connecting twice does no harm."""

    def receive(self, cursor: str | None) -> AsyncIterator[Batch]:
        """Everything from the cursor on, in the order of the platform, in batches that may be empty; `None`: the account was never read
        before. Something may come twice, and again in a later process. The next batch is asked for once the one before is stored and
        acknowledged. Nothing is ever dropped to catch up.
        """

    async def acknowledge(self, batch: Batch) -> None:
        """The batch is stored. Where its cursor says as much there is nothing to do."""

    def hooked(self, headers: Mapping[str, str], body: bytes) -> Hooked:
        """A request of the platform itself, for accounts that are told rather than ask. Raises `Unsigned`."""

    def read(self, update: bytes) -> Sequence[Inbound]:
        """What a stored update means; nothing, if it means nothing to us. Pure: it may be asked again in another process. Raises
        `Unreadable`; whatever else it raises counts as that, too.
        """

    def fetch(self, file: RemoteFile) -> AsyncIterator[bytes]:
        """The bytes of a file. Raises `Refused` when they are gone."""


class Outgoings(Protocol):
    """What we say. A send that raises `Unavailable` or `Refused` has surely not happened; any other error, and death, leave its outcome
    unknown. Each method makes one request and waits for its answer.
    """

    def size(self, text: Rich) -> int:
        """How much of `capabilities.text_limit` a text takes, rendered. Never less than its number of characters; grows with the text."""

    async def send(self, message: Outgoing) -> Receipt:
        """Raises `Limited`, `Muted`, `LoggedOut`, `PlaceGone`, `PlaceMoved`, `ThreadGone`, `AnchorGone`."""

    async def edit(self, target: str, message: Outgoing) -> None:
        """Puts the text and the buttons into a message of ours. What stands there already is a success. May always be repeated. Raises what
        `send` raises, and `MessageGone`.
        """

    async def remove(self, place: Place, target: str) -> None:
        """Takes a message of ours away; one that is gone is a success. May always be repeated. Raises `MessageGone` where it must stay."""

    async def find(self, key: str, place: Place) -> Receipt | None:
        """Whether a message with this key arrived. Only asked where `finds` is set. Raises `Unavailable` when it may be told later,
        `PlaceGone`, and another `Refused` when it can never be told.
        """


class Courtesies(Protocol):
    """What makes a chat pleasant. Nothing depends on it: a failure is logged and forgotten."""

    async def typing(self, place: Place) -> None: ...

    async def answer_click(self, click: Click, words: str) -> None:
        """Tells the one who pressed a button what came of it, in a word or two."""

    async def offer(self, commands: Mapping[str, Usage]) -> None:
        """Shows the commands in the platform's menu, if it has one."""


@runtime_checkable
class Guest(Protocol):
    """Where people invite an account into their chats. Both may be repeated. They raise `Unavailable`, and `Refused` where the invitation
    is gone.
    """

    async def join(self, chat: str) -> None:
        """Accepts an invitation."""

    async def decline(self, chat: str, why: str) -> None:
        """Refuses an invitation. `why`: for the person who sent it, where the platform can say so."""


class Platform(Incoming, Outgoings, Courtesies, Protocol):
    """One account on a chat platform. `name` is part of session keys. `capabilities` may become more exact by `connect`."""

    name: str

    @property
    def capabilities(self) -> Capabilities: ...

    async def aclose(self) -> None:
        """Disconnects. Called once, when nothing is sent or taken any more. It tells the platform nothing that would make it forget where
        we were.
        """
