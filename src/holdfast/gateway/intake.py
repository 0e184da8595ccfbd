"""From a platform's update to the inbox: stored first, confirmed after (P1)."""

import asyncio

import structlog

from holdfast.core.busy import MAX_WAITING
from holdfast.core.errors import Refused, Unavailable
from holdfast.gateway.lanes import Lanes
from holdfast.ports import Clock, Ids, Platform, Store, Update

log = structlog.get_logger()


class Intake:
    def __init__(self, *, store: Store, clock: Clock, ids: Ids, lanes: Lanes) -> None:
        self._store, self._clock, self._ids, self._lanes = store, clock, ids, lanes

    async def follow(self, platform: Platform) -> None:
        """Takes what people write, in order. An update that was not stored is not confirmed; the platform brings it again."""
        while True:
            try:
                async for update in platform.updates():
                    await self._keep(update, platform)
                    await platform.confirm(update)
            except Unavailable as error:
                log.warning("platform is out of reach", platform=platform.name, error=str(error))
                await asyncio.sleep(error.retry_after_s)
            else:
                return

    async def _keep(self, update: Update, platform: Platform) -> None:
        """On disk, or refused for good, when this returns."""
        while True:
            try:
                return await self._accept(update)
            except Unavailable as error:
                log.warning("update cannot be stored yet", platform=platform.name, error=str(error))
                await asyncio.sleep(error.retry_after_s)
            except Refused as error:
                log.warning("update refused", platform=platform.name, error=str(error), code=error.code)
                return

    async def _accept(self, update: Update) -> None:
        session = await self._store.current_session(update.session_key)
        now = self._clock.now()
        if session is None:
            session = await self._store.create_session(
                session_id=self._ids.new("s"), session_key=update.session_key, log=self._ids.new("l"), at=now
            )
        accepted = await self._store.accept(
            session.session_id,
            message_id=self._ids.new("m"),
            text=update.text,
            sender=update.sender,
            dedup_key=f"update|{update.dedup_key}",
            at=now,
            fresh=(self._ids.new("s"), self._ids.new("l")),
            max_waiting=MAX_WAITING,
        )
        self._lanes.look(accepted.session_id)
