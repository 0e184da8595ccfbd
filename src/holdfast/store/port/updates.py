"""What chats send, where they are, and who may talk in them."""

from collections.abc import Sequence

from holdfast.core.pairing import Pending
from holdfast.core.places import Spot
from holdfast.ports.pairings import Paired
from holdfast.ports.updates import DeadPlace, StoredUpdate
from holdfast.store import arrivals, pairings
from holdfast.store.port.base import OverLines


class Updates(OverLines):
    async def take_updates(self, account: str, updates: Sequence[bytes], *, cursor: str | None, at: int) -> None:
        await self._lines.write(arrivals.take_updates, account, tuple(updates), cursor, at)

    async def cursor(self, account: str) -> str | None:
        return await self._lines.read(arrivals.cursor, account)

    async def updates(self, account: str, *, after: int = 0, limit: int) -> list[StoredUpdate]:
        return await self._lines.read(arrivals.updates, account, after, limit)

    async def settle_update(self, id: int, *, refused: str | None = None) -> None:
        await self._lines.write(arrivals.settle_update, id, refused, when_full=True)

    async def refused_updates(self, *, limit: int) -> list[StoredUpdate]:
        return await self._lines.read(arrivals.refused_updates, limit)

    async def quiet(self, account: str, *, until: int) -> None:
        await self._lines.write(arrivals.quiet, account, until, when_full=True)

    async def quiet_until(self, account: str) -> int:
        return await self._lines.read(arrivals.quiet_until, account)

    async def close_place(self, spot: Spot, *, why: str, at: int) -> None:
        await self._lines.write(arrivals.close_place, spot, why, at, when_full=True)

    async def reopen_place(self, platform: str, chat: str) -> bool:
        return await self._lines.write(arrivals.reopen_place, platform, chat)

    async def dead_places(self) -> list[DeadPlace]:
        return await self._lines.read(arrivals.dead_places)

    async def move_chat(self, account: str, *, was: str, now: str) -> bool:
        return await self._lines.write(arrivals.move_chat, account, was, now)

    async def chat_names(self, account: str) -> dict[str, str]:
        return await self._lines.read(arrivals.chat_names, account)

    async def put_pairing(self, pending: Pending) -> None:
        await self._lines.write(pairings.put_pairing, pending)

    async def pairings(self, *, platform: str | None = None) -> list[Pending]:
        return await self._lines.read(pairings.pairings, platform)

    async def pair(self, platform: str, user: str, *, name: str, at: int) -> None:
        await self._lines.write(pairings.pair, platform, user, name, at)

    async def unpair(self, platform: str, user: str) -> bool:
        return await self._lines.write(pairings.unpair, platform, user)

    async def paired(self, *, platform: str | None = None) -> list[Paired]:
        return await self._lines.read(pairings.paired, platform)

    async def is_paired(self, platform: str, user: str) -> bool:
        return await self._lines.read(pairings.is_paired, platform, user)

    async def note_wrong_code(self, *, at: int) -> None:
        await self._lines.write(pairings.note_wrong_code, at)

    async def wrong_codes(self) -> list[int]:
        return await self._lines.read(pairings.wrong_codes)
