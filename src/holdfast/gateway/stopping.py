"""How a gateway stops: named steps, each of which may fail without holding up the next. What was accepted stays in the store."""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import structlog

from holdfast.core.errors import Unavailable
from holdfast.core.lifecycle import GatewayState, Input
from holdfast.core.restarts import By, What
from holdfast.gateway.announcements import Announcements
from holdfast.gateway.background import Background
from holdfast.gateway.connections import Connections
from holdfast.gateway.delivery import Deliveries
from holdfast.gateway.edges import Edges
from holdfast.gateway.feed import Feed
from holdfast.gateway.host import Host
from holdfast.gateway.lanes import Lanes
from holdfast.gateway.runner import Runner
from holdfast.gateway.stage import Stage
from holdfast.gateway.streaming import Streams
from holdfast.ports.owners import Owners

AGENTS_END_S = 5.0
NOTICES_S = 3.0

log = structlog.get_logger()


class Stopping:
    """`edges.on_step` is called with the name of each step, so that a watchdog can say which one hangs."""

    def __init__(
        self,
        *,
        store: Owners,
        host: Host,
        stage: Stage,
        lanes: Lanes,
        runner: Runner,
        connections: Connections,
        deliveries: Deliveries,
        streams: Streams,
        announcements: Announcements,
        feed: Feed,
        background: Background | None,
        edges: Edges,
        drain_timeout_s: float,
    ) -> None:
        self._store, self._host, self._stage, self._lanes, self._runner = store, host, stage, lanes, runner
        self._connections, self._deliveries, self._streams, self._announcements = connections, deliveries, streams, announcements
        self._feed, self._background, self._drain_timeout_s = feed, background, drain_timeout_s
        self._tools, self._agent_processes, self._on_step = edges.tools, edges.agent_processes, edges.on_step
        self._hurried = asyncio.Event()
        self.stopped = asyncio.Event()

    def hurry(self) -> None:
        """A stop that is under way, or comes, gives running turns no more time."""
        self._hurried.set()

    async def run(self, *, reason: str, by: By | None, for_good: bool) -> None:
        """Tells whom it will interrupt, drains, then interrupts what still runs: marked first, cancelled after. `for_good`: an operator
        wants it to stay stopped, so that background processes end, too (C15).
        """
        retiring = self._stage.state is GatewayState.RETIRING
        if retiring and not self._runner.running:
            self._move(Input.EMPTY)
        changed = self._enter(Input.STOP)
        told, in_time = False, True
        async with self._named("record"):
            await self._record_drain(reason)
            await self.record_end()
        if changed:  # Readers of the state can rely on the record.
            self._stage.tell()
        if self._stage.state is GatewayState.DRAINING:
            async with self._named("announce"):
                told = await self._announce(reason, by, retiring=retiring)
            async with self._named("drain"):
                in_time = await self._unless_hurried(self._drained())
            self._move(Input.EMPTY if in_time else Input.DEADLINE)
        async with self._named("interrupt turns"):
            await self._runner.interrupt_all(reason)
        if not in_time:
            async with self._named("kill commands"):
                await self._kill_commands()
        if for_good and self._background is not None:
            async with self._named("end background processes"):
                told = await self._background.stop_all() or told
        if for_good and self._agent_processes is not None:
            async with self._named("end the processes of agents"):
                await self._agent_processes.stop_all()
        async with self._named("end agents"):
            await self._end_agents(told=told)
        async with self._named("disconnect"):
            await self._connections.close()
        async with self._named("kill commands"):
            await self._kill_commands()
        async with self._named("close"):
            await self.record_end()
            self._feed.end("shutdown")
            self._feed.close()
            await self._host.tasks.aclose()
        self._move(Input.CLOSED)
        self.stopped.set()

    def _enter(self, happened: Input) -> bool:
        changed = self._stage.enter(happened)
        self._lanes.look_again()
        return changed

    def _move(self, happened: Input) -> None:
        if self._enter(happened):
            self._stage.tell()

    @asynccontextmanager
    async def _named(self, step: str) -> AsyncIterator[None]:
        self._on_step(step)
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
        draining = self._host.tasks.spawn(drain, name="drain")
        hurried = self._host.tasks.spawn(self._hurried.wait(), name="hurry")
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
            await self._runner.begun()
            if self._runner.running:
                return False
        try:
            async with asyncio.timeout(self._drain_timeout_s or AGENTS_END_S):
                await self._runner.idle(on_change=self._stage.tell)
                await self._deliveries.tried()
        except (TimeoutError, Unavailable):
            return False
        return True

    async def _end_agents(self, *, told: bool) -> None:
        """Interrupted turns end their agents; where chats were told that it ends, that goes out first. A send that is under way gets a
        moment for its receipt, or nobody knows what became of it.
        """
        until = asyncio.get_running_loop().time() + AGENTS_END_S
        try:
            if told:
                async with asyncio.timeout(NOTICES_S):
                    await self._deliveries.tried()
        except (TimeoutError, Unavailable):
            log.warning("not every notice went out in time")
        finally:
            self._streams.close()
            self._deliveries.close()
        try:
            async with asyncio.timeout_at(until):
                await self._runner.idle()
                await self._deliveries.tried()
        except TimeoutError:
            if self._runner.running:
                turns = [attempt.turn_id for attempt in self._runner.attempts.values()]
                log.error("turns did not end in time", turns=turns)
            else:
                log.warning("a send had no answer in time")

    async def _kill_commands(self) -> None:
        """Whatever tools of this life still run. Commands of other living processes are theirs."""
        await self._tools.reap(lambda name: name != self._host.name and self._host.liveness.alive(name))

    async def _record_drain(self, reason: str) -> None:
        """Before anybody is told and before anything is interrupted: a kill from now on is not a crash (C27)."""
        try:
            await self._store.record_drain(self._host.owner, reason=reason)
        except Unavailable as error:
            log.warning("the stop is not on record", error=str(error))

    async def record_end(self, *, handed_over: bool = False) -> None:
        if self._stage.broken.is_set():
            return  # However orderly it is taken down, it did not end on purpose.
        try:
            await self._store.record_end(self._host.owner, handed_over=handed_over)
        except Unavailable as error:
            log.warning("the end of this life is not on record", error=str(error))
