"""How a process is asked to stop: by a signal, the marker, HTTP, or by another process of its home, on its row in the store. Several
requests are one stop (`core/shutdowns.py`). What is heard here first is passed on to everything that lives on this home, by record; what
was passed on to this process is not passed back.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from holdfast import files, locks, processes, status_file, tool_processes
from holdfast.core import exits, planned_stop, shutdowns
from holdfast.core.errors import Unavailable
from holdfast.core.exits import Signal
from holdfast.core.process_id import ProcessId
from holdfast.core.shutdowns import Shutdown
from holdfast.gateway.tasks import Tasks
from holdfast.ports.store import Store
from holdfast.process import stop_marker
from holdfast.process.report import Report
from holdfast.process.supervisor import at_terminal
from holdfast.process.watchdog import Watchdog

LOOK_S = 0.25
TELL_S = 2.0
# The first Ctrl-C stops, the second gives running turns no more time, the third ends everything by force.
HURRIES, FORCES = 2, 3
FORCED = "Stopped by force. What was accepted is on disk, and interrupted answers continue at the next start."

log = structlog.get_logger()


class Signals:
    """Makes stops of signals. `pending`: those that nobody has acted on yet. `interrupts`: how often Ctrl-C was pressed."""

    def __init__(self, home: Path, process: ProcessId, now: Callable[[], int]) -> None:
        self._home, self._process, self._now = home, process, now
        self.pending: list[Signal] = []
        self.interrupts = 0

    def catch(self, number: int) -> None:
        named = Signal(signal.Signals(number).name)
        self.pending.append(named)
        if named is Signal.INT and at_terminal():
            self.interrupts += 1

    def understood(self, named: Signal) -> Shutdown:
        planned = exits.announces(named, marked=self.marked, at_terminal=at_terminal())
        return Shutdown(why=named, planned=planned, now=planned and self.interrupts >= HURRIES)

    @property
    def marked(self) -> bool:
        """Whether a marker names this process."""
        return stop_marker.names(self._home, self._process, now=self._now())


class StopRequests:
    """`asked` is set by the first request; `shutdown` is what all of them say together, and `on_stop` is called whenever that changes.
    `on_hup`: what SIGHUP means where a supervisor sends it.
    """

    def __init__(
        self,
        *,
        home: Path,
        report: Report,
        store: Store,
        owner: int,
        now: Callable[[], int],
        tasks: Tasks,
        watchdog: Watchdog,
        stop_timeout_s: float,
        on_stop: Callable[[Shutdown], None],
        on_hup: Callable[[], None] | None,
    ) -> None:
        self._home, self._report, self._store, self._owner, self._now = home, report, store, owner, now
        self._tasks, self._watchdog, self._stop_timeout_s = tasks, watchdog, stop_timeout_s
        self._on_stop, self._on_hup = on_stop, on_hup
        self._passing: asyncio.Task[None] | None = None
        self.signals = Signals(home, report.process, now)
        self.shutdown: Shutdown | None = None
        self.asked = asyncio.Event()

    # what is asked

    def stop(self, shutdown: Shutdown, *, passed_on: bool = False) -> None:
        """`passed_on`: by another process, which has told all the others."""
        whole = shutdowns.joined(self.shutdown, shutdown)
        if whole == self.shutdown:
            return
        log.info("asked to stop", why=whole.why, planned=whole.planned, now=whole.now, passed_on=passed_on)
        self.shutdown = whole
        self._report.why, self._report.planned = whole.why, whole.planned
        self._watchdog.arm(self._stop_timeout_s)
        if not passed_on:
            self._passing = self._tasks.spawn(self.pass_on(whole), name="pass on")
        self.asked.set()
        self._on_stop(whole)

    def report_pending(self) -> None:
        """Acts on what a loop that hangs has never heard of, as far as the report goes."""
        for named in list(self.signals.pending):
            shutdown = shutdowns.joined(self.shutdown, self.signals.understood(named))
            self._report.why, self._report.planned = shutdown.why, shutdown.planned

    @property
    def forced(self) -> bool:
        return self.signals.interrupts >= FORCES

    # how it is heard

    def listen(self) -> None:
        loop = asyncio.get_running_loop()

        def on_signal(number: int, frame: object) -> None:
            """Not the loop's own handler: one that hangs would never hear of it, and the deadline counts from the signal on (C23)."""
            self.signals.catch(number)
            if number != signal.SIGHUP or self._on_hup is None:
                if self.shutdown is None:
                    self._report.planned = False  # Nobody's word, until the loop has heard of it and looked closer.
                self._watchdog.arm(self._stop_timeout_s)
            if self.forced:
                self._watchdog.force()
            with contextlib.suppress(RuntimeError):  # The loop is closed: what runs after it in this process acts on it.
                loop.call_soon_threadsafe(self._act)

        for number in SIGNALS:
            # Started by `nohup`, it stays when its terminal is closed.
            if number != signal.SIGHUP or self._on_hup is not None or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, on_signal)
        watching = stop_marker.watch(
            self._home,
            self._report.process,
            now=self._now,
            obeys=lambda: self.shutdown is None or not self.shutdown.planned,
            stop=lambda: self.stop(Shutdown(why=planned_stop.NAME, planned=True)),
        )
        self._tasks.spawn(watching, name="stop marker")
        self._tasks.spawn(self._follow_row(), name="stop passed on")

    def _act(self) -> None:
        while self.signals.pending:
            named = self.signals.pending.pop(0)
            if named is Signal.HUP and self._on_hup is not None:
                self._on_hup()
            else:
                self.stop(self.signals.understood(named))

    def look_once_more(self) -> None:
        """A marker that came after the last look is obeyed as well: nobody else would."""
        if self.signals.marked:
            self.stop(Shutdown(why=planned_stop.NAME, planned=True))

    async def _follow_row(self) -> None:
        while True:
            with contextlib.suppress(Unavailable):  # Whoever cannot record it either signals instead.
                for owner in await self._store.owners():
                    if owner.id == self._owner and owner.told is not None:
                        self.stop(owner.told, passed_on=True)
            await asyncio.sleep(LOOK_S)

    # how it is passed on

    async def passed_on(self) -> None:
        """Returns when everything else on this home has been told, or could not be."""
        if self._passing is not None:
            await asyncio.wait({self._passing})

    async def pass_on(self, shutdown: Shutdown) -> None:
        try:
            async with asyncio.timeout(TELL_S):
                await self._store.tell_owners(shutdown, by=self._owner)
        except (TimeoutError, Unavailable) as error:
            log.warning("the others cannot be told by record and are signalled", error=str(error) or "no answer in time")
            signal_others(self._home, self._report.process, shutdown, now=self._now())


SIGNALS = tuple(signal.Signals[named] for named in Signal)


def end_at_once_when_signalled(home: Path) -> None:
    """Until somebody listens: a process that only starts has begun nothing, so it simply ends, with what that means to its supervisor."""
    signals = Signals(home, processes.this_process(), now=lambda: time.time_ns() // 1_000_000)

    def on_signal(number: int, frame: object) -> None:
        signals.catch(number)
        planned = signals.understood(Signal(signal.Signals(number).name)).planned
        if planned and status_file.process(home) == processes.this_process():
            status_file.leave_stopped(home)
        os._exit(exits.code(exits.End.STOP, announced=planned))

    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, on_signal)


def others(home: Path, process: ProcessId) -> list[ProcessId]:
    """What lives on this home besides this process and those that only wait in front."""
    return [
        other.process for other in locks.living(home) if other.process is not None and other.process != process and not other.foreground
    ]


def signal_others(home: Path, process: ProcessId, shutdown: Shutdown, *, now: int) -> None:
    """Where no record can be made. A planned stop is announced to the one that serves; the others leave no state behind."""
    serving = status_file.process(home)
    if shutdown.planned and serving is not None and serving != process:
        with contextlib.suppress(OSError):
            files.replace_json(home / planned_stop.NAME, planned_stop.marker(serving, at=now))
    for other in others(home, process):
        with contextlib.suppress(PermissionError):
            processes.send_signal(other, signal.SIGTERM)


def end_by_force(home: Path, process: ProcessId) -> None:
    """Everything on this home other than this process, with the commands of all tools. It stays stopped: an operator wanted that (C18)."""
    for other in locks.living(home):
        if other.process is not None and other.process != process:
            with contextlib.suppress(PermissionError):
                processes.send_signal(other.process, signal.SIGKILL)
    tool_processes.kill(home, lambda owner: True)
    status_file.leave_stopped(home)
    with contextlib.suppress(OSError):  # Over the ^C that the terminal shows.
        print(f"\r{FORCED}", file=sys.stderr, flush=True)
