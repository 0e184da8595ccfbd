"""The mark in the environment of every process that a tool starts: which home it belongs to, and which life of the gateway started it.

A command may leave its process group and outlive its parent, but it passes its environment on. So whatever a gateway leaves running is
found by this mark: by the gateway itself, and by whoever ended it from outside.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

VARIABLE = "HOLDFAST_OWNER"
# What is killed may have started more while it was being looked for.
PASSES = 10


def mark(home: Path, owner: str) -> str:
    """Gateways of other homes run on this machine too: the mark says whose it is."""
    return hashlib.sha256(str(home.resolve()).encode()).hexdigest()[:16] + f"/{owner}"


def kill(home: Path, is_over: Callable[[str], bool]) -> int:
    """Kills what the lives that are over (by their owners' names) left running; gives how many processes it killed."""
    killed = 0
    for _ in range(PASSES):
        found = _kill_once(mark(home, ""), is_over)
        killed += found
        if not found:
            break
    return killed


def _kill_once(prefix: str, is_over: Callable[[str], bool]) -> int:
    import psutil  # Here, because the command line loads this module and rarely needs it.

    killed = 0
    for process in psutil.process_iter():
        try:
            found = process.environ().get(VARIABLE, "")
            if found.startswith(prefix) and is_over(found.removeprefix(prefix)):
                process.kill()
                killed += 1
        except (psutil.Error, OSError):
            continue  # Not ours to see, or gone already.
    return killed
