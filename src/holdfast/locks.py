"""The locks of a home folder, which the operating system releases when their process dies: who serves, and which processes are alive. No
clock and no guess by pid is involved.
"""

import contextlib
import fcntl
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.core.errors import Held, Refused
from holdfast.core.process_id import ProcessId, process_in

OWNERS = "owners"
SERVING = "serving.lock"


class AlreadyServing(Held):
    code = "already_serving"

    def __init__(self, home: Path, by: dict[str, Any]) -> None:
        who = f"Process {by['pid']}" if "pid" in by else "Another process"
        super().__init__(f"{who} already serves {home}. Stop it with `holdfast stop`, or choose another folder with --home.")


class ServingLock:
    """Held by the one process that serves a home folder. A successor inherits it (`descriptor`); other children do not."""

    def __init__(self, home: Path, *, inherited: int | None = None) -> None:
        self.descriptor = inherited if inherited is not None else os.open(home / SERVING, os.O_CREAT | os.O_RDWR, 0o600)
        self._held = True
        if inherited is None:
            if not _try_lock(self.descriptor):
                held_by = _read(self.descriptor)
                os.close(self.descriptor)
                raise AlreadyServing(home, held_by)
            self.sign()

    def sign(self) -> None:
        """Writes down who holds it, for people."""
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, json.dumps({"pid": os.getpid()}).encode(), 0)

    def release(self) -> None:
        """Closes this process's own descriptor. A successor that has inherited the lock still holds it."""
        if self._held:
            self._held = False
            os.close(self.descriptor)


class OwnerLock:
    """The proof that a process is alive: a lock on `owners/<name>`. The file says which process it is (`living` reads it). `after`: the
    name of the process it takes over from. `foreground`: it only waits for the others.
    """

    def __init__(self, home: Path, name: str, process: ProcessId, *, after: str | None = None, foreground: bool = False) -> None:
        folder = home / OWNERS
        folder.mkdir(mode=0o700, exist_ok=True)
        self.name, self.path = name, folder / name
        # Locked before it has its name: nobody ever sees it free while its process is alive.
        making = folder / f".{name}"
        self._descriptor = os.open(making, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        if not _try_lock(self._descriptor):
            raise Refused(f"The lock {self.path} cannot be taken.")
        os.pwrite(self._descriptor, json.dumps({**process.fields, "after": after, "front": foreground}).encode(), 0)
        os.rename(making, self.path)

    def release(self) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self._descriptor)


class OwnerLocks:
    """Asks the operating system which owners of a home are alive (`ports.Liveness`)."""

    def __init__(self, home: Path) -> None:
        self._folder = home / OWNERS

    def alive(self, name: str) -> bool:
        """If the system cannot be asked now (no descriptor left, no permission), an owner counts as alive: nothing is taken from it."""
        return _may_be_held(self._folder / name)

    def sweep(self) -> None:
        """Removes the files of owners that are gone."""
        with contextlib.suppress(OSError):
            for path in self._folder.glob("[!.]*"):  # One with a dot is about to be locked.
                if not self.alive(path.name):
                    path.unlink(missing_ok=True)


class Living(NamedTuple):
    """A living process of one home, known by its lock. `process` is None while the file of the lock cannot be read. `after`: the name of
    the process it takes over from. `foreground`: it only waits for the others (`process/foreground.py`).
    """

    name: str
    process: ProcessId | None
    after: str | None
    foreground: bool


def living(home: Path) -> list[Living]:
    """Every living process of a home: the one that serves, those that retire or are about to take over, one that starts, and the one in
    the foreground. If the system cannot be asked now, a process counts as living.
    """
    try:
        names = sorted(name for name in os.listdir(home / OWNERS) if not name.startswith("."))
    except OSError:
        return []
    return [_living(home / OWNERS / name) for name in names if _may_be_held(home / OWNERS / name)]


def is_held(path: Path) -> bool:
    """Whether a living process holds the lock on this file. Raises `OSError` if the system cannot be asked now."""
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


def _may_be_held(path: Path) -> bool:
    try:
        return is_held(path)
    except OSError:
        return True


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _living(path: Path) -> Living:
    try:
        said = json.loads(path.read_bytes())
        return Living(path.name, process_in(said), said.get("after"), bool(said.get("front")))
    except (OSError, ValueError, AttributeError):
        return Living(path.name, None, None, False)


def _read(descriptor: int) -> dict[str, Any]:
    try:
        found = json.loads(os.pread(descriptor, 4096, 0))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
