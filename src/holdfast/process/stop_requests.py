"""How a process is asked to stop: by a signal, the marker, HTTP, or another process of its home, on this process's row in the store.

Several requests are one stop (`core/shutdowns.py`). A request that arrives here first is passed on to every other process of the home, by
record; one that was passed on to this process is not passed back.
"""

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import msgspec
import structlog

from holdfast import files, locks, processes, status_file, tool_processes
from holdfast.core import exits, planned_stop
from holdfast.core.errors import Unavailable
from holdfast.core.exits import End, Ending, Signal
from holdfast.core.process_id import ProcessId
from holdfast.core.shutdowns import Shutdown
from holdfast.keeper.keepers import end_all
from holdfast.ports.owners import Owners
from holdfast.process import stop_marker
from holdfast.process.deadline import Deadline
from holdfast.process.supervisor import at_terminal
from holdfast.process.this_process import ThisProcess

LOOK_S = 0.25
TELL_S = 2.0
# The first Ctrl-C stops, the second gives running turns no more time, the third ends everything by force.
HURRIES, FORCES = 2, 3
FORCED = "Stopped by force. Accepted messages are on disk, and interrupted answers continue at the next start."

log = structlog.get_logger()


class Signals:
    """Turns signals into stops. `pending`: those that nobody has acted on yet. `interrupts`: how often Ctrl-C was pressed."""

    def __init__(self, home: Path, process: ProcessId, now: Callable[[], int]) -> None:
        self._home, self._process, self._now = home, process, now
        self.pending: list[Signal] = []
        self.interrupts = 0
        self._forcing = threading.Lock()

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

    @property
    def forced(self) -> bool:
        return self.interrupts >= FORCES

    def end_by_force(self, code: int) -> NoReturn:
        """Kills every other process of this home, the commands of all tools, and what runs in the background, and ends this process. It
        stays stopped: an operator wanted that (C18). The watchdog may do this while the main thread is about to: one of them does it, and
        the other waits for the end.
        """
        with self._forcing:
            for other in locks.living(self._home):
                if other.process is not None and other.process != self._process:
                    with contextlib.suppress(PermissionError):
                        processes.send_signal(other.process, signal.SIGKILL)
            tool_processes.kill(self._home, lambda owner: True)
            end_all(self._home)
            status_file.leave_stopped(self._home)
            with contextlib.suppress(OSError):  # Over the ^C that the terminal shows.
                print(f"\r{FORCED}", file=sys.stderr, flush=True)
            os._exit(code)


class Ends:
    """The end of this process, for all who look at it; `StopRequests` alone changes it. `ending`: what is known so far about why. `asked`
    is set by the first request to stop, `over` by the first reason to end, whichever it is.
    """

    def __init__(self) -> None:
        self.ending = Ending()
        self.asked, self.over = asyncio.Event(), asyncio.Event()


class StopRequests:
    def __init__(
        self,
        this: ThisProcess,
        deadline: Deadline,
        store: Owners,
        owner: int,
        ends: Ends,
        *,
        hurry: Callable[[], None],
        show: Callable[[], None],
        on_hup: Callable[[], None] | None,
    ) -> None:
        """`hurry`: running turns get no more time. `show`: what is shown of an end that has begun may have changed. `on_hup`: what SIGHUP
        means where a supervisor sends it.
        """
        self._this, self._deadline, self._store, self._owner, self._ends = this, deadline, store, owner, ends
        self._hurry, self._show, self._on_hup = hurry, show, on_hup
        self._passing: asyncio.Task[None] | None = None
        self.signals = Signals(this.home, this.id, this.clock.now)

    # what is asked

    def stop(self, shutdown: Shutdown, *, passed_on: bool = False) -> None:
        """`passed_on`: by another process, which has told all the others."""
        ending = self._ends.ending.asked(shutdown)
        whole = ending.shutdown
        if whole is None or whole == self._ends.ending.shutdown:
            return
        log.info("asked to stop", why=whole.why, planned=whole.planned, now=whole.now, passed_on=passed_on)
        self._ends.ending = ending
        self._deadline.set(self._this.stop_timeout_s)
        if not passed_on:
            self._passing = self._this.tasks.spawn(self.pass_on(whole), name="pass on")
        self._ends.asked.set()
        if whole.now:
            self._hurry()
        if self._ends.over.is_set():
            self._show()
        self._ends.over.set()

    def end(self, other: End, because: str) -> None:
        """For another reason than a stop. The first one counts."""
        if self._ends.ending.other is None:
            self._ends.ending = msgspec.structs.replace(self._ends.ending, other=other, because=because)
        self._ends.over.set()

    def handed_over(self, *, awaited: bool) -> None:
        self._ends.ending = msgspec.structs.replace(self._ends.ending, succeeded=True, awaited=awaited)
        self._ends.over.set()

    def take_in_pending(self) -> None:
        """Signals that an event loop that hangs has not seen count as well."""
        for named in list(self.signals.pending):
            self._ends.ending = self._ends.ending.asked(self.signals.understood(named))

    # how it is heard

    def listen(self) -> None:
        self._catch_signals()
        watching = stop_marker.watch(
            self._this.home,
            self._this.id,
            now=self._this.clock.now,
            obeys=lambda: self._ends.ending.shutdown is None or not self._ends.ending.shutdown.planned,
            stop=self._stop_by_marker,
        )
        self._this.tasks.spawn(watching, name="stop marker")
        self._this.tasks.spawn(self._follow_row(), name="stop passed on")

    def _catch_signals(self) -> None:
        loop, on_hup = asyncio.get_running_loop(), self._on_hup

        def on_signal(number: int, frame: object) -> None:
            """Not the loop's own handler: a loop that hangs would never run it, and the deadline counts from the signal on (C23)."""
            self.signals.catch(number)
            if number != signal.SIGHUP or on_hup is None:
                self._ends.ending = msgspec.structs.replace(self._ends.ending, signalled=True)
                self._deadline.set(self._this.stop_timeout_s)
            if self.signals.forced:
                self._deadline.force()
            with contextlib.suppress(RuntimeError):  # The loop is closed: what runs after it in this process acts on it.
                loop.call_soon_threadsafe(self._act)

        for number in SIGNALS:
            # Started by `nohup`, it stays when its terminal is closed.
            if number != signal.SIGHUP or on_hup is not None or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, on_signal)

    def _act(self) -> None:
        while self.signals.pending:
            named = self.signals.pending.pop(0)
            if named is Signal.HUP and self._on_hup is not None:
                self._on_hup()
            else:
                self.stop(self.signals.understood(named))

    def look_once_more(self) -> None:
        """A marker that was written after the last look is obeyed, too: no other process would."""
        if self.signals.marked:
            self._stop_by_marker()

    def _stop_by_marker(self) -> None:
        self.stop(Shutdown(why=planned_stop.NAME, planned=True))

    async def _follow_row(self) -> None:
        while True:
            with contextlib.suppress(Unavailable):  # If the others cannot record it either, they send a signal instead.
                for owner in await self._store.owners():
                    if owner.id == self._owner and owner.told is not None:
                        self.stop(owner.told, passed_on=True)
            await asyncio.sleep(LOOK_S)

    # how it is passed on

    async def passed_on(self) -> None:
        """Returns when every other process of this home has been told, or could not be."""
        if self._passing is not None:
            await asyncio.wait({self._passing})

    async def pass_on(self, shutdown: Shutdown) -> None:
        try:
            async with asyncio.timeout(TELL_S):
                await self._store.tell_owners(shutdown, by=self._owner)
        except (TimeoutError, Unavailable) as error:
            log.warning("the others cannot be told by record and are signalled", error=str(error) or "no answer in time")
            signal_others(self._this.home, self._this.id, shutdown, now=self._this.clock.now())


SIGNALS = tuple(signal.Signals[named] for named in Signal)


def end_at_once_when_signalled(home: Path) -> None:
    """Until somebody listens: a process that only starts has begun nothing, so it simply ends, with the code its supervisor understands."""
    signals = Signals(home, processes.this_process(), now=lambda: time.time_ns() // 1_000_000)

    def on_signal(number: int, frame: object) -> None:
        signals.catch(number)
        planned = signals.understood(Signal(signal.Signals(number).name)).planned
        if planned and status_file.process(home) == processes.this_process():
            status_file.leave_stopped(home)
        os._exit(exits.code(End.STOP, announced=planned))

    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, on_signal)


def others(home: Path, process: ProcessId) -> list[ProcessId]:
    """The living processes of this home, without this one and the one in the foreground."""
    return [each.process for each in locks.living(home) if each.process is not None and each.process != process and not each.foreground]


def signal_others(home: Path, process: ProcessId, shutdown: Shutdown, *, now: int) -> None:
    """If no record can be made. A planned stop is announced to the process that serves; the others leave no state behind."""
    serving = status_file.process(home)
    if shutdown.planned and serving is not None and serving != process:
        with contextlib.suppress(OSError):
            files.replace_json(home / planned_stop.NAME, planned_stop.marker(serving, at=now))
    for other in others(home, process):
        with contextlib.suppress(PermissionError):
            processes.send_signal(other, signal.SIGTERM)
