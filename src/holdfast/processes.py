"""Which processes are alive, as the operating system says, and signals that reach only the process they are meant for."""

import contextlib
import os
import signal
from functools import cache
from pathlib import Path

from holdfast.core.process_id import ProcessId

PROC = Path("/proc")
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


def this_process() -> ProcessId:
    process = with_pid(os.getpid())
    assert process is not None
    return process


def with_pid(pid: int) -> ProcessId | None:
    """The process that has this pid now; None if there is none, or only a zombie."""
    if not boot_id():
        return _noted_life(pid)
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    if fields[STATE] in DEAD:
        return None
    return ProcessId(pid, int(fields[STARTED]) * 1000 // os.sysconf("SC_CLK_TCK"), boot_id())


def _noted_life(pid: int) -> ProcessId | None:
    """Where the system notes the time of day at which a process started, and keeps it."""
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else ProcessId(pid, int(process.create_time() * 1000), "")
    except (psutil.Error, ValueError, OverflowError):
        return None


def is_alive(process: ProcessId) -> bool:
    """Whether this process is still alive. A zombie is dead."""
    return with_pid(process.pid) == process


def send_signal(process: ProcessId, number: int) -> bool:
    """Signals this process, never a later one with the same pid. False if it is gone. Raises `PermissionError`."""
    with contextlib.suppress(ProcessLookupError):
        if not hasattr(os, "pidfd_open"):
            return _send_to_number(process, number)
        try:
            handle = os.pidfd_open(process.pid)  # It stays with the process that has the number now, whichever that is.
        except ProcessLookupError:
            return False
        except OSError:  # The kernel is too old, or does not allow it.
            return _send_to_number(process, number)
        try:
            if is_alive(process):
                signal.pidfd_send_signal(handle, number)
                return True
        finally:
            os.close(handle)
    return False


def _send_to_number(process: ProcessId, number: int) -> bool:
    if not is_alive(process):
        return False
    os.kill(process.pid, number)
    return True
