"""The door of a server, where a process can be ended at one of its requests: before the request has any effect, or when it has all of them
and the answer is not on its way yet.
"""

from collections.abc import Awaitable, Callable

from aiohttp import web

# Courtesies, of which nothing depends.
_TYPING = ("/typing", "sendChatAction", "setStatus")


class Gate:
    """`passed`: how many requests came since it was armed."""

    def __init__(self) -> None:
        self.passed = 0
        self._at: tuple[str, int] | None = None
        self._end: Callable[[], None] = lambda: None

    def arm(self, moment: str, number: int, end: Callable[[], None]) -> None:
        """The process ends "before" or "after" the request of this number, from 1."""
        self.passed, self._at, self._end = 0, (moment, number), end

    @web.middleware
    async def passes(self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> web.StreamResponse:
        if "Upgrade" in request.headers or any(words in request.path for words in _TYPING):
            return await handler(request)
        self.passed += 1
        number = self.passed
        if self._at == ("before", number):
            return self._ends(request)
        answer = await handler(request)
        return self._ends(request) if self._at == ("after", number) else answer

    def _ends(self, request: web.Request) -> web.StreamResponse:
        self._at = None
        self._end()
        if request.transport is not None:
            request.transport.abort()
        return web.Response()
