"""The seam between the gateway and a chat platform."""

from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from holdfast.core import content
from holdfast.core.content import Content


class Receipt(msgspec.Struct, frozen=True):
    message: str


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """`dedup_key` names platform, account, chat, message and edit, so that a second delivery is a no-op. `reply_to`: the message it replies
    to, as the receipt of that message named it.
    """

    dedup_key: str
    session_key: str
    sender: str
    content: Content
    anchor: str | None = None
    reply_to: str | None = None

    @property
    def text(self) -> str:
        return content.text(self.content)


class Platform(Protocol):
    """A chat platform, translated. `reconciles`: it can be asked whether a delivery arrived."""

    name: str
    reconciles: bool

    def allows(self, session_key: str, sender: str) -> bool:
        """Whether this person may use the agent there, as things are now."""

    def may_operate(self, session_key: str, sender: str) -> bool:
        """Whether this person may also restart Holdfast from there."""

    async def send(self, delivery_id: str, session_key: str, content: Content, *, anchor: str | None) -> Receipt:
        """`anchor` is the update it replies to, as that update named it: the platform's own word, in which it keeps whatever it needs to
        reply in the same place (message, thread, topic). Where the message is gone, it is sent to that place as no reply to anything: a
        lost anchor is no reason to fail. Raises `Unavailable` when it surely was not sent and may
        be tried again, `Refused` when it never will be. Anything else, and death, leaves the outcome unknown.
        """

    async def find(self, delivery_id: str, session_key: str) -> Receipt | None:
        """Whether a delivery arrived. Only asked where `reconciles`."""

    def updates(self) -> AsyncIterator["Update"]:
        """What people write. An update is acknowledged to the platform only by `confirm`."""

    async def confirm(self, update: "Update") -> None: ...

    async def aclose(self) -> None:
        """Disconnects. Called once, when nothing is sent or taken any more."""
