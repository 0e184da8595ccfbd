"""Lines to and from a process that has a keeper. Its output can be read from any offset."""

import asyncio

from holdfast.agents.acp.errors import AgentFailed, AgentGone
from holdfast.core import acp
from holdfast.core.acp import Asked, Fold, Replied, Wanted
from holdfast.core.errors import Refused
from holdfast.core.events import AgentRead
from holdfast.ports.keepers import ERR, Keepers, Name

CHUNK = 64 * 1024
MOST_LINE = 64 * 1024 * 1024
# How long to wait before looking for output again: at first, and while there is none.
SOON_S, LATER_S = 0.01, 0.1
FULL_S, UNREAD_S = 0.02, 60.0
KNOWN_S = 3.0
LAST_WORDS = 500
# How long it may take to end a prompt that was cancelled.
SETTLES_S = 5.0


class Wire:
    """`offset`: where the next line begins. `agent`: the agent's name for people."""

    def __init__(self, keepers: Keepers, name: Name, agent: str, *, offset: int = 0) -> None:
        self._keepers, self._name, self.agent = keepers, name, agent
        self.offset = offset
        self._read_to, self._rest = offset, b""
        self._wait_s = SOON_S

    async def lines(self) -> list[tuple[bytes, int]]:
        """New whole lines, at most a chunk of them, each with the offset of its end."""
        chunk = await self._keepers.read(self._name, offset=self._read_to, limit=CHUNK)
        if not chunk.data:
            return []
        self._wait_s = SOON_S
        if chunk.offset != self._read_to:  # A full disk lost what was between, and with it the beginning of this line.
            self.offset, self._rest = chunk.offset, b""
        self._read_to = chunk.next
        *whole, self._rest = (self._rest + chunk.data).split(b"\n")
        found = []
        for line in whole:
            self.offset += len(line) + 1
            found.append((line, self.offset))
        if len(self._rest) > MOST_LINE:
            raise AgentFailed(self.agent, "it sent a line that is too long")
        return found

    async def pause(self) -> None:
        """Until it is worth looking again. Raises `AgentGone` if nothing more will come."""
        if not (await self._keepers.look(self._name)).runs and not await self._more():
            raise await self.gone()
        await asyncio.sleep(self._wait_s)
        self._wait_s = min(LATER_S, 2 * self._wait_s)

    async def _more(self) -> bool:
        return bool((await self._keepers.read(self._name, offset=self._read_to, limit=1)).data)

    async def gone(self) -> AgentGone:
        """The error that says how it ended, which its keeper may learn a moment later."""
        until = asyncio.get_running_loop().time() + KNOWN_S
        while (found := await self._keepers.look(self._name)).runs:
            if asyncio.get_running_loop().time() >= until:
                break
            await asyncio.sleep(LATER_S)
        said = await self._keepers.read(self._name, offset=max(0, found.err - 4 * LAST_WORDS), limit=4 * LAST_WORDS, stream=ERR)
        return AgentGone(self.agent, found.end, " ".join(said.data.decode("utf-8", "replace").split())[-LAST_WORDS:])

    async def send(self, line: bytes) -> None:
        """Sends all of it. Raises `AgentGone`, or `AgentFailed` if the agent does not read."""
        until = asyncio.get_running_loop().time() + UNREAD_S
        while line:
            try:
                taken = await self._keepers.write(self._name, line)
            except Refused:
                raise await self.gone() from None
            line = line[taken:]
            if line and not taken:
                if asyncio.get_running_loop().time() > until:
                    raise AgentFailed(self.agent, "it does not read its input")
                await asyncio.sleep(FULL_S)

    async def end_line(self) -> None:
        """The gateway that wrote last may have died in the middle of a line."""
        await self.send(b"\n")

    async def drop(self) -> None:
        """Output before this offset is no longer needed."""
        await self._keepers.drop(self._name, before=self.offset)


async def heard(wire: Wire, request: str, *, timeout_s: float, session: str | None = None) -> Replied | None:
    """Reads until the agent has replied; None if it does not in time. Permissions that it asks for in `session` are cancelled."""
    fold = Fold(session)
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                for line, _ in await wire.lines():
                    for move in fold.feed(line):
                        if isinstance(move, Replied) and move.request == request:
                            return move
                        if isinstance(move, Asked):
                            await wire.send(acp.reply(move.request, acp.cancelled()))
                        elif isinstance(move, Wanted):
                            await wire.send(acp.refusal(move))
                await wire.pause()
    except TimeoutError:
        return None


async def settled(wire: Wire, read: AgentRead) -> bool:
    """Ends an abandoned prompt of an earlier turn. False if the agent does not end it."""
    if read.request is None:
        return True
    try:
        async with asyncio.timeout(SETTLES_S):
            await wire.end_line()
            await wire.send(acp.notification("session/cancel", {"sessionId": read.session}))
            return await heard(wire, read.request, timeout_s=SETTLES_S, session=read.session) is not None
    except (AgentGone, AgentFailed, TimeoutError):
        return False
