"""Finds what nobody told this process of: turns of processes that died, messages and stops that others stored, turns that hang."""

import asyncio

import structlog

from holdfast.core.errors import Conflict, NotFound, Unavailable
from holdfast.core.lifecycle import Work
from holdfast.core.turns import TurnState
from holdfast.gateway.admission import Admissions
from holdfast.gateway.host import Host
from holdfast.gateway.lanes import Lane, Lanes
from holdfast.gateway.neighbours import Neighbours
from holdfast.gateway.news import Halt, Newsroom
from holdfast.gateway.recovery import Recovery
from holdfast.gateway.runner import Runner
from holdfast.gateway.safe_mode import SafeMode
from holdfast.gateway.stage import Stage
from holdfast.gateway.tasks import heard
from holdfast.ports.agents import AgentProcesses
from holdfast.ports.turns import Turns

SWEEP_S = 1.0
SWEEP_LIMIT = 1000
NEWS_S = 0.5

log = structlog.get_logger()


class Sweep:
    """Looks once a second, and as soon as another process gives a hint."""

    def __init__(
        self,
        *,
        store: Turns,
        host: Host,
        lanes: Lanes,
        runner: Runner,
        recovery: Recovery,
        admissions: Admissions,
        neighbours: Neighbours,
        newsroom: Newsroom,
        stage: Stage,
        safe_mode: SafeMode,
        idle_timeout_s: float,
        agent_processes: AgentProcesses | None,
    ) -> None:
        self._store, self._host, self._lanes, self._runner = store, host, lanes, runner
        self._recovery, self._admissions, self._neighbours = recovery, admissions, neighbours
        self._newsroom, self._stage, self._safe_mode, self._idle_timeout_s = newsroom, stage, safe_mode, idle_timeout_s
        self._agent_processes = agent_processes
        self._looked_at = 0.0
        self._hinted = asyncio.Event()

    def hint(self) -> None:
        self._hinted.set()

    async def run(self) -> None:
        first = True
        while True:
            self._hinted.clear()  # A hint that comes while it looks may be about what it has passed.
            try:
                await self._look()
                if first:
                    self._host.tasks.spawn(self._begin_trials(self._lanes.all), name="first look")
                    await self._decide_left()
                    await self._look_at_agents()
                    first = False
            except Unavailable as error:
                log.warning("sweep failed", error=str(error))
            await heard(self._hinted, SWEEP_S)

    async def _begin_trials(self, first: list[Lane]) -> None:
        """Once all that was found at the start has been looked into: who is tried first depends on who the suspects are (A25)."""
        await self._runner.until(lambda: all(lane.looked for lane in first))
        self._admissions.begin_trials()

    async def _look(self) -> None:
        for session in await self._store.open_turns(apart_from=self._host.owner):
            if session.stop_requested or session.suspended or session.session_id not in self._lanes:
                self._lanes.look(session.session_id, seen=session)
        for session_id in await self._store.waiting_lanes(limit=SWEEP_LIMIT, safe=self._safe_mode.on):
            if session_id not in self._lanes:
                self._lanes.look(session_id)
        self._look_for_news()
        for attempt in list(self._runner.attempts.values()):
            attempt.beat_if_quiet()
            if attempt.idle_s > self._idle_timeout_s:
                attempt.news.halt(Halt.IDLE)

    def _look_for_news(self) -> None:
        """What people say to turns that run here is stored by the process that serves: while this one does not, it looks for itself."""
        now = self._host.clock.monotonic()
        if self._stage.work is Work.ALL or now < self._looked_at + NEWS_S:
            return
        self._looked_at = now
        for session_id in self._runner.attempts:
            self._newsroom.hint(session_id)

    async def _look_at_agents(self) -> None:
        """The last process may have died after a turn had ended and before its agent was stopped."""
        if self._agent_processes is not None:
            for session_id in await self._agent_processes.sessions():
                self._lanes.look(session_id)

    async def convict(self) -> None:
        """Suspends sessions that were on trial when their process died, before anything else is decided: their deaths are explained, and
        count for nobody else (B14).
        """
        for session in await self._store.open_turns(apart_from=self._host.owner):
            interrupted = session.turn_state in (TurnState.RUNNING, TurnState.INTERRUPTED)
            if not interrupted or not self._recovery.may_be_stuck(session):
                continue
            if session.owner is not None and await self._neighbours.lives(session.owner):
                continue
            try:
                await self._recovery.convict(session)
            except Conflict as error:
                log.info("somebody else was faster", session=session.session_id, error=str(error))

    async def decide_again(self) -> None:
        """When nothing is held any more: also what is being decided in this moment by what held before."""
        self._lanes.look_again()
        await self._decide_left()

    async def _decide_left(self) -> None:
        """What was left, or only marked, is decided again: at a start, and when nothing is held any more."""
        for session in await self._store.undecided():
            if session.turn_state is TurnState.INTERRUPTED:
                self._lanes.look(session.session_id, seen=session)
            else:
                try:
                    await self._recovery.decide_quiet(session)
                except NotFound:
                    pass  # It was deleted since.
