"""A model that is asked for titles, in simulated time: it takes a moment, and the process may die before and after it is asked."""

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.core.events import Usage
from holdfast.ports.agents import Response

TITLE = "A title"
TAKES_S = 0.3


class SimTitles:
    """`asked` hears of each request; `at` is a place where a fault may fall."""

    name = "titles"

    def __init__(self, *, asked: Callable[[str], None], at: Callable[[str], Awaitable[None]]) -> None:
        self._asked, self._at = asked, at

    def model(self, chosen: str | None) -> str | None:
        return "a:first"

    async def title(self, words: str, *, chosen: str | None) -> Response:
        await self._at("title asked")
        self._asked(words)
        await asyncio.sleep(TAKES_S)
        await self._at("title said")
        return Response(text=f"**{TITLE}**", usage=Usage(input=7, output=2), provider="a", model="first")

    async def aclose(self) -> None: ...
