"""How a process is asked to restart: over HTTP, by its service manager, or in a chat. `restarting` answers."""

import asyncio
from typing import Any

import msgspec

from holdfast.core.restarts import By, Request


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """`request`: made by the chat that asked. `outcome`: somebody waits for it."""

    by: By
    why: str
    request: Request | None = None
    outcome: "asyncio.Future[dict[str, Any]] | None" = None


class RestartRequests:
    def __init__(self) -> None:
        self._wanted: asyncio.Queue[Wanted] = asyncio.Queue()

    async def next(self) -> Wanted:
        return await self._wanted.get()

    async def by_operator(self) -> dict[str, Any]:
        """Returns when a successor serves, or this process is about to end. Raises `HoldfastError` if neither will happen."""
        outcome: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._wanted.put_nowait(Wanted(by=By.OPERATOR, why="asked over HTTP", outcome=outcome))
        return await outcome

    def by_service(self) -> None:
        self._wanted.put_nowait(Wanted(by=By.SERVICE, why="SIGHUP"))

    def by_chat(self, request: Request) -> None:
        """The outcome is told in the chat."""
        self._wanted.put_nowait(Wanted(by=request.by, why="asked for in a chat", request=request))
