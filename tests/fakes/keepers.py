"""Background processes of a simulated machine (`ports.keepers`): they run, print and end by the clock of the world, whatever becomes of the
process that started them. What they do is written in their command:

    lasts 2; exit 3; at 0.5 print ready; at 1 print done; asks

A command without `lasts` runs until it is killed. One that `asks` prints what it is written.
"""

from collections.abc import Callable
from pathlib import Path

from holdfast.core.errors import Held
from holdfast.keeper.files import InputClosed
from holdfast.ports.keepers import OUT, Chunk, Command, End, Look, Loss, Name
from holdfast.sandbox import Mode, Place, Sandbox
from holdfast.tools.confinement import Confinement
from holdfast.tools.surroundings import Surroundings
from holdfast.tools.workspaces import Workspaces
from tests.fakes.tools import Faults

FOR_EVER = float("inf")
TERM = 15


class Simulated:
    """One that was started at a time of the world, and what has become of it since. `boot`: the start of the machine that it belongs to."""

    def __init__(self, line: str, at: float, boot: str) -> None:
        self.started, self.boot = at, boot
        self.lasts, self.code = FOR_EVER, 0
        self.prints: list[tuple[float, bytes]] = []
        self.killed_at: float | None = None
        self.lost_at: float | None = None
        self.given_up: End | None = None
        for word in filter(None, (part.strip() for part in line.split(";"))):
            what, _, rest = word.partition(" ")
            if what == "lasts":
                self.lasts = float(rest)
            elif what == "exit":
                self.code = int(rest)
            elif what == "at":
                when, _, text = rest.partition(" print ")
                self.prints.append((at + float(when), text.encode() + b"\n"))

    def until(self, now: float) -> float:
        """Up to when it has run."""
        ends = [self.started + self.lasts, now, *(when for when in (self.killed_at, self.lost_at) if when is not None)]
        return min(ends)

    def output(self, now: float) -> bytes:
        until = self.until(now)
        return b"".join(text for when, text in sorted(self.prints, key=lambda each: each[0]) if when <= until)

    def end(self, now: float, wall: Callable[[float], int]) -> End | None:
        until = self.until(now)
        if self.given_up is not None:
            return self.given_up
        if self.lost_at is not None and self.lost_at <= until:
            return None
        if self.started + self.lasts <= until:
            return End(at=wall(until), code=self.code)
        return End(at=wall(until), signal=TERM, asked=True) if self.killed_at is not None and self.killed_at <= until else None


class Machine:
    """Everything that runs in the background. `wall`: what clocks show at a time of the world. `starts`: how often each was started."""

    def __init__(self, wall: Callable[[float], int]) -> None:
        self.wall = wall
        self.running: dict[Name, Simulated] = {}
        self.starts: dict[Name, int] = {}
        self.given_up: dict[Name, End] = {}
        self.kills: list[Name] = []
        self.file_bytes = 1 << 20  # An output lies in files of so many bytes, and a read ends with one.

    def kill_keeper(self, name: Name, at: float) -> None:
        self.running[name].lost_at = at

    def boot(self, at: float) -> None:
        """The machine is started again: nothing of what ran is left."""
        for process in self.running.values():
            if process.until(at) == at and process.lost_at is None:
                process.lost_at = at

    @property
    def ids(self) -> dict[str, Simulated]:
        return {name.id: process for name, process in self.running.items()}


class _Nowhere(Workspaces):
    """Folders that nobody looks into."""

    def __init__(self) -> None:
        super().__init__(Path("/nowhere"), folder=Path("/nowhere"))

    def make(self, session_id: str, chosen: str | None = None) -> Place:
        return Place(Path("/nowhere"), Path("/nowhere"), Path("/nowhere"))


def nowhere() -> Surroundings:
    """For commands that no shell runs."""
    none = Sandbox(mode=Mode.NONE, network=False, hidden=Path("/nowhere"))
    confinement = Confinement(lambda: none)
    confinement.known = none
    return Surroundings(workspaces=_Nowhere(), confinement=confinement, environment={"PATH": "/bin", "TOKEN": "secret"})


class SimKeepers:
    """The machine as one process of ours sees it. `faults`: where that may die."""

    def __init__(self, machine: Machine, *, elapsed: Callable[[], float], faults: Faults, boot: str = "b") -> None:
        self._machine, self._elapsed, self._faults, self._boot = machine, elapsed, faults, boot

    async def start(self, name: Name, command: Command) -> End | None:
        await self._faults.at("before its keeper")
        if name in self._machine.given_up:
            return self._machine.given_up[name]
        if name not in self._machine.running:
            self._machine.running[name] = Simulated(command.words[-1], self._elapsed(), self._boot)
            self._machine.starts[name] = self._machine.starts.get(name, 0) + 1
        await self._faults.at("after its keeper")
        return (await self.look(name)).end

    async def look(self, name: Name) -> Look:
        process, now = self._machine.running.get(name), self._elapsed()
        if process is None:
            given_up = self._machine.given_up.get(name)
            return Look(end=given_up) if given_up is not None else Look(lost=Loss.NEVER_RAN)
        out = len(process.output(now))
        if (end := process.end(now, self._machine.wall)) is not None:
            return Look(end=end, out=out)
        if process.lost_at is not None:
            return Look(lost=Loss.KEEPER if process.boot == self._boot else Loss.MACHINE, out=out)
        return Look(out=out)

    async def give_up(self, name: Name) -> End:
        found = await self.look(name)
        if found.end is not None:
            return found.end
        if found.lost is None:
            raise Held("It runs.")
        await self._faults.at("before it is given up")
        process = self._machine.running.get(name)
        at = self._elapsed() if process is None else process.until(self._elapsed())
        end = End(at=self._machine.wall(at), lost=found.lost)
        if process is None:
            self._machine.given_up[name] = end
        else:
            process.given_up = end
        return end

    async def read(self, name: Name, *, offset: int, limit: int, stream: str = OUT) -> Chunk:
        process = self._machine.running.get(name)
        data = b"" if process is None else process.output(self._elapsed())
        size = self._machine.file_bytes
        return Chunk(offset, data[offset : min(offset + limit, (offset // size + 1) * size)])

    async def write(self, name: Name, data: bytes) -> int:
        if not (await self.look(name)).runs:
            raise InputClosed("it has ended")
        self._machine.running[name].prints.append((self._elapsed(), data))
        return len(data)

    async def close_input(self, name: Name) -> None: ...

    async def drop(self, name: Name, *, before: int, stream: str = OUT) -> None: ...

    async def kill(self, name: Name) -> None:
        await self._faults.at("before its kill")
        found = await self.look(name)
        if found.runs:
            self._machine.kills.append(name)
            self._machine.running[name].killed_at = self._elapsed()
        elif found.lost is not None:
            await self.give_up(name)
        await self._faults.at("after its kill")

    async def names(self) -> list[Name]:
        return sorted({*self._machine.running, *self._machine.given_up})

    async def forget(self, name: Name) -> None:
        await self.kill(name)
        self._machine.running.pop(name, None)
        self._machine.given_up.pop(name, None)
