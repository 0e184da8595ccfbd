"""Spools on the disk of a simulated world: what was not synced when the process died may be there, in part, or not."""

from collections.abc import Callable, Sequence

from holdfast.core.spools import Contents, Gone, Header, Sealed, Spooled, Unreadable, frame, frames, parse_stream_id, read_file
from holdfast.ports.spool import Group, Listing, SpoolFile
from tests.fakes.loop import SimLoop, never
from tests.sim.disk import SimDisk

FOLDER = "spool/"


class SimSpool:
    """See `ports.spool.Spool`. `readable`: whether a spool of this name can be read now; `spooled` hears of what a turn may count on."""

    def __init__(
        self,
        disk: SimDisk,
        loop: SimLoop,
        *,
        now: Callable[[], int],
        readable: Callable[[str], bool],
        spooled: Callable[[Header, Sequence[Spooled]], None],
    ) -> None:
        self._disk, self._loop, self._now, self._readable, self._spooled = disk, loop, now, readable, spooled
        self._changed_at: dict[str, int] = {}

    async def append(self, groups: Sequence[Group]) -> list[int | Exception]:
        sizes: list[int | Exception] = []
        for group in groups:
            name = f"{FOLDER}{group.header.owner}/{group.header.stream_id}"
            data = frames(group.events if group.size else (group.header, *group.events))
            if not group.size:
                self._disk.truncate(name, 0)
            self._disk.write(name, group.size, data)
            self._disk.sync(name)
            if self._disk.left is not None:
                self._loop.die()
                await never()
            self._spooled(group.header, group.events)
            self._changed_at[group.header.stream_id] = self._now()
            sizes.append(group.size + len(data))
        return sizes

    async def found(self) -> Listing:
        names = sorted(name for name in self._disk.now if name.startswith(FOLDER))
        return Listing([self._file(*name.removeprefix(FOLDER).split("/"), size=len(self._disk.now[name])) for name in names], [])

    def _file(self, owner: str, name: str, *, size: int) -> SpoolFile:
        parsed = parse_stream_id(name)
        assert parsed is not None
        return SpoolFile(owner, name, *parsed, size, self._changed_at.get(name, 0))  # What others wrote was long ago.

    async def read(self, file: SpoolFile) -> Contents:
        if not self._readable(file.name):
            raise Unreadable(file.name, "as it was told")
        if (data := self._disk.now.get(f"{FOLDER}{file.owner}/{file.name}")) is None:
            raise Gone(file.name)
        return read_file(bytes(data), owner=file.owner, name=file.name)

    async def seal(self, file: SpoolFile) -> None:
        name = f"{FOLDER}{file.owner}/{file.name}"
        if name not in self._disk.now:
            raise Gone(file.name)
        self._disk.write(name, len(self._disk.now[name]), frame(Sealed()))
        self._disk.sync(name)

    async def remove(self, owner: str, stream_id: str) -> None:
        self._disk.delete(f"{FOLDER}{owner}/{stream_id}")
