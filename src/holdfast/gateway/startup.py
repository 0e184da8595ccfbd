"""What earlier lives mean for the one that starts: how they ended, how many in a row ended badly, what an operator left behind."""

import asyncio

import structlog

from holdfast import __version__
from holdfast.core import crash_loops
from holdfast.core.errors import Unavailable
from holdfast.gateway.admission import Admissions
from holdfast.gateway.host import Host
from holdfast.gateway.safe_mode import SafeMode
from holdfast.gateway.settings import Settings
from holdfast.gateway.sweep import Sweep
from holdfast.ports.owners import Pause
from holdfast.ports.store import Store

SAFE_AFTER = 3
TRIES = 5

log = structlog.get_logger()


class Startup:
    def __init__(self, *, store: Store, host: Host, settings: Settings, sweep: Sweep, admissions: Admissions, safe_mode: SafeMode) -> None:
        self._store, self._host, self._settings = store, host, settings
        self._sweep, self._admissions, self._safe_mode = sweep, admissions, safe_mode

    async def look_back(self) -> Pause | None:
        """Gives the pause that still holds. Where earlier starts cannot be known, nothing is resumed by itself until this one is sound."""
        for _ in range(TRIES):
            try:
                return await self._read_back()
            except Unavailable as error:
                log.warning("earlier starts are not known yet", error=str(error))
                await asyncio.sleep(min(error.retry_after_s, 1.0))
        self._enter_safe_mode(starts_that_died=None)
        return None

    async def _read_back(self) -> Pause | None:
        now, owner = self._host.clock.now(), self._host.owner
        unclean = await self._store.record_start(owner, at=now, version=__version__)
        await self._sweep.convict()
        if unclean >= SAFE_AFTER:  # Deaths for which a session has just been suspended do not count.
            unclean = await self._store.record_start(owner, at=now, version=__version__)
        if unclean >= SAFE_AFTER:
            self._enter_safe_mode(starts_that_died=unclean)
        await self._slow_down(now)
        if self._settings.crash_policy == "suspend" and not await self._store.last_end(apart_from=owner):
            suspended = await self._store.suspend_active(window_ms=int(self._settings.crash_window_s * 1000), at=now)
            log.warning("sessions suspended after a crash", count=suspended)
        return await self._store.pause(now=now)

    async def _slow_down(self, now: int) -> None:
        """A crash loop is ours to brake: a supervisor never gives up (C26)."""
        deaths = await self._store.deaths(before=self._host.owner, since=now - crash_loops.WINDOW_MS)
        if wait_s := crash_loops.wait_s(deaths):
            log.warning("starts died one after the other: resumes wait", deaths=deaths, wait_s=wait_s)
            self._admissions.resume_after(wait_s)

    def _enter_safe_mode(self, *, starts_that_died: int | None) -> None:
        self._safe_mode.enter(starts_that_died=starts_that_died)
        self._admissions.one_at_a_time()
