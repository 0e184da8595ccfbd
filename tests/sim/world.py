"""A world in which the gateway lives, dies and lives again: the real gateway on the real store, in simulated time.

What is outside the process (disk, chat platform, the tools' effects, people) lives in `World`; what is inside in `Life`. A
death runs no `finally`, no `except` and no close. Everything random comes from the seed.
"""

import asyncio
import random
from collections.abc import Callable, MutableMapping, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any, NamedTuple

import apsw
from structlog.testing import capture_logs

from holdfast.core.effects import Effect
from holdfast.core.errors import StoreFull, Unavailable
from holdfast.gateway.gateway import Gateway, Settings
from holdfast.ports import Owner, Store, Tool
from holdfast.store import SqliteStore
from holdfast.store.connection import connect, fetch
from tests.fakes.agents_sim import ScriptedAgent
from tests.fakes.clock import SimClock
from tests.fakes.loop import Crash, SimLoop, never, run
from tests.fakes.platform import NAME, Chat, ChatServer
from tests.fakes.power import Mode
from tests.fakes.tools import CounterTool, Done
from tests.sim.disk import DATABASE, SimDisk, empty_database
from tests.sim.lines import SimLines
from tests.sim.people import Person, as_shown

IDLE_TIMEOUT_S = 5.0
QUIET_S = 1.5
# A delivery that was asked to wait waits five minutes at most; nothing else in a simulation takes longer.
NEVER_QUIET_S = 3000.0
MAX_LIVES = 12

_empty = cache(empty_database)


class Death(NamedTuple):
    """How one life ends: at the `point`-th place where a fault may fall, or at a time, and what is left of unsynced writes."""

    point: int | None = None
    at_s: float | None = None
    unsynced: Mode = "all"


class Weather(NamedTuple):
    """How unkind the world is. The default is a world in which only the deaths are."""

    drift: float = 0.0
    jumps: tuple[tuple[float, int], ...] = ()
    moods: tuple[str, ...] = ("",)
    repeats: float = 0.0
    slow: float = 0.0
    flaky: float = 0.0
    full: tuple[float, float] = (0.0, 0.0)
    noise: int = 2


class Span(NamedTuple):
    """A life's part of the log: its owner, and the newest event before it began."""

    owner: int
    after_id: int


class World:
    def __init__(
        self,
        seed: int,
        *,
        deaths: Sequence[Death | None] = (),
        reconciles: bool = True,
        weather: Weather | None = None,
        wrap: Callable[[Store], Store] = lambda store: store,
        synchronous: str = "FULL",
    ) -> None:
        self.seed, self.deaths, self.weather = seed, tuple(deaths), weather or Weather()
        self.wrap, self.synchronous = wrap, synchronous
        moods = self.random("moods")
        self.server = ChatServer(
            reconciles=reconciles,
            moods=lambda: moods.choice(self.weather.moods),
            repeats=lambda: moods.random() < self.weather.repeats,
        )
        self.people: list[Person] = []
        self.effects: list[Done] = []
        self.alive: set[str] = set()
        self.spans: list[Span] = []
        self.elapsed = 0.0
        self.files = dict(_empty())
        self.logs: list[MutableMapping[str, Any]] = []
        self.died_at: list[str] = []
        self.lives: list[Life] = []
        self._ids = self.random("ids")
        self._closing = ExitStack()

    def random(self, name: str) -> random.Random:
        """One stream per use, so that one use more does not change all the others."""
        return random.Random(f"{self.seed}|{name}")

    def new(self, prefix: str) -> str:
        """`ports.Ids`: different in each life, the same in each run."""
        return f"{prefix}_{self._ids.getrandbits(80):020x}"

    def last_id(self) -> int:
        return self.lives[-1].last_id()

    def person(self, name: str, *deeds: Any, chats: bool = False) -> Person:
        person = Person(name, deeds, server=self.server if chats else None)
        self.people.append(person)
        return person

    @property
    def crashes(self) -> int:
        return len(self.died_at)

    def run(self) -> None:
        """Life after life, until one of them finds nothing more to do."""
        with self._closing, capture_logs() as logs:
            self.logs = logs
            downtime = self.random("downtime")
            while len(self.lives) < MAX_LIVES:
                life = Life(self, len(self.lives))
                self.lives.append(life)
                vfs = self._closing.enter_context(life.disk.mounted())
                finished = life.run(vfs)
                self.elapsed += downtime.choice((0.0, 0.5, 5.0))
                self.files = life.what_is_left()
                if finished and not life.left_for:
                    break
            else:
                raise AssertionError(f"the script did not end within {MAX_LIVES} lives")
            for life in self.lives:
                life.bury()

    def logged_errors(self) -> list[MutableMapping[str, Any]]:
        return [entry for entry in self.logs if entry["log_level"] in ("error", "critical")]


class Life:
    """One process, from its start to its end or its death."""

    gateway: Gateway
    db: apsw.Connection

    def __init__(self, world: World, number: int) -> None:
        self.world, self.number = world, number
        self._random = world.random(f"life {number}")
        self._delays = world.random(f"delays {number}")
        self._death = world.deaths[number] if number < len(world.deaths) else None
        self._start = self._random.uniform(0, 1e6)
        self._born = world.elapsed
        self.loop = SimLoop(start=self._start)
        self.disk = SimDisk(world.files, seed=self._random.getrandbits(32), dies=self._dies)
        self.points = 0
        self.left_for: str | None = None
        self._leaving = False

    def run(self, vfs: str) -> bool:
        """Whether it came to its end alive."""
        name = f"owner-{self.number}"
        self.world.alive.add(name)
        if self._death is not None and self._death.at_s is not None:
            self.loop.call_later(self._death.at_s, self._die_now)
        self.db = connect(DATABASE, vfs=vfs, exclusive=True)
        if self.world.synchronous != "FULL":
            self.db.execute(f"PRAGMA synchronous = {self.world.synchronous}")
        finished = run(self.loop, self._live(name))
        self.world.elapsed = self.elapsed()
        self.world.alive.discard(name)
        if not finished:
            self.disk.cut()
        return finished

    def what_is_left(self) -> dict[str, bytes]:
        return self.disk.left if self.disk.left is not None else self.disk.survivors("all").durable

    def bury(self) -> None:
        self.loop.bury()

    def elapsed(self) -> float:
        return self._born + self.loop.time() - self._start

    def last_id(self) -> int:
        return int(fetch(self.db, "SELECT coalesce(max(id), 0) FROM event")[0][0])

    # how it dies

    def _dies(self, place: str) -> Mode | None:
        self.points += 1
        if self._death is not None and self._death.point == self.points:
            self.world.died_at.append(f"{place} (point {self.points}, unsynced: {self._death.unsynced})")
            return self._death.unsynced
        return None

    def _committed(self) -> None:
        if self.disk.left is not None:
            raise Crash

    def _die_now(self) -> None:
        assert self._death is not None
        self.world.died_at.append(f"after {self._death.at_s} s (unsynced: {self._death.unsynced})")
        self.disk.freeze(self._death.unsynced)
        raise Crash

    async def at(self, place: str) -> None:
        if self.disk.look(place):
            self.loop.die()
            await never()

    # how long things take

    def _fails(self, when_full: bool) -> Exception | None:
        """The store fails at random, and is full for a while. Not before the process has come up: that would be no life."""
        if not hasattr(self, "gateway"):
            return None
        if self._delays.random() < self.world.weather.flaky:
            return Unavailable("The store failed.", retry_after_s=0.1)
        begin, end = self.world.weather.full
        return StoreFull() if begin <= self.elapsed() < end and not when_full else None

    def _delay(self) -> float:
        chance = self._delays.random()
        if chance < self.world.weather.slow:
            return self._delays.uniform(0, 0.4)
        return self._delays.uniform(0, 0.02 if chance > 0.9 else 0.002)

    async def pause(self) -> None:
        await asyncio.sleep(self._random.uniform(0, 0.05))

    async def poll(self) -> None:
        await asyncio.sleep(self._random.uniform(0.1, 0.5))

    async def until(self, holds: Callable[[], bool], *, patience_s: float = 1e9) -> None:
        """For those outside, who can only look from time to time."""
        deadline = self.loop.time() + patience_s
        wait_s = 0.01
        while not holds() and self.loop.time() < deadline:
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, 0.5)

    async def hang(self) -> None:
        await asyncio.sleep(1000.0)

    def page_size(self) -> int:
        return self._random.choice((1, 3, 1000))

    def stays_connected(self) -> float:
        return self._random.choice((0.1, 1.0, 1000.0))

    # its life

    def leave(self, reason: str) -> None:
        self.left_for = reason

    async def _live(self, name: str) -> None:
        clock = SimClock(elapsed=self.elapsed, monotonic=self.loop.time, drift=self.world.weather.drift, jumps=self.world.weather.jumps)
        lines = SimLines(self.db, loop=self.loop, delay=self._delay, fails=self._fails, committed=self._committed)
        store = self.world.wrap(SqliteStore(lines, now=clock.now))
        after_id = self.last_id()
        owner = await store.register_owner(Owner(name=name, pid=self.number, started_at=clock.now(), boot_id="boot"))
        self.world.spans.append(Span(owner, after_id))
        tools: dict[str, Tool] = {
            str(effect): CounterTool(effect, world=self.world, faults=self, noise=lambda: self._random.randint(0, self.world.weather.noise))
            for effect in Effect
        }
        self.gateway = Gateway(
            store=store,
            clock=clock,
            ids=self.world,
            liveness=_Alive(self.world),
            owner=owner,
            agent=ScriptedAgent(keeps=lambda: self._random.random() < 0.5, think=lambda: self._random.uniform(0, 0.05)),
            tools=tools,
            platforms={NAME: Chat(self.world.server, faults=self)},
            encode=as_shown,
            settings=Settings(turn_idle_timeout_s=IDLE_TIMEOUT_S, drain_timeout_s=self._random.choice((0.0, 0.3, 10.0))),
        )
        await self.gateway.start()
        outside = [self.loop.create_task(work) for work in self._outside()]
        await self._until_quiet(outside)
        await self.gateway.stop(reason=self.left_for or "shutdown_timeout")
        for task in outside:
            task.cancel()
        for problem in await asyncio.gather(*outside, return_exceptions=True):
            if isinstance(problem, Exception):
                raise problem
        await store.aclose()
        self.db.close()

    def _outside(self) -> list[Any]:
        work = []
        for person in self.world.people:
            work += [person.act(self), person.reader.follow(self)]
            if person.chats:
                work.append(person.find_chat(self))
        return work

    async def _until_quiet(self, outside: "list[asyncio.Task[Any]]") -> None:
        """Until nobody has anything left to do and nothing was recorded for a while."""
        began = quiet_since = self.loop.time()
        last = -1
        while self.left_for is None and self.loop.time() - quiet_since < QUIET_S:
            await asyncio.sleep(0.4)
            for task in outside:
                if task.done() and not task.cancelled() and (problem := task.exception()) is not None:
                    raise problem
            now = self.last_id()
            if now != last or not self._settled():
                last, quiet_since = now, self.loop.time()
            assert self.loop.time() - began < NEVER_QUIET_S, f"P3: never at rest: {self._unsettled()}"

    def _settled(self) -> bool:
        return not self._unsettled()

    def _unsettled(self) -> dict[str, Any]:
        """What is still to be done, in the people's own lists and in the catalog."""
        count = fetch(
            self.db,
            "SELECT (SELECT count(*) FROM inbox i JOIN head h ON h.session = i.session WHERE h.state <> 'waiting'),"
            " (SELECT count(*) FROM head WHERE state IN ('running', 'answered', 'interrupted')),"
            " (SELECT count(*) FROM outbox WHERE state NOT IN ('sent', 'dead'))",
        )[0]
        heads = dict(fetch(self.db, "SELECT s.session_id, h.seq FROM head h JOIN session s ON s.id = h.session"))
        found = {
            "readers": [p.name for p in self.world.people if p.reader.cursor < heads.get(p.reader.session_id, 0)],
            "people": [person.name for person in self.world.people if not person.done],
            "unconfirmed": [u.dedup_key for u in self.world.server.updates if u.dedup_key not in self.world.server.confirmed],
            **dict(zip(("inbox", "turns", "outbox"), count, strict=True)),
        }
        return {name: what for name, what in found.items() if what}


class _Alive:
    def __init__(self, world: World) -> None:
        self._world = world

    def alive(self, name: str) -> bool:
        return name in self._world.alive
