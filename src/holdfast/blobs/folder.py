"""The files of blobs. A file is written once, never changed, and named `<digest>-<random>`: two files of the same bytes never share a name,
so removing one cannot take the other. Knows nothing of the rows that name them.

A writer holds the lock of its file until a row names it or the file is removed. A file without a row and without a lock is left over.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from holdfast import files
from holdfast.core.errors import HoldfastError, StoreFull, Unavailable

MAKING = ".making-"
# The last of a disk is for conversations.
LEAVE_FREE = 32 * 1024 * 1024
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Stored(NamedTuple):
    digest: str
    size: int
    file: str


class Making:
    """A file that is being written. Its methods may be called from any thread; the first write creates it."""

    def __init__(self, folder: Path, leave_free: int) -> None:
        self._folder, self._leave_free = folder, leave_free
        self._alone = threading.Lock()
        self._hash, self._size = hashlib.sha256(), 0
        self._path: Path | None = None
        self._descriptor = -1

    def write(self, data: bytes) -> None:
        with self._alone, _translated():
            if self._path is None:
                self._folder.mkdir(mode=0o700, exist_ok=True)
                self._descriptor, self._path = _create(self._folder)
            room = os.fstatvfs(self._descriptor)
            if room.f_bavail * room.f_frsize < len(data) + self._leave_free:
                raise StoreFull
            view = memoryview(data)
            while view:
                view = view[os.write(self._descriptor, view) :]
            self._hash.update(data)
            self._size += len(data)

    def finish(self) -> Stored:
        """On disk, under its final name. Its lock is still held: no row names it yet."""
        with self._alone, _translated():
            assert self._path is not None
            os.fsync(self._descriptor)
            digest = self._hash.hexdigest()
            final = self._folder / f"{digest}-{secrets.token_hex(8)}"
            os.rename(self._path, final)
            self._path = final
            files.sync(self._folder)
            return Stored(digest, self._size, final.name)

    def release(self) -> None:
        """From now on the rows say whether the file stays."""
        with self._alone:
            self._close()

    def discard(self) -> None:
        """No row names it, or will."""
        with self._alone:
            if self._path is not None:
                with contextlib.suppress(OSError):  # Without its lock it is left over, and the next sweep removes it.
                    self._path.unlink(missing_ok=True)
            self._close()

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Folder:
    """`leave_free`: how many bytes of the disk blobs never take."""

    def __init__(self, path: Path, *, leave_free: int = LEAVE_FREE) -> None:
        self.path, self.leave_free = path, leave_free

    def begin(self) -> Making:
        return Making(self.path, self.leave_free)

    def holds(self, file: str, size: int) -> bool:
        try:
            return (self.path / file).stat().st_size == size
        except OSError:
            return False

    def open(self, file: str, size: int) -> int | None:
        """A descriptor for reading, None where the file is not there or not whole. What is removed while it is open can still be read.
        Raises `Unavailable` where that cannot be found out now, as without a descriptor left.
        """
        with _translated():
            try:
                descriptor = os.open(self.path / file, os.O_RDONLY | os.O_NONBLOCK)  # What is no file must not hold it up.
            except FileNotFoundError:
                return None
        if os.fstat(descriptor).st_size == size:
            return descriptor
        os.close(descriptor)
        return None

    def names(self) -> list[str]:
        with _translated():
            try:
                return os.listdir(self.path)
            except FileNotFoundError:
                return []

    def remove(self, names: Iterable[str]) -> None:
        with _translated():
            for name in names:
                (self.path / name).unlink(missing_ok=True)

    def locked(self, names: Iterable[str]) -> "Locks":
        return Locks([self.path / name for name in names])


class Locks:
    """Of files that nobody is writing. Its methods may be called from any thread."""

    def __init__(self, paths: list[Path]) -> None:
        self._paths = paths
        self._alone = threading.Lock()
        self._held: list[int] = []

    def take(self) -> list[str]:
        """The names of those files whose locks were free. Nobody writes or names them until `release`."""
        taken = []
        with self._alone:
            for path in self._paths:
                descriptor = _lock(path)
                if descriptor is not None:
                    self._held.append(descriptor)
                    taken.append(path.name)
        return taken

    def release(self) -> None:
        with self._alone:
            while self._held:
                os.close(self._held.pop())


def _create(folder: Path) -> tuple[int, Path]:
    """A new file, locked. Where a sweep found it before the lock was held, it is gone: another one is made."""
    while True:
        path = folder / f"{MAKING}{secrets.token_hex(8)}"
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:
                return descriptor, path
        os.close(descriptor)


def _lock(path: Path) -> int | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor
    except OSError:
        os.close(descriptor)
        return None


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _failure(error) from error


def _failure(error: OSError) -> HoldfastError:
    if error.errno in _NO_ROOM:
        return StoreFull()
    return Unavailable(f"The folder of attachments cannot be used: {error}. `holdfast doctor` looks for the reason.")
