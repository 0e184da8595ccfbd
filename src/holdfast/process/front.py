"""The process that a terminal or a script waits for. Its successors serve; it stays, passes on what it hears, and ends last."""

import contextlib
import json
import os
import select
import signal
import time
from pathlib import Path
from typing import Any

import structlog

from holdfast.core import exits, planned_stop, shutdowns
from holdfast.core.errors import Unavailable
from holdfast.core.lives import Life
from holdfast.core.shutdowns import Shutdown
from holdfast.process.locks import OwnerLock
from holdfast.process.orders import FORCES, SIGNALS, Ear, end_by_force, others, signal_others
from holdfast.store import tell_owners

LOOK_S = 0.5
GONE_LOOK_S = 0.02

log = structlog.get_logger()


def tell(descriptor: int | None, words: dict[str, Any]) -> None:
    """To the process in front, if there is one: with which code the one that served ended."""
    if descriptor is not None:
        with contextlib.suppress(OSError):
            os.write(descriptor, json.dumps(words).encode() + b"\n")


class Front:
    """Takes the place of a process whose own turns have ended. `ear` and `shutdown`: what it has heard so far. It holds a lock of its own
    from the beginning, so that a command that waits until nothing lives on this home waits for it, too.
    """

    def __init__(self, home: Path, life: Life, name: str, descriptor: int, ear: Ear, shutdown: Shutdown | None) -> None:
        self._home, self._life, self._descriptor, self._ear, self._shutdown = home, life, descriptor, ear, shutdown
        self._lock = OwnerLock(home, name, life, front=True)

    def stay(self) -> int:
        """Until the last successor has ended; its exit code, or 1 if it died without one."""
        woken = self._listen()
        heard, code = b"", exits.FAILED
        while True:
            ready, _, _ = select.select([self._descriptor, woken], [], [], 0 if self._ear.unheard else LOOK_S)
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
        while self._shutdown is not None and others(self._home, self._life):
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
                signal.signal(number, lambda number, frame: self._ear.catch(number))
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        return woken

    def _act(self) -> None:
        if self._ear.marked:
            self._stop(Shutdown(why=planned_stop.NAME, planned=True))
        while self._ear.unheard:
            self._stop(self._ear.understood(self._ear.unheard.pop(0)))
        if self._ear.interrupts >= FORCES:
            end_by_force(self._home, self._life)
            os._exit(exits.DONE)

    def _stop(self, shutdown: Shutdown) -> None:
        whole = shutdowns.joined(self._shutdown, shutdown)
        if whole == self._shutdown:
            return
        self._shutdown = whole
        try:
            tell_owners(self._home, whole)
        except Unavailable as error:
            log.warning("the others cannot be told by record and are signalled", error=str(error))
            signal_others(self._home, self._life, whole, now=time.time_ns() // 1_000_000)
