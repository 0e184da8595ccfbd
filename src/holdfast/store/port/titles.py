"""Titles that models are asked for."""

from holdfast.core import events as e
from holdfast.core.titles import Titling
from holdfast.store.port.base import OverLines
from holdfast.store.work import titles


class Titles(OverLines):
    async def open_titles(self, *, since: int, limit: int) -> list[Titling]:
        return await self._lines.read(titles.opened, since, limit)

    async def ask_title(self, expected: Titling, *, turn_id: str, owner: int, at: int) -> bool:
        return await self._lines.write(titles.ask_title, expected.session_id, expected, turn_id, owner, at)

    async def keep_title(self, session_id: str, made: e.TitleMade, *, at: int) -> bool:
        return await self._lines.write(titles.keep_title, session_id, made, at)
