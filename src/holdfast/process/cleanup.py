"""Removes what dead processes left in the home folder: unfinished files, sockets and locks without an owner, stale stop markers."""

import contextlib
import os
from pathlib import Path

import structlog

from holdfast import files, status_file
from holdfast.config import TOKEN
from holdfast.core import planned_stop, restarts
from holdfast.locks import OwnerLocks
from holdfast.spool import FOLDER as SPOOLS
from holdfast.store.sqlite.store import RESTORING

# Names under which files are made before they get their own. That takes milliseconds, except for a restored database, and nothing starts
# while one is made.
UNFINISHED = (
    *(f".{name}.*" for name in (planned_stop.NAME, restarts.NOTE, status_file.NAME, TOKEN)),
    *(f"{RESTORING}*", ".writable", "owners/.*"),
    *("status.making", ".token"),  # As version 0.1 named them.
)
MADE_WITHIN_S = 60.0

log = structlog.get_logger()


def sweep(home: Path, locks: OwnerLocks, *, now: int) -> None:
    """At a start."""
    locks.sweep()
    for pattern in UNFINISHED:
        for path in _found(home, pattern):
            if _older_than(path, MADE_WITHIN_S, now):
                _remove(path)
    for path in _found(home / "run", "*.sock"):
        if not locks.alive(path.stem):
            _remove(path)
    _remove_empty(home / SPOOLS, locks)
    remove_stale_marker(home, now=now)


def _remove_empty(spools: Path, locks: OwnerLocks) -> None:
    """Folders of spools that were stored by processes that are gone."""
    for path in _found(spools, "*"):
        if not locks.alive(path.name):
            with contextlib.suppress(OSError):
                path.rmdir()
    with contextlib.suppress(OSError):
        spools.rmdir()


def remove_stale_marker(home: Path, *, now: int) -> None:
    """It is moved aside first, because a new marker may be written at the same moment."""
    path = home / planned_stop.NAME
    if not _is_stale(path, now):
        return
    aside = home / f".{planned_stop.NAME}.{os.getpid()}.old"
    with contextlib.suppress(OSError):
        os.rename(path, aside)
        if _is_stale(aside, now):
            aside.unlink()
            log.info("a stale stop marker was removed")
        else:
            with contextlib.suppress(FileExistsError):
                os.link(aside, path)
            aside.unlink()


def _is_stale(path: Path, now: int) -> bool:
    try:
        return planned_stop.stale(files.read_json(path), now=now)
    except ValueError:
        return _older_than(path, planned_stop.COUNTS_FOR_MS / 1000, now)
    except OSError:
        return False


def _found(folder: Path, pattern: str) -> list[Path]:
    try:
        return list(folder.glob(pattern))
    except OSError:
        return []


def _older_than(path: Path, seconds: float, now: int) -> bool:
    try:
        return now / 1000 - path.stat().st_mtime > seconds
    except OSError:
        return False


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
        log.info("a leftover was removed", file=path.name)
    except OSError as error:
        log.warning("a leftover cannot be removed", file=path.name, error=str(error))
