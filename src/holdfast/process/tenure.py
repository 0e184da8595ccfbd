"""One process's time in office: it serves, hands over to a successor or not, lets its turns end, and goes. One deadline governs the end."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from holdfast import __version__, files, marks, processes
from holdfast.core import exits, planned_stop
from holdfast.core.errors import HandOverFailed, HoldfastError, NotNow, Unavailable
from holdfast.core.exits import End, Signal
from holdfast.core.lifecycle import GatewayState
from holdfast.core.lives import Life
from holdfast.core.restarts import By, Request
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.tasks import Tasks, heard
from holdfast.process import front, marker, system
from holdfast.process.handover import Heir, Successor, hand_over
from holdfast.process.locks import OwnerLocks, ServingLock
from holdfast.process.report import Report
from holdfast.process.server import Server
from holdfast.process.supervisor import Kind, Supervisor, at_terminal
from holdfast.process.watchdog import Watchdog
from holdfast.store.connection import SCHEMA_VERSION
from holdfast.store.ground import Identity

CONNECTIONS_S = 6.0
LOOK_S = 0.05
GIVEN_UP_S = 3.0

log = structlog.get_logger()


class Tenure:
    """`front`: the descriptor by which a terminal's process, further up, is told who serves."""

    def __init__(
        self,
        *,
        home: Path,
        gateway: Gateway,
        server: Server,
        lock: ServingLock,
        listener: int,
        report: Report,
        locks: OwnerLocks,
        clock: system.SystemClock,
        supervisor: Supervisor,
        heir: Heir | None,
        stop_timeout_s: float,
        tasks: Tasks,
        database: Callable[[], Identity | None],
        on_serving: Callable[[], None],
    ) -> None:
        self._home, self._gateway, self._server, self._lock, self._listener = home, gateway, server, lock, listener
        self._report, self._locks, self._clock, self._supervisor, self._heir = report, locks, clock, supervisor, heir
        self._stop_timeout_s, self._tasks, self._database, self._on_serving = stop_timeout_s, tasks, database, on_serving
        self._front: int | None = heir.estate.front if heir else None
        self._ended = asyncio.Event()
        self._end = End.STOP
        self._handing_over = asyncio.Lock()
        self._successor: Successor | None = None
        self.succeeded_by: Life | None = None
        self.front_reader: int | None = None
        self._asked_by: Signal | None = None  # A signal to stop that a loop which hangs has never heard of.
        self.unheard: list[int] = []  # Signals that came after a successor had taken over: they are meant for that one, too.
        loop = asyncio.get_running_loop()
        self._watchdog = Watchdog(loop, supervisor, home / "owners" / (report.owner or ""), self._last_words, self._code)
        gateway.life.step = self._watchdog.step

    # what may be asked of it

    def stop(self, why: str, *, planned: bool = True) -> None:
        if not self._ended.is_set():
            self._report.why, self._report.planned = why, planned
            log.info("asked to stop", why=why, planned=planned)
            self._finish(End.STOP)

    def _finish(self, end: End) -> None:
        if not self._ended.is_set():
            self._end = end
            self._ended.set()

    async def restart(self, by: By, why: str) -> dict[str, Any]:
        """By hand-over where a successor can take the place of this process; elsewhere it ends and its supervisor starts it again."""
        if self._successor is not None:  # It has been done, and nobody waits to be told of it.
            return {"mode": "hand_over", "pid": self._successor.life.pid, "version": self._successor.version}
        return await self._restart(self._gateway.announcements.request(by), why)

    def restart_for_chat(self, request: Request) -> None:
        """As `restart`, and returns at once: the outcome is told where it was asked for."""
        self._tasks.spawn(self._restart_untold(request, "asked for in a chat"), name="restart")

    async def _restart_untold(self, request: Request, why: str) -> None:
        with contextlib.suppress(HoldfastError):  # Told to whoever asked, if they can be told; and logged.
            await self._restart(request, why)

    async def _restart(self, request: Request, why: str) -> dict[str, Any]:
        try:
            if self._supervisor.restarts_us:
                return self._end_to_restart(why)
            async with self._handing_over:
                # Whoever asked while it was under way has what they asked for.
                successor = self._successor = self._successor or await self._hand_over(why)
            return {"mode": "hand_over", "pid": successor.life.pid, "version": successor.version}
        except HoldfastError as error:
            await self._gateway.announcements.failed(request, str(error))
            raise

    def _end_to_restart(self, why: str) -> dict[str, Any]:
        if self._ended.is_set() and self._end is not End.RESTART:
            raise NotNow("restart", self._gateway.state)
        self._report.why = why
        self._finish(End.RESTART)
        return {"mode": "exit", "pid": os.getpid(), "version": __version__}

    async def _hand_over(self, why: str) -> Successor:
        life = self._gateway.life
        life.begin_hand_over()
        log.info("hand-over begins", why=why)
        try:
            writer = self._front_for_successor()
            successor = await hand_over(
                [sys.executable, *sys.orig_argv[1:]],
                listener=self._listener,
                lock=self._lock.descriptor,
                front=writer,
                schema=SCHEMA_VERSION,
                database=self._database(),
                environment={name: value for name, value in os.environ.items() if name != "WATCHDOG_PID"},
                let_go=self._let_go,
                announce=lambda successor: self._supervisor.replaced_by(successor.life.pid),
                given_up=self._ended.is_set,
            )
        except HandOverFailed as error:
            log.error("hand-over failed", error=str(error))
            await life.take_back()
            self._report.moved(life.state)
            raise
        self.succeeded_by = successor.life
        front.tell(self._front, successor.life.named)
        self._report.silent = True
        self._lock.release()
        await self._server.retire()  # Whoever is told of the successor must not be answered by this process again.
        if writer is not None:
            os.close(writer)
            self._front = None
        log.info("handed over", to=successor.life.pid, version=successor.version)
        if self._ended.is_set():  # A stop came in the last moment: it is meant for whoever serves.
            self._stop_successor(successor.life)
        self._finish(End.RETIRED)
        return successor

    async def _let_go(self) -> None:
        if not self._ended.is_set():
            await self._gateway.life.let_go()
        if self._ended.is_set():
            raise HandOverFailed("this process was asked to stop instead.")

    def _stop_successor(self, life: Life) -> None:
        files.replace(self._home / planned_stop.NAME, planned_stop.marker(life, at=self._clock.now()))
        processes.send(life, signal.SIGTERM)

    def _front_for_successor(self) -> int | None:
        """The way to tell the process that a terminal waits for. The first one to hand over becomes that process."""
        if self._supervisor.kind is not Kind.PLAIN:
            return None
        if self._front is None and self.front_reader is None:
            try:
                self.front_reader, self._front = os.pipe()
            except OSError as error:
                raise HandOverFailed(f"it could not be started ({error.strerror}).") from error
        return self._front

    # its course

    async def run(self) -> int:
        """Until its end; the exit code."""
        self._listen()
        if self._heir is not None:
            await self._heir.ready(Successor(life=self._report.life, version=__version__))
        self._watchdog.start()
        await self._gateway.start()
        serving = self._tasks.spawn(self._server.run(), name="http")
        await self._server.started()
        if self._heir is not None:
            await self._heir.serving()
            self._lock.sign()
        self._report.silent = False
        self._report.moved(self._gateway.state)
        self._tasks.spawn(self._report.follow(), name="status file")
        self._supervisor.ready()
        self._gateway.life.serve()
        self._on_serving()
        try:
            await self._until_end(serving)
            if self._end is End.RETIRED:
                await self._retire()
            return await self._close(serving)
        finally:
            self._watchdog.close()

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        for named in (Signal.TERM, Signal.INT, Signal.ANNOUNCED):
            signal.signal(signal.Signals[named], self._in_time(loop, partial(self._on_stop, named)))
        if self._supervisor.kind is not Kind.PLAIN:
            signal.signal(signal.SIGHUP, self._in_time(loop, lambda: self._tasks.spawn(self._on_hup(), name="hand-over")))
        elif signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # Started by `nohup`, it stays when its terminal is closed.
            signal.signal(signal.SIGHUP, self._in_time(loop, partial(self._on_stop, Signal.HUP)))
        watch = marker.watch(
            self._home,
            self._report.life,
            now=self._clock.now,
            obeys=lambda: not self._ended.is_set(),
            stop=lambda: self.stop(planned_stop.NAME),
        )
        self._tasks.spawn(watch, name="stop marker")

    def _in_time(self, loop: asyncio.AbstractEventLoop, act: Callable[[], object]) -> Callable[[int, object], None]:
        """Not the loop's own handler: one that hangs would never hear of it, and the deadline counts from the signal on (C23)."""

        def on_signal(number: int, frame: object) -> None:
            if self.succeeded_by is not None:
                self.unheard.append(number)
                self._pass_on(number)
            if number != signal.SIGHUP or self._supervisor.kind is Kind.PLAIN:
                if not self._ended.is_set():  # Nobody's word, until the loop has heard of it and looked closer.
                    self._asked_by, self._report.planned = Signal(signal.Signals(number).name), False
                self._watchdog.arm(self._stop_timeout_s)
            with contextlib.suppress(RuntimeError):  # The loop is closed: the process is as good as over.
                loop.call_soon_threadsafe(act)

        return on_signal

    def _pass_on(self, number: int) -> None:
        """What a terminal's process hears after its successor has taken over is meant for that one first."""
        life = self.succeeded_by
        if self.front_reader is not None and life is not None and number != signal.SIGHUP:
            processes.send(life, number)

    def _on_stop(self, named: Signal) -> None:
        self.stop(named, planned=self._announced(named))

    def _announced(self, named: Signal) -> bool:
        try:
            marked = planned_stop.names(files.read(self._home / planned_stop.NAME), self._report.life, now=self._clock.now())
        except (OSError, ValueError):
            marked = False
        return exits.announces(named, marked=marked, at_terminal=at_terminal())

    async def _on_hup(self) -> None:
        with contextlib.suppress(HoldfastError):  # Whoever sent the signal cannot be told; the log was.
            await self.restart(By.SERVICE, "SIGHUP")

    async def _until_end(self, serving: "asyncio.Task[None]") -> None:
        ended = self._tasks.spawn(self._ended.wait(), name="end")
        broken = self._tasks.spawn(self._gateway.broken.wait(), name="broken")
        await asyncio.wait({serving, ended, broken}, return_when=asyncio.FIRST_COMPLETED)
        if not self._ended.is_set():
            self._report.why, self._report.planned = "a part of it failed", False
            self._finish(End.BROKEN)

    async def _retire(self) -> None:
        """Its turns come to their ends here, unless it is told to stop; its clients go over to the successor."""
        self._ended.clear()
        await self._server.retire()
        idle = self._tasks.spawn(self._gateway.life.retire(), name="retire")
        told = self._tasks.spawn(self._ended.wait(), name="told to stop")
        await asyncio.wait({idle, told}, return_when=asyncio.FIRST_COMPLETED)
        idle.cancel()
        told.cancel()
        deadline = self._clock.monotonic() + CONNECTIONS_S
        while self._server.connections and self._clock.monotonic() < deadline and not self._ended.is_set():
            await heard(self._ended, LOOK_S)

    async def _close(self, serving: "asyncio.Task[None]") -> int:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GIVEN_UP_S), self._handing_over:  # One that is under way gives up as soon as it hears of the end.
                pass
        if self.succeeded_by is None:
            self._supervisor.stopping(self._stop_timeout_s)
        self._watchdog.arm(self._stop_timeout_s)
        retiring: list[str] = []

        async def stop_retiring() -> None:
            if self.succeeded_by is None:
                retiring.extend(await self._tell_retiring())

        reason = "restart_timeout" if self._end is End.RESTART else "shutdown_timeout"
        await self._gateway.stop(reason=reason, by=self._stopped_by(), when_told=stop_retiring)
        self._watchdog.step("http")
        self._server.stop()
        await asyncio.wait({serving}, timeout=5)
        self._watchdog.step("retiring processes")
        await self._until_gone(retiring)
        if self.succeeded_by is None:
            marker.clear(self._home, self._report.life)
        front.tell(self._front, {"exit": self._code()})
        return self._code()

    def _code(self) -> int:
        return exits.code(End.RETIRED if self.succeeded_by else self._end, announced=self._report.planned)

    def _stopped_by(self) -> By:
        if self._end is End.BROKEN:
            return By.FAULT
        return By.OPERATOR if self._report.planned else By.SERVICE

    async def _tell_retiring(self) -> list[str]:
        """A stop ends all processes of this home: those that only let their turns end are told here. Gives their owners' names."""
        told = []
        try:
            owners = await self._gateway.store.owners()
        except Unavailable:
            return []
        for owner in owners:
            if owner.name != self._report.owner and self._locks.alive(owner.name):
                with contextlib.suppress(PermissionError):
                    processes.send(owner.life, signal.SIGTERM)
                told.append(owner.name)
        return told

    async def _until_gone(self, names: list[str]) -> None:
        while any(self._locks.alive(name) for name in names):  # noqa: ASYNC110 - a lock of another process has no event.
            await asyncio.sleep(LOOK_S)

    def _last_words(self) -> None:
        """The deadline has passed: what tools left must not outlive this process, and an operator's stop stays one (C18)."""
        marks.kill(self._home, lambda owner: owner == self._report.owner)
        if self._asked_by is not None and not self._ended.is_set():
            self._report.why, self._report.planned = self._asked_by, self._announced(self._asked_by)
        self._report.moved(GatewayState.STOPPED)
