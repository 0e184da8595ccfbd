"""One lane per session: what is due next, one thing at a time. A lane exists while there is something to do."""

import asyncio
from collections.abc import Callable
from enum import StrEnum

import structlog

from holdfast.core import events as e
from holdfast.core import resume
from holdfast.core.errors import Bug, Conflict, HoldfastError, NotFound, Unavailable
from holdfast.core.resume import Decision
from holdfast.core.sessions import Session
from holdfast.core.transcript import Transcript
from holdfast.core.turns import Outcome, TurnState
from holdfast.gateway.admission import Admission, Admissions
from holdfast.gateway.journal import Journal, TurnLog
from holdfast.gateway.recovery import Judged, Recovery
from holdfast.gateway.tally import Tally
from holdfast.gateway.tasks import Tasks, heard
from holdfast.gateway.turns import Attempt, Cut
from holdfast.ports.agents import Agent
from holdfast.ports.process import Clock, Ids, Liveness
from holdfast.ports.store import Store
from holdfast.ports.tools import Tool
from holdfast.ports.turns import StartedTurn

SWEEP_S = 1.0
SWEEP_LIMIT = 1000
LOOK_LATER_S = 5.0
LOOKED_INTO_AT_ONCE = 4

log = structlog.get_logger()


class Gate(StrEnum):
    """OPEN: everything is done. HELD: no turn starts or resumes; stops and ends are carried out, and what was interrupted is recorded and
    decided (A26). CLOSED: nothing is begun; what runs goes on.
    """

    OPEN = "open"
    HELD = "held"
    CLOSED = "closed"


class Lane:
    """`again`: something changed since the lane last looked. `starting`: a turn may be on record that is no attempt here yet. `looked`:
    what was interrupted in it, if anything, is on record. `seen`: what was read of the session when the lane was made; good for its first
    step.
    """

    def __init__(self, seen: Session | None) -> None:
        self.seen = seen
        self.attempt: Attempt | None = None
        self.starting = False
        self.looked = False
        self.again = asyncio.Event()


class Lanes:
    """Starts, resumes and stops turns. Recovery comes before new messages, because a lane takes one step at a time (B8, P2)."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: Ids,
        liveness: Liveness,
        owner: int,
        agent: Agent,
        tools: dict[str, Tool],
        tasks: Tasks,
        recovery: Recovery,
        idle_timeout_s: float,
        resumes_at_once: int,
        on_recovered: Callable[[], None],
    ) -> None:
        self._store, self._clock, self._ids, self._liveness = store, clock, ids, liveness
        self._recovery, self._on_recovered = recovery, on_recovered
        self._owner, self._agent, self._tools, self._tasks = owner, agent, tools, tasks
        self._idle_timeout_s = idle_timeout_s
        self._lanes: dict[str, Lane] = {}
        self._names: dict[int | None, str] = {}
        self._reaped: set[int | None] = set()
        self._reaping = asyncio.Lock()
        self._turnstile = asyncio.Semaphore(LOOKED_INTO_AT_ONCE)
        self._admissions = Admissions(store=store, clock=clock, tasks=tasks, resumes_at_once=resumes_at_once)
        self._gate = Gate.CLOSED
        self._changed = asyncio.Event()
        self._hinted = asyncio.Event()
        self.tally = Tally()
        self.journal = Journal(store, clock, tasks)

    @property
    def running(self) -> int:
        return sum(lane.attempt is not None for lane in self._lanes.values())

    @property
    def running_turns(self) -> list[str]:
        return [lane.attempt.turn_id for lane in self._lanes.values() if lane.attempt is not None]

    @property
    def _starting(self) -> bool:
        return any(lane.starting for lane in self._lanes.values())

    @property
    def attempts(self) -> list[Attempt]:
        return [lane.attempt for lane in self._lanes.values() if lane.attempt is not None]

    def open(self) -> None:
        self._move(Gate.OPEN)

    def hold(self) -> None:
        """No turn starts or resumes from now on; those that run continue, and stops and decisions are still carried out."""
        self._move(Gate.HELD)

    def close(self) -> None:
        """Nothing is begun from now on; the turns that run continue."""
        self._move(Gate.CLOSED)

    def _move(self, gate: Gate) -> None:
        self._gate = gate
        self._look_again()

    def _look_again(self) -> None:
        """Whatever waits to begin is decided again."""
        for lane in self._lanes.values():
            if lane.attempt is None:
                lane.again.set()

    def look(self, session_id: str, *, seen: Session | None = None) -> None:
        """Something may be due in this session; `seen` is what was just read of it."""
        lane = self._lanes.get(session_id)
        if lane is not None:
            lane.again.set()
        elif self._gate is not Gate.CLOSED:
            lane = self._lanes[session_id] = Lane(seen)
            self._tasks.spawn(self._work(session_id, lane), name=f"lane {session_id}")

    async def sweep(self) -> None:
        """Finds what nobody told us of: turns of processes that died, messages and stops that others stored."""
        unsettled = True
        while True:
            try:
                await self._sweep_once()
                if unsettled:
                    self._tasks.spawn(self._begin_trials(list(self._lanes.values())), name="first look")
                    await self.settle()
                    unsettled = False
            except Unavailable as error:
                log.warning("sweep failed", error=str(error))
            self._hinted.clear()
            await heard(self._hinted, SWEEP_S)

    async def _begin_trials(self, first: list[Lane]) -> None:
        """Once all that was found at the start has been looked into: who is tried first depends on who the suspects are (A25)."""
        await self._until(lambda: all(lane.looked for lane in first))
        self._admissions.begin_trials()

    def hint(self) -> None:
        self._hinted.set()

    def one_resume_at_a_time(self) -> None:
        self._admissions.one_at_a_time()

    def end_trials(self) -> None:
        """Ten minutes without a death: the suspects that still wait follow like any other."""
        self._admissions.end_trials()
        self._look_again()

    async def convict(self) -> None:
        """Suspends sessions that were on trial when their process died, before anything else is decided: their deaths are explained, and
        count for nobody else (B14).
        """
        for session in await self._store.open_turns(apart_from=self._owner):
            interrupted = session.turn_state in (TurnState.RUNNING, TurnState.INTERRUPTED)
            if not interrupted or not self._recovery.may_be_stuck(session):
                continue
            if session.owner is not None and await self._lives(session.owner):
                continue
            try:
                judged = await self._recovery.look_into(session)
                if judged.rule.decision is Decision.SUSPEND:
                    await self._carry_out(judged)
            except Conflict as error:
                log.info("somebody else was faster", session=session.session_id, error=str(error))

    def resume_after(self, seconds: float) -> None:
        """After several crashes: nothing is resumed for this long. Decisions are made, and messages answered, at once."""
        self._admissions.resume_after(seconds)

    async def decide_again(self) -> None:
        """When nothing is held any more: also what is being decided in this moment by what held before."""
        self._look_again()
        await self.settle()

    async def settle(self) -> None:
        """What was left, or only marked, is decided again: at a start, and when nothing is held any more."""
        for session in await self._store.unsettled():
            if session.turn_state is TurnState.INTERRUPTED:
                self.look(session.session_id, seen=session)
            elif rule := await self._recovery.settle_quiet(session):
                self.tally.rules[rule.label] += 1

    async def _sweep_once(self) -> None:
        for session in await self._store.open_turns(apart_from=self._owner):
            if session.stop_requested or session.suspended or session.session_id not in self._lanes:
                self.look(session.session_id, seen=session)
        for session_id in await self._store.waiting_lanes(limit=SWEEP_LIMIT):
            if session_id not in self._lanes:
                self.look(session_id)
        for lane in list(self._lanes.values()):
            if lane.attempt is None:
                continue
            lane.attempt.beat_if_quiet()
            if lane.attempt.idle_s > self._idle_timeout_s:
                lane.attempt.cut(Cut.IDLE)

    async def cut_all(self, reason: str) -> None:
        """Every running turn is recorded as cut, then its agent is interrupted (C1)."""
        await self.settled()
        attempts = self.attempts
        marks = [self._tasks.spawn(attempt.mark_interrupted(reason), name=f"mark {attempt.turn_id}") for attempt in attempts]
        if marks:
            await asyncio.wait(marks)
        for attempt in attempts:
            attempt.cut(Cut.GATEWAY, "gateway restarting" if reason == "restart_timeout" else "gateway shutting down")

    async def idle(self, on_change: Callable[[], None] = lambda: None) -> None:
        """Returns when no turn runs or is about to; `on_change` is called each time their number changed."""
        running = self.running
        while self.running or self._starting:
            if self.running != running:
                running = self.running
                on_change()
            self._changed.clear()
            await self._changed.wait()

    async def settled(self) -> None:
        """Returns when every turn that is on record as running here is an attempt."""
        await self._until(lambda: not self._starting)

    async def _until(self, settled: Callable[[], bool]) -> None:
        while not settled():
            self._changed.clear()
            await self._changed.wait()

    async def _work(self, session_id: str, lane: Lane) -> None:
        failed, wait_s = True, 0.0
        try:
            while self._gate is not Gate.CLOSED:
                lane.again.clear()
                wait_s = 0.0
                try:
                    moved = await self._step(session_id, lane)
                except Unavailable as error:  # A turn may have been started: the lane stays with it until the store answers.
                    log.warning("lane waits for the store", session=session_id, error=str(error))
                    moved, wait_s = True, error.retry_after_s
                finally:
                    lane.starting = False
                    self._changed.set()
                if wait_s:
                    await asyncio.sleep(wait_s)
                if not moved and not lane.again.is_set():
                    break
            failed = wait_s > 0  # Closed while the store did not answer.
        except NotFound:
            failed = False  # It was deleted, and there is nothing left to look after.
        except Conflict as error:
            failed = False
            log.info("somebody else was faster", session=session_id, error=str(error))
        except (asyncio.CancelledError, GeneratorExit):
            failed = False
            raise
        except Bug:
            raise
        except HoldfastError as error:
            log.warning("lane stopped for now", session=session_id, error=str(error))
        finally:
            del self._lanes[session_id]
            lane.looked = True
            self._changed.set()
            if failed:  # A turn may be on record that nobody runs any more: it is found as one that was cut (P3).
                self._tasks.spawn(self._look_later(session_id), name=f"look after {session_id}")

    async def _look_later(self, session_id: str) -> None:
        await asyncio.sleep(LOOK_LATER_S)
        while self._gate is Gate.CLOSED:  # noqa: ASYNC110 - it has no event, and may last for as long as a hand-over.
            await asyncio.sleep(LOOK_LATER_S)
        self.look(session_id)

    async def _step(self, session_id: str, lane: Lane) -> bool:
        """One thing that was due; false when nothing is."""
        session, lane.seen = lane.seen or await self._store.session(session_id), None
        match session.turn_state:
            case TurnState.NONE | TurnState.ENDED if not session.queued:
                return False
            case TurnState.NONE | TurnState.ENDED:
                return await self._start(session, lane)
            case TurnState.ANSWERED:
                return await self._continue(session, lane)
            case TurnState.RUNNING | TurnState.INTERRUPTED:
                return await self._recover(session, lane)
            case _:
                return False

    async def _admit(self, session: Session, lane: Lane, judged: Judged | None = None) -> Admission | None:
        """What the next attempt of a session needs, as soon as it can be had. None when there was news first: it is decided again."""
        lane.looked = True
        self._changed.set()
        if self._gate is not Gate.OPEN:
            await lane.again.wait()
            return None
        admission = await self._admissions.take(session, lane.again, judged)
        if admission is None:
            return None
        if self._gate is not Gate.OPEN:
            with admission:
                return None
        lane.starting = True
        return admission

    async def _continue(self, session: Session, lane: Lane) -> bool:
        """A turn whose question is answered."""
        admission = await self._admit(session, lane)
        if admission is None:
            return True
        with admission:
            resumed = e.TurnResumed(attempt=session.attempt + 1, rule="answer", reason="answered", trial=admission.trial is not None)
            taken = await self._store.take_turn(
                session.session_id,
                owner=self._owner,
                turn_id=session.turn_id or "",
                epoch=session.epoch,
                events=[resumed],
                at=self._clock.now(),
            )
            await self._run(lane, taken, admission)
        return True

    async def _start(self, session: Session, lane: Lane) -> bool:
        admission = await self._admit(session, lane)
        if admission is None:
            return True
        with admission:
            started = await self._store.start_turn(
                session.session_id,
                owner=self._owner,
                turn_id=self._ids.new("t"),
                at=self._clock.now(),
                trial=admission.trial is not None,
            )
            if started is None:
                return False
            await self._run(lane, started, admission)
        return True

    async def _recover(self, session: Session, lane: Lane) -> bool:
        if session.owner not in (None, self._owner) and await self._lives(session.owner):
            return False
        # A few at a time, so that the store has time for people who write while a thousand turns are looked into (B13).
        async with self._turnstile:
            if self._gate is Gate.CLOSED:
                return False
            judged = await self._recovery.look_into(session)
        if judged.stands:  # A message continues from a turn that was left (A23).
            return bool(judged.session.queued) and await self._start(judged.session, lane)
        if judged.rule.decision is not Decision.RESUME:
            if self._gate is Gate.HELD and resume.waits_in_a_pause(judged.rule):
                await lane.again.wait()
                return True
            await self._carry_out(judged)
            return judged.rule.decision is not Decision.LEAVE or bool(judged.session.queued)
        admission = await self._admit(judged.session, lane, judged)
        if admission is None:
            return True
        with admission:
            resumed = await self._carry_out(judged, trial=admission.trial is not None)
            if resumed is not None:
                await self._run(lane, resumed, admission, resumed=judged.reason)
        return True

    async def _carry_out(self, judged: Judged, *, trial: bool = False) -> StartedTurn | None:
        self.tally.rules[judged.rule.label] += 1
        return await self._recovery.carry_out(judged, trial=trial)

    async def _lives(self, owner: int | None) -> bool:
        if owner not in self._names:
            self._names = {known.id: known.name for known in await self._store.owners()}
        if owner in self._names and self._liveness.alive(self._names[owner]):
            return True
        async with self._reaping:  # Its tools may have outlived it: they end before anything of it goes on.
            if owner not in self._reaped:
                for tool in self._tools.values():
                    await tool.reap(self._liveness.alive)
                self._reaped.add(owner)
        return False

    async def _run(self, lane: Lane, started: StartedTurn, admission: Admission, *, resumed: str | None = None) -> None:
        session, transcript = await self._read(started.lease.session_id)
        attempt = Attempt(
            session=session,
            transcript=transcript,
            written=TurnLog(self.journal, started),
            agent=self._agent,
            tools=self._tools,
            tasks=self._tasks,
            clock=self._clock,
            ids=self._ids,
            tally=self.tally,
            resumed=resumed,
        )
        if session.stop_requested or session.suspended:  # It came before there was anyone to hear it.
            attempt.cut(Cut.STOP if session.stop_requested else Cut.SUSPENDED)
        lane.attempt, lane.starting = attempt, False
        self._changed.set()
        helping = [self._tasks.spawn(self._watch_stops(lane, attempt), name=f"stops of {attempt.turn_id}")]
        if admission.trial is not None or admission.resume is not None:
            keeping = self._admissions.keep(admission, attempt, started.lease)
            helping.append(self._tasks.spawn(keeping, name=f"place of {attempt.turn_id}"))
        try:
            await attempt.run()
        finally:
            lane.attempt = None
            for task in helping:
                task.cancel()
            self._changed.set()
        if session.resume_pending and attempt.outcome is Outcome.COMPLETED and await self._completed(session.session_id):
            self._on_recovered()

    async def _completed(self, session_id: str) -> bool:
        """By the record: where a stop had been stored first, an answer that came too late ended as cancelled."""
        _, transcript = await self._read(session_id)
        return transcript.turns[-1].outcome is Outcome.COMPLETED

    async def _read(self, session_id: str) -> tuple[Session, Transcript]:
        """What a turn that is already on record begins with. A store that fails to answer has not cut it."""
        while True:
            try:
                session = await self._store.session(session_id)
                return session, await self._store.transcript(session)
            except Unavailable as error:
                if self._gate is Gate.CLOSED:
                    raise
                log.warning("turn waits for the store", session=session_id, error=str(error))
                await asyncio.sleep(error.retry_after_s)

    async def _watch_stops(self, lane: Lane, attempt: Attempt) -> None:
        """A stop is a record; whichever process stored it, the attempt hears of it here."""
        while True:
            await lane.again.wait()
            lane.again.clear()
            try:
                session = await self._store.session(attempt.session.session_id)
            except Unavailable as error:
                await asyncio.sleep(error.retry_after_s)
                lane.again.set()
                continue
            if (session.stop_requested or session.suspended) and session.turn_id == attempt.turn_id:
                attempt.cut(Cut.STOP if session.stop_requested else Cut.SUSPENDED)
                return
