"""A disk on which the process may die before and after every sync."""

from collections.abc import Callable
from pathlib import Path

from holdfast.store.sqlite.connection import connect, migrate
from tests.fakes.power import Disk, Mode

DATABASE = Path("holdfast.db")


class SimDisk(Disk):
    """Asks `dies` at each place. At a death the bytes that will be left are set apart at once; the operation under way
    may then go on, because nothing of it is ever seen again.
    """

    def __init__(self, files: dict[str, bytes], *, seed: int, dies: Callable[[str], Mode | None]) -> None:
        super().__init__(files, seed=seed)
        self._dies = dies
        self.left: dict[str, bytes] | None = None
        self.unsynced_at_death = False

    def sync(self, name: str) -> None:
        self.look("before a sync")
        super().sync(name)
        self.look("after a sync")

    def look(self, place: str) -> bool:
        """Whether the process is to die at this place."""
        if self.left is None and (mode := self._dies(place)) is not None:
            self.freeze(mode)
            return True
        return False

    def freeze(self, mode: Mode) -> None:
        self.unsynced_at_death = bool(self._pending)
        self.left = self.survivors(mode).durable


def empty_database() -> dict[str, bytes]:
    """The files of a database in which nothing has happened yet."""
    disk = Disk()
    with disk.mounted() as vfs:
        db = connect(DATABASE, vfs=vfs, exclusive=True)
        migrate(db)
        db.close()
    return disk.survivors("all").durable
