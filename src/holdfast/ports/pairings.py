"""Strangers who asked to talk to the agent, and those whom the operator let in."""

from typing import Protocol

import msgspec

from holdfast.core.pairing import Pending


class Paired(msgspec.Struct, frozen=True, kw_only=True):
    platform: str
    user: str
    name: str
    at: int


class Pairings(Protocol):
    """Every method keeps to the contract of `ports.store`."""

    async def put_pairing(self, pending: Pending) -> None:
        """The code of a stranger; an earlier one of theirs is void from now on."""

    async def pairings(self, *, platform: str | None = None) -> list[Pending]:
        """All that are stored, oldest first, also those whose time is over."""

    async def pair(self, platform: str, user: str, *, name: str, at: int) -> None:
        """Lets somebody in. Their code, if they have one, is used up."""

    async def unpair(self, platform: str, user: str) -> bool: ...

    async def paired(self, *, platform: str | None = None) -> list[Paired]: ...

    async def is_paired(self, platform: str, user: str) -> bool: ...

    async def note_wrong_code(self, *, at: int) -> None: ...

    async def wrong_codes(self) -> list[int]:
        """When wrong codes were tried, the last few of them."""
