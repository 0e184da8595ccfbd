"""A session with an agent that is another program: starts its process or finds it again, and prepares it for a prompt."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

import holdfast
from holdfast.agents.acp.errors import AgentFailed, AgentGone, NotSignedIn
from holdfast.agents.acp.kept import KeptAgents
from holdfast.agents.acp.wire import Wire, heard
from holdfast.core import acp
from holdfast.core.acp import Abilities, Replied
from holdfast.core.events import AgentRead, AgentStarted
from holdfast.ports.agents import AgentRequest, ReportingFace
from holdfast.ports.keepers import Name
from holdfast.ports.process import Ids

NEW, RESUMED, LOADED, TOLD = "new", "resumed", "loaded", "told"
# How long it may take to start.
STARTS_S = 120.0


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What to run. `name`: the agent's name in the configuration."""

    name: str
    words: Sequence[str]
    environment: Mapping[str, str]


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Of our environment, what such a program gets: all but Holdfast's own settings and secrets."""
    return {name: value for name, value in environment.items() if not name.startswith("HOLDFAST")}


class Session:
    """A session that can be prompted. `session`: the agent's id of it. `how`: new, resumed, loaded or told."""

    def __init__(self, wire: Wire, name: Name, session: str, how: str, can: Abilities) -> None:
        self.wire, self.name, self.session, self.how, self.can = wire, name, session, how, can

    def read(self, agent: str, **more: Any) -> AgentRead:
        """The record of how far its output was read."""
        return AgentRead(
            agent=agent,
            process=self.name.id,
            session=self.session,
            how=self.how,
            offset=self.wire.offset,
            label=self.can.name,
            takes=self.can.takes,
            **more,
        )


class Opening:
    """Opens sessions for one attempt. `starts`: how many processes it has started."""

    def __init__(
        self,
        program: Program,
        kept: KeptAgents,
        ids: Ids,
        folder: Callable[[str, str | None], Path],
        request: AgentRequest,
        turn: ReportingFace,
    ) -> None:
        self._program, self._kept, self._ids, self._folder = program, kept, ids, folder
        self._request, self._turn = request, turn
        self.starts = 0

    async def found(self, read: AgentRead) -> Session | None:
        """The session that was read before, if its process still runs or left output that was not read."""
        name = Name(self._request.session_id, read.process)
        self._kept.use(name)
        look = await self._kept.keepers.look(name)
        if not look.runs and look.out <= read.offset:
            return None
        called = read.label or self._program.name
        wire = Wire(self._kept.keepers, name, called, offset=read.offset)
        return Session(wire, name, read.session, read.how, Abilities(name=called, takes=read.takes))

    async def opened(self, before: str | None) -> Session:
        """Starts a new process. `before`: the session of the last process, which the new one continues if it can. Raises `AgentFailed`,
        `AgentGone`.
        """
        name = Name(self._request.session_id, self._ids.new("a"))
        folder = str(self._folder(self._request.session_id, self._request.folder))
        await self._turn.linked(AgentStarted(agent=self._program.name, process=name.id))
        self.starts += 1
        end = await self._kept.start(name, self._program.words, folder=folder, environment=self._program.environment)
        if end is not None:
            raise AgentGone(self._program.name, end)
        wire = Wire(self._kept.keepers, name, self._program.name)
        can = acp.abilities(_accepted(wire.agent, await self._ask(wire, "initialize", acp.initialize(holdfast.__version__))))
        wire.agent = can.name
        session, how = await self._begin(wire, can, before, folder)
        return Session(wire, name, session, how, can)

    async def _begin(self, wire: Wire, can: Abilities, before: str | None, folder: str) -> tuple[str, str]:
        where: dict[str, Any] = {"cwd": folder, "mcpServers": []}
        if before is not None:
            for able, method, how in ((can.resumes, "session/resume", RESUMED), (can.loads, "session/load", LOADED)):
                if able and (await self._ask(wire, method, where | {"sessionId": before})).error is None:
                    return before, how
        made = await self._ask(wire, "session/new", where)
        if made.code == acp.AUTH_REQUIRED:
            raise NotSignedIn(can.name, can.sign_in)
        session = _accepted(can.name, made).get("sessionId")
        if not isinstance(session, str):
            raise AgentFailed(can.name, "it did not name a session")
        return session, NEW

    async def _ask(self, wire: Wire, method: str, given: dict[str, Any]) -> Replied:
        """Skips what the agent sends before its reply: while loading, that is a replay of the past."""
        request = f"{method}.{self._ids.new('r')}"
        await wire.send(acp.request(request, method, given))
        return await heard(wire, request, timeout_s=STARTS_S) or Replied(request, {}, f"it did not answer {method} in time")


def _accepted(name: str, replied: Replied) -> dict[str, Any]:
    if replied.error is not None:
        raise AgentFailed(name, replied.error)
    return replied.result
