"""Process 1 of a container is the parent of whatever loses its own: what nobody waits for stays in the table of processes until it is
waited for here.
"""

import asyncio
import os

from holdfast import processes

LOOK_S = 2.0


async def reap() -> None:
    """One that is dead for a whole look is nobody's: those who started a process wait for it at once."""
    seen: set[int] = set()
    while True:
        await asyncio.sleep(LOOK_S)
        dead = await asyncio.to_thread(_dead_children)
        for pid in dead & seen:
            try:
                os.waitpid(pid, os.WNOHANG)  # noqa: ASYNC222 - it does not block.
            except ChildProcessError:
                pass  # The process that started it was faster.
        seen = dead


def _dead_children() -> set[int]:
    found = set()
    for entry in os.listdir(processes.PROC):
        if entry.isdigit():
            try:
                fields = (processes.PROC / entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[processes.STATE] in processes.DEAD and int(fields[1]) == os.getpid():
                found.add(int(entry))
    return found
