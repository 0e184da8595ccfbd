"""From a platform's update to the store: stored first, confirmed after (P1)."""

import asyncio

import structlog

from holdfast.core import content, notices
from holdfast.core.errors import BadInput, BlobMissing, Deleted, LaneFull, Refused, Unavailable
from holdfast.core.plans.command import Say
from holdfast.core.sessions import Session
from holdfast.gateway.acceptance import Acceptance, Said
from holdfast.gateway.host import Host
from holdfast.ports.platforms import Platform, Update
from holdfast.ports.store import Store

log = structlog.get_logger()


class Intake:
    def __init__(self, *, store: Store, host: Host, acceptance: Acceptance) -> None:
        self._store, self._clock, self._ids, self._acceptance = store, host.clock, host.ids, acceptance

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
        if not platform.allows(update.session_key, update.sender):
            log.warning("update of a stranger refused", platform=platform.name, sender=update.sender)
            return
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
        said = Said(
            text=update.text,
            attached=content.attached(update.content),
            sender=update.sender,
            dedup_key=f"update|{update.dedup_key}",
            anchor=update.anchor,
            reply_to=update.reply_to,
        )
        try:
            await self._take(await self._session(update.session_key), said)
        except Deleted:  # Either the session in this moment, or, long ago, the one in which this was already said.
            await self._take(await self._session(update.session_key), said)

    async def _take(self, session: Session, said: Said) -> None:
        """What cannot be accepted is refused aloud, and its words stay readable."""
        try:
            await self._acceptance.take(session, said)
        except LaneFull as error:
            await self._acceptance.answer(session, said, Say(notices.lane_full(error.waiting)))
        except BlobMissing:
            await self._acceptance.answer(session, said, Say(notices.attachment_missing()))
        except BadInput as error:
            await self._acceptance.answer(session, said, Say(str(error)))

    async def _session(self, session_key: str) -> Session:
        session = await self._store.current_session(session_key)
        if session is not None:
            return session
        return await self._store.create_session(
            session_id=self._ids.new("s"), session_key=session_key, log=self._ids.new("l"), at=self._clock.now()
        )
