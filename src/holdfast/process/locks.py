"""Locks that the operating system lets go of when their process dies. No clock, no pid guessing."""

import contextlib
import fcntl
import json
import os
from pathlib import Path
from typing import Any

from holdfast import processes
from holdfast.core.errors import Held, Refused
from holdfast.core.process_id import ProcessId


class AlreadyServing(Held):
    code = "already_serving"

    def __init__(self, home: Path, by: dict[str, Any]) -> None:
        who = f"Process {by['pid']}" if "pid" in by else "Another process"
        super().__init__(f"{who} already serves {home}. Stop it with `holdfast stop`, or choose another folder with --home.")


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class ServingLock:
    """Held by the one process that serves a home folder. A successor inherits it (`descriptor`); other children do not."""

    def __init__(self, home: Path, *, inherited: int | None = None) -> None:
        self._path = home / "serving.lock"
        self.descriptor = inherited if inherited is not None else os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
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


def _read(descriptor: int) -> dict[str, Any]:
    try:
        found = json.loads(os.pread(descriptor, 4096, 0))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


class OwnerLock:
    """The proof that a process is alive: a lock on `owners/<name>`, which the system releases when the process dies. The file says which
    process it is (`processes.living` reads it). `after`: the name of the process it takes over from. `foreground`: it only waits for the
    others.
    """

    def __init__(self, home: Path, name: str, process: ProcessId, *, after: str | None = None, foreground: bool = False) -> None:
        folder = home / processes.OWNERS
        folder.mkdir(mode=0o700, exist_ok=True)
        self._path = folder / name
        # Locked before it has its name: nobody ever sees it free while its process lives.
        making = folder / f".{name}"
        self._descriptor = os.open(making, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        if not _try_lock(self._descriptor):
            raise Refused(f"The lock {self._path} cannot be taken.")
        os.pwrite(self._descriptor, json.dumps({**process.fields, "after": after, "front": foreground}).encode(), 0)
        os.rename(making, self._path)

    def release(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


class OwnerLocks:
    """Asks the operating system which owners live (`ports.Liveness`)."""

    def __init__(self, home: Path) -> None:
        self._folder = home / processes.OWNERS

    def alive(self, name: str) -> bool:
        """An owner counts as living until the system says otherwise: where it cannot be asked now (no descriptors left, no permission),
        nothing is taken from it.
        """
        return processes.may_be_held(self._folder / name)

    def sweep(self) -> None:
        """Removes the files of owners that are gone."""
        with contextlib.suppress(OSError):
            for path in self._folder.glob("[!.]*"):  # One with a dot is about to be locked.
                if not self.alive(path.name):
                    path.unlink(missing_ok=True)
