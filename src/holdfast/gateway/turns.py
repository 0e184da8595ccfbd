"""Running one attempt at one turn: the agent in a task of its own, what it does recorded, its end written whatever ended it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Any

import structlog

from holdfast.core import blame, notes, output, replies
from holdfast.core import events as e
from holdfast.core.blame import End, Interruption
from holdfast.core.effects import SHOWN_OUTPUT, Effect, ToolOutcome
from holdfast.core.errors import Conflict, HoldfastError, Refused, StoreFull, StoreGone, Unavailable
from holdfast.core.plans import ending
from holdfast.core.plans.ending import Unfinished
from holdfast.core.sessions import Session
from holdfast.core.texts import storable, storable_value
from holdfast.core.transcript import ToolCall, Transcript
from holdfast.core.turns import Outcome
from holdfast.gateway.journal import TurnLog
from holdfast.gateway.tally import Tally
from holdfast.gateway.tasks import Tasks
from holdfast.ports.agents import Agent, AgentRequest
from holdfast.ports.process import Clock, Ids
from holdfast.ports.tools import Tool, ToolContext, ToolResult

QUESTION_LIFE_MS = 24 * 3600 * 1000
LET_GO_S = 3.0
STOP_TOOLS_S = 1.0
HEARTBEAT_S = 20.0
ASK = "ask"

log = structlog.get_logger()


class Cut(StrEnum):
    """Why a running attempt is ended from outside."""

    STOP = "stop"
    IDLE = "idle"
    GATEWAY = "gateway"
    LOST = "lost"
    STORE = "store"
    SUSPENDED = "suspended"
    UNSTORABLE = "unstorable"


class _Asked(BaseException):
    """Ends the attempt at a question. Not an Exception, so that no agent's error handling holds it up."""


class Face:
    """What the agent sees of its turn (`ports.TurnFace`)."""

    def __init__(
        self,
        written: TurnLog,
        request: AgentRequest,
        anchor: str | None,
        tools: dict[str, Tool],
        tasks: Tasks,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._log, self._request, self._anchor, self._tools = written, request, anchor, tools
        self._tasks, self._clock, self._ids = tasks, clock, ids
        self.calls = {call.call_id: call for call in request.calls}

    async def say(self, text: str) -> None:
        if text:
            await self._log.say(text)

    async def think(self, text: str) -> None:
        await self._log.think(text)

    async def keep(self, chars: int) -> None:
        self._log.keep(self._request.kept[:chars])

    async def call(self, call_id: str, name: str, arguments: dict[str, Any]) -> ToolResult:
        known = self.calls.get(call_id)
        if known is not None and known.outcome is not None:
            return ToolResult(known.outcome, known.result or "")
        name, arguments = storable(name), storable_value(arguments)
        tool = self._tools.get(name)
        effect = tool.effect if tool else Effect.PURE
        call = ToolCall(call_id=call_id, name=name, arguments=arguments, effect=effect, attempt=self._log.attempt)
        self.calls[call_id] = call
        await self._log.record(e.ToolStarted(call_id=call_id, name=name, arguments=arguments, effect=effect))
        if tool is None:
            result = ToolResult(ToolOutcome.FAILED, f"There is no tool {name!r}.")
        else:
            result = await self._run(tool, call)
        result = ToolResult(result.outcome, output.result(storable(result.text)))
        # The effect is done: its result is recorded even if the turn is cut in this moment.
        await self._tasks.finish(self._finish(call, result), name=f"result of {call_id}")
        return result

    async def _finish(self, call: ToolCall, result: ToolResult) -> None:
        await self._log.record(e.ToolFinished(call_id=call.call_id, outcome=result.outcome, content=result.text))
        call.outcome, call.result = result.outcome, result.text

    async def _run(self, tool: Tool, call: ToolCall) -> ToolResult:
        async def put_out(text: str) -> None:
            call.output = (call.output + text)[-SHOWN_OUTPUT:]
            await self._log.output(call.call_id, text)

        context = ToolContext(
            session_id=self._log.lease.session_id,
            session_key=self._request.session_key,
            generation=self._request.generation,
            turn_id=self._request.turn_id,
            call_id=call.call_id,
            output=put_out,
        )
        try:
            return await tool.run(call.arguments, context)
        except HoldfastError as error:
            return ToolResult(ToolOutcome.FAILED, str(error))

    async def ask(self, call_id: str, question: str) -> str:
        known = self.calls.get(call_id)
        if known is not None and known.outcome is not None:
            return known.result or ""
        question_id, question = self._ids.new("q"), storable(question)
        events: list[e.Event] = [e.ToolStarted(call_id=call_id, name=ASK, arguments={"question": question}, effect=Effect.PURE)]
        if replies.owed(self._request.session_key):  # A chat must be told what it is asked.
            events.append(
                replies.written(self._request.session_key, "notice", replies.asked_delivery(question_id), question, anchor=self._anchor)
            )
        expires_at = self._clock.now() + QUESTION_LIFE_MS
        events.append(e.QuestionAsked(question_id=question_id, call_id=call_id, content=question, expires_at=expires_at))
        await self._log.record(*events)
        raise _Asked


class Attempt:
    """One attempt running in this process. `resumed`: why its turn was interrupted, if this continues it."""

    def __init__(
        self,
        *,
        session: Session,
        transcript: Transcript,
        written: TurnLog,
        agent: Agent,
        tools: dict[str, Tool],
        tasks: Tasks,
        clock: Clock,
        ids: Ids,
        tally: Tally,
        resumed: str | None,
    ) -> None:
        turn = transcript.turns[-1]
        self.session, self.turn_id = session, turn.id
        self._log, self._agent, self._tasks, self._clock, self._tally = written, agent, tasks, clock, tally
        self._began = clock.monotonic()
        self._cut: Cut | None = None
        self._words = ""
        self._reason = "store_failed"
        self._recovers = (
            turn.reason is not None
        )  # It was interrupted before, whichever process resumed it, and however often it asked since.
        self.anchor = transcript.anchor
        self.outcome: Outcome | None = None
        self._over = False  # Its end, or its question, is on record.
        self._gone = asyncio.Event()
        self._request = AgentRequest(
            session_key=session.session_key,
            generation=turn.generation,
            turn_id=turn.id,
            attempt=turn.attempt,
            messages=[message for message in transcript.messages if message.turn_id is not None and message.role != "notice"],
            text=transcript.request.text if transcript.request else "",
            calls=transcript.calls,
            kept=transcript.answer_text,
            note=notes.choose(
                resumed=resumed,
                pending=session.resume_reason if session.resume_pending and turn.attempt == 1 else None,
                unread_results=turn.attempt == 1 and len(transcript.turns) > 1 and transcript.turns[-2].unread_results,
            ),
        )
        self._face, self._tools = Face(written, self._request, self.anchor, tools, tasks, clock, ids), tools
        written.unread_results = turn.unread_results
        written.on_lost = self._lost

    @property
    def number(self) -> int:
        return self._request.attempt

    @property
    def idle_s(self) -> float:
        return self._clock.monotonic() - self._log.last_sign

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

    def cut(self, why: Cut, words: str | None = None) -> None:
        """Ends the attempt from outside; the first reason counts. The agent hears it with its cancellation, in these words."""
        if self._cut is None:
            self._cut, self._words = why, words or str(why)
            self._gone.set()

    def _lost(self, error: Exception) -> None:
        log.warning("turn cannot be written", turn=self.turn_id, session=self.session.session_id, error=str(error))
        self._reason = error.code if isinstance(error, StoreFull | StoreGone) else "store_failed"
        if isinstance(error, Refused):
            self.cut(Cut.UNSTORABLE, str(error))
        else:
            self.cut(Cut.LOST if isinstance(error, Conflict) else Cut.STORE)

    async def mark_interrupted(self, reason: str) -> None:
        """Records that the gateway cuts this attempt, before it does (C1)."""
        try:
            await self._log.record(self._interruption(reason, End.PLANNED))
        except Conflict:
            log.info("turn ended before it was interrupted", turn=self.turn_id, session=self.session.session_id)
        except Unavailable as error:  # The next start finds it without a mark, and takes it for a crash.
            log.warning("turn is interrupted without a mark", turn=self.turn_id, error=str(error))

    @property
    def _so_far(self) -> str:
        """The answer as it is shown. Until this attempt has said something, it is what the earlier ones had written."""
        return self._log.text or self._request.kept

    def _interruption(self, reason: str, end: End) -> Interruption:
        lived_ms = int(1000 * (self._clock.monotonic() - self._began))
        progressed = blame.made_progress(spoke=False, lived_ms=lived_ms)  # Whether it spoke is known where this is written.
        return Interruption(reason=reason, end=end, progressed=progressed, lived_ms=lived_ms, written=len(self._so_far))

    async def run(self) -> None:
        if self._cut is None:
            await self._attend()
        if not self._over:  # The agent's own end counts if it came first.
            await self._write_cut()

    async def _attend(self) -> None:
        """Until the agent is done or the attempt is cut."""
        agent = self._tasks.spawn(self._run_agent(), name=f"agent {self.turn_id}")
        gone = self._tasks.spawn(self._gone.wait(), name=f"cut of {self.turn_id}")
        try:
            await asyncio.wait({agent, gone}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.cut(Cut.GATEWAY)
            await self._let_go(agent)
            raise
        finally:
            gone.cancel()
        if not agent.done():
            await self._let_go(agent)

    async def _let_go(self, agent: "asyncio.Task[None]") -> None:
        """Cancels the agent and with it its tools; one that does not end is left behind, with a word in the log."""
        agent.cancel(self._words)
        _, hung = await asyncio.wait({agent}, timeout=LET_GO_S)
        if hung:
            log.error("agent does not let go of its turn", turn=self.turn_id, session=self.session.session_id)

    async def _run_agent(self) -> None:
        outcome, said = Outcome.COMPLETED, None
        try:
            await self._agent.run(self._request, self._face)
        except _Asked:
            self._over = True
            return
        except Exception as error:  # The agent's boundary: whatever it is, the turn ends and says so (P3).
            if self._cut is None and not isinstance(error, Conflict):
                expected = isinstance(error, HoldfastError)
                log.warning("agent failed", turn=self.turn_id, error=str(error), exc_info=None if expected else error)
            outcome = Outcome.FAILED
            said = storable(str(error) if isinstance(error, HoldfastError) else f"{type(error).__name__}: {error}")
        if self._cut is not None:
            return
        try:
            await self._end(outcome, said)
        except HoldfastError as error:
            log.warning("the end could not be stored", turn=self.turn_id, error=str(error))

    async def _write_cut(self) -> None:
        match self._cut:
            case Cut.STOP:
                await self._stop_tools()
                await self._insist(lambda: self._end(Outcome.CANCELLED))
            case Cut.IDLE:
                await self._insist(lambda: self._end(Outcome.FAILED, "Nothing happened for too long, so the turn was ended."))
            case Cut.UNSTORABLE:
                await self._insist(lambda: self._end(Outcome.FAILED, self._words))
            case Cut.STORE | Cut.SUSPENDED if not self._log.interrupted:  # No restart is to blame.
                interrupted = self._interruption("suspended" if self._cut is Cut.SUSPENDED else self._reason, End.HARMLESS)
                await self._insist(lambda: self._log.record(interrupted))
            case _:
                pass

    async def _stop_tools(self) -> None:
        """What finished calls left in the background ends with the turn that is stopped (A21)."""
        try:
            async with asyncio.timeout(STOP_TOOLS_S):
                for tool in self._tools.values():
                    await tool.stop(self.turn_id)
        except TimeoutError:
            log.error("tools of a stopped turn do not end", turn=self.turn_id, session=self.session.session_id)

    async def _insist(self, write: Callable[[], Awaitable[None]]) -> None:
        """What must be on record before this turn is let go is tried until it is, or until the turn is somebody else's."""
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
        unfinished = Unfinished(
            session_key=self.session.session_key,
            turn_id=self.turn_id,
            said=self._so_far,
            anchor=self.anchor,
            calls=list(self._face.calls.values()),
            unread_results=self._log.unread_results,
            resume_pending=self.session.resume_pending,
        )
        events = ending.by_agent(unfinished, outcome, error=error, recovers=self._recovers, said_now=bool(self._log.text))
        await self._tasks.finish(self._record_end(events), name=f"end of {self.turn_id}")

    async def _record_end(self, events: Sequence[e.Event]) -> None:
        """Also if its caller was cancelled: what is on record has happened."""
        ended = events[-1]
        assert isinstance(ended, e.TurnEnded)
        if ended.rule is not None:
            log.info("recovery", session=self.session.session_id, turn=self.turn_id, rule=ended.rule, why=ended.why)
        await self._log.record(*events)
        self._over, self.outcome = True, ended.outcome
        self._tally.turns[ended.outcome] += 1
        if ended.rule is not None:
            self._tally.rules[ended.rule] += 1
