"""An agent that is another program, behind a turn. It does not notice the gateway's death: its process continues, and the next attempt
reads its output from where the record ends, answers what it asked for in the meantime, and records what it did.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import msgspec

from holdfast.agents.acp import prompts
from holdfast.agents.acp.errors import AgentFailed, AgentGone
from holdfast.agents.acp.kept import KeptAgents
from holdfast.agents.acp.prompts import Read
from holdfast.agents.acp.session import LOADED, NEW, RESUMED, TOLD, Opening, Program, Session
from holdfast.agents.acp.telling import Telling
from holdfast.agents.acp.wire import heard, settled
from holdfast.core import acp
from holdfast.core.acp import Replied
from holdfast.core.errors import HoldfastError, Unavailable
from holdfast.core.events import AgentRead
from holdfast.core.history import User
from holdfast.core.messages import Link
from holdfast.core.redaction import Secrets
from holdfast.ports.agents import AgentRequest, ReportingFace
from holdfast.ports.keepers import Name
from holdfast.ports.process import Ids

# Reasons of a cancellation that end the agent's work. Every other reason interrupts only us.
ENDING = ("stop", "idle", "suspended", "expired")
CANCELS_S = 1.5
# How often one turn may start a process of the agent: one that dies is started again.
MOST_STARTS = 3
# How a process that was started again continues, for people.
CONTINUES = {RESUMED: "resumed its session", LOADED: "loaded its session", NEW: "has a new session"}


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """`folder`: where a session works, made where it is missing; given its id and the folder that was chosen for it. `read`: gives the
    bytes of a blob.
    """

    kept: KeptAgents
    ids: Ids
    folder: Callable[[str, str | None], Path]
    read: Read
    secrets: Secrets


class AcpAgent:
    def __init__(self, program: Program, ground: Ground) -> None:
        self.name = program.name
        self._program, self._ground = program, ground

    async def run(self, request: AgentRequest, turn: ReportingFace) -> None:
        attempt = Attempt(self._program, self._ground, request, turn)
        try:
            await attempt.run()
        except asyncio.CancelledError as cancelled:
            if str(cancelled) in ENDING:
                await attempt.cancel()
            raise

    async def aclose(self) -> None:
        """Nothing to close: the agent's processes outlive this one."""


class Attempt:
    """One attempt at a turn."""

    def __init__(self, program: Program, ground: Ground, request: AgentRequest, turn: ReportingFace) -> None:
        self._program, self._ground, self._request, self._turn = program, ground, request, turn
        self._opening = Opening(program, ground.kept, ground.ids, ground.folder, request, turn)
        self._telling = Telling(request, turn, ground.secrets)
        self._link = request.links.get(program.name)
        self._session: Session | None = None
        self._open: str | None = None  # The prompt that is being answered.
        self._prompts = 0  # How many this turn has sent.

    async def run(self) -> None:
        link = self._link
        if link is not None and (link.read is None or link.read.process != link.process):
            await self._ground.kept.keepers.kill(Name(self._request.session_id, link.process))  # It was started, but never spoken with.
        if link is not None and link.turn_id == self._request.turn_id and link.read is not None:
            again = await self._continue(link, link.read)
        else:
            again = await self._attend(lambda: self._begin(link))
        while again:
            again = await self._attend(partial(self._ask, again, first=()))

    # a new turn

    async def _begin(self, link: Link | None) -> Replied:
        session = await self._usable(link)
        if session is None:
            session = await self._opening.opened(link.read.session if link is not None and link.read is not None else None)
            await self._telling.link(session.read(self._program.name))
        self._session = session
        return await self._ask(self._request.causes, first=(await self._told(session), self._request.note))

    async def _usable(self, link: Link | None) -> Session | None:
        """The session of an earlier turn, if its process still runs and has finished that turn's work."""
        if link is None or link.read is None or link.read.process != link.process:
            return None
        session = await self._opening.found(link.read)
        if session is None or not (await self._ground.kept.keepers.look(session.name)).runs:
            return None
        if await settled(session.wire, link.read):
            return session
        await self._ground.kept.keepers.kill(session.name)
        return None

    async def _told(self, session: Session) -> str | None:
        """The conversation so far, for a process that this turn started and that does not know it. A notice says that it was given."""
        fresh = self._opening.starts or (self._link is not None and self._link.started_in == self._request.turn_id)
        if not fresh or session.how not in (NEW, TOLD):
            return None
        if (told := prompts.transcript(self._request.history, self._request.generation)) is None:
            return None
        session.how = TOLD
        await self._turn.tell("agent.told", f"{session.can.name} started a new session and was given the conversation so far.")
        return told

    # an attempt that continues

    async def _continue(self, link: Link, read: AgentRead) -> tuple[User, ...]:
        self._prompts = int((read.request or read.answered or ".0").rpartition(".")[2])
        if link.process == read.process and read.answered is not None:
            await self._telling.continues()  # Everything it said is on record.
            return await self._turn.taken()
        if link.process == read.process and read.request is None:
            await self._telling.continues()
            return await self._attend(lambda: self._begin(link))  # It was ready, but not prompted yet.
        return await self._attend(lambda: self._read_on(link, read))

    async def _read_on(self, link: Link, read: AgentRead) -> Replied:
        session = await self._opening.found(read) if link.process == read.process else None
        if session is None or read.request is None:
            raise AgentGone(self._program.name, None)
        self._session, self._open = session, read.request
        runs = (await self._ground.kept.keepers.look(session.name)).runs
        if runs:
            await session.wire.end_line()
        # We died while sending the prompt, so it may or may not have arrived. It is cancelled, and a reply shows that it did.
        if runs and read.fold is None and (await self._ground.kept.keepers.look(session.name)).out <= read.offset:
            if not await settled(session.wire, read):
                return await self._replace(session)
            session = self._session = await self._opening.found(read) or session
        replied = await self._telling.follow(session, read, self._program.name)
        if replied.result.get("stopReason") == "cancelled":  # By us: just now, or when the conversation was suspended.
            return await self._ask(self._request.causes, first=(prompts.CANCELLED,))
        return replied

    async def _replace(self, session: Session) -> Replied:
        """It may still work on the prompt, which must not run twice."""
        await self._ground.kept.keepers.kill(session.name)
        await self._telling.abandon()
        return await self._start_again(None)

    # a prompt

    async def _ask(self, causes: tuple[User, ...], *, first: tuple[str | None, ...]) -> Replied:
        """The prompt is recorded before it is sent and again afterwards, so that a prompt that arrived is not sent twice."""
        session = self._session
        assert session is not None
        self._prompts += 1
        request = self._open = f"{self._request.turn_id}.{self._prompts}"
        given = await prompts.blocks(causes, session.can, self._ground.read, first=first)
        await self._telling.link(session.read(self._program.name, request=request))
        await session.wire.send(acp.request(request, "session/prompt", {"sessionId": session.session, "prompt": given}))
        sent = session.read(self._program.name, request=request, fold=self._telling.state)
        await self._telling.link(sent)
        return await self._telling.follow(session, sent, self._program.name)

    async def _attend(self, work: Callable[[], Awaitable[Replied]]) -> tuple[User, ...]:
        """Works until the prompt is answered, through deaths of the agent. Returns the steering messages that came in the meantime."""
        while True:
            try:
                replied = await work()
            except AgentGone as gone:
                await self._abandon(gone)
                work = partial(self._start_again, gone)
                continue
            return await self._answered(replied)

    async def _answered(self, replied: Replied) -> tuple[User, ...]:
        session = self._session
        assert session is not None
        await self._telling.link(session.read(self._program.name, answered=self._open))
        self._open = None
        await session.wire.drop()
        self._ground.kept.use(session.name)
        if replied.error is not None:
            raise AgentFailed(session.can.name, replied.error)
        reason = str(replied.result.get("stopReason"))
        if reason in acp.UNFINISHED:
            raise HoldfastError(acp.UNFINISHED[reason])
        return await self._turn.taken()

    # its death

    async def _abandon(self, gone: AgentGone) -> None:
        """Raises `gone` where another start would not help."""
        if self._starts >= MOST_STARTS or (self._open is None and self._opening.starts):
            raise gone
        await self._telling.abandon()

    async def _start_again(self, gone: AgentGone | None) -> Replied:
        """`gone`: how its process ended, if not by us."""
        before, dead = self._last
        session = self._session = await self._opening.opened(before)
        if gone is not None:
            await self._turn.tell(
                f"agent.died.{dead}",  # Told once, also if we die before the new process is on record.
                f"The process of {gone.name} ended in the middle of this answer ({gone.how})."
                f" Holdfast started it again, and it {CONTINUES[session.how]}.",
            )
        await self._telling.link(session.read(self._program.name))
        await self._telling.continues()
        return await self._ask(self._request.causes, first=(await self._told(session), prompts.DIED))

    @property
    def _starts(self) -> int:
        """How many processes this turn has started, in all its attempts."""
        link = self._link
        earlier = link.starts if link is not None and link.started_in == self._request.turn_id else 0
        return earlier + self._opening.starts

    @property
    def _last(self) -> tuple[str | None, str | None]:
        """The session that was prompted last, and its process."""
        if self._session is not None:
            return self._session.session, self._session.name.id
        read = self._link.read if self._link is not None else None
        return (None, None) if read is None else (read.session, read.process)

    # a stop

    async def cancel(self) -> None:
        """Asks the agent to stop, and kills its process if it does not."""
        session = self._session
        if session is None or self._open is None:
            return
        try:
            await session.wire.send(acp.notification("session/cancel", {"sessionId": session.session}))
            for asked in self._telling.waiting:
                await session.wire.send(acp.reply(asked.request, acp.cancelled()))
            if await heard(session.wire, self._open, timeout_s=CANCELS_S, session=session.session) is None:
                await self._ground.kept.keepers.kill(session.name)
        except (AgentGone, Unavailable):
            pass
