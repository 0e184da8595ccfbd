"""The life of a gateway: how its parts start, pause, give way to a successor, and stop. One table decides what may follow what."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import structlog

from holdfast.core import crash_loops, lifecycle
from holdfast.core.errors import NotNow, Unavailable
from holdfast.core.lifecycle import GatewayState, Input
from holdfast.core.restarts import By, What
from holdfast.gateway.announcements import Announcements
from holdfast.gateway.delivery import Deliveries
from holdfast.gateway.feed import Feed
from holdfast.gateway.housekeeping import Housekeeping
from holdfast.gateway.intake import Intake
from holdfast.gateway.lanes import Lanes
from holdfast.gateway.recovery import Recovery
from holdfast.gateway.tasks import Tasks
from holdfast.ports.agents import Agent
from holdfast.ports.owners import Pause
from holdfast.ports.platforms import Platform
from holdfast.ports.process import Clock, Liveness
from holdfast.ports.store import Store
from holdfast.ports.tools import Tool

SAFE_AFTER = 3
LOOK_BACK_TRIES = 5
SOUND_AFTER_S = 600.0
LET_GO_S = 5.0
NOTICES_S = 3.0
CLOSE_S = 3.0

log = structlog.get_logger()


class Life:
    """Everything that lives as long as the gateway does. `broken`: a part of it failed, and the process should end. `step` is called with
    the name of each step of a stop, so that the watchdog can say which one hangs.
    """

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        owner: int,
        owner_name: str,
        liveness: Liveness,
        agent: Agent,
        tools: dict[str, Tool],
        platforms: dict[str, Platform],
        tasks: Tasks,
        feed: Feed,
        lanes: Lanes,
        recovery: Recovery,
        intake: Intake,
        deliveries: Deliveries,
        housekeeping: Housekeeping,
        announcements: Announcements,
        crash_policy: str,
        crash_window_s: float,
        drain_timeout_s: float,
        on_state: Callable[[GatewayState], None],
    ) -> None:
        self._store, self._clock, self._owner, self._owner_name, self._liveness = store, clock, owner, owner_name, liveness
        self._agent, self._tools, self._platforms, self._tasks = agent, tools, platforms, tasks
        self._feed, self._lanes, self._recovery = feed, lanes, recovery
        self._intake, self._deliveries, self._housekeeping = intake, deliveries, housekeeping
        self._crash_policy, self._crash_window_s, self._drain_timeout_s = crash_policy, crash_window_s, drain_timeout_s
        self._announcements, self._on_state = announcements, on_state
        self._draining_since: int | None = None
        self._intakes: list[asyncio.Task[None]] = []
        self.state = GatewayState.STARTING
        self.paused: Pause | None = None
        self.broken = asyncio.Event()
        self.stopped = asyncio.Event()
        self._hurried = asyncio.Event()
        self.step: Callable[[str], None] = lambda name: None

    @property
    def held_since(self) -> int | None:
        """Since when messages are kept and not answered; None while they are answered."""
        if self.paused is not None and self.state is GatewayState.PAUSED:
            return self.paused.since
        return self._draining_since

    # start

    async def start(self) -> None:
        await self._look_back()
        self._lanes.open()
        for name, work in (
            ("journal", self._lanes.journal.run()),
            ("feed", self._feed.run()),
            ("sweep", self._lanes.sweep()),
            ("deliveries", self._deliveries.run()),
            ("search index", self._housekeeping.index()),
            ("housekeeping", self._housekeeping.tidy()),
            ("purge", self._housekeeping.purge()),
            ("soundness", self._prove_sound()),
        ):
            self._tasks.spawn(self._vital(work), name=name)
        self._take_in()
        self._move(Input.READY)
        if self.paused is not None:
            self._begin_pause(self.paused)

    def serve(self) -> None:
        """It is the one that serves now: those who wait for a restart are told."""
        self._tasks.spawn(self._insist(self._announcements.back), name="restart note")

    def _take_in(self) -> None:
        for name, platform in self._platforms.items():
            self._intakes.append(self._tasks.spawn(self._vital(self._intake.follow(platform)), name=f"intake {name}"))

    async def _take_in_no_more(self) -> None:
        intakes, self._intakes = self._intakes, []
        for intake in intakes:
            intake.cancel()
        if intakes:
            await asyncio.wait(intakes, timeout=LET_GO_S)

    async def _look_back(self) -> None:
        """What earlier lives mean for this one. Where that cannot be known, nothing is resumed by itself until this one is sound."""
        for _ in range(LOOK_BACK_TRIES):
            try:
                return await self._read_back()
            except Unavailable as error:
                log.warning("earlier starts are not known yet", error=str(error))
                await asyncio.sleep(min(error.retry_after_s, 1.0))
        self._enter_safe_mode(starts_that_died=None)

    async def _read_back(self) -> None:
        """How they ended, how many in a row ended badly, and whether an operator paused the work."""
        now = self._clock.now()
        unclean = await self._store.record_start(self._owner, at=now)
        await self._lanes.convict()
        if unclean >= SAFE_AFTER:  # Deaths for which a session has just been suspended do not count.
            unclean = await self._store.record_start(self._owner, at=now)
        if unclean >= SAFE_AFTER:
            self._enter_safe_mode(starts_that_died=unclean)
        await self._slow_down(now)
        if self._crash_policy == "suspend" and not await self._store.last_end(apart_from=self._owner):
            suspended = await self._store.suspend_active(window_ms=int(self._crash_window_s * 1000), at=now)
            log.warning("sessions suspended after a crash", count=suspended)
        self.paused = await self._store.pause(now=now)

    async def _slow_down(self, now: int) -> None:
        """A crash loop is ours to brake: a supervisor never gives up (C26)."""
        deaths = await self._store.deaths(before=self._owner, since=now - crash_loops.WINDOW_MS)
        if wait_s := crash_loops.wait_s(deaths):
            log.warning("starts died one after the other: resumes wait", deaths=deaths, wait_s=wait_s)
            self._lanes.resume_after(wait_s)

    def _enter_safe_mode(self, *, starts_that_died: int | None) -> None:
        log.error("safe mode: nothing is resumed by itself", starts_that_died=starts_that_died)
        self._recovery.safe_mode = True
        self._lanes.one_resume_at_a_time()

    async def _vital(self, work: Coroutine[Any, Any, None]) -> None:
        """Without any one of these a gateway only looks alive. Its process should end, and the next start goes on from the log."""
        try:
            await work
        except Exception:  # The boundary: reported by its task; the process acts on `broken`.
            self.broken.set()
            raise

    def _move(self, happened: Input) -> None:
        if self._become(happened):
            self._on_state(self.state)

    def _become(self, happened: Input) -> bool:
        """Whether that is another state; nobody is told of it yet."""
        before, self.state = self.state, lifecycle.after(self.state, happened)
        if before is not self.state:
            log.info("gateway", state=self.state, before=before, because=happened)
        return before is not self.state

    # safe mode

    async def _prove_sound(self) -> None:
        await asyncio.sleep(SOUND_AFTER_S)
        await self._insist(lambda: self._store.record_sound(self._owner))
        self._lanes.end_trials()
        self.leave_safe_mode("ten healthy minutes")

    def leave_safe_mode(self, because: str) -> None:
        """What is still pending is decided again."""
        if self._recovery.safe_mode:
            log.info("safe mode ends", because=because)
            self._recovery.safe_mode = False
            self._on_state(self.state)
            self._tasks.spawn(self._insist(self._lanes.decide_again), name="decide again")

    async def _insist(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            try:
                return await work()
            except Unavailable as error:
                await asyncio.sleep(error.retry_after_s)

    # pause

    async def pause(self, holder: str, for_s: float) -> Pause:
        """No turn starts or resumes until it is taken back or over; those that run continue, messages are kept (C21, A26)."""
        self._check("pause", Input.PAUSE)
        now = self._clock.now()
        paused = Pause(holder, since=now, until=now + int(for_s * 1000))
        await self._store.set_pause(paused)
        if not lifecycle.may(self.state, Input.PAUSE):  # A stop or a hand-over came in between.
            await self._store.set_pause(self.paused)
            raise NotNow("pause", self.state)
        self._begin_pause(paused)
        return paused

    def _begin_pause(self, paused: Pause) -> None:
        self.paused = paused
        self._lanes.hold()
        self._move(Input.PAUSE)
        self._on_state(self.state)
        # By its own clock: a wall clock that steps back, now or before this start, must not make a pause last for ever.
        left_ms = min(paused.until - self._clock.now(), paused.until - paused.since)
        self._tasks.spawn(self._end_pause_in(paused, left_ms / 1000), name="end of pause")

    async def _end_pause_in(self, paused: Pause, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))
        if self.paused == paused:
            log.info("pause is over", holder=paused.holder)
            await self._insist(self.unpause)

    async def unpause(self) -> None:
        self._check("unpause", Input.UNPAUSE)
        await self._store.set_pause(None)
        self.paused = None
        if self.state is GatewayState.PAUSED:
            self._move(Input.UNPAUSE)
            self._lanes.open()
            self._lanes.hint()

    def _check(self, what: str, wanted: Input) -> None:
        if not lifecycle.may(self.state, wanted):
            raise NotNow(what, self.state)

    # hand-over

    def begin_hand_over(self) -> None:
        self._check("hand over", Input.HAND_OVER)
        self._move(Input.HAND_OVER)

    async def let_go(self) -> None:
        """For a successor that is ready: no turn starts here any more, nothing new is sent, and what is being sent has its outcome."""
        self._lanes.close()
        await self._take_in_no_more()
        self._deliveries.hold()
        await self._deliveries.tried()
        await self._record_end()

    async def take_back(self, *, to_stop: bool = False) -> None:
        """The successor failed: everything goes on here. `to_stop`: only until this one stops, so that nothing new begins."""
        self._move(Input.NOT_TAKEN)
        if self.state is not GatewayState.RUNNING:
            return
        self._deliveries.release()
        if to_stop:
            return
        if not self._intakes:  # A successor that was never ready took nothing away.
            self._take_in()
        if self.paused is not None:
            self._begin_pause(self.paused)
        else:
            self._lanes.open()
            self._lanes.hint()
        try:
            await self._record_start_again()
        except Unavailable:  # Nobody who asked for the hand-over has to wait for the store.
            self._tasks.spawn(self._insist(self._record_start_again), name="start on record again")

    async def _record_start_again(self) -> None:
        await self._store.record_end(self._owner, ended=False)

    async def retire(self) -> None:
        """The successor serves. Returns when the turns that run here have come to their ends; readers go over to it at once."""
        self._move(Input.TAKEN_OVER)
        self._feed.end("handover")
        await self._lanes.idle()

    # stop

    def hurry(self) -> None:
        """A stop that is under way, or comes, gives running turns no more time."""
        self._hurried.set()

    async def stop(self, *, reason: str, by: By | None = None) -> None:
        """Tells whom it will cut, drains, then cuts what still runs: marked first, interrupted after. What was accepted stays in the
        store.
        """
        retiring = self.state is GatewayState.RETIRING
        if retiring and not self._lanes.running:
            self._move(Input.EMPTY)
        changed = self._become(Input.STOP)
        told, in_time = False, True
        if self.state is GatewayState.DRAINING:
            self._draining_since = self._clock.now()
            self._lanes.hold()
        async with self._named("record"):
            await self._record_drain(reason)
            await self._record_end()
        if changed:  # Whoever reads the state can rely on the record.
            self._on_state(self.state)
        if self.state is GatewayState.DRAINING:
            async with self._named("announce"):
                told = await self._announce(reason, by, retiring=retiring)
            async with self._named("drain"):
                in_time = await self._unless_hurried(self._drained())
            self._move(Input.EMPTY if in_time else Input.DEADLINE)
        async with self._named("cut turns"):
            self._lanes.close()
            await self._lanes.cut_all(reason)
        if not in_time:
            async with self._named("kill commands"):
                await self._kill_commands()
        async with self._named("let go"):
            await self._let_go(told=told)
        async with self._named("disconnect"):
            await self._disconnect()
        async with self._named("kill commands"):
            await self._kill_commands()
        async with self._named("close"):
            await self._record_end()
            self._feed.end("shutdown")
            self._feed.close()
            await self._tasks.aclose()
        self._move(Input.CLOSED)
        self.stopped.set()

    @asynccontextmanager
    async def _named(self, step: str) -> AsyncIterator[None]:
        self.step(step)
        began = time.monotonic()
        try:
            yield
        except Exception as error:  # The closer: one step that fails must not keep the others from being taken.
            log.error("a step of the stop failed", step=step, exc_info=error)
        log.info("stop", step=step, took_s=round(time.monotonic() - began, 3))

    async def _announce(self, reason: str, by: By | None, *, retiring: bool) -> bool:
        if retiring:
            await self._announcements.before_retiring_stops()
            return False
        return await self._announcements.before(What.RESTART if reason == "restart_timeout" else What.STOP, by)

    async def _unless_hurried(self, drain: Coroutine[Any, Any, bool]) -> bool:
        """What the drain says, or False as soon as nobody wants to wait for it any longer."""
        draining = self._tasks.spawn(drain, name="drain")
        hurried = self._tasks.spawn(self._hurried.wait(), name="hurry")
        await asyncio.wait({draining, hurried}, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        if draining.done():
            return draining.result()
        draining.cancel()
        return False

    async def _drained(self) -> bool:
        """Empty: no turn runs, and what is owed to chats was tried once (C2). Both have the same window; without one, running turns have no
        time at all, and replies of turns that have just ended have as long as closing may take.
        """
        if self._drain_timeout_s <= 0:
            await self._lanes.settled()
            if self._lanes.running:
                return False
        try:
            async with asyncio.timeout(self._drain_timeout_s or LET_GO_S):
                await self._lanes.idle(on_change=lambda: self._on_state(self.state))
                await self._deliveries.tried()
        except (TimeoutError, Unavailable):
            return False
        return True

    async def _let_go(self, *, told: bool) -> None:
        """Cut turns end their agents; where chats were told that it ends, that goes out first. A send that is under way gets a moment for
        its receipt, or nobody knows what became of it.
        """
        until = asyncio.get_running_loop().time() + LET_GO_S
        try:
            if told:
                async with asyncio.timeout(NOTICES_S):
                    await self._deliveries.tried()
        except (TimeoutError, Unavailable):
            log.warning("not every notice went out in time")
        finally:
            self._deliveries.close()
        try:
            async with asyncio.timeout_at(until):
                await self._lanes.idle()
                await self._deliveries.tried()
        except TimeoutError:
            if self._lanes.running:
                log.error("turns did not let go in time", turns=self._lanes.running_turns)
            else:
                log.warning("a send had no answer in time")

    async def _disconnect(self) -> None:
        await self._take_in_no_more()
        open_ones: list[Platform | Agent] = [*self._platforms.values(), self._agent]
        for what in open_ones:
            try:
                async with asyncio.timeout(CLOSE_S):
                    await what.aclose()
            except Exception as error:  # The boundary to foreign code: what does not close is named, and left.
                log.error("does not close", what=what.name, error=f"{type(error).__name__}: {error}")

    async def _kill_commands(self) -> None:
        """Whatever tools of this life still run. Commands of other living processes are theirs."""
        for tool in self._tools.values():
            await tool.reap(lambda name: name != self._owner_name and self._liveness.alive(name))

    async def _record_drain(self, reason: str) -> None:
        """Before anybody is told and before anything is interrupted: a kill from now on is not a crash (C27)."""
        try:
            await self._store.record_drain(self._owner, reason=reason)
        except Unavailable as error:
            log.warning("the stop is not on record", error=str(error))

    async def _record_end(self) -> None:
        if self.broken.is_set():
            return  # However orderly it is taken down, it did not end on purpose.
        try:
            await self._store.record_end(self._owner)
        except Unavailable as error:
            log.warning("the end of this life is not on record", error=str(error))
