"""Watches for the planned-stop marker: a file that asks this process to stop, for systems and supervisors where a signal cannot."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import structlog

from holdfast import files
from holdfast.core import planned_stop
from holdfast.core.lives import Life, life_in
from holdfast.core.planned_stop import NAME
from holdfast.process.leftovers import remove_stale_marker

POLL_S = 0.5

log = structlog.get_logger()


def clear(home: Path, life: Life) -> None:
    """Removes a marker that named this life: it has been obeyed. Others are left alone."""
    try:
        found = files.read(home / NAME)
        if found is not None and life_in(found) == life:
            files.remove(home / NAME)
    except (OSError, ValueError) as error:
        log.warning("the stop marker cannot be removed", error=str(error))


def names(home: Path, life: Life, *, now: int) -> bool:
    """Whether a marker that counts names this life. One that cannot be read names nobody."""
    try:
        return planned_stop.names(files.read(home / NAME), life, now=now)
    except (OSError, ValueError):
        return False


async def watch(home: Path, life: Life, *, now: Callable[[], int], obeys: Callable[[], bool], stop: Callable[[], None]) -> None:
    """Calls `stop` once when a marker names this life while it `obeys`, and ends. What cannot be read is logged once, and read again; what
    counts for nobody any more is removed.
    """
    trouble = ""
    while True:
        at = now()
        try:
            if planned_stop.names(files.read(home / NAME), life, now=at) and obeys():
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
