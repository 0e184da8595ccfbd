"""Which gateway serves a home folder. Its status file counts only while the process it names is alive."""

import time
from pathlib import Path
from typing import NamedTuple

from holdfast import locks, processes, status_file
from holdfast.api import status as statuses
from holdfast.api.status import Status
from holdfast.core.errors import Unavailable
from holdfast.core.lifecycle import HUNG_AFTER_S
from holdfast.core.process_id import ProcessId


class NotRunning(Unavailable):
    code = "not_running"

    def __init__(self, home: Path, last: Status | None = None) -> None:
        gone = f" (the last one, process {last.pid}, is gone; its last state was {last.gateway_state})" if last else ""
        super().__init__(f"No gateway runs on {home}{gone}. Start it with `holdfast serve`.")


class Found(NamedTuple):
    """The status file, if there is one, and whether its process is alive. `hung_s`: how long it has given no sign of life."""

    status: Status | None
    alive: bool
    hung_s: float = 0.0


def find(home: Path) -> Found:
    status = statuses.read(status_file.read(home))
    if status is None or not processes.is_alive(status.process):
        return Found(status, False)
    return Found(status, True, _silent_s(home, status))


def _silent_s(home: Path, status: Status) -> float:
    """The process touches its owner's lock every second while its event loop works. 0 if that was recently, or is unknown."""
    try:
        silent_s = time.time() - (home / locks.OWNERS / str(status.owner)).stat().st_mtime
    except OSError:
        return 0.0
    return silent_s if silent_s >= HUNG_AFTER_S and status.gateway_state != "starting" else 0.0


class Chain:
    """Every process that is alive on a home now, and those that take over from one of them later. A gateway that is started later does not
    belong to it. `at_work`: the processes in `left` that do more than wait for the others.
    """

    def __init__(self, home: Path, status: Status | None) -> None:
        self._home = home
        self._names = {found.name for found in locks.living(home)}
        self.at_work: list[ProcessId] = []
        self._named = [each.process for each in (status, *status.retiring)] if status else []

    def left(self) -> list[ProcessId]:
        """The processes that are still alive, the serving one first."""
        living = locks.living(self._home)
        self._names |= {found.name for found in living if found.after in self._names}
        known = [found for found in living if found.name in self._names and found.process is not None]
        self.at_work = [found.process for found in known if found.process and not found.foreground]
        return [
            process
            for process in dict.fromkeys((*self._named, *(found.process for found in known)))
            if process and processes.is_alive(process)
        ]


def require(home: Path) -> Status:
    """The status of the gateway that serves this home. Raises `NotRunning`."""
    found = find(home)
    if found.status is None or not found.alive:
        raise NotRunning(home, found.status)
    return found.status
