"""The reserve: a file that takes up room while there is some, and is given up so that ends can be recorded when there is none."""

import errno
import os
from pathlib import Path

BYTES = 16 * 1024 * 1024
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Reserve:
    """No method raises: a reserve that cannot be kept for any other reason than room is done without."""

    def __init__(self, path: Path, size: int = BYTES) -> None:
        self._path, self._size = path, size

    def lay(self) -> bool:
        """Whether the reserve is there, or can be done without: false means that the disk has no room for it."""
        try:
            if self._path.exists() and self._path.stat().st_blocks * 512 >= self._size:
                return True
            descriptor = os.open(self._path, os.O_CREAT | os.O_WRONLY, 0o600)
            try:
                _fill(descriptor, self._size)
            finally:
                os.close(descriptor)
        except OSError as error:
            self.free()
            return error.errno not in _NO_ROOM
        return True

    def room(self) -> int:
        """Bytes free on its disk."""
        try:
            found = os.statvfs(self._path.parent)
        except (AttributeError, OSError):
            return 0
        return found.f_bavail * found.f_frsize

    def free(self) -> None:
        try:
            self._path.unlink(missing_ok=True)
        except OSError:
            pass


def _fill(descriptor: int, size: int) -> None:
    """Real blocks, not a hole. Where the system or the file system cannot allocate, they are written."""
    try:
        os.posix_fallocate(descriptor, 0, size)
    except (AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            raise
        block = os.urandom(min(size, 1 << 20))  # Not zeros: a file system that compresses would keep nothing.
        for offset in range(0, size, len(block)):
            os.pwrite(descriptor, block, offset)
        os.fsync(descriptor)
