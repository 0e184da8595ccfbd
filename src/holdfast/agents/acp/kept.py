"""The processes of agents that are other programs: one for each conversation, ended when the conversation has not used it for a while."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog

from holdfast.agents.acp.wire import Wire, settled
from holdfast.core.errors import Unavailable
from holdfast.core.events import AgentRead
from holdfast.ports.keepers import Command, End, Keepers, Name, kill_all
from holdfast.ports.process import Clock

MOST_BYTES = 64 * 1024 * 1024

log = structlog.get_logger()


class KeptAgents:
    """What each process is doing is in the log. Only the time of its last use is kept here, so after a restart each counts as just used."""

    def __init__(self, keepers: Keepers, *, clock: Clock, idle_s: float) -> None:
        self.keepers, self._clock, self._idle_s = keepers, clock, idle_s
        self._used: dict[Name, float] = {}
        self._settled: dict[Name, str] = {}  # The prompts whose end was seen: asking again would be noise.

    async def start(self, name: Name, words: Sequence[str], *, folder: str, environment: Mapping[str, str]) -> End | None:
        self.use(name)
        command = Command(
            words=words, folder=folder, environment=dict(environment), input=True, apart=True, holds=True, most_bytes=MOST_BYTES
        )
        return await self.keepers.start(name, command)

    def use(self, name: Name) -> None:
        self._used[name] = self._clock.monotonic()

    async def tidy(self, is_open: Callable[[str], Awaitable[bool]]) -> None:
        """As `AgentProcesses.tidy`; also removes the files of processes that have ended."""
        names = await self.keepers.names()
        self._used = {name: at for name, at in self._used.items() if name in names}
        self._settled = {name: request for name, request in self._settled.items() if name in names}
        for name in names:
            since = self._used.setdefault(name, self._clock.monotonic())
            try:
                runs = (await self.keepers.look(name)).runs
                if (runs and self._clock.monotonic() - since < self._idle_s) or await is_open(name.group):
                    continue
                what = "ending an agent that is not used" if runs else "removing the files of an agent that ended"
                log.info(what, session=name.group, process=name.id)
                await self.keepers.forget(name)
            except (Unavailable, OSError) as error:
                log.warning("the files of an agent cannot be removed", process=name.id, error=str(error))

    async def sessions(self) -> set[str]:
        return {name.group for name in await self.keepers.names()}

    async def settle(self, session_id: str, read: AgentRead) -> None:
        name = Name(session_id, read.process)
        if read.request is None or self._settled.get(name) == read.request or not (await self.keepers.look(name)).runs:
            return
        if not await settled(Wire(self.keepers, name, read.label or read.agent, offset=read.offset), read):
            log.info("killing an agent that does not end its work", session=session_id, process=read.process)
            await self.keepers.kill(name)
        self._settled[name] = read.request

    async def end_session(self, session_id: str) -> None:
        await kill_all(self.keepers, [name for name in await self.keepers.names() if name.group == session_id])

    async def stop_all(self) -> None:
        """For an operator's stop, after which nothing may run."""
        await kill_all(self.keepers, await self.keepers.names())
