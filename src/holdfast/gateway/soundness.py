"""When a gateway counts as sound again: after ten healthy minutes nothing is on trial any more, and safe mode ends."""

import asyncio

from holdfast.gateway.admission import Admissions
from holdfast.gateway.host import Host
from holdfast.gateway.lanes import Lanes
from holdfast.gateway.safe_mode import SafeMode
from holdfast.gateway.stage import Stage
from holdfast.gateway.sweep import Sweep
from holdfast.gateway.tasks import insist
from holdfast.ports.owners import Owners

SOUND_AFTER_S = 600.0


class Soundness:
    def __init__(
        self,
        *,
        store: Owners,
        host: Host,
        stage: Stage,
        safe_mode: SafeMode,
        admissions: Admissions,
        lanes: Lanes,
        sweep: Sweep,
    ) -> None:
        self._store, self._owner, self._stage, self._safe_mode = store, host.owner, stage, safe_mode
        self._admissions, self._lanes, self._sweep = admissions, lanes, sweep

    async def prove(self) -> None:
        await asyncio.sleep(SOUND_AFTER_S)
        await insist(lambda: self._store.record_sound(self._owner))
        self._admissions.end_trials()
        self._lanes.look_again()  # The suspects that still wait follow like any other.
        self._safe_mode.leave("ten healthy minutes")

    async def after_safe_mode(self) -> None:
        """What is still pending is decided again."""
        await self._safe_mode.left.wait()
        self._stage.tell()
        await insist(self._sweep.decide_again)
