"""A pause: no turn starts or resumes until it is taken back or over; those that run continue, messages are kept (C21, A26)."""

import asyncio

import structlog

from holdfast.core import lifecycle
from holdfast.core.errors import NotNow
from holdfast.core.lifecycle import GatewayState, Input
from holdfast.gateway.host import Host
from holdfast.gateway.lanes import Lanes
from holdfast.gateway.stage import Stage
from holdfast.gateway.sweep import Sweep
from holdfast.gateway.tasks import insist
from holdfast.ports.owners import Pause, Pauses

log = structlog.get_logger()


class Pausing:
    def __init__(self, *, store: Pauses, host: Host, stage: Stage, lanes: Lanes, sweep: Sweep) -> None:
        self._store, self._host, self._stage, self._lanes, self._sweep = store, host, stage, lanes, sweep

    @property
    def paused(self) -> Pause | None:
        return self._stage.paused

    async def pause(self, holder: str, for_s: float) -> Pause:
        self._stage.check("pause", Input.PAUSE)
        now = self._host.clock.now()
        paused = Pause(holder, since=now, until=now + int(for_s * 1000))
        await self._store.set_pause(paused)
        if not lifecycle.may(self._stage.state, Input.PAUSE):  # A stop or a hand-over came in between.
            await self._store.set_pause(self.paused)
            raise NotNow("pause", self._stage.state)
        self.begin(paused)
        return paused

    def begin(self, paused: Pause) -> None:
        """From now on, for a pause that is on record."""
        self._stage.paused = paused
        self._stage.enter(Input.PAUSE)
        self._lanes.look_again()
        self._stage.tell()
        # By its own clock: a wall clock that steps back, now or before this start, must not make a pause last for ever.
        left_ms = min(paused.until - self._host.clock.now(), paused.until - paused.since)
        self._host.tasks.spawn(self._end_in(paused, left_ms / 1000), name="end of pause")

    async def _end_in(self, paused: Pause, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))
        if self.paused == paused:
            log.info("pause is over", holder=paused.holder)
            await insist(self.unpause)

    async def unpause(self) -> None:
        self._stage.check("unpause", Input.UNPAUSE)
        await self._store.set_pause(None)
        self._stage.paused = None
        if self._stage.state is GatewayState.PAUSED:
            self._stage.enter(Input.UNPAUSE)
            self._stage.tell()
        self._lanes.look_again()
        self._sweep.hint()
