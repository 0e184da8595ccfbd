"""A disk that loses its power: an SQLite VFS in memory that knows which writes were synchronised and which were not.

    disk = Disk(seed=7, cut_at=120)
    with disk.mounted() as vfs:
        db = connect(Path("holdfast.db"), vfs=vfs, exclusive=True)
        ...                                       # the 120th write, sync, truncation or deletion raises PowerLost
    after = disk.survivors("torn")                # a new disk with what is left
    with after.mounted() as vfs: ...

There is no shared memory, so a database on it has one connection and `exclusive=True`. What a lost power does to the
entries of a folder is not modelled: a file that was ever synchronised is there, one that was deleted is gone.
"""

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import apsw

SECTOR = 512
# What is left of the writes since the last sync: nothing; everything; some of them, whole; some of their sectors.
Mode = Literal["none", "all", "some", "torn"]
MODES: tuple[Mode, ...] = ("none", "all", "some", "torn")

_names = itertools.count(1)


class PowerLost(Exception):
    """Raised by whatever touches the disk at the cut and after it."""


class Disk:
    """Files as the process sees them, as they were at their last sync, and the writes between the two.

    `operations` counts writes, truncations, syncs and deletions; at number `cut_at` the power goes: that one is still
    on its way, and from then on everything raises what `lost` makes. A simulation whose loop swallows ordinary errors
    gives a maker of its own.
    """

    def __init__(
        self,
        files: dict[str, bytes] | None = None,
        *,
        seed: int = 0,
        cut_at: int | None = None,
        lost: Callable[[], BaseException] = PowerLost,
    ) -> None:
        self.now = {name: bytearray(data) for name, data in (files or {}).items()}
        self._synced = {name: bytearray(data) for name, data in (files or {}).items()}
        self.operations = 0
        self.cut_at = cut_at
        self.dead = False
        # By file: (offset, data), or (new size, None) for a truncation.
        self._pending: dict[str, list[tuple[int, bytes | None]]] = {}
        self._random = random.Random(seed)
        self._lost = lost
        self._buried = False
        self._kept: list[apsw.Connection] = []

    @property
    def durable(self) -> dict[str, bytes]:
        """The files as they were at their last sync."""
        return {name: bytes(data) for name, data in self._synced.items()}

    def cut(self) -> None:
        """The power goes now."""
        self.dead = True
        # A connection writes when it is closed, also by the collector, where nobody can catch what that raises.
        self._kept = apsw.connections()

    def survivors(self, mode: Mode) -> "Disk":
        """What the next start finds: a new disk, on which everything is durable."""
        files: dict[str, bytes] = {}
        for name in sorted(self._synced.keys() | self._pending.keys()):
            left = bytearray(self._synced.get(name, b""))
            for offset, data in self._pending.get(name, ()):
                self._outlive(left, offset, data, mode)
            if name in self._synced or left:
                files[name] = bytes(left)
        return Disk(files, seed=self._random.randrange(2**32), lost=self._lost)

    @contextmanager
    def mounted(self) -> Iterator[str]:
        """The name of a VFS on this disk, until the block ends. A cut disk is silent then: its connections may go."""
        vfs = PowerVFS(f"power-{next(_names)}", self)
        try:
            yield vfs.name
        finally:
            self._buried = self.dead
            self._kept.clear()
            vfs.unregister()

    # what the files of the VFS do

    def read(self, name: str, amount: int, offset: int) -> bytes:
        self._check()
        return bytes(self.now.get(name, b"")[offset : offset + amount])

    def write(self, name: str, offset: int, data: bytes) -> None:
        if self._step(lambda: self._pending.setdefault(name, []).append((offset, data))):
            _put(self.now.setdefault(name, bytearray()), offset, data)

    def truncate(self, name: str, size: int) -> None:
        if self._step(lambda: self._pending.setdefault(name, []).append((size, None))):
            _put(self.now.setdefault(name, bytearray()), size, None)

    def sync(self, name: str) -> None:
        if self._step():
            left = self._synced.setdefault(name, bytearray())
            for offset, data in self._pending.pop(name, ()):
                _put(left, offset, data)

    def forget(self, name: str) -> None:
        """What a failed sync leaves behind: it can be read until the power goes, and no later sync writes it."""
        self._pending.pop(name, None)

    def delete(self, name: str) -> None:
        if self._step():
            for files in (self.now, self._synced, self._pending):
                files.pop(name, None)

    def _check(self) -> None:
        if self.dead and not self._buried:
            raise self._lost()

    def _step(self, on_its_way: Callable[[], None] = lambda: None) -> bool:
        """Whether the operation takes effect. At the cut it is on its way: it may survive, and nobody hears of it."""
        if self._buried:
            return False
        self._check()
        self.operations += 1
        on_its_way()
        if self.operations == self.cut_at:
            self.cut()
            raise self._lost()
        return True

    def _outlive(self, left: bytearray, offset: int, data: bytes | None, mode: Mode) -> None:
        if mode == "torn" and data is not None:
            end = offset + len(data)
            while offset < end:
                edge = min((offset // SECTOR + 1) * SECTOR, end)
                if self._random.random() < 0.5:
                    _put(left, offset, data[: edge - offset])
                data, offset = data[edge - offset :], edge
        elif mode == "all" or (mode != "none" and self._random.random() < 0.5):
            _put(left, offset, data)


def _put(file: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del file[offset:]
        return
    if len(file) < offset:
        file.extend(bytes(offset - len(file)))
    file[offset : offset + len(data)] = data


class PowerVFS(apsw.VFS):
    """Time, randomness and the like come from the system's VFS; files live on the disk."""

    def __init__(self, name: str, disk: Disk) -> None:
        super().__init__(name, "")
        self.name = name
        self._disk = disk

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> "PowerFile":  # type: ignore[override]
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or f"temporary-{next(_names)}"
        flags[1] = flags[0]
        return PowerFile(self._disk, path)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self._disk.delete(filename)

    def xAccess(self, pathname: str, flags: int) -> bool:
        return pathname in self._disk.now

    def xFullPathname(self, name: str) -> str:
        return name


class PowerFile:
    """One open file. Locks mean nothing: there is one connection."""

    def __init__(self, disk: Disk, name: str) -> None:
        self._disk, self._name = disk, name
        disk.now.setdefault(name, bytearray())

    def xRead(self, amount: int, offset: int) -> bytes:
        return self._disk.read(self._name, amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.write(self._name, offset, bytes(data))

    def xTruncate(self, newsize: int) -> None:
        self._disk.truncate(self._name, newsize)

    def xSync(self, flags: int) -> None:
        self._disk.sync(self._name)

    def xFileSize(self) -> int:
        return len(self._disk.now.get(self._name, b""))

    def xSectorSize(self) -> int:
        return 4096

    def xDeviceCharacteristics(self) -> int:
        # As SQLite believes of every disk: a torn write spoils nothing beside it.
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE

    def xLock(self, level: int) -> None: ...

    def xUnlock(self, level: int) -> None: ...

    def xCheckReservedLock(self) -> bool:
        return False

    def xFileControl(self, op: int, ptr: int) -> bool:
        return False

    def xClose(self) -> None: ...
