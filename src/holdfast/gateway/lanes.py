"""One lane per session: what is due next, one thing at a time. A lane exists while there is something to do."""

import asyncio

import structlog

from holdfast.core import events as e
from holdfast.core import resume
from holdfast.core.errors import Bug, Conflict, HoldfastError, NotFound, StalePosition, Unavailable
from holdfast.core.lifecycle import Work
from holdfast.core.resume import Decision
from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState
from holdfast.gateway.admission import Admission, Admissions
from holdfast.gateway.budget import Budget
from holdfast.gateway.host import Host
from holdfast.gateway.neighbours import Neighbours
from holdfast.gateway.news import Newsroom
from holdfast.gateway.recollections import Recollections
from holdfast.gateway.recovery import Judged, Recovery
from holdfast.gateway.runner import Runner
from holdfast.gateway.safe_mode import SafeMode
from holdfast.gateway.stage import Stage
from holdfast.ports.agents import AgentProcesses
from holdfast.ports.store import Store

LOOK_LATER_S = 5.0
LOOKED_INTO_AT_ONCE = 4

log = structlog.get_logger()


class Lane:
    """`again`: something changed since the lane last looked. `looked`: what was interrupted in it, if anything, is on record. `seen`: what
    was read of the session when the lane was made; good for its first step.
    """

    def __init__(self, seen: Session | None) -> None:
        self.seen = seen
        self.looked = False
        self.again = asyncio.Event()


class Lanes:
    """Starts, resumes and stops turns. Recovery comes before new messages, because a lane takes one step at a time (B8, P2)."""

    def __init__(
        self,
        *,
        store: Store,
        host: Host,
        stage: Stage,
        recovery: Recovery,
        admissions: Admissions,
        neighbours: Neighbours,
        newsroom: Newsroom,
        runner: Runner,
        safe_mode: SafeMode,
        budget: Budget,
        recollections: Recollections,
        agent_processes: AgentProcesses | None,
    ) -> None:
        self._store, self._host, self._stage, self._safe_mode = store, host, stage, safe_mode
        self._recovery, self._admissions, self._neighbours = recovery, admissions, neighbours
        self._newsroom, self._runner, self._budget = newsroom, runner, budget
        self._recollections, self._agent_processes = recollections, agent_processes
        self._lanes: dict[str, Lane] = {}
        self._turnstile = asyncio.Semaphore(LOOKED_INTO_AT_ONCE)

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._lanes

    @property
    def all(self) -> list[Lane]:
        return list(self._lanes.values())

    def look_again(self) -> None:
        """Whatever waits to begin is decided again."""
        for session_id, lane in self._lanes.items():
            if session_id not in self._runner.attempts:
                lane.again.set()

    def look(self, session_id: str, *, seen: Session | None = None) -> None:
        """Something may be due in this session, or new to the attempt that runs in it; `seen` is what was just read of it."""
        self._newsroom.hint(session_id)
        lane = self._lanes.get(session_id)
        if lane is not None:
            lane.again.set()
        elif self._stage.work is not Work.NOTHING:
            lane = self._lanes[session_id] = Lane(seen)
            self._host.tasks.spawn(self._work(session_id, lane), name=f"lane {session_id}")

    async def _work(self, session_id: str, lane: Lane) -> None:
        failed, wait_s = True, 0.0
        try:
            while self._stage.work is not Work.NOTHING:
                lane.again.clear()
                wait_s = 0.0
                try:
                    moved = await self._step(session_id, lane)
                except Unavailable as error:  # A turn may have been started: the lane stays with it until the store answers.
                    log.warning("lane waits for the store", session=session_id, error=str(error))
                    moved, wait_s = True, error.retry_after_s
                finally:
                    self._runner.starting.discard(session_id)
                    self._runner.changed()
                if wait_s:
                    await asyncio.sleep(wait_s)
                if not moved and not lane.again.is_set():
                    break
            failed = wait_s > 0  # Nothing may begin any more, and the store did not answer.
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
            self._runner.changed()
            if failed:  # A turn may be on record that nobody runs any more: it is found as one that was interrupted (P3).
                self._host.tasks.spawn(self._look_later(session_id), name=f"look after {session_id}")

    async def _look_later(self, session_id: str) -> None:
        await asyncio.sleep(LOOK_LATER_S)
        while self._stage.work is Work.NOTHING:  # noqa: ASYNC110 - it has no event, and may last for as long as a hand-over.
            await asyncio.sleep(LOOK_LATER_S)
        self.look(session_id)

    async def _step(self, session_id: str, lane: Lane) -> bool:
        """One thing that was due; false when nothing is."""
        session, lane.seen = lane.seen or await self._store.session(session_id), None
        match session.turn_state:
            case TurnState.NONE | TurnState.ENDED if not session.queued:
                await self._settle_agents(session, lane)
                return False
            case TurnState.NONE | TurnState.ENDED:
                return await self._start(session, lane)
            case TurnState.ANSWERED:
                return await self._continue(session, lane)
            case TurnState.RUNNING | TurnState.INTERRUPTED:
                return await self._recover(session, lane)
            case _:
                return False

    async def _settle_agents(self, session: Session, lane: Lane) -> None:
        """Stops agents that are other programs and still work for a turn that has ended, or whose conversation is suspended: maybe no
        attempt was there to do so (A21, P5).
        """
        if self._agent_processes is None or session.session_id not in await self._agent_processes.sessions():
            return
        lane.looked = True  # Nobody has to wait for them.
        self._runner.changed()
        transcript = await self._recollections.read(session)
        reads = [link.read for link in transcript.links.values() if link.read is not None]
        self._recollections.keep(session, transcript)
        for read in reads:
            await self._agent_processes.settle(session.session_id, read)

    async def _settle_suspended(self, judged: Judged, lane: Lane) -> None:
        """A turn that was left for other reasons keeps its agent: that works on, and is read when the turn continues."""
        if judged.session.suspended:
            await self._settle_agents(judged.session, lane)

    async def _admit(self, session: Session, lane: Lane, judged: Judged | None = None) -> Admission | None:
        """What the next attempt of a session needs, as soon as it can be had. None when there was news first: it is decided again."""
        lane.looked = True
        self._runner.changed()
        if self._stage.work is not Work.ALL:
            await lane.again.wait()
            return None
        admission = await self._admissions.take(session, lane.again, judged)
        if admission is None:
            return None
        if self._stage.work is not Work.ALL:
            with admission:
                return None
        self._runner.starting.add(session.session_id)
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
                owner=self._host.owner,
                turn_id=session.turn_id or "",
                epoch=session.epoch,
                events=[resumed],
                at=self._host.clock.now(),
            )
            await self._runner.run(taken, admission)
        return True

    async def _start(self, session: Session, lane: Lane) -> bool:
        admission = await self._admit(session, lane)
        if admission is None:
            return True
        with admission:
            started = await self._store.start_turn(
                session.session_id,
                owner=self._host.owner,
                turn_id=self._host.ids.new("t"),
                at=self._host.clock.now(),
                trial=admission.trial is not None,
                safe=self._safe_mode.on,
                bounds=self._budget.bounds(self._host.clock),
            )
            if started is None:
                return False
            await self._runner.run(started, admission)
        return True

    async def _recover(self, session: Session, lane: Lane) -> bool:
        if session.owner not in (None, self._host.owner) and await self._neighbours.lives(session.owner):
            return False
        # A few at a time, so that the store has time for people who write while a thousand turns are looked into (B13).
        async with self._turnstile:
            if self._stage.work is Work.NOTHING:
                return False
            judged = await self._recovery.look_into(session)
        if judged.stands:  # A message continues from a turn that was left (A23).
            await self._settle_suspended(judged, lane)
            return bool(judged.session.queued) and await self._start(judged.session, lane)
        if judged.rule.decision is not Decision.RESUME:
            if self._stage.work is Work.DECISIONS and resume.waits_in_a_pause(judged.rule):
                await lane.again.wait()
                return True
            try:
                await self._recovery.carry_out(judged)
            except StalePosition:
                return True
            await self._settle_suspended(judged, lane)
            return judged.rule.decision is not Decision.LEAVE or bool(judged.session.queued)
        admission = await self._admit(judged.session, lane, judged)
        if admission is None:
            return True
        with admission:
            resumed = await self._recovery.carry_out(judged, trial=admission.trial is not None)
            if resumed is not None:
                await self._runner.run(resumed, admission, resumed=judged.reason)
        return True
