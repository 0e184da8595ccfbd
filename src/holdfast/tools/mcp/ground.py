"""Where servers live: what all of them have in common, and the folder, sandbox and environment that a program of a server gets."""

import asyncio
import os
import shlex
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from holdfast import files, tool_processes
from holdfast.config.mcp import Access, McpServer
from holdfast.core.redaction import Secrets
from holdfast.ports.blobs import Put
from holdfast.sandbox import Place, Sandbox
from holdfast.sandbox.view import readable
from holdfast.tools.confinement import Confinement
from holdfast.tools.mcp import program as programs
from holdfast.tools.mcp.program import Program

# In the home folder: what the programs of servers have there.
FOLDER = "mcp"
# Where the system does not let a process die, nobody waits for it.
KILL_S = 1.0
T = TypeVar("T")


class Spawn(Protocol):
    """Starts a task that somebody owns."""

    def __call__(self, work: Coroutine[Any, Any, T], *, name: str) -> "asyncio.Task[T]": ...


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """`owner`: the name of this process's lock. `longest_s`: no call takes longer, whatever progress it reports."""

    home: Path
    owner: str
    environment: Mapping[str, str]
    confinement: Confinement
    secrets: Secrets
    put: Put
    spawn: Spawn
    longest_s: float


class Running(msgspec.Struct, frozen=True):
    """A program that was started, and the mark by which all its processes are known."""

    program: Program
    mark: str


async def start(ground: Ground, name: str, server: McpServer, access: Access, *, mark: str) -> Running:
    """Raises `OSError`."""
    found = await ground.confinement.found()
    sandbox = _showing(found, access.words[0], ground.environment) if server.sandbox else found.without()
    place = _place(ground.home, name, server)
    environment = {
        **tool_processes.shared(ground.environment),
        **sandbox.environment(place),
        **access.env,
        tool_processes.CALL: mark,
        tool_processes.VARIABLE: tool_processes.mark(ground.home, ground.owner),
    }
    words = sandbox.command(f"exec {shlex.join(access.words)}", place)
    return Running(programs.start(words, folder=place.folder, environment=environment), mark)


async def end(ground: Ground, running: Running) -> None:
    """Asks it to end, and kills whatever is left of it a moment later, wherever that went."""
    await running.program.leave()
    await asyncio.to_thread(
        tool_processes.kill_chosen, ground.home, lambda environment: environment.get(tool_processes.CALL) == running.mark
    )
    await running.program.gone(KILL_S)
    running.program.close()


def _showing(sandbox: Sandbox, program: str, environment: Mapping[str, str]) -> Sandbox:
    """The sandbox of commands, in which a program is shown that is not found by its name alone."""
    if not os.path.isabs(program):
        return sandbox
    user_home = Path(environment.get("HOME") or "/nonexistent")
    shown = readable(os.path.dirname(program), user_home=user_home, hidden=sandbox.hidden, network=sandbox.network)
    return msgspec.structs.replace(sandbox, readable=tuple(dict.fromkeys((*sandbox.readable, *shown))))


def _place(home: Path, name: str, server: McpServer) -> Place:
    """It works in the first of its folders, otherwise in one of its own. Raises `OSError`."""
    own = home / FOLDER / name
    folders = tuple(Path(folder).expanduser() for folder in server.folders)
    place = Place(folders[0] if folders else own / "work", own / "home", own / "tmp", folders[1:])
    for each in (place.folder, place.home, place.tmp):
        if each not in folders:
            files.make_folder(each, within=home)
    for each in folders:
        if not each.is_dir():
            raise NotADirectoryError(f"there is no folder {each}")
    return place
