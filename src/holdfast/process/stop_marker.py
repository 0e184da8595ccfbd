"""Watches for the planned-stop marker: a file that asks this process to stop, for systems and supervisors where a signal cannot."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import structlog

from holdfast import files
from holdfast.core import planned_stop
from holdfast.core.planned_stop import NAME
from holdfast.core.process_id import ProcessId, process_in
from holdfast.process.cleanup import remove_stale_marker

POLL_S = 0.5

log = structlog.get_logger()


def clear(home: Path, process: ProcessId) -> None:
    """Removes a marker that named this process: it has been obeyed. Others are left alone."""
    try:
        found = files.read_json(home / NAME)
        if found is not None and process_in(found) == process:
            files.remove(home / NAME)
    except (OSError, ValueError) as error:
        log.warning("the stop marker cannot be removed", error=str(error))


def names(home: Path, process: ProcessId, *, now: int) -> bool:
    """Whether a marker that counts names this process. One that cannot be read names nobody."""
    try:
        return planned_stop.names(files.read_json(home / NAME), process, now=now)
    except (OSError, ValueError):
        return False


async def watch(home: Path, process: ProcessId, *, now: Callable[[], int], obeys: Callable[[], bool], stop: Callable[[], None]) -> None:
    """Calls `stop` once, when a marker names this process while it `obeys`, and returns. Logs once that the marker cannot be read, and
    tries again. Removes stale markers.
    """
    trouble = ""
    while True:
        at = now()
        try:
            if planned_stop.names(files.read_json(home / NAME), process, now=at) and obeys():
                log.info("planned stop", because=NAME, signal="none")
                stop()
                return
            trouble = ""
        except (OSError, ValueError) as error:
            if str(error) != trouble:
                trouble = str(error)
                log.warning("the stop marker cannot be read", error=trouble)
        remove_stale_marker(home, now=at)
        await asyncio.sleep(POLL_S)
