"""`python -m holdfast.install.entry`: what a container starts. It becomes `holdfast serve`, or waits while it is to stay down.

A container that ended would only be restarted by its supervisor, so one that is to stay down does not end: it waits. `holdfast service
start` takes the stop back, and the container continues.
"""

import contextlib
import fcntl
import os
import signal
import sys
from pathlib import Path
from typing import Any

from holdfast import locks, status_file
from holdfast.config import home_folder
from holdfast.core import restarts
from holdfast.install.container import held_down

WAITING = "waiting.lock"
LOOK_S = 0.5
ENDS = {signal.SIGTERM, signal.SIGINT}


def main() -> int:
    home = home_folder(os.environ)
    why = look(home)
    if why is not None and not wait(home, why):
        return 0
    # The same process continues: as process 1 of its container it gets the container's signals itself.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "holdfast", "--home", str(home), "serve"])


def look(home: Path) -> str | None:
    return held_down(read_status(home), restart_noted=(home / restarts.NOTE).exists())


def wait(home: Path, why: str) -> bool:
    """Waits until the stop is taken back; False if the container is to end instead."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(os.open(home / WAITING, os.O_CREAT | os.O_RDWR, 0o600), "w") as lock:
        print(f"holdfast: The gateway of {home} does not start: {why}. `holdfast service start` starts it.", file=sys.stderr, flush=True)
        # Blocked signals are kept even for process 1, which otherwise never sees a signal that it does not handle.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
        try:
            while look(home) is not None:
                with contextlib.suppress(BlockingIOError):  # Held for a moment by a process that looks, or by another container.
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if signal.sigtimedwait(ENDS, LOOK_S) is not None:
                    return False
            return True
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def is_waiting(home: Path) -> bool:
    """Whether a container waits here until the stop is taken back."""
    try:
        return locks.is_held(home / WAITING)
    except OSError:
        return False


def read_status(home: Path) -> dict[str, Any] | None:
    try:
        return status_file.read(home)
    except OSError:
        return None


if __name__ == "__main__":
    sys.exit(main())
