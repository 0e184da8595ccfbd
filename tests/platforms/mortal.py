"""A gateway in a process of its own that dies by SIGKILL at one chosen commit of its database: before it, when everything is written and
nothing holds, or after it, when it holds and nobody has heard of that. All else of it is real: the store, the platform's part, the wire.
"""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from holdfast.core import live
from holdfast.core.delivery import DUE, IN_FLIGHT
from holdfast.core.live import Manners
from holdfast.gateway import streaming
from holdfast.ports.platforms import Platform
from tests.platforms.hooks import HookedPlace
from tests.platforms.rigs import ANN, BOB, Life, Place, Rig, until

ANY_TIME = 2**62
# Processes are forked from one that has loaded everything: a start then takes as long as a gateway does.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    ["tests.platforms.mortal", *(f"tests.platforms.{name}_rig" for name in ("telegram", "slack", "discord", "matrix"))]
)


class Way(NamedTuple):
    """To a platform, as another process can be told it. `begins`: the platform tells only what happens after the first connection."""

    name: str
    users: dict[str, str]
    platform: Callable[[], Platform]
    hooked: bool
    begins: bool

    def user(self, name: str) -> str:
        return self.users[name]


class Commits:
    """Counts them, and dies where it is told to."""

    def __init__(self, dies: tuple[str, int] | None) -> None:
        self.count, self.dies = 0, dies
        self._under_way = False
        apsw.connection_hooks.append(self._watch)

    def arm(self, moment: str, number: int) -> None:
        self.count, self.dies = 0, (moment, number)

    def _watch(self, db: apsw.Connection) -> None:
        db.set_commit_hook(self._committing)
        db.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._done, id="commits")

    def _committing(self) -> bool:
        self.count += 1
        self._under_way = True
        self._die("before")
        return False

    def _done(self, statement: dict[str, Any]) -> None:
        if self._under_way:
            self._under_way = False
            self._die("after")

    def _die(self, moment: str) -> None:
        if self.dies == (moment, self.count):
            os.kill(os.getpid(), signal.SIGKILL)


# in the process


def live_on(folder: Path, way: Way, lives: int, wire: Connection, dies: tuple[str, int] | None) -> None:
    live.OPEN_AFTER_S, streaming.GAP_S = 0.1, 0.05
    asyncio.run(_live(folder, way, lives, wire, Commits(dies)))


async def _live(folder: Path, way: Way, lives: int, wire: Connection, commits: Commits) -> None:
    def lead_to(origin: str | None) -> None:
        wire.send(("leads to", origin))

    place = HookedPlace(folder, way, lead_to, lives=lives) if way.hooked else Place(folder, way, lives=lives)
    heard: asyncio.Queue[tuple[str, int] | None] = asyncio.Queue()
    async with place.life(manners=Manners(still_working_s=0)) as life:
        asyncio.get_running_loop().add_reader(wire.fileno(), lambda: heard.put_nowait(wire.recv()))
        await until(lambda: _begun(life, way))
        wire.send(("begun", None))
        while True:
            match await heard.get():
                case None:
                    await until(lambda: _rests(life, way))
                    wire.send(("rests", None))
                case (moment, number):
                    commits.arm(moment, number)
                    wire.send(("armed", None))


async def _begun(life: Life, way: Way) -> bool:
    link = life.gateway.links[way.name]
    return link.ready.is_set() and (not way.begins or await life.store.cursor(link.id) is not None)


async def _rests(life: Life, way: Way) -> bool:
    """Nothing is owed, shown in part, or not looked into."""
    owed = await life.store.deliveries(states=[*DUE, *IN_FLIGHT], now=ANY_TIME, limit=10)
    waiting = await life.store.updates(life.gateway.links[way.name].id, limit=10)
    return not (owed or waiting or await life.store.live_deliveries() or await life.store.open_turns(apart_from=0))


# outside of it


class Mortal:
    """`dies`: at which commit from its start on. `lead_to`: told where it answers, if the platform tells us over HTTP."""

    def __init__(
        self,
        folder: Path,
        way: Way,
        lives: int,
        *,
        dies: tuple[str, int] | None = None,
        lead_to: Callable[[str | None], None] | None = None,
    ) -> None:
        self._lead_to, self._heard = lead_to, set[str]()
        self._wire, theirs = PROCESSES.Pipe()
        self._process = PROCESSES.Process(target=live_on, args=(folder, way, lives, theirs, dies), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def dead(self) -> bool:
        """Whether it was killed. One that ends by itself is a fault."""
        code = self._process.exitcode
        assert code in (None, -signal.SIGKILL), f"the process ended with {code}"
        return code is not None

    def kill(self) -> None:
        self._process.kill()

    def bury(self) -> None:
        self._process.kill()
        self._process.join()
        self._process.close()
        self._wire.close()

    async def hears(self, word: str) -> bool:
        """Waits until it has said a word; false if it is dead before that."""
        while word not in self._heard and not self.dead:
            if not self._wire.poll():
                await asyncio.sleep(0.01)
                continue
            try:
                said, more = self._wire.recv()
            except (EOFError, ConnectionResetError):
                self._process.join()
                break
            self._heard.add(said)
            if said == "leads to" and self._lead_to is not None:
                self._lead_to(more)
        return word in self._heard

    async def dies_at(self, moment: str, number: int) -> None:
        """Before or after a commit, counted from now on."""
        self._wire.send((moment, number))
        await self.hears("armed")

    async def rests(self) -> bool:
        """Waits until it has nothing left to do; false if it died before."""
        try:
            self._wire.send(None)
        except BrokenPipeError:
            return False
        return await self.hears("rests")


def way(rig: Rig, *, hooked: bool = False, begins: bool = False) -> Way:
    return Way(rig.name, {name: rig.user(name) for name in (ANN, BOB)}, rig.platform, hooked, begins)
