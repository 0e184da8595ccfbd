"""What sessions are, and what happens to them as a whole."""

from collections.abc import Sequence

from holdfast.core import events as e
from holdfast.core.plans.branch import Names, Origin
from holdfast.core.plans.delete import Deletion
from holdfast.core.plans.leave import Moved
from holdfast.core.sessions import Session
from holdfast.ports.sessions import SessionPage
from holdfast.store import reads
from holdfast.store.port.base import OverLines
from holdfast.store.work import sessions


class Sessions(OverLines):
    async def create_session(
        self, *, session_id: str, session_key: str, log: str, at: int, title: str | None = None, folder: str | None = None
    ) -> Session:
        event = e.SessionCreated(session_id=session_id, session_key=session_key, log=log, title=title, folder=folder)
        return await self._lines.write(sessions.create_session, event, at)

    async def session(self, session_id: str) -> Session:
        return await self._lines.read(reads.session, session_id)

    async def purged(self, session_ids: Sequence[str]) -> list[str]:
        return await self._lines.read(reads.purged, session_ids)

    async def current_session(self, session_key: str) -> Session | None:
        return await self._lines.read(reads.current_session, session_key)

    async def named(self, prefix: str, *, limit: int) -> list[Session]:
        return await self._lines.read(reads.named, prefix, limit)

    async def sessions(
        self, *, limit: int, before: str | None = None, query: str = "", archived: bool = False, state: str | None = None
    ) -> SessionPage:
        return await self._lines.read(reads.sessions, limit, before, query, archived, state)

    async def conversations(self, session_key: str, *, limit: int) -> list[tuple[int, Session]]:
        return await self._lines.read(reads.conversations, session_key, limit)

    async def change_session(self, session_id: str, change: e.SessionChanged, *, at: int) -> Session:
        return await self._lines.write(sessions.change_session, session_id, change, at)

    async def mark_pending(self, session_key: str, *, reason: str = "restart_timeout", at: int) -> bool:
        return await self._lines.write(sessions.mark_pending, session_key, reason, at)

    async def clear_mark(self, session_id: str, *, turn_id: str | None, rule: str, at: int) -> bool:
        return await self._lines.write(sessions.clear_mark, session_id, turn_id, rule, at)

    async def clear_pending(self, session_key: str, *, at: int) -> bool:
        return await self._lines.write(sessions.clear_pending, session_key, at)

    async def suspend_active(self, *, window_ms: int, at: int) -> int:
        return await self._lines.write(sessions.suspend_active, window_ms, at)

    async def reset(self, session_id: str, *, fresh: tuple[str, str], by: str, dedup_key: str | None, at: int) -> Moved:
        return await self._lines.write(sessions.reset, session_id, fresh, by, dedup_key, at)

    async def branch_session(self, origin: Origin, names: Names, *, by: str, dedup_key: str | None, at: int) -> Session:
        return await self._lines.write(sessions.branch_session, origin, names, by, dedup_key, at)

    async def resume_session(self, session_id: str, *, by: str, dedup_key: str | None, at: int) -> Moved:
        return await self._lines.write(sessions.resume_session, session_id, by, dedup_key, at)

    async def delete_session(self, session_id: str, *, by: str, until: int, at: int) -> Deletion:
        return await self._lines.write(sessions.delete_session, session_id, by, until, at)

    async def undelete_session(self, session_id: str, *, by: str, at: int) -> bool:
        return await self._lines.write(sessions.undelete_session, session_id, by, at)
