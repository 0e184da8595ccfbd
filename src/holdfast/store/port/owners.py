"""The processes of this home."""

from holdfast.core.shutdowns import Shutdown
from holdfast.ports.owners import Owner, Pause
from holdfast.store import reads, upkeep
from holdfast.store.port.base import OverLines


class Owners(OverLines):
    async def register_owner(self, owner: Owner) -> int:
        return await self._lines.write(upkeep.register_owner, owner)

    async def owners(self) -> list[Owner]:
        return await self._lines.read(reads.owners)

    async def record_start(self, owner: int, *, at: int, version: str | None = None) -> int:
        return await self._lines.write(upkeep.record_start, owner, at, version)

    async def record_sound(self, owner: int) -> None:
        await self._lines.write(upkeep.record_sound, owner)

    async def deaths(self, *, before: int, since: int) -> int:
        return await self._lines.read(reads.deaths, before, since)

    async def record_drain(self, owner: int, *, reason: str) -> None:
        await self._lines.write(upkeep.record_drain, owner, reason, when_full=True)

    async def tell_owners(self, stop: Shutdown, *, by: int | None) -> None:
        await self._lines.write(upkeep.tell_owners, stop, by, when_full=True)

    async def record_end(self, owner: int, *, ended: bool = True, handed_over: bool = False) -> None:
        await self._lines.write(upkeep.record_end, owner, ended, handed_over, self._now(), when_full=True)

    async def running_by_owner(self) -> dict[int, int]:
        return await self._lines.read(reads.running_by_owner)

    async def set_pause(self, pause: Pause | None) -> None:
        await self._lines.write(upkeep.set_pause, pause, self._now())

    async def pause(self, *, now: int) -> Pause | None:
        return await self._lines.read(reads.pause, now)

    async def last_end(self, *, apart_from: int) -> bool:
        return await self._lines.read(reads.last_end, apart_from)

    async def forget_owner(self, owner: int) -> None:
        await self._lines.write(upkeep.forget_owner, owner)
