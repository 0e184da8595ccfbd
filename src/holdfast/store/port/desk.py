"""What the page and operators are shown of all sessions, and what was spent in them."""

from collections.abc import Sequence

from holdfast.core import events as e
from holdfast.core.usage import Account, DaySpent, ModelSpent, SessionSpent
from holdfast.ports.desk import Draft, Glance, Hit
from holdfast.ports.overview import Ask, Lane, Life, Mark, Owed, PastPause, Working
from holdfast.store import desk, overview, spending
from holdfast.store.port.base import OverLines


class Desk(OverLines):
    async def account(self, session_id: str, *, turn_id: str, day: str, sender: str) -> Account:
        return await self._lines.read(spending.account, session_id, turn_id, day, sender)

    async def spent_by_day(self, *, since: str) -> list[DaySpent]:
        return await self._lines.read(spending.by_day, since)

    async def spent_by_model(self, *, since: str) -> list[ModelSpent]:
        return await self._lines.read(spending.by_model, since)

    async def spent_by_session(self, *, since: str, limit: int) -> list[SessionSpent]:
        return await self._lines.read(spending.by_session, since, limit)

    async def glances(self, session_ids: Sequence[str]) -> dict[str, Glance]:
        return await self._lines.read(desk.glances, session_ids)

    async def draft(self, session_id: str) -> Draft:
        return await self._lines.read(desk.draft, session_id)

    async def keep_draft(self, session_id: str, text: str, *, rev: int) -> Draft | None:
        return await self._lines.write(desk.keep_draft, session_id, text, rev)

    async def see(self, session_id: str, seq: int) -> None:
        return await self._lines.write(desk.see, session_id, seq)

    async def found(self, query: str, *, sessions: int, each: int) -> list[Hit]:
        return await self._lines.read(desk.found, query, sessions, each)

    async def found_in(self, session_id: str, query: str, *, limit: int) -> list[Hit]:
        return await self._lines.read(desk.found_in, session_id, query, limit)

    async def turn_records(self, session_id: str, turn_id: str, *, limit: int) -> e.Page:
        return await self._checked(*await self._lines.read(desk.turn_records, session_id, turn_id, limit))

    async def working(self, *, limit: int) -> list[Working]:
        return await self._lines.read(overview.working, limit)

    async def asks(self, *, limit: int) -> list[Ask]:
        return await self._lines.read(overview.asks, limit)

    async def waiting(self, *, limit: int) -> list[Lane]:
        return await self._lines.read(overview.waiting, limit)

    async def owed(self, *, limit: int, given_up: bool = False, arrived: bool = False) -> list[Owed]:
        return await self._lines.read(overview.owed, limit, given_up, arrived)

    async def lives(self) -> list[Life]:
        return await self._lines.read(overview.lives)

    async def pauses(self, *, since: int, now: int) -> list[PastPause]:
        return await self._lines.read(overview.pauses, since, now)

    async def marks(self, *, since: int, limit: int) -> list[Mark]:
        return await self._lines.read(overview.marks, since, limit)
