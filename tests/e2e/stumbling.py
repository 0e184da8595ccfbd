"""`python -m tests.e2e.stumbling` is `python -m holdfast` where things go wrong on demand: an agent that does not let go, a disk that
hangs, and processes that fail, or are held, at the place of a hand-over which the file `stumble` in the home folder names.
PATIENCE_S says how long a successor is waited for, SERVING_S how long once it was told to go, OFFERED_SCHEMA of which schema the process
says it is to a successor.

    the old process:   letting-go, let-go (before it says "go"), heard-serving (before it says "announced")
    the new process:   loaded, ready (said, not told to go), told-to-go, about-to-serve, serving (said, and in no file yet)
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from holdfast.agents import making
from holdfast.agents.demo import DemoAgent
from holdfast.cli import main as command_line
from holdfast.gateway import hand_over
from holdfast.ports.agents import AgentRequest, TurnFace
from holdfast.process import handover, place, predecessor, supervisor, watchdog
from holdfast.store.sqlite.connection import SCHEMA_VERSION

PATIENCE_S = float(os.environ.get("PATIENCE_S", "30"))
SERVING_S = float(os.environ.get("SERVING_S", PATIENCE_S))
HUNG_AFTER_S, BEAT_S = 1.0, 0.25
DAWDLE_S = 1.5
FOREVER_S = 3600.0


def in_home(name: str) -> Path:
    return Path(sys.argv[sys.argv.index("--home") + 1]) / name


def stumbles() -> str:
    """`PLACE HOW`, for example `ready die`; empty where nothing is to go wrong."""
    try:
        return in_home("stumble").read_text()
    except FileNotFoundError:
        return ""


def stumble_at(place: str) -> None:
    match stumbles().split():
        case [where, "die"] if where == place:
            os.kill(os.getpid(), signal.SIGKILL)
        case [where, "hang"] if where == place:
            time.sleep(FOREVER_S)
        case [where, "dawdle"] if where == place:
            time.sleep(DAWDLE_S)
        case [where, "hold"] if where == place:
            in_home("held").write_text(str(os.getpid()))
            while stumbles() == f"{place} hold":
                time.sleep(0.01)


def stumbling(step: Callable[..., Any], *, before: str, meanwhile: str = "", after: str = "") -> Callable[..., Any]:
    async def stumbling_step(*given: Any) -> None:
        stumble_at(before)
        taking = asyncio.ensure_future(step(*given))
        if stumbles().startswith(f"{meanwhile} "):
            await asyncio.wait({taking}, timeout=0.02)
            stumble_at(meanwhile)
        await taking
        stumble_at(after)

    return stumbling_step


def stumbling_at_once(step: Callable[..., Any], *, before: str) -> Callable[..., Any]:
    def stumbling_step(*given: Any) -> Any:
        stumble_at(before)
        return step(*given)

    return stumbling_step


class HangingFile(apsw.VFSFile):
    """A file of the database on a disk that never finishes a sync while the file says `disk hang`; `hung` is made when that begins."""

    def xSync(self, flags: int) -> None:
        while stumbles() == "disk hang":
            in_home("hung").touch()
            time.sleep(0.05)
        super().xSync(flags)


class Disk(apsw.VFS):
    """What SQLite opens its files through, in this process."""

    def __init__(self) -> None:
        super().__init__("stumbling", base="unix", makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return HangingFile("unix", name, flags)


class StubbornAgent(DemoAgent):
    """`deaf COMMAND` runs a command beside it and swallows every cancellation; `doze COMMAND` blocks the event loop when it is cancelled.
    `block COMMAND` blocks it as soon as the file says `block`. `tick` counts until there is a file `enough`; `wonder` does, and then asks.
    """

    async def run(self, request: AgentRequest, turn: TurnFace) -> None:
        word, _, rest = request.text.partition(" ")
        if word in ("deaf", "doze", "block"):
            self._beside = asyncio.ensure_future(turn.call(f"{request.turn_id}.1", "terminal", {"command": rest}))
            while True:
                await self._stay(word)
        elif word in ("tick", "wonder"):
            await self._tick(request, turn)
            if word == "wonder":
                await turn.say(f" and {(await turn.ask(f'{request.turn_id}.1', 'What then?')).text}")
        else:
            await super().run(request, turn)

    async def _tick(self, request: AgentRequest, turn: TurnFace) -> None:
        kept, number = request.kept.split(), 0
        while kept[number : number + 1] == [str(number + 1)]:  # The last one may have been cut off within.
            number += 1
        await turn.keep(len(" ".join(kept[:number])))
        while not number or not in_home("enough").exists():
            number += 1
            await turn.say(str(number) if number == 1 else f" {number}")
            await asyncio.sleep(0.02)

    async def _stay(self, word: str) -> None:
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            if word == "doze":
                time.sleep(FOREVER_S)  # noqa: ASYNC251 - what agents must not do.
        if word == "block" and stumbles().startswith("block"):
            time.sleep(FOREVER_S)  # noqa: ASYNC251


if __name__ == "__main__":
    # The composition root builds everything else: what is tested is what is served.
    for owner, name, value in (
        (making, "DemoAgent", StubbornAgent),
        (handover, "READY_S", PATIENCE_S),
        (place, "SCHEMA_VERSION", int(os.environ.get("OFFERED_SCHEMA", SCHEMA_VERSION))),
        (handover, "SERVING_S", SERVING_S),
        (watchdog, "HUNG_AFTER_S", HUNG_AFTER_S),
        (watchdog, "BEAT_S", BEAT_S),
        (
            predecessor.Predecessor,
            "ready",
            stumbling(predecessor.Predecessor.ready, before="loaded", meanwhile="ready", after="told-to-go"),
        ),
        (predecessor.Predecessor, "serving", stumbling(predecessor.Predecessor.serving, before="about-to-serve", after="serving")),
        (hand_over.HandOver, "give_way", stumbling(hand_over.HandOver.give_way, before="letting-go", after="let-go")),
        (supervisor.Supervisor, "replaced_by", stumbling_at_once(supervisor.Supervisor.replaced_by, before="heard-serving")),
    ):
        setattr(owner, name, value)
    disk = Disk()
    command_line()
