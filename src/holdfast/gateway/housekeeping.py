"""What is tidied while a gateway runs: the search index, questions past their time, old stream events, deleted sessions, owners that are
gone."""

import asyncio
from collections.abc import Sequence

import structlog

from holdfast.core import retention
from holdfast.core.errors import NotFound, Unavailable
from holdfast.core.retention import Removal
from holdfast.gateway.host import Host
from holdfast.gateway.lanes import Lanes
from holdfast.gateway.recollections import Recollections
from holdfast.gateway.settings import Settings
from holdfast.gateway.shipping import Shipping
from holdfast.gateway.toolbox import Toolbox
from holdfast.ports.agents import AgentProcesses
from holdfast.ports.store import Store

EVERY_S = 60.0
INDEX_S = 0.5
INDEX_PAGE = 100  # Takes a few milliseconds, for which other writes may have to wait.
PRUNED_AT_ONCE = 50
PURGE_S = 5.0
PURGE_STEPS = 20
PURGE_PAUSE_S = 0.05

log = structlog.get_logger()


class Housekeeping:
    def __init__(
        self,
        *,
        store: Store,
        host: Host,
        lanes: Lanes,
        tools: Toolbox,
        agent_processes: AgentProcesses | None,
        settings: Settings,
        recollections: Sequence[Recollections],
        shipping: Shipping,
    ) -> None:
        self._store, self._clock, self._host, self._lanes, self._tools = store, host.clock, host, lanes, tools
        self._agent_processes = agent_processes
        self._keep_streams_s, self._undo_delete_s = settings.keep_streams_s, settings.undo_delete_s
        self._retention, self._recollections, self._shipping = settings.retention, recollections, shipping

    async def index(self) -> None:
        """A moment after the start, whose work comes first."""
        while True:
            await asyncio.sleep(INDEX_S)
            try:
                while await self._store.index_search(limit=INDEX_PAGE):
                    pass
            except Unavailable as error:
                log.warning("search index is behind", error=str(error))

    async def tidy(self) -> None:
        while True:
            try:
                await self._tidy_once()
            except Unavailable as error:
                log.warning("housekeeping failed", error=str(error))
            await asyncio.sleep(EVERY_S)

    async def purge(self) -> None:
        """What was deleted is removed when its time has come, in small steps with room for others between them (P8)."""
        while True:
            more = False
            try:
                await self._shipping.forget_purged()  # First: what names the session of a spool goes with its content.
                more = await self._store.purge(now=self._clock.now(), steps=PURGE_STEPS)
            except Unavailable as error:
                log.warning("a deleted session cannot be removed yet", error=str(error))
            await asyncio.sleep(PURGE_PAUSE_S if more else PURGE_S)

    async def _tidy_once(self) -> None:
        for recollections in self._recollections:
            recollections.tidy()
        now = self._clock.now()
        for session_id in await self._store.expire_questions(now=now):
            self._lanes.look(session_id)
        await self._store.prune_streams(before=now - int(self._keep_streams_s * 1000), at=now, limit=PRUNED_AT_ONCE)
        await self._retain(now)
        await self._tools.forget_purged(self._store.purged)
        if self._agent_processes is not None:
            await self._agent_processes.tidy(self._is_open)
        for owner in await self._store.owners():
            if owner.id != self._host.owner and not self._host.liveness.alive(owner.name):
                await self._store.forget_owner(owner.id)

    async def _is_open(self, session_id: str) -> bool:
        try:
            return (await self._store.session(session_id)).open_turn
        except NotFound:
            return False

    async def _retain(self, now: int) -> None:
        """What is kept too long, or takes too much room, is deleted as if somebody had: it can be brought back for a while."""
        if removal := retention.by_age(self._retention, now=now):
            await self._remove(removal, now)
        if self._retention.max_mb:
            usage = await self._store.usage()
            removal = retention.by_size(self._retention, used_bytes=usage.bytes, sessions=usage.sessions, removing=usage.removing, now=now)
            if removal:
                await self._remove(removal, now)

    async def _remove(self, removal: Removal, now: int) -> None:
        until = now + int(1000 * self._undo_delete_s)
        removed = await self._store.remove_oldest(before=removal.before, limit=removal.limit, why=removal.why, until=until, at=now)
        for session_id in removed:
            log.info("session removed by retention", session=session_id, why=removal.why)
            await self._tools.end_session(session_id)
            if self._agent_processes is not None:
                await self._agent_processes.end_session(session_id)
