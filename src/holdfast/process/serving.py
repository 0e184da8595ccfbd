"""The course of one process: it starts, serves, perhaps hands over to a successor, lets its turns end, and exits before a deadline."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

from holdfast import __version__, tool_processes
from holdfast.config import LOG
from holdfast.core import exits
from holdfast.core.errors import HandOverFailed, HoldfastError, NotNow, StoppedInstead, Unavailable
from holdfast.core.exits import End
from holdfast.core.lifecycle import GatewayState
from holdfast.core.process_id import ProcessId
from holdfast.core.restarts import By, Request
from holdfast.core.shutdowns import Shutdown
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.tasks import Tasks, heard
from holdfast.locks import OWNERS, OwnerLocks, ServingLock
from holdfast.process import foreground, stop_marker, system
from holdfast.process.foreground import Foreground
from holdfast.process.handover import Predecessor, Successor, hand_over
from holdfast.process.report import Report
from holdfast.process.server import Server
from holdfast.process.stop_requests import StopRequests, end_by_force, others
from holdfast.process.supervisor import Kind, Supervisor
from holdfast.process.watchdog import Watchdog
from holdfast.store.sqlite.connection import SCHEMA_VERSION
from holdfast.store.sqlite.ground import Identity

CONNECTIONS_S = 6.0
LOOK_S = 0.05

log = structlog.get_logger()


class ServingProcess:
    """`foreground`: what this process becomes at its end, if a successor serves and a terminal still waits for this process. Through a
    pipe the foreground process learns the exit code of the last successor: it keeps `exit_reader`, successors inherit the other end.
    """

    def __init__(
        self,
        *,
        home: Path,
        gateway: Gateway,
        owner: int,
        server: Server,
        lock: ServingLock,
        listener: int,
        report: Report,
        locks: OwnerLocks,
        clock: system.SystemClock,
        supervisor: Supervisor,
        predecessor: Predecessor | None,
        stop_timeout_s: float,
        tasks: Tasks,
        database: Callable[[], Identity | None],
        on_serving: Callable[[], None],
    ) -> None:
        self._home, self._gateway, self._server, self._lock, self._listener = home, gateway, server, lock, listener
        self._report, self._locks, self._clock, self._supervisor, self._predecessor = report, locks, clock, supervisor, predecessor
        self._stop_timeout_s, self._tasks, self._database, self._on_serving = stop_timeout_s, tasks, database, on_serving
        self._exit_writer: int | None = predecessor.inherited.foreground if predecessor else None
        self._ended = asyncio.Event()
        self._other_end: End | None = None
        self._handing_over = asyncio.Lock()
        self._successor: Successor | None = None
        self.succeeded_by: ProcessId | None = None
        self.exit_reader: int | None = None
        self.foreground: Foreground | None = None
        loop = asyncio.get_running_loop()
        self._watchdog = Watchdog(
            loop,
            supervisor,
            beats=home / OWNERS / (report.owner or ""),
            log=home / LOG,
            last_words=self._last_words,
            code=self._code,
        )
        self.stops = StopRequests(
            home=home,
            report=report,
            store=gateway.store,
            owner=owner,
            now=clock.now,
            tasks=tasks,
            watchdog=self._watchdog,
            stop_timeout_s=stop_timeout_s,
            on_stop=self._on_stop,
            on_hup=None if supervisor.kind is Kind.PLAIN else self._on_hup,
        )

    # what may be asked of it

    def stop(self, why: str) -> None:
        """Asked for by somebody who may."""
        self.stops.stop(Shutdown(why=why, planned=True))

    def at_step(self, step: str) -> None:
        """Where a stop has come to: the watchdog can say which step hangs."""
        self._watchdog.step(step)

    def _on_stop(self, shutdown: Shutdown) -> None:
        if shutdown.now:
            self._gateway.lifecycle.hurry()
        if self._ended.is_set():  # What is shown of the end may have changed.
            self._report.moved(self._gateway.state)
        self._ended.set()

    @property
    def _end(self) -> End:
        """The operator's word wins over every other reason (C28)."""
        shutdown = self.stops.shutdown
        # Whoever waits for the foreground process waits for the whole, also when this process has to be ended by its deadline.
        if self.succeeded_by is not None and (shutdown is None or self.exit_reader is None):
            return End.RETIRED
        if shutdown is not None and shutdown.planned:
            return End.STOP
        return self._other_end or End.STOP

    async def restart(self, by: By, why: str) -> dict[str, Any]:
        """By hand-over where a successor can take the place of this process; elsewhere it ends and its supervisor starts it again."""
        if self._successor is not None:  # It has been done, and nobody waits to be told of it.
            return {"mode": "hand_over", "pid": self._successor.process.pid, "version": self._successor.version}
        return await self._restart(self._gateway.announcements.request(by), why)

    def restart_for_chat(self, request: Request) -> None:
        """As `restart`, and returns at once: the outcome is told where it was asked for."""
        self._tasks.spawn(self._restart_untold(request, "asked for in a chat"), name="restart")

    async def _restart_untold(self, request: Request, why: str) -> None:
        with contextlib.suppress(HoldfastError):  # Told to those who asked, if they can be told; and logged.
            await self._restart(request, why)

    async def _restart(self, request: Request, why: str) -> dict[str, Any]:
        try:
            if self._supervisor.restarts_us:
                return self._end_to_restart(why)
            async with self._handing_over:
                # Whoever asked while it was under way has what they asked for.
                successor = self._successor = self._successor or await self._hand_over(why)
            return {"mode": "hand_over", "pid": successor.process.pid, "version": successor.version}
        except HoldfastError as error:
            await self._gateway.announcements.failed(request, str(error))
            raise

    def _end_to_restart(self, why: str) -> dict[str, Any]:
        if self._ended.is_set() and self._end is not End.RESTART:
            raise NotNow("restart", self._gateway.state)
        self._report.why, self._other_end = why, End.RESTART
        self._ended.set()
        return {"mode": "exit", "pid": os.getpid(), "version": __version__}

    async def _hand_over(self, why: str) -> Successor:
        handing = self._gateway.hand_over
        handing.begin()
        log.info("hand-over begins", why=why)
        try:
            writer = self._foreground_for_successor()
            successor = await hand_over(
                [sys.executable, *sys.orig_argv[1:]],
                listener=self._listener,
                lock=self._lock.descriptor,
                foreground=writer,
                schema=SCHEMA_VERSION,
                database=self._database(),
                owner=self._report.owner or "",
                environment={name: value for name, value in os.environ.items() if name != "WATCHDOG_PID"},
                give_way=self._give_way,
                announce=lambda successor: self._supervisor.replaced_by(successor.process.pid),
                given_up=self.stops.asked.is_set,
            )
        except HandOverFailed as error:
            log.error("hand-over failed", error=str(error))
            self._report.silent = False
            await handing.take_back(to_stop=self.stops.asked.is_set())
            self._report.moved(self._gateway.state)
            raise
        self.succeeded_by = successor.process
        self._lock.release()
        await self._server.retire()  # Whoever is told of the successor must not be answered by this process again.
        if writer is not None:
            os.close(writer)
            self._exit_writer = None
        log.info("handed over", to=successor.process.pid, version=successor.version)
        self._ended.set()
        return successor

    async def _give_way(self) -> None:
        """Whatever takes its time here, a stop does not wait for it. From its end on the status file is the successor's."""
        giving_way = self._tasks.spawn(self._gateway.hand_over.give_way(), name="give way")
        await self._until(giving_way, self.stops.asked)
        if self.stops.asked.is_set():
            giving_way.cancel()
            await asyncio.wait({giving_way})
            raise StoppedInstead
        self._report.silent = True

    def _foreground_for_successor(self) -> int | None:
        """The way to tell the process that a terminal waits for. The first one to hand over becomes that process."""
        if self._supervisor.kind is not Kind.PLAIN:
            return None
        if self._exit_writer is None and self.exit_reader is None:
            try:
                self.exit_reader, self._exit_writer = os.pipe()
            except OSError as error:
                raise HandOverFailed(f"it could not be started ({error.strerror}).") from error
        return self._exit_writer

    # its course

    async def run(self) -> int:
        """Until its end; the exit code."""
        self._watchdog.start()
        self.stops.listen()
        try:
            if self._predecessor is not None:
                await self._until_called(self._predecessor)
            serving = await self._begin()
            await self._until_end(serving)
            async with self._handing_over:  # One that is under way comes to its end as soon as it hears of a stop.
                pass
            if self.succeeded_by is not None:
                await self._retire()
            return await self._close(serving)
        finally:
            self._watchdog.close()

    async def _until_called(self, predecessor: Predecessor) -> None:
        """Returns when this process is to take the place of the one before it. Whether it may is decided by the lock (`handover`)."""
        called = self._tasks.spawn(
            predecessor.ready(Successor(process=self._report.process, version=__version__), self._locks.alive), name="go"
        )
        await self._until(called, self.stops.asked)
        before = next((owner for owner in await self._gateway.store.owners() if owner.name == predecessor.inherited.owner), None)
        # One that was stopped and then died has not left its place to anybody.
        stopped = before is not None and (before.draining is not None or before.told is not None)
        if self.stops.asked.is_set() or (stopped and not self._locks.alive(predecessor.inherited.owner)):
            raise Unavailable("Holdfast was asked to stop, so this new process does not begin to serve.")

    async def _begin(self) -> "asyncio.Task[None]":
        await self._gateway.start()
        serving = self._tasks.spawn(self._server.run(), name="http")
        await self._server.started()
        if self._predecessor is not None:
            await self._predecessor.serving(self._locks.alive)
            self._lock.sign()
        self._report.silent = False
        self._report.moved(self._gateway.state)
        self._tasks.spawn(self._report.follow(), name="status file")
        self._tasks.spawn(self._tell_manager(), name="service manager")
        self._gateway.lifecycle.serve()
        self._on_serving()
        return serving

    async def _tell_manager(self) -> None:
        if self._predecessor is not None:
            await self._predecessor.announced()
        self._supervisor.ready()

    def _on_hup(self) -> None:
        self._tasks.spawn(self._restart_untold(self._gateway.announcements.request(By.SERVICE), "SIGHUP"), name="hand-over")

    async def _until_end(self, serving: "asyncio.Task[None]") -> None:
        broken = self._tasks.spawn(self._gateway.broken.wait(), name="broken")
        ended = self._tasks.spawn(self._ended.wait(), name="end")
        await asyncio.wait({serving, ended, broken}, return_when=asyncio.FIRST_COMPLETED)
        if not self._ended.is_set():
            self._report.why, self._report.planned, self._other_end = "a part of it failed", False, End.BROKEN
            self._ended.set()

    async def _until(self, work: "asyncio.Task[Any]", event: asyncio.Event) -> None:
        """Returns when the work is done, raising what it raised, or the event has happened."""
        happened = self._tasks.spawn(event.wait(), name=f"not {work.get_name()}")
        await asyncio.wait({work, happened}, return_when=asyncio.FIRST_COMPLETED)
        happened.cancel()
        if work.done():
            work.result()

    async def _retire(self) -> None:
        """Its turns come to their ends here, unless it is told to stop; its clients go over to the successor."""
        await self._server.retire()
        idle = self._tasks.spawn(self._gateway.hand_over.retire(), name="retire")
        await asyncio.sleep(0)  # It has begun to retire, also when it is to stop at once.
        asked = self.stops.asked
        await self._until(idle, asked)
        idle.cancel()
        deadline = self._clock.monotonic() + CONNECTIONS_S
        while self._server.connections and self._clock.monotonic() < deadline and not asked.is_set():
            await heard(asked, LOOK_S)
        self.stops.look_once_more()

    async def _close(self, serving: "asyncio.Task[None]") -> int:
        self._watchdog.arm(self._stop_timeout_s)
        if self.succeeded_by is None:
            self._supervisor.stopping(self._stop_timeout_s)
            if not self.stops.asked.is_set():
                await self.stops.pass_on(Shutdown(why=self._report.why or "", planned=False))
        await self.stops.passed_on()
        end = self._end
        await self._gateway.stop(reason="restart_timeout" if end is End.RESTART else "shutdown_timeout", by=self._stopped_by())
        self._watchdog.step("http")
        self._server.stop()
        await asyncio.wait({serving}, timeout=5)
        if self.succeeded_by is None:
            self._watchdog.step("other processes")
            while others(self._home, self._report.process):  # noqa: ASYNC110 - a lock of another process has no event.
                await asyncio.sleep(LOOK_S)
        if end is End.RESTART and self._end is End.STOP:  # The operator changed their mind while it ended.
            await self._gateway.announcements.stopped_instead()
        stop_marker.clear(self._home, self._report.process)
        if self.exit_reader is not None and self.succeeded_by is not None:
            name, stops = f"front-{self._report.owner}", self.stops
            self.foreground = Foreground(self._home, self._report.process, name, self.exit_reader, stops.signals, stops.shutdown)
        foreground.tell(self._exit_writer, {"exit": self._code()})
        return self._code()

    def _code(self) -> int:
        return exits.code(self._end, announced=self._report.planned)

    def _stopped_by(self) -> By:
        if self._end is End.BROKEN:
            return By.FAULT
        return By.OPERATOR if self._report.planned else By.SERVICE

    def _last_words(self) -> None:
        """The deadline has passed: what tools left must not outlive this process, and an operator's stop stays one (C18)."""
        tool_processes.kill(self._home, lambda owner: owner == self._report.owner)
        self.stops.report_pending()
        if self.stops.forced:
            end_by_force(self._home, self._report.process)
        self._report.moved(GatewayState.STOPPED)
