"""Keepers as a gateway uses them (`ports.keepers.Keepers`): their folders, and every slow step out of the event loop."""

import asyncio
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import msgspec

from holdfast import tool_processes
from holdfast.core.errors import Bug, Held, Unavailable
from holdfast.keeper import files
from holdfast.keeper.launching import CannotStart, Launcher, StartedBefore
from holdfast.ports.keepers import OUT, Chunk, Command, End, Look, Name

# Where in a home the files are: of background processes, and of agents that are other programs.
FOLDER, AGENTS = "processes", "agents"
PLAIN = re.compile(r"[A-Za-z0-9_]{1,64}")
# A process that is killed has its grace, and what the system needs to let it go.
DIES_S, WRITES_S, LOOK_S = 10.0, 2.0, 0.02

P = ParamSpec("P")
R = TypeVar("R")


class KeeperProcesses:
    """Those of one home, with their files in its `folder`. Their commands find `HOLDFAST_PROCESS` in their environment, by which they
    are found when a keeper was killed.
    """

    def __init__(self, home: Path, launcher: Launcher, *, folder: str = FOLDER) -> None:
        self._home, self._folder, self._launcher = home, home / folder, launcher

    async def start(self, name: Name, command: Command) -> End | None:
        return await _do(self._start, name, command)

    def _start(self, name: Name, command: Command) -> End | None:
        folder = self._of(name)
        if (found := files.look(folder)).lost is None:
            return found.end
        mark = {tool_processes.KEPT: tool_processes.mark(self._home, name.id)}
        files.prepare(folder)
        try:
            self._launcher.launch(folder, files.spec(msgspec.structs.replace(command, environment=command.environment | mark)))
        except StartedBefore:
            return files.look(folder).end
        except CannotStart as error:  # Its keeper, if there is one, is about to write that down.
            return self._look_until(name, WRITES_S).end or self._give_up(name, str(error))
        return None

    def _look_until(self, name: Name, timeout_s: float) -> Look:
        """As it stands when it does not run any more, or after the timeout."""
        until = time.monotonic() + timeout_s
        while (found := files.look(self._of(name))).runs and time.monotonic() < until:
            time.sleep(LOOK_S)
        return found

    async def look(self, name: Name) -> Look:
        return await _do(files.look, self._of(name))

    async def give_up(self, name: Name) -> End:
        return await _do(self._give_up, name)

    def _give_up(self, name: Name, problem: str | None = None) -> End:
        return files.give_up(self._of(name), lambda: tool_processes.kill_kept(self._home, name.id), problem=problem)

    async def read(self, name: Name, *, offset: int, limit: int, stream: str = OUT) -> Chunk:
        return await _do(files.read, self._of(name), stream, offset, limit)

    async def write(self, name: Name, data: bytes) -> int:
        return await _do(files.write, self._of(name), data)

    async def close_input(self, name: Name) -> None:
        await _do(files.close_input, self._of(name))

    async def drop(self, name: Name, *, before: int, stream: str = OUT) -> None:
        await _do(files.drop, self._of(name), stream, before)

    async def kill(self, name: Name) -> None:
        await _do(self._kill, name)

    def _kill(self, name: Name) -> None:
        if not files.ask_to_end(self._of(name)) and files.look(self._of(name)).runs:
            tool_processes.kill_kept(self._home, name.id)  # It is not known which process the keeper is. It ends with its command.
        if self._look_until(name, DIES_S).lost is not None:
            try:
                self._give_up(name)
            except Held:  # It was started in this very moment.
                files.ask_to_end(self._of(name))

    async def names(self) -> list[Name]:
        return await _do(self._names)

    def _names(self) -> list[Name]:
        return [Name(group, id_) for group in _listed(self._folder) for id_ in _listed(self._folder / group)]

    async def forget(self, name: Name) -> None:
        await _do(self._kill, name)
        await asyncio.to_thread(files.remove, self._of(name))

    def _of(self, name: Name) -> Path:
        if not (PLAIN.fullmatch(name.group) and PLAIN.fullmatch(name.id)):
            raise Bug(f"{name} is no name for a process.")
        return self._folder / name.group / name.id


def end_all(home: Path) -> int:
    """Ends every process that is kept in this home, and waits until they are dead, but not for long; gives how many there were. For an
    operator's stop while no gateway can do it: their ends are recorded by the next one that starts.
    """
    kinds = [home / FOLDER, home / AGENTS]
    folders = [kind / group / id_ for kind in kinds for group in _listed(kind) for id_ in _listed(kind / group)]
    asked = [folder for folder in folders if _quietly(files.ask_to_end, folder)]
    until = time.monotonic() + DIES_S
    while any(_quietly(files.keeper, folder) for folder in asked) and time.monotonic() < until:
        time.sleep(LOOK_S)
    return len(asked)


def _quietly(work: Callable[[Path], R], folder: Path) -> R | None:
    try:
        return work(folder)
    except (OSError, ValueError):
        return None


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if PLAIN.fullmatch(name))
    except (FileNotFoundError, NotADirectoryError):
        return []


async def _do(work: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    try:
        return await asyncio.to_thread(work, *arguments, **named)
    except OSError as error:
        raise Unavailable(f"A background process cannot be reached: {error}.") from error
