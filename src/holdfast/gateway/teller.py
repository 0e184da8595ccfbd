"""Writes the gateway's own notices into conversations, each of them once."""

import structlog

from holdfast.core import keys, notices
from holdfast.core.errors import DuplicateOtherContent, NotFound, Unavailable
from holdfast.core.restarts import Notice
from holdfast.core.sessions import Session
from holdfast.gateway.host import Host
from holdfast.ports.store import Store

log = structlog.get_logger()


class Teller:
    """`homes`: the session keys of the home channels, where operators are told."""

    def __init__(self, *, store: Store, host: Host, platforms: frozenset[str], homes: tuple[str, ...]) -> None:
        self._store, self._host, self._platforms, self.homes = store, host, platforms, homes

    def suspended(self, session: Session) -> None:
        """The operators are told, once, in the home channels; its own user is told where the conversation is (R2)."""
        text = notices.suspended_elsewhere(session)
        for home in self.homes:
            if home != session.session_key:
                notice = Notice(id=f"suspended.{session.turn_id}", session_key=home, text=text)
                self._host.tasks.spawn(self.try_to_tell(notice), name=f"notice {notice.id}")

    async def try_to_tell(self, notice: Notice) -> bool:
        """Whether it is on record; a store that does not answer is no reason to fail."""
        try:
            return await self.tell(notice)
        except Unavailable as error:
            log.warning("a notice could not be stored", notice=notice.id, session_key=notice.session_key, error=str(error))
            return False

    async def tell(self, notice: Notice) -> bool:
        session_id = notice.session_id or await self._conversation(notice.session_key)
        if session_id is None:
            log.warning("no such platform is connected", home_channel=notice.session_key)
            return False
        at = self._host.clock.now()
        try:
            await self._store.tell_once(session_id, notice_id=notice.id, content=notice.text, anchor=notice.anchor, at=at)
        except DuplicateOtherContent:
            log.info("told before, in other words", notice=notice.id, session=session_id)
        except NotFound:
            log.info("nobody is left to be told", notice=notice.id, session=session_id)
            return False
        return True

    async def _conversation(self, session_key: str) -> str | None:
        """The one a home channel is in; one without any begins with the notice. None where no platform could send it."""
        key = keys.parse(session_key)
        if not key.on_page and key.platform not in self._platforms:
            return None
        session = await self._store.current_session(session_key)
        if session is None:
            ids, at = self._host.ids, self._host.clock.now()
            session = await self._store.create_session(session_id=ids.new("s"), session_key=session_key, log=ids.new("l"), at=at)
        return session.session_id
