"""What came from platforms and is not yet part of a conversation, and where each account is read from next."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from holdfast.core.places import Spot


class StoredUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """`id` grows with every update. `refused`: why it was set aside."""

    id: int
    account: str
    body: bytes
    at: int
    refused: str | None = None


class DeadPlace(msgspec.Struct, frozen=True, kw_only=True):
    spot: Spot
    since: int
    why: str


class Updates(Protocol):
    """Every method keeps to the contract of `ports.store`. An account is named `<platform>:<id>`."""

    async def take_updates(self, account: str, updates: Sequence[bytes], *, cursor: str | None, at: int) -> None:
        """Stores updates as they came, and with them from where the account is read next (P1). None leaves that as it is."""

    async def cursor(self, account: str) -> str | None:
        """From where an account is read next; None for one that was never read."""

    async def updates(self, account: str, *, after: int = 0, limit: int) -> list[StoredUpdate]:
        """Those that wait, in the order in which they came."""

    async def settle_update(self, id: int, *, refused: str | None = None) -> None:
        """It has led to whatever it leads to, and is forgotten; or it is kept for an operator with the reason why it was refused. Of
        refused ones the newest thousand are kept.
        """

    async def refused_updates(self, *, limit: int) -> list[StoredUpdate]:
        """Newest first."""

    async def quiet(self, account: str, *, until: int) -> None:
        """The platform asked that nothing is sent for this account until then (wall time)."""

    async def quiet_until(self, account: str) -> int: ...

    async def close_place(self, spot: Spot, *, why: str, at: int) -> None:
        """Nothing arrives there any more, until `reopen_place`."""

    async def reopen_place(self, platform: str, chat: str) -> bool:
        """Whether anything of that chat was closed."""

    async def dead_places(self) -> list[DeadPlace]: ...

    async def move_chat(self, account: str, *, was: str, now: str) -> bool:
        """The platform calls a chat otherwise from now on; false if that was known."""

    async def chat_names(self, account: str) -> dict[str, str]:
        """By the name under which a chat is kept: what the platform calls it now. Only those that moved."""
