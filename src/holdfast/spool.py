"""The spool of a home folder: `spool/<owner>/<turn>.<epoch>`, files that only their owner writes and that are durable group by group."""

import asyncio
import contextlib
import errno
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import structlog

from holdfast import files
from holdfast.core.errors import StoreFull, Unavailable
from holdfast.core.spools import Contents, Gone, Sealed, Unreadable, frame, frames, parse_stream_id, read_file
from holdfast.ports.spool import Group, Hidden, Listing, SpoolFile

T = TypeVar("T")
FOLDER = "spool"
# A spool is bounded; whatever is longer is none of ours.
MOST_BYTES = 64 * 1024 * 1024
MAKES = 5

log = structlog.get_logger()


class Run(Protocol):
    def __call__(self, call: Callable[..., T], /, *arguments: Any) -> Awaitable[T]: ...


class SpoolFailed(Unavailable):
    code = "spool_failed"

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(f"{path} cannot be written: {error.strerror or error}. Check the disk and the permissions of its folder.")


class FolderSpool:
    """See `ports.spool.Spool`. Files are opened for each group, so that a thousand turns need no descriptors. `run`: where a call that
    waits for the disk is made, so that it holds up nobody.
    """

    def __init__(self, home: Path, *, run: Run = asyncio.to_thread) -> None:
        self._folder, self._run = home / FOLDER, run
        self._lock = threading.Lock()  # An owner's folder goes with its last spool, and not while the next one is begun.

    async def append(self, groups: Sequence[Group]) -> list[int | Exception]:
        return await self._run(self._append, groups)

    def _append(self, groups: Sequence[Group]) -> list[int | Exception]:
        with self._lock:
            return [self._add(group) for group in groups]

    def _add(self, group: Group) -> int | Exception:
        header, size = group.header, group.size
        folder = self._folder / header.owner
        path = folder / header.stream_id
        data = frames(group.events if size else (header, *group.events))
        try:
            if not size:
                self._make(folder)
            _write(path, data, size)
            if not size:
                files.sync(folder)
            return size + len(data)
        except OSError as error:
            failure = StoreFull() if error.errno in (errno.ENOSPC, errno.EDQUOT) else SpoolFailed(path, error)
            failure.__cause__ = error
            return failure

    def put_now(self, owner: str, name: str, data: bytes) -> None:
        """A spool as it once was, durable, for those who have no event loop. Raises `OSError`."""
        folder = self._folder / owner
        with self._lock:
            self._make(folder)
            _write(folder / name, data, 0)
            files.sync(folder)

    def _make(self, folder: Path) -> None:
        """Another process that removes its last spool takes the folder of all of them along while it is empty: then once more."""
        for left in reversed(range(MAKES)):
            try:
                return _make_each(self._folder, folder)
            except FileNotFoundError:
                if not left:
                    raise

    async def found(self) -> Listing:
        return await self._run(self.look) if self._is_there() else Listing([], [])

    def _is_there(self) -> bool:
        """Nearly always there is none, and then nobody needs a thread to find that out."""
        return os.path.lexists(self._folder)

    def look(self) -> Listing:
        """As `found`, for those who have no event loop."""
        spools: list[SpoolFile] = []
        hidden: list[Hidden] = []
        try:
            owners = _names(self._folder)
        except OSError as error:
            return Listing([], [Hidden(None, error.strerror or str(error))])
        for owner in owners:
            try:
                spools += self._of(owner)
            except OSError as error:
                hidden.append(Hidden(owner, error.strerror or str(error)))
        return Listing(sorted(spools, key=lambda file: (file.changed_at, file.name)), hidden)

    def _of(self, owner: str) -> list[SpoolFile]:
        spools = []
        for name in _names(self._folder / owner):
            if parsed := parse_stream_id(name):
                size, changed_at = _stat(self._folder / owner / name)
                spools.append(SpoolFile(owner, name, *parsed, size, changed_at))
        return spools

    async def read(self, file: SpoolFile) -> Contents:
        return await self._run(self.read_now, file)

    def read_now(self, file: SpoolFile) -> Contents:
        """As `read`, for those who have no event loop."""
        return read_file(self.bytes_now(file), owner=file.owner, name=file.name)

    def bytes_now(self, file: SpoolFile) -> bytes:
        """As it lies there, whatever it says. Raises `Gone`, `Unreadable`."""
        try:
            return _bytes(self._folder / file.owner / file.name)
        except FileNotFoundError as error:
            raise Gone(file.name) from error
        except OSError as error:
            raise Unreadable(file.name, error.strerror or str(error)) from error

    async def seal(self, file: SpoolFile) -> None:
        await self._run(self._seal, file)

    def _seal(self, file: SpoolFile) -> None:
        path = self._folder / file.owner / file.name
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
            try:
                os.write(descriptor, frame(Sealed()))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except FileNotFoundError as error:
            raise Gone(file.name) from error
        except OSError as error:
            raise Unreadable(file.name, error.strerror or str(error)) from error

    async def remove(self, owner: str, stream_id: str) -> None:
        await self._run(self.remove_now, owner, stream_id)

    def remove_now(self, owner: str, stream_id: str) -> None:
        """As `remove`, for those who have no event loop."""
        folder = self._folder / owner
        try:
            with self._lock:
                (folder / stream_id).unlink(missing_ok=True)
                with contextlib.suppress(OSError):  # Another turn has its spool there.
                    folder.rmdir()
                    self._folder.rmdir()
        except OSError as error:
            log.warning("a spool that is no longer needed cannot be removed", file=str(folder / stream_id), error=str(error))


def _make_each(*folders: Path) -> None:
    for each in folders:
        with contextlib.suppress(FileExistsError):
            each.mkdir(mode=0o700)
            files.sync(each.parent)


def _write(path: Path, data: bytes, size: int) -> None:
    """Behind the first `size` bytes, and nothing else behind them: what an earlier write left that failed is gone."""
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    try:
        os.ftruncate(descriptor, size)
        written = 0
        while written < len(data):
            written += os.pwrite(descriptor, data[written:], size + written)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _bytes(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(MOST_BYTES)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _stat(path: Path) -> tuple[int, int]:
    """Of a file that cannot be looked at, nothing is known."""
    try:
        found = os.lstat(path)
        return found.st_size, found.st_mtime_ns // 1_000_000
    except OSError:
        return 0, 0
