"""Opens what lies beneath a folder and nothing else, whatever links others put into it while we look.

The kernel decides where it can (`openat2`); elsewhere the path is resolved first and then walked step by step without following a link.
"""

import errno
import os
import stat
import struct
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.core.errors import BadInput

if TYPE_CHECKING:
    import ctypes

OPENAT2 = 437
NO_MAGIC_LINKS, BENEATH = 0x02, 0x08
# The kernel asks to try again where something was renamed while it looked.
TRIES = 20
# A fifo without a writer must not hold anybody up.
ALWAYS = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Outside(BadInput):
    def __init__(self, path: str) -> None:
        super().__init__(f"{path!r} is not in the folder of this conversation. Give a path in it, such as notes/today.md.")


class NotAFile(BadInput):
    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path!r} is {what}, not a file.")


class Beneath:
    """`by_kernel` False walks step by step, also where the kernel could decide."""

    def __init__(self, root: Path, *, by_kernel: bool = True) -> None:
        self.root = Path(os.path.realpath(root))
        self._by_kernel = by_kernel and _kernel_can()

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:
        """A descriptor of whatever is there. Raises `Outside`, `OSError`."""
        wanted = self._relative(path)
        opened = os.open(self.root, FOLDER)
        try:
            open_ = _ask_kernel if self._by_kernel else self._walk
            return open_(opened, wanted, flags | ALWAYS, mode)
        except OSError as error:
            if error.errno in (errno.EXDEV, errno.ELOOP):
                raise Outside(path) from error
            raise
        finally:
            os.close(opened)

    def open_file(self, path: str, flags: int = os.O_RDONLY) -> int:
        """A descriptor of a regular file that is there. Raises `NotAFile` too."""
        try:
            opened = self.open(path, flags)
        except OSError as error:
            if error.errno in (errno.ENXIO, errno.EISDIR):  # A socket, or a fifo to write to; a folder to write to.
                raise NotAFile(path, "a folder" if error.errno == errno.EISDIR else "a special file") from error
            raise
        kind = os.fstat(opened).st_mode
        if stat.S_ISREG(kind):
            return opened
        os.close(opened)
        raise NotAFile(path, "a folder" if stat.S_ISDIR(kind) else "a special file")

    def open_folder(self, path: str, *, make: bool = False) -> int:
        """A descriptor of a folder, which is made if it is missing and `make` says so, with those around it."""
        try:
            return self.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            if not make:
                raise
        wanted = self._relative(path)
        around = self.open_folder(os.path.dirname(wanted) or ".", make=True)
        try:
            os.mkdir(os.path.basename(wanted), 0o700, dir_fd=around)
        except FileExistsError:
            pass
        finally:
            os.close(around)
        return self.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def _relative(self, path: str) -> str:
        """People and models also name files by their whole path."""
        if "\0" in path:
            raise Outside(path)
        if path.startswith("/"):
            if not Path(os.path.normpath(path)).is_relative_to(self.root):
                raise Outside(path)
            path = os.path.relpath(path, self.root)
        return path or "."

    def _walk(self, root: int, path: str, flags: int, mode: int) -> int:
        real = Path(os.path.realpath(self.root / path))
        if not real.is_relative_to(self.root):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        *folders, name = real.relative_to(self.root).parts or (".",)
        # The path ends as it was given: what is named like a folder must be one.
        flags |= os.O_DIRECTORY if path.endswith("/") else 0
        at = os.dup(root)
        try:
            for folder in folders:
                inner = os.open(folder, FOLDER | os.O_NOFOLLOW, dir_fd=at)
                os.close(at)
                at = inner
            return os.open(name, flags | os.O_NOFOLLOW, mode, dir_fd=at)
        finally:
            os.close(at)


@cache
def _libc() -> "ctypes.CDLL":
    import ctypes  # When a file is first opened, not at every start.

    return ctypes.CDLL(None, use_errno=True)


def _ask_kernel(root: int, path: str, flags: int, mode: int) -> int:
    import ctypes

    how = struct.pack("QQQ", flags, mode if flags & os.O_CREAT else 0, BENEATH | NO_MAGIC_LINKS)
    for _ in range(TRIES):
        opened = _libc().syscall(ctypes.c_long(OPENAT2), ctypes.c_int(root), os.fsencode(path), how, ctypes.c_size_t(len(how)))
        if opened >= 0:
            return int(opened)
        if ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):
            break
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number), path)


@cache
def _kernel_can() -> bool:
    """Kernels before 5.6 do not know the call, and some containers forbid it."""
    if sys.platform != "linux":
        return False
    root = os.open("/", FOLDER)
    try:
        os.close(_ask_kernel(root, ".", FOLDER, 0))
    except OSError:
        return False
    finally:
        os.close(root)
    return True
