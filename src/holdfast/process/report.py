"""What this process tells of itself: over HTTP to those who ask, in `status.json` to those who cannot."""

import asyncio
import contextlib
import time
from pathlib import Path

import msgspec
import structlog

from holdfast import __version__, locks, processes, status_file
from holdfast.api.status import Retiring, Status
from holdfast.api.times import rfc3339, rfc3339_or_none
from holdfast.core import exits, lifecycle
from holdfast.core.errors import Unavailable
from holdfast.core.lifecycle import GatewayState
from holdfast.gateway.gateway import Gateway
from holdfast.locks import OwnerLocks
from holdfast.ports.upkeep import Counts
from holdfast.process.supervisor import Kind

log = structlog.get_logger()

LOOK_S = 1.0
FOLLOWED = ("degraded", "retiring")


def now_text() -> str:
    return rfc3339(time.time_ns() // 1_000_000)


class Report:
    """`planned`: somebody who may do so asked for the stop that is under way. `silent`: a successor serves, and the file is its own."""

    def __init__(self, home: Path, locks: OwnerLocks, url: str, supervisor: Kind, public_url: str | None = None) -> None:
        self._home, self._locks, self.url, self._supervisor = home, locks, url, supervisor
        self._public_url = public_url
        self.process = processes.this_process()
        self.started_at = self._since = now_text()
        self.gateway: Gateway | None = None
        self.owner: str | None = None  # Its lock in the home folder proves that this process lives.
        self.planned = True
        self.silent = False
        self.why: str | None = None
        self._counts = Counts(0, 0, 0, 0, 0, 0)
        self._retiring: list[Retiring] = []
        self._written: Status | None = None
        self._comes_back: bool | None = None  # As the file says that is on disk.
        self._trouble = ""
        self._state = GatewayState.STARTING

    async def status(self) -> Status:
        """Also while the store cannot be read, or no descriptor is left to ask who lives: then with what was known last."""
        if self.gateway is not None:
            with contextlib.suppress(Unavailable, OSError):
                self._counts = await self.gateway.counts()
                self._retiring = await self._others()
        return self.snapshot()

    async def follow(self) -> None:
        """Keeps the file true about the store, and about other processes that retire, while it serves."""
        degraded = None
        while not self.silent and self._state in (GatewayState.RUNNING, GatewayState.PAUSED, GatewayState.HANDING_OVER):
            with contextlib.suppress(Unavailable, OSError):
                self._retiring = await self._others()
            shown = self.snapshot()
            if shown.degraded != degraded:
                degraded = shown.degraded
                if degraded is None:
                    log.info("the store can be used again")
                else:
                    log.error("the store cannot be used", error=degraded)
            if self._written is None or any(getattr(shown, name) != getattr(self._written, name) for name in FOLLOWED):
                self.moved(self._state)
            await asyncio.sleep(LOOK_S)

    async def _others(self) -> list[Retiring]:
        """The processes that still run turns for a home that another one serves. One that is about to take over is none of them."""
        assert self.gateway is not None
        running = await self.gateway.store.running_by_owner()
        heirs = {found.name for found in locks.living(self._home) if found.after == self.owner}
        return [
            Retiring(**owner.process.fields, running_turns=running.get(owner.id, 0))
            for owner in await self.gateway.store.owners()
            if owner.name != self.owner and owner.name not in heirs and self._locks.alive(owner.name)
        ]

    def snapshot(self) -> Status:
        gateway = self.gateway
        paused = gateway.pausing.paused if gateway else None
        return Status(
            **self.process.fields,
            started_at=self.started_at,
            version=__version__,
            gateway_state=self._state,
            since=self._since,
            why=self.why,
            url=self.url,
            public_url=self._public_url,
            running_turns=gateway.runner.running if gateway else 0,
            retiring=self._retiring,
            inbox=self._counts.inbox,
            outbox=self._counts.outbox,
            suspended=self._counts.suspended,
            pending=self._counts.pending,
            safe_mode=gateway.safe_mode if gateway else False,
            paused_by=paused.holder if paused else None,
            paused_until=rfc3339_or_none(paused.until if paused else None),
            platforms=sorted(gateway.platforms) if gateway else [],
            home=str(self._home),
            supervisor=self._supervisor,
            owner=self.owner,
            agent=gateway.agent.name if gateway else None,
            degraded=gateway.store.degraded if gateway else None,
        )

    def moved(self, state: GatewayState) -> None:
        """Writes the file."""
        if state is not self._state:
            self._state, self._since = state, now_text()
        if self.silent:
            self._comes_back = True  # As the process before this one has left it on disk.
            return
        shown = self.snapshot()
        shown.gateway_state = exits.left_behind(state, announced=self.planned)
        # Whether a start-up script brings it back must not depend on when the power went.
        comes_back = lifecycle.comes_back(shown.gateway_state)
        try:
            status_file.write(self._home, msgspec.to_builtins(shown), durable=comes_back is not self._comes_back)
        except OSError as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                log.error("status file cannot be written", error=self._trouble)
            return
        self._written, self._comes_back, self._trouble = shown, comes_back, ""
