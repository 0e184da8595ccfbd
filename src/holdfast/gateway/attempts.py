"""Running one attempt at one turn: the agent in a task of its own, what it does recorded, its end written whatever ended it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import structlog

from holdfast.core import blame, history, notes, retries
from holdfast.core import events as e
from holdfast.core.blame import End, Interruption
from holdfast.core.errors import Conflict, HoldfastError, Unavailable
from holdfast.core.history import History
from holdfast.core.plans import ending
from holdfast.core.plans.ending import Unfinished
from holdfast.core.sessions import Session
from holdfast.core.texts import storable
from holdfast.core.transcript import Transcript
from holdfast.core.turns import Outcome
from holdfast.gateway.agents import Agents
from holdfast.gateway.budget import Budget
from holdfast.gateway.calls import Calls
from holdfast.gateway.face import Face
from holdfast.gateway.host import Host
from holdfast.gateway.kit import Kit
from holdfast.gateway.news import Halt, Halted, News
from holdfast.gateway.permissions import Permissions
from holdfast.gateway.tally import Tally
from holdfast.gateway.teller import Teller
from holdfast.gateway.toolbox import Toolbox
from holdfast.gateway.turn_log import TurnLog
from holdfast.ports.agents import AgentRequest

CANCEL_S = 3.0
STOP_TOOLS_S = 1.0
HEARTBEAT_S = 20.0

log = structlog.get_logger()


class Means(msgspec.Struct, frozen=True, kw_only=True):
    """With what every attempt of this process is run."""

    agents: Agents
    tools: Toolbox
    permissions: Permissions
    budget: Budget
    teller: Teller
    host: Host
    tally: Tally


def request_for(session: Session, transcript: Transcript, resumed: str | None) -> AgentRequest:
    """What the agent is given. `resumed`: why the turn was interrupted, if this attempt continues it."""
    turn = transcript.turns[-1]
    return AgentRequest(
        session_id=session.session_id,
        session_key=session.session_key,
        generation=turn.generation,
        turn_id=turn.id,
        attempt=turn.attempt,
        history=History(transcript),
        causes=history.causes(transcript),
        unfinished=history.unfinished(transcript),
        calls=transcript.calls,
        kept=_kept(transcript),
        model=turn.chosen,
        links=transcript.links,
        folder=session.folder,
        failures=tuple(failure.event for failure in turn.failures if failure.event.step == turn.steps),
        note=notes.choose(
            resumed=resumed,
            pending=session.resume_reason if session.resume_pending and turn.attempt == 1 else None,
            unread_results=turn.attempt == 1 and len(transcript.turns) > 1 and transcript.turns[-2].unread_results,
            waited_ms=turn.started_at - transcript.request.created_at if transcript.request else 0,
        ),
    )


def _wanted(request: AgentRequest) -> frozenset[str]:
    """The tools of which calls have to be finished."""
    return frozenset({call.name for call in request.unfinished} | {call.name for call in request.calls if call.outcome is None})


def _kept(transcript: Transcript) -> str:
    """What the newest turn has said in the step that no response ended."""
    return transcript.steps[-1].text.read() if transcript.steps and transcript.steps[-1].response is None else ""


class Attempt:
    """One attempt running in this process. `resumed`: why its turn was interrupted, if this continues it."""

    def __init__(
        self, *, session: Session, transcript: Transcript, written: TurnLog, news: News, means: Means, resumed: str | None
    ) -> None:
        turn = transcript.turns[-1]
        self.session, self.turn_id, self.anchor, self.news = session, turn.id, transcript.anchor, news
        self._log, self._means, self._clock = written, means, means.host.clock
        self._began = self._clock.monotonic()
        self._waited_ms = max(0, turn.started_at - transcript.request.created_at) if transcript.request else 0
        # It was interrupted before, whichever process resumed it, and however often it asked since.
        self._recovers = turn.reason is not None
        self.outcome: Outcome | None = None
        self._over = False  # Its end is on record.
        self._request = request_for(session, transcript, resumed)
        self._answered_before = transcript.answer_text
        self._kit = Kit(means.tools, _wanted(self._request))
        self._calls = Calls(
            written,
            self._request,
            news=news,
            anchor=self.anchor,
            tools=self._kit,
            permissions=means.permissions,
            host=means.host,
        )
        self._face = Face(
            written,
            self._request,
            news=news,
            anchor=self.anchor,
            tools=self._kit,
            calls=self._calls,
            budget=means.budget,
            teller=means.teller,
            host=means.host,
            recall=transcript.recall,
        )
        if self._request.failures:
            written.silent_for(retries.wait_s(self._request.failures[-1], self._clock.now()))

    @property
    def number(self) -> int:
        return self._request.attempt

    @property
    def idle_s(self) -> float:
        return 0.0 if self._log.waits_for_store else self._clock.monotonic() - self._log.last_sign

    def beat_if_quiet(self) -> None:
        """While a model or a tool has nothing to show, the record says that the turn is still run. What a tool has put out and is to be
        shown by now is recorded.
        """
        self._log.sample()
        if self._clock.monotonic() - self._log.last_written >= HEARTBEAT_S:
            self._log.beat()

    @property
    def under_way(self) -> asyncio.Event:
        """Something of this attempt is on record."""
        return self._log.signed

    async def mark_interrupted(self, reason: str) -> None:
        """Records that the gateway interrupts this attempt, before it does (C1)."""
        try:
            await self._log.record(self._interruption(reason, End.PLANNED))
        except Conflict:
            log.info("turn ended before it was interrupted", turn=self.turn_id, session=self.session.session_id)
        except Unavailable as error:  # The next start finds it without a mark, and takes it for a crash.
            log.warning("turn is interrupted without a mark", turn=self.turn_id, error=str(error))

    @property
    def _so_far(self) -> str:
        """The answer as it is shown. Until this attempt says something or ends a step, it is what the earlier ones had written (P7)."""
        return self._log.text if self._log.says_more else self._answered_before

    def _interruption(self, reason: str, end: End) -> Interruption:
        lived_ms = int(1000 * (self._clock.monotonic() - self._began))
        progressed = blame.made_progress(spoke=False, lived_ms=lived_ms)  # Whether it spoke is known where this is written.
        return Interruption(reason=reason, end=end, progressed=progressed, lived_ms=lived_ms, written=len(self._so_far))

    async def run(self) -> None:
        if self.news.halted is None:
            await self._attend()
        if not self._over and self.news.halted is not None:  # The agent's own end counts if it came first.
            await self._write_halt(self.news.halted)

    async def _attend(self) -> None:
        """Until the agent is done or the attempt has to end."""
        agent = self._means.host.tasks.spawn(self._run_agent(), name=f"agent {self.turn_id}")
        ends = self._means.host.tasks.spawn(self.news.end(), name=f"news of {self.turn_id}")
        try:
            await asyncio.wait({agent, ends}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.news.halt(Halt.GATEWAY)
            await self._cancel(agent)
            raise
        finally:
            ends.cancel()
        if not agent.done():
            await self._cancel(agent)

    async def _cancel(self, agent: "asyncio.Task[None]") -> None:
        """Cancels the agent and with it its tools; one that does not end is left behind, with a word in the log. No agent is to blame
        for a store that takes long to record what it did.
        """
        agent.cancel(self.news.halted.words if self.news.halted else None)
        _, hung = await asyncio.wait({agent}, timeout=CANCEL_S)
        if hung and self._log.waits_for_store:
            log.warning("a turn that ends waits for the store", turn=self.turn_id, session=self.session.session_id)
        elif hung:
            log.error("agent does not let go of its turn", turn=self.turn_id, session=self.session.session_id)

    async def _run_agent(self) -> None:
        outcome, said = Outcome.COMPLETED, None
        try:
            agent = self._means.agents.of(self._request.model)
            await self._kit.settle()
            await agent.run(msgspec.structs.replace(self._request, tools=self._kit.specs), self._face)
        except Exception as error:  # The agent's boundary: whatever it is, the turn ends and says so (P3).
            if self.news.halted is None and not isinstance(error, Conflict):
                expected = isinstance(error, HoldfastError)
                log.warning("agent failed", turn=self.turn_id, error=str(error), exc_info=None if expected else error)
            outcome = Outcome.FAILED
            said = storable(str(error) if isinstance(error, HoldfastError) else f"{type(error).__name__}: {error}")
        if self.news.halted is not None:
            return
        try:
            await self._end(outcome, said)
        except HoldfastError as error:
            log.warning("the end could not be stored", turn=self.turn_id, error=str(error))

    async def _write_halt(self, halted: Halted) -> None:
        match halted.why:
            case Halt.STOP:
                await self._stop_tools()
                await self._insist(lambda: self._end(Outcome.CANCELLED))
            case Halt.IDLE:
                await self._insist(lambda: self._end(Outcome.FAILED, "Nothing happened for too long, so the turn was ended."))
            case Halt.UNSTORABLE:
                await self._insist(lambda: self._end(Outcome.FAILED, halted.words))
            case Halt.EXPIRED:
                await self._insist(self._end_expired)
            case Halt.STORE | Halt.SUSPENDED if not self._log.interrupted:  # No restart is to blame.
                interrupted = self._interruption("suspended" if halted.why is Halt.SUSPENDED else halted.reason, End.HARMLESS)
                await self._insist(lambda: self._log.record(interrupted))
            case _:
                pass

    async def _stop_tools(self) -> None:
        try:
            async with asyncio.timeout(STOP_TOOLS_S):
                await self._means.tools.stop(self.turn_id)
        except TimeoutError:
            log.error("tools of a stopped turn do not end", turn=self.turn_id, session=self.session.session_id)

    async def _insist(self, write: Callable[[], Awaitable[None]]) -> None:
        """What must be on record before the turn is left is tried until it is, or until the turn is somebody else's."""
        while True:
            self._log.reopen()
            try:
                return await write()
            except Conflict:
                return
            except Unavailable as error:
                await asyncio.sleep(error.retry_after_s)

    async def _end(self, outcome: Outcome, error: str | None = None) -> None:
        """Answer, end, and what is owed to a chat: one transaction."""
        unfinished = await self._unfinished()
        events = ending.by_agent(unfinished, outcome, error=error, recovers=self._recovers, said_now=bool(self._log.text))
        await self._means.host.tasks.finish(self._record_end(events), name=f"end of {self.turn_id}")

    async def _end_expired(self) -> None:
        await self._record_end(ending.expired(await self._unfinished()))

    def _count(self) -> None:
        """How long people waited: for the turn to begin and, from then on, for its first words."""
        if self.number == 1:
            self._means.tally.waited_ms.append(float(self._waited_ms))
            if self._log.first_text_at is not None:
                self._means.tally.first_text_ms.append(1000 * (self._log.first_text_at - self._began))

    async def _unfinished(self) -> Unfinished:
        """Also a result counts whose recording takes longer than the agent was given to end (P5)."""
        calls = await self._calls.finished()
        return Unfinished(
            session_key=self.session.session_key,
            turn_id=self.turn_id,
            said=self._so_far,
            begun=self._log.begun,
            anchor=self.anchor,
            calls=calls,
            asking=self.news.questions.started,
            unread_results=self._log.unread_results,
            resume_pending=self.session.resume_pending,
        )

    async def _record_end(self, events: Sequence[e.Event]) -> None:
        """Also if its caller was cancelled: what is on record has happened."""
        ended = events[-1]
        assert isinstance(ended, e.TurnEnded)
        if ended.rule is not None:
            log.info("recovery", session=self.session.session_id, turn=self.turn_id, rule=ended.rule, why=ended.why)
        await self._log.record(*events)
        self._over, self.outcome = True, ended.outcome
        self._count()
        self._means.tally.turns[ended.outcome] += 1
        if ended.rule is not None:
            self._means.tally.rules[ended.rule] += 1
