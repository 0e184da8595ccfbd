"""Hints between the processes of one home: a datagram after each commit. Lost ones cost a second, never a message."""

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path

MAX_PATH = 100


class Wakeups:
    """One socket per process, in the home folder. A datagram has no content; it only wakes."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self.path = str(folder / f"{name}.sock")
        self._folder, self._folder_changed = folder, 0
        self._others: list[str] = []
        self._socket: socket.socket | None = None
        if len(self.path.encode()) > MAX_PATH:
            return  # The path is too long for a socket: the look at the store once a second does the work.
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self._socket.bind(self.path)
        os.chmod(self.path, 0o600)
        if hasattr(socket, "SO_PASSCRED"):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)

    def listen(self, heard: Callable[[], None]) -> None:
        """Calls `heard` for what comes from now on, and for what has come since the socket was there."""
        if self._socket is not None:
            asyncio.get_running_loop().add_reader(self._socket.fileno(), self._drain, heard)

    def know(self, paths: list[str]) -> None:
        """The sockets of the other living processes of this home."""
        self._others = [path for path in paths if path != self.path]

    def send(self) -> None:
        if self._socket is None:
            return
        self._look_around()
        for path in self._others:
            # A full queue means it is already woken; a missing socket means it is gone.
            with contextlib.suppress(OSError):
                self._socket.sendto(b"!", path)

    def _look_around(self) -> None:
        """A process that is about to take over is woken at once, not only after the next look at who is alive."""
        with contextlib.suppress(OSError):
            changed = os.stat(self._folder).st_mtime_ns
            if changed != self._folder_changed:
                self.know([entry.path for entry in os.scandir(self._folder) if entry.name.endswith(".sock")])
                self._folder_changed = changed

    def _drain(self, heard: Callable[[], None]) -> None:
        assert self._socket is not None
        ours = False
        while True:
            try:
                _, ancillary, _, _ = self._socket.recvmsg(16, socket.CMSG_SPACE(struct.calcsize("3i")))
            except BlockingIOError:
                break
            ours = ours or _same_user(ancillary)
        if ours:
            heard()

    def close(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket.fileno())
            self._socket.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)


def _same_user(ancillary: list[tuple[int, int, bytes]]) -> bool:
    if not hasattr(socket, "SCM_CREDENTIALS"):
        return True
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            _, uid, _ = struct.unpack("3i", data[: struct.calcsize("3i")])
            return uid in (os.getuid(), 0)
    return False
