"""What keeps the store in shape."""

from holdfast.core.errors import Unavailable
from holdfast.ports.upkeep import Commits, Counts, Usage
from holdfast.store import deletion, reads, upkeep
from holdfast.store.port.base import OverLines


class Upkeep(OverLines):
    async def remove_oldest(self, *, before: int, limit: int, why: str, until: int, at: int) -> list[str]:
        return await self._lines.write(deletion.remove_oldest, before, limit, why, until, at)

    async def usage(self) -> Usage:
        return await self._lines.read(deletion.usage)

    async def purge(self, *, now: int, steps: int) -> bool:
        failure: Unavailable | None = None
        for session in await self._lines.read(deletion.due, now, steps):
            try:
                while steps and await self._lines.write(deletion.purge_step, session, now):
                    steps -= 1
            except Unavailable as error:  # A damaged page of one session does not hold up the others.
                failure = error
        steps = await self._scrub(steps)
        if failure is not None:
            raise failure
        return not steps

    async def _scrub(self, steps: int) -> int:
        """Removes what an engine keeps of purged sessions in other places than its tables. Gives how many steps are left."""
        return steps

    async def counts(self) -> Counts:
        return await self._lines.read(reads.counts)

    async def index_search(self, *, limit: int) -> bool:
        return await self._lines.write(upkeep.index_search, limit)

    async def prune_streams(self, *, before: int, at: int, limit: int) -> int:
        gone = 0
        for session_id in await self._lines.read(reads.prunable, before, limit):
            more = True
            while more:
                count, more = await self._lines.write(upkeep.prune_session, session_id, at)
                gone += count
        return gone

    async def sign_out(self, sign_in: str, *, until: int, now: int) -> None:
        await self._lines.write(upkeep.sign_out, sign_in, until, now, when_full=True)

    async def signed_out(self, *, now: int) -> list[str]:
        return await self._lines.read(reads.signed_out, now)

    @property
    def degraded(self) -> str | None:
        return self._lines.degraded

    @property
    def commits(self) -> Commits:
        return self._lines.commits

    async def aclose(self) -> None:
        await self._lines.aclose()
