"""Which lives of which processes go on, and signals that reach only the life they are meant for. The operating system is asked."""

import contextlib
import fcntl
import json
import os
import signal
from functools import cache
from pathlib import Path
from typing import NamedTuple

from holdfast.core.lives import Life, life_in

PROC = Path("/proc")
OWNERS = "owners"
# Fields of /proc/PID/stat behind the name, which may itself contain spaces and parentheses.
STATE, STARTED = 0, 19
DEAD = ("Z", "X")


@cache
def boot_id() -> str:
    """Changes with every boot of the machine. Empty where the system has none: there a start time is not counted from the boot."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def this_life() -> Life:
    life = life_of(os.getpid())
    assert life is not None
    return life


def life_of(pid: int) -> Life | None:
    """The life that has this process id now; None where there is none, or only a zombie."""
    if not boot_id():
        return _noted_life(pid)
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    if fields[STATE] in DEAD:
        return None
    return Life(pid, int(fields[STARTED]) * 1000 // os.sysconf("SC_CLK_TCK"), boot_id())


def _noted_life(pid: int) -> Life | None:
    """Where the system notes the time of day at which a process started, and keeps it."""
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else Life(pid, int(process.create_time() * 1000), "")
    except (psutil.Error, ValueError, OverflowError):
        return None


def lives(life: Life) -> bool:
    """Whether this very life goes on. A zombie is dead."""
    return life_of(life.pid) == life


def send(life: Life, number: int) -> bool:
    """Signals this life, and never another one that has its process id by now. False where it is over. Raises `PermissionError`."""
    with contextlib.suppress(ProcessLookupError):
        if not hasattr(os, "pidfd_open"):
            return _send_to_number(life, number)
        try:
            handle = os.pidfd_open(life.pid)  # It stays with the process that has the number now, whichever that is.
        except ProcessLookupError:
            return False
        except OSError:  # The kernel is too old, or does not allow it.
            return _send_to_number(life, number)
        try:
            if lives(life):
                signal.pidfd_send_signal(handle, number)
                return True
        finally:
            os.close(handle)
    return False


class Living(NamedTuple):
    """A process of one home, by its lock. `life` is None while its file cannot be read. `after`: the name of the process whose place it
    takes. `front`: it only waits for the others.
    """

    name: str
    life: Life | None
    after: str | None
    front: bool


def living(home: Path) -> list[Living]:
    """Everything that lives on a home: it serves, retires, is about to take over, or waits in front of the others. What cannot be asked
    now counts as living, as far as it is known.
    """
    try:
        names = sorted(name for name in os.listdir(home / OWNERS) if not name.startswith("."))
    except OSError:
        return []
    return [_read(home / OWNERS / name) for name in names if may_be_held(home / OWNERS / name)]


def may_be_held(path: Path) -> bool:
    """As `is_held`; what cannot be asked now (no descriptors left, no permission) counts as held."""
    try:
        return is_held(path)
    except OSError:
        return True


def is_held(path: Path) -> bool:
    """Whether a living process holds the lock on this file. Raises `OSError` where that cannot be asked now."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # Shared: two that look at once do not take each other for the holder.
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _read(path: Path) -> Living:
    try:
        said = json.loads(path.read_bytes())
        return Living(path.name, life_in(said), said.get("after"), bool(said.get("front")))
    except (OSError, ValueError, AttributeError):
        return Living(path.name, None, None, False)


def _send_to_number(life: Life, number: int) -> bool:
    if not lives(life):
        return False
    os.kill(life.pid, number)
    return True
