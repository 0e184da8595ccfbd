"""The other processes of a home: which of them live, and what those that died left running."""

import asyncio

from holdfast.gateway.toolbox import Toolbox
from holdfast.ports.owners import Owners
from holdfast.ports.process import Liveness


class Neighbours:
    def __init__(self, *, store: Owners, liveness: Liveness, tools: Toolbox) -> None:
        self._store, self._liveness, self._tools = store, liveness, tools
        self._names: dict[int | None, str] = {}
        self._reaped: set[int | None] = set()
        self._reaping = asyncio.Lock()

    async def lives(self, owner: int | None) -> bool:
        """Whether an owner lives. The tools of one that does not have ended when this returns: nothing of it continues before that."""
        if owner not in self._names:
            self._names = {known.id: known.name for known in await self._store.owners()}
        if owner in self._names and self._liveness.alive(self._names[owner]):
            return True
        async with self._reaping:
            if owner not in self._reaped:
                await self._tools.reap(self._liveness.alive)
                self._reaped.add(owner)
        return False
