"""Finds and kills the processes that tools started, by a mark in their environment: the home, the gateway process that started them,
and the session, turn and call they were started for. Background processes have a mark of their own: no gateway process owns them.

A command may leave its process group and outlive its parent, but its children inherit its environment. So the mark finds everything that
a gateway left running: for the gateway itself, and for the command that killed the gateway.
"""

import errno
import hashlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from holdfast import processes
from holdfast.core.process_id import ProcessId

# Of a gateway's environment tools see these and nothing else: no token, no home folder, no keys.
SHARED = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL")
VARIABLE = "HOLDFAST_OWNER"
SESSION = "HOLDFAST_SESSION_ID"
TURN = "HOLDFAST_TURN_ID"
CALL = "HOLDFAST_CALL"
# Of a background process: which one it is. It belongs to no gateway process, so it has no owner.
KEPT = "HOLDFAST_PROCESS"
# What is killed may have started more while it was being looked for.
PASSES = 10
DYING_S = 0.01
LOOKS, LOOK_AGAIN_S = 100, 0.05

Environment = Mapping[str, str]
T = TypeVar("T")


def shared(environment: Environment) -> dict[str, str]:
    """What tools see of a gateway's environment."""
    return {name: environment[name] for name in SHARED if name in environment}


def mark(home: Path, owner: str) -> str:
    """Names the home too, because gateways of other homes may run on this machine."""
    return hashlib.sha256(str(home.resolve()).encode()).hexdigest()[:16] + f"/{owner}"


def kill(home: Path, is_gone: Callable[[str], bool]) -> int:
    """Kills what the owners that are gone left running; returns how many processes it killed."""
    prefix = mark(home, "")
    return kill_chosen(home, lambda environment: is_gone(environment[VARIABLE].removeprefix(prefix)))


def kill_kept(home: Path, process_id: str) -> int:
    """Kills what a background process left running whose keeper is gone; returns how many processes it killed."""
    wanted = mark(home, process_id)
    return kill_chosen(home, lambda environment: environment[KEPT] == wanted, KEPT)


def kill_chosen(home: Path, chosen: Callable[[Environment], bool], variable: str = VARIABLE) -> int:
    """Kills the processes of this home's tools with such an environment, and what they start before they die; returns how many."""
    killed: set[ProcessId] = set()
    for _ in range(PASSES):
        found = send_chosen(home, chosen, signal.SIGKILL, variable)
        if not found:
            break
        if found <= killed:  # Nothing new: the system has not let them die yet.
            time.sleep(DYING_S)
        killed |= found
    return len(killed)


def send_chosen(home: Path, chosen: Callable[[Environment], bool], number: int, variable: str = VARIABLE) -> set[ProcessId]:
    reached = set()
    for process, environment in running(home, variable):
        try:
            if chosen(environment) and processes.send_signal(process, number):
                reached.add(process)
        except PermissionError:
            continue  # It runs as somebody else by now.
    return reached


def running(home: Path, variable: str = VARIABLE) -> Iterator[tuple[ProcessId, Environment]]:
    """Every process that tools of this home's gateways started, with its environment. `variable`: KEPT for background processes."""
    prefix = mark(home, "")
    for pid in _numbers():
        if (found := _environment(pid, variable)).get(variable, "").startswith(prefix):
            process = processes.with_pid(pid)
            # Read again: the number may belong to another process by now, and then this was not its environment.
            if process is not None and _environment(pid, variable).get(variable) == found[variable]:
                yield process, found


def name(process: ProcessId) -> str:
    """The name of its program, for people; empty if the process is gone."""
    import psutil  # Here, because the command line loads this module and rarely needs it.

    try:
        return str(psutil.Process(process.pid).name())
    except psutil.Error:
        return ""


def _numbers() -> list[int]:
    if processes.boot_id():
        return [int(entry) for entry in _patiently(lambda: os.listdir(processes.PROC)) if entry.isdigit()]
    import psutil

    return list(psutil.pids())


def _environment(pid: int, variable: str) -> dict[str, str]:
    """Empty where it is not ours to see, gone already, or without this variable."""
    if not processes.boot_id():
        return _asked_environment(pid)
    try:
        content = _patiently((processes.PROC / str(pid) / "environ").read_bytes)
    except OSError:
        return {}
    if variable.encode() not in content:
        return {}
    pairs = (entry.partition("=") for entry in os.fsdecode(content).split("\0"))
    return {name: value for name, _, value in pairs}


def _patiently(look: Callable[[], T]) -> T:
    """Looks again for a while where no descriptor is left to look with: what is not seen is not killed, and would run next to its turn's
    next attempt. Not for the event loop.
    """
    for _ in range(LOOKS):
        try:
            return look()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            time.sleep(LOOK_AGAIN_S)
    return look()


def _asked_environment(pid: int) -> dict[str, str]:
    import psutil

    try:
        return dict(psutil.Process(pid).environ())
    except (psutil.Error, OSError):
        return {}
