"""The process that a terminal or a script waits for, after it has handed over: it stays until the last successor has exited, passes on the
stops it hears, and exits with that successor's code.
"""

import contextlib
import json
import os
import select
import signal
import time
from pathlib import Path

import structlog

from holdfast.core import exits, planned_stop, shutdowns
from holdfast.core.errors import Unavailable
from holdfast.core.process_id import ProcessId
from holdfast.core.shutdowns import Shutdown
from holdfast.locks import OwnerLock
from holdfast.process.stop_requests import SIGNALS, Signals, others, signal_others
from holdfast.store import tell_owners

LOOK_S = 0.5
GONE_LOOK_S = 0.02

log = structlog.get_logger()


class ExitPipe:
    """Through it the foreground process learns the exit code of the last process that served. The first process to hand over keeps the
    `reader` and becomes the foreground process; each successor inherits the `writer`.
    """

    def __init__(self, writer: int | None = None) -> None:
        self.reader: int | None = None
        self.writer = writer

    def open(self) -> int:
        """The end that a successor inherits. Raises `OSError`."""
        if self.writer is None:
            self.reader, self.writer = os.pipe()
        return self.writer

    def give_away(self) -> None:
        """A successor has it."""
        if self.writer is not None:
            os.close(self.writer)
            self.writer = None

    def tell(self, code: int) -> None:
        """The foreground process, if there is one."""
        if self.writer is not None:
            with contextlib.suppress(OSError):
                os.write(self.writer, json.dumps({"exit": code}).encode() + b"\n")


class Foreground:
    """What is left of a process when its own turns have ended. `signals` and `shutdown`: what it has heard so far. It takes a lock of its
    own at once, so that a command that waits until every process of this home is gone also waits for this one.
    """

    def __init__(self, home: Path, process: ProcessId, name: str, descriptor: int, signals: Signals, shutdown: Shutdown | None) -> None:
        self._home, self._process, self._descriptor, self._signals, self._shutdown = home, process, descriptor, signals, shutdown
        self._lock = OwnerLock(home, name, process, foreground=True)

    def stay(self) -> int:
        """Returns when the last successor has exited, with its exit code, or 1 if it died without one."""
        woken = self._listen()
        heard, code = b"", exits.FAILED
        while True:
            ready, _, _ = select.select([self._descriptor, woken], [], [], 0 if self._signals.pending else LOOK_S)
            if woken in ready:
                os.read(woken, 4096)
            self._act()
            if self._descriptor not in ready:
                continue
            part = os.read(self._descriptor, 4096)
            if not part:  # It has said its code, or not, and is gone: so are its lock and its port.
                break
            *lines, heard = (heard + part).split(b"\n")
            for line in lines:
                code = int(json.loads(line)["exit"])
        while self._shutdown is not None and others(self._home, self._process):
            time.sleep(GONE_LOOK_S)
            self._act()
        self._lock.release()
        return code

    def _listen(self) -> int:
        """A descriptor that can be read when a signal has come."""
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda number, frame: self._signals.catch(number))
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        return woken

    def _act(self) -> None:
        if self._signals.marked:
            self._stop(Shutdown(why=planned_stop.NAME, planned=True))
        while self._signals.pending:
            self._stop(self._signals.understood(self._signals.pending.pop(0)))
        if self._signals.forced:
            self._signals.end_by_force(exits.DONE)

    def _stop(self, shutdown: Shutdown) -> None:
        whole = shutdowns.joined(self._shutdown, shutdown)
        if whole == self._shutdown:
            return
        self._shutdown = whole
        try:
            tell_owners(self._home, whole)
        except Unavailable as error:
            log.warning("the others cannot be told by record and are signalled", error=str(error))
            signal_others(self._home, self._process, whole, now=time.time_ns() // 1_000_000)
