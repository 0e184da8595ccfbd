"""Hand-over, the new process's side: what it inherits, and how it talks with the process it takes over from (`handover`)."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, MutableMapping

import msgspec
import structlog

from holdfast.core.errors import HandOverFailed
from holdfast.process.handover import GONE_LOOK_S, VARIABLE, Inheritance, Successor, next_said, say

log = structlog.get_logger()


def inherited(environment: MutableMapping[str, str]) -> Inheritance | None:
    """What an old process handed to this one. Taken out of the environment, and kept from this process's own children."""
    text = environment.pop(VARIABLE, None)
    if text is None:
        return None
    found = msgspec.json.decode(text, type=Inheritance)
    for descriptor in (found.listener, found.lock, found.wire, found.exit_pipe):
        if descriptor is not None:
            os.set_inheritable(descriptor, False)
    return found


class Predecessor:
    """The process that this one takes over from. `is_alive` says whether an owner of that name is."""

    def __init__(self, inherited: Inheritance) -> None:
        self.inherited = inherited
        self._wire = socket.socket(fileno=inherited.wire)
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ready(self, successor: Successor, is_alive: Callable[[str], bool]) -> None:
        """Says that this process could serve, and waits until it may: it is told so, or the old process is gone."""
        self._reader, self._writer = await asyncio.open_connection(sock=self._wire.dup())
        try:
            say(self._wire, {"ready": msgspec.to_builtins(successor)})
            await next_said(self._reader, "go")
        except (HandOverFailed, OSError) as error:
            await self._until_gone(is_alive, error)

    async def serving(self, is_alive: Callable[[str], bool]) -> None:
        """Says that this process serves. From then on it does, whatever happens to the old one."""
        try:
            say(self._wire, {"serving": True})
        except OSError as error:
            await self._until_gone(is_alive, error)

    async def announced(self) -> None:
        """Returns when the service manager knows this process, or nobody is left to tell it."""
        assert self._reader is not None and self._writer is not None
        try:
            await next_said(self._reader, "announced")
        except HandOverFailed as error:
            log.warning("the old process ended before the service manager was told", error=str(error))
        self._writer.close()

    async def _until_gone(self, is_alive: Callable[[str], bool], error: Exception) -> None:
        """The old process does not hear this one. Alive, it kills this process; once it is gone, the serving lock is this process's."""
        log.warning("the old process does not answer", error=str(error))
        while is_alive(self.inherited.owner):  # noqa: ASYNC110 - a lock of another process has no event.
            await asyncio.sleep(GONE_LOOK_S)

    def failed(self, why: str) -> None:
        """Before this process serves: the old one is told why not, and keeps serving."""
        with contextlib.suppress(OSError):
            self._wire.setblocking(True)
            say(self._wire, {"failed": why})
