"""A world in which the gateway lives, dies and lives again: the real gateway on the real store, in simulated time.

What is outside the process (disk, chat platform, the tools' effects, people) lives in `World`; what is inside in `Life`. A
death runs no `finally`, no `except` and no close. Everything random comes from the seed.
"""

import asyncio
import bisect
import random
from collections.abc import Callable, Coroutine, MutableMapping, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any, NamedTuple

import apsw
import msgspec
from structlog.testing import capture_logs

from holdfast.core.capabilities import Capabilities
from holdfast.core.effects import Effect
from holdfast.core.errors import StoreFull, Unavailable
from holdfast.core.events import Logged
from holdfast.core.lifecycle import GatewayState
from holdfast.core.live import Manners
from holdfast.core.policy import parse_all
from holdfast.core.restarts import Request
from holdfast.core.rights import Policy
from holdfast.core.spools import Header, Spooled
from holdfast.gateway.agents import Agents
from holdfast.gateway.edges import Edges
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.host import Host
from holdfast.gateway.settings import Settings
from holdfast.gateway.toolbox import Toolbox
from holdfast.ports.agents import AgentRequest
from holdfast.ports.owners import Owner
from holdfast.ports.store import Store
from holdfast.ports.tools import Tool
from holdfast.store import SqliteStore
from holdfast.store.sqlite.connection import connect, fetch
from holdfast.tools.processes import Processes
from tests.fakes.agents_model import Asked, ModelTurns
from tests.fakes.agents_sim import ScriptedAgent
from tests.fakes.clock import SimClock
from tests.fakes.keepers import Machine, SimKeepers, nowhere
from tests.fakes.loop import Crash, SimLoop, never, run
from tests.fakes.platform import NAME, Shelf
from tests.fakes.power import Mode
from tests.fakes.titles import SimTitles
from tests.fakes.tools import CounterTool, Done
from tests.sim.disk import DATABASE, SimDisk, empty_database
from tests.sim.lines import SimLines
from tests.sim.people import Person, Where, as_shown
from tests.sim.spool import SimSpool
from tests.sim.wire import FarSide, Nature, SimChat, Troubles

# Pieces are kept for longer than any clock jumps: what is pruned cannot be compared with what people saw.
SETTINGS = Settings(
    policy=parse_all(allow=["processes"], ask=[], deny=[]),
    turn_idle_timeout_s=5.0,
    keep_streams_s=90 * 24 * 3600.0,
    manners=Manners(still_working_s=2.0),
)
QUIET_S = 1.5
NOT_YET = float("inf")
SOON_S = 60.0
# Safe mode lasts ten minutes, and a delivery that was asked to wait waits five at most; nothing else takes as long, unless it is told to.
NEVER_QUIET_S = 3000.0
MAX_LIVES = 12

_empty = cache(empty_database)


class Death(NamedTuple):
    """How one life ends: at the `point`-th place where a fault may fall, or at a time, and what is left of unsynced writes."""

    point: int | None = None
    at_s: float | None = None
    unsynced: Mode = "all"


class Weather(NamedTuple):
    """How unkind the world is. The default is a world in which only the deaths are. `models`: how models take requests (`agents_model`).
    `away`: from when until when another program has the database; `away_after`: the same, by how many commits of a life it begins, and
    for how many seconds. `summaries`: how often a turn begins with one.
    """

    drift: float = 0.0
    jumps: tuple[tuple[float, int], ...] = ()
    moods: tuple[str, ...] = ("",)
    models: tuple[str, ...] = ("",)
    repeats: float = 0.0
    slow: float = 0.0
    flaky: float = 0.0
    full: tuple[float, float] = (0.0, 0.0)
    away: tuple[tuple[float, float], ...] = ()
    away_after: tuple[tuple[int, float], ...] = ()
    summaries: float = 0.0
    noise: int = 2
    downtimes: tuple[float, ...] = (0.0, 0.5, 5.0)


class Span:
    """A process's part of the log: its owner, the newest event before it began and when it was over, and whether it ended in order, or gave
    way to a successor. And how it stood with safe mode: whether it began in it, the newest event and the time when it left it, whether an
    operator had asked for it.
    """

    def __init__(self, life: int, name: str, owner: int, after_id: int, began: float, boot_id: str = "boot") -> None:
        self.life, self.name, self.owner, self.after_id, self.began, self.boot_id = life, name, owner, after_id, began, boot_id
        self.until_id: int | None = None
        self.stopping = self.orderly = False
        self.giving_way = self.gave_way = False
        self.lasted_s = 0.0
        self.ready, self.ready_id = False, 0
        self.safe = False
        self.left_safe_mode: tuple[int, float] | None = None
        self.asked_to_leave = False
        self.pauses: list[tuple[float, float]] = []  # From when until when.


class Given(NamedTuple):
    """What one attempt was given to work with, and the newest event of the log at that moment."""

    turn_id: str
    attempt: int
    text: str
    note: str | None
    log_id: int


class World:
    def __init__(
        self,
        seed: int,
        *,
        deaths: Sequence[Death | None] = (),
        reconciles: bool = True,
        weather: Weather | None = None,
        wrap: Callable[[Store], Store] = lambda store: store,
        really: Callable[[Settings], Settings] = lambda settings: settings,
        synchronous: str = "FULL",
        settings: Settings = SETTINGS,
        reachable: Callable[[int], bool] = lambda life: True,
        bans: tuple[str, int] | None = None,
        boot: Callable[[int], str] = lambda life: "boot",
        readable: "Callable[[Life], bool]" = lambda life: True,
        unreadable: bool = False,
        capabilities: Capabilities | None = None,
        by_cursor: bool = True,
        keeps: bool = False,
        titles: bool = False,
        nature: Nature | None = None,
        troubles: Troubles = Troubles(),  # noqa: B008 - it never changes.
        restarts: bool = False,
    ) -> None:
        """`reachable`: whether the chat platform is configured in a life. `bans`: who may no longer use it, and from which life on.
        `really`: what the gateway makes of its settings. `boot`: which start of the machine a life belongs to. `readable`: whether
        spools can be read now; `unreadable`: they cannot at some time. `titles`: a model is asked for them. `nature`: which chat platform
        it is, and `troubles`: what it does to us. `restarts`: people may ask for a restart in a chat.
        """
        self.seed, self.deaths, self.weather = seed, tuple(deaths), weather or Weather()
        self.wrap, self.really, self.synchronous = wrap, really, synchronous
        self.settings, self.reachable, self.bans, self.boot = settings, reachable, bans, boot
        self.readable, self.unreadable = readable, unreadable
        self.spooled: list[tuple[str, int, Spooled]] = []
        self._spooled_at: dict[tuple[str | None, int | None, int], float] = {}
        moods = self.random("moods")
        self.server = FarSide(
            nature=nature,
            troubles=troubles,
            now=self.now,
            chance=self.random("updates"),
            reconciles=reconciles,
            moods=lambda: moods.choice(self.weather.moods),
            repeats=lambda: moods.random() < self.weather.repeats,
            capabilities=capabilities,
            by_cursor=by_cursor,
        )
        self.restarts = Restarts(self) if restarts else None
        self.people: list[Person] = []
        self.effects: list[Done] = []
        self.given: list[Given] = []
        self.asked: list[Asked] = []
        self.titles, self.titles_asked = titles, list[str]()
        self.alive: set[str] = set()
        self.spans: list[Span] = []
        self.times: list[tuple[int, float]] = []
        self.elapsed = 0.0
        self.files = dict(_empty())
        self.logs: list[MutableMapping[str, Any]] = []
        self.died_at: list[str] = []
        self.lives: list[Life] = []
        self.machine = Machine(self.wall_ms) if keeps else None  # What runs in the background, if anything does.
        self._ids = self.random("ids")
        self._closing = ExitStack()

    def random(self, name: str) -> random.Random:
        """One stream per use, so that one use more does not change all the others."""
        return random.Random(f"{self.seed}|{name}")

    def new(self, prefix: str) -> str:
        """`ports.Ids`: different in each life, the same in each run."""
        return f"{prefix}_{self._ids.getrandbits(80):020x}"

    def now(self) -> float:
        return self.lives[-1].elapsed() if self.lives else 0.0

    def note_spooled(self, header: Header, items: Sequence[Spooled]) -> None:
        self.spooled += [(header.turn_id, header.epoch, item) for item in items]
        now = self.lives[-1].elapsed()
        self._spooled_at |= {(header.turn_id, header.epoch, item.position): now for item in items}

    def last_id(self) -> int:
        return self.lives[-1].last_id()

    def when(self, event_id: int) -> float:
        """The time of the world at which an event was committed, as the first commit that has it tells."""
        place = bisect.bisect_left(self.times, (event_id, -1.0))
        return self.times[place][1] if place < len(self.times) else self.elapsed

    def kept(self, item: Logged, event_id: int) -> float:
        """The time of the world at which an event was on disk: in the log, or in a spool while another program had the database."""
        return self._spooled_at.get((item.turn_id, item.epoch, item.position), self.when(event_id))

    def wall_ms(self, elapsed: float) -> int:
        """What the gateway's clock shows at a time of the world."""
        return SimClock(elapsed=lambda: elapsed, monotonic=lambda: 0.0, drift=self.weather.drift, jumps=self.weather.jumps).now()

    def person(self, name: str, *deeds: Any, chats: bool = False, where: Where | None = None) -> Person:
        """`where`: in which chat, if not in a private one."""
        person = Person(name, deeds, server=self.server if chats or where is not None else None, where=where)
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
                life = self.new_life()
                self.lives.append(life)
                vfs = self._closing.enter_context(life.disk.mounted())
                finished = life.run(vfs)
                self.elapsed += downtime.choice(self.weather.downtimes)
                self.files = life.what_is_left()
                if finished and not life.left_for:
                    break
            else:
                raise AssertionError(f"the script did not end within {MAX_LIVES} lives")
            for life in self.lives:
                life.bury()

    def new_life(self) -> "Life":
        return Life(self, len(self.lives))

    def begin(self, span: Span) -> Span:
        """A process has begun; those that are no longer alive have written what they will ever have written."""
        for earlier in self.spans:
            if earlier.until_id is None and earlier.name not in self.alive:
                earlier.until_id = span.after_id
        self.spans.append(span)
        # The disk has forgotten the others. One that died before it had begun may have left earlier ones behind later ones.
        self.times = [(event_id, when) for event_id, when in self.times if event_id <= span.after_id]
        return span

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
        self.outside: list[asyncio.Task[Any]] = []
        self.disk = SimDisk(world.files, seed=self._random.getrandbits(32), dies=self._dies)
        self.points = self.commits = 0
        self._away_until = 0.0
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
        if hasattr(self, "span"):
            self.span.lasted_s = self.loop.time() - self._start
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

    def lives_s(self) -> float:
        """Since when it lives."""
        return self.loop.time() - self._start

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
        self.world.times.append((self.last_id(), self.elapsed()))
        self.commits += hasattr(self, "gateway")
        for commits, seconds in self.world.weather.away_after:
            if commits == self.commits:
                self._away_until = self.elapsed() + seconds
        if self.disk.left is not None:
            raise Crash

    def _die_now(self) -> None:
        assert self._death is not None
        self.world.died_at.append(f"after {self._death.at_s} s (unsynced: {self._death.unsynced})")
        self.disk.freeze(self._death.unsynced)
        raise Crash

    async def crash(self) -> None:
        """Something that runs inside the process takes it down."""
        self.world.died_at.append("by its own doing")
        self.disk.freeze("all")
        self.loop.die()
        await never()

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

    def _away_s(self) -> float:
        """For how long another program still has the database. Not before the process has come up: that would be no life."""
        if not hasattr(self, "gateway"):
            return 0.0
        now = self.elapsed()
        return max((end - now for begin, end in self.world.weather.away if begin <= now < end), default=self._away_until - now)

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
        self.gateway, self.span = await self.build(name)
        await self.gateway.start()
        self.gateway.lifecycle.serve()
        self._invite()
        await self._until_quiet()
        self.span.stopping = True
        await self.gateway.stop(reason=self.left_for or "shutdown_timeout")
        if self.left_for is None:  # What the last life records at its end nobody else will show.
            await self.until(lambda: not self._behind(), patience_s=SOON_S)
        await self._send_away()
        await self.gateway.store.aclose()
        self.span.until_id, self.span.orderly = self.last_id(), True
        self.db.close()

    async def build(self, name: str) -> tuple[Gateway, Span]:
        """A process, up to the moment in which its gateway starts."""
        clock = SimClock(elapsed=self.elapsed, monotonic=self.loop.time, drift=self.world.weather.drift, jumps=self.world.weather.jumps)
        lines = SimLines(self.db, loop=self.loop, delay=self._delay, fails=self._fails, committed=self._committed, away=self._away_s)
        store = self.world.wrap(SqliteStore(lines, now=clock.now))
        after_id = self.last_id()
        boot_id = self.world.boot(self.number)
        owner = await store.register_owner(Owner(name=name, pid=self.number, started_at=clock.now(), boot_id=boot_id))
        span = self.world.begin(Span(self.number, name, owner, after_id, self.elapsed(), boot_id))
        if self.world.bans is not None and self.world.bans[1] <= self.number:
            self.world.server.banned.add(self.world.bans[0])
        made = [(effect, False) for effect in Effect if effect is not Effect.REPORTED] + [(Effect.UNSAFE, True)]
        counters = [
            CounterTool(
                effect,
                world=self.world,
                faults=self,
                noise=lambda: self._random.randint(0, self.world.weather.noise),
                guarded=guarded,
            )
            for effect, guarded in made
        ]
        tools: dict[str, Tool] = {tool.name: tool for tool in counters}
        keepers = self._keepers(boot_id)
        if keepers is not None:
            background = Processes(
                records=store, keepers=keepers, surroundings=nowhere(), clock=clock, owner=owner, most=20, most_bytes=1 << 20
            )
            tools[background.name] = background
        moods, summaries = self.world.random(f"models {self.number}"), self.world.random(f"summaries {self.number}")
        models = ModelTurns(
            clock=clock,
            mood=lambda: moods.choice(self.world.weather.models),
            asked=self.world.asked.append,
            log_id=self.last_id,
            chance=moods.random,
        )
        gateway = Gateway(
            store=store,
            host=Host(
                clock=clock,
                ids=self.world,
                liveness=_Alive(self.world),
                owner=owner,
                name=name,
            ),
            edges=Edges(
                agents=Agents(
                    ScriptedAgent(
                        keeps=lambda: self._random.random() < 0.5,
                        think=lambda: self._random.uniform(0, 0.05),
                        given=self._given,
                        crash=self.crash,
                        models=models,
                        sums_up=lambda: summaries.random() < self.world.weather.summaries,
                    )
                ),
                tools=Toolbox(tools),
                titler=SimTitles(asked=self.world.titles_asked.append, at=self.at) if self.world.titles else None,
                platforms={NAME: SimChat(self.world.server, faults=self, process=name)} if self.world.reachable(self.number) else {},
                files=Shelf(store),
                restarts=self.world.restarts,
                spool=SimSpool(
                    self.disk, self.loop, now=clock.now, readable=lambda name: self.world.readable(self), spooled=self.world.note_spooled
                ),
                keepers=keepers,
                encode=as_shown,
            ),
            settings=self.world.really(self._settings()),
        )
        gateway.subscribe(lambda state: self._note_safe_mode(gateway, span))
        return gateway, span

    def _keepers(self, boot_id: str) -> SimKeepers | None:
        """Nothing that ran outlives the machine."""
        machine, spans = self.world.machine, self.world.spans
        if machine is None:
            return None
        if len(spans) > 1 and spans[-2].boot_id != boot_id:
            machine.boot(self._born)
        return SimKeepers(machine, elapsed=self.elapsed, faults=self, boot=boot_id)

    def _settings(self) -> Settings:
        server = self.world.server
        allowed = Policy(everybody=True, blocked=frozenset(server.banned), admins=frozenset(server.operators))
        return msgspec.structs.replace(self.world.settings, drain_timeout_s=self._random.choice((0.0, 0.3, 10.0)), policies={NAME: allowed})

    def _invite(self) -> None:
        for person in self.world.people:
            person.come(self)

    async def _send_away(self) -> None:
        for task in self.outside:
            task.cancel()
        for problem in await asyncio.gather(*self.outside, return_exceptions=True):
            if isinstance(problem, Exception):
                raise problem

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """For people: what they do goes on beside everything else, and ends with this life."""
        self.outside.append(self.loop.create_task(work))

    def _given(self, request: AgentRequest) -> None:
        self.world.given.append(Given(request.turn_id, request.attempt, request.text, request.note, self.last_id()))

    def _note_safe_mode(self, gateway: Gateway, span: Span) -> None:
        """Called when the gateway's state changes, and when it leaves safe mode."""
        if not span.ready:
            span.ready, span.ready_id = True, self.last_id()
        if span.pauses and span.pauses[-1][1] == NOT_YET:
            span.pauses[-1] = (span.pauses[-1][0], self.elapsed())
        if gateway.state is GatewayState.PAUSED:
            span.pauses.append((self.elapsed(), NOT_YET))
        if gateway.safe_mode:
            span.safe = True
        elif span.safe and span.left_safe_mode is None:
            span.left_safe_mode = (self.last_id(), self.elapsed())

    async def _until_quiet(self) -> None:
        """Until nobody has anything left to do and nothing was recorded for a while."""
        began = quiet_since = self.loop.time()
        last = -1
        while self.left_for is None and self.loop.time() - quiet_since < QUIET_S:
            await asyncio.sleep(0.4 if self.loop.time() - began < SOON_S else 4.0)
            for task in self.outside:
                if task.done() and not task.cancelled() and (problem := task.exception()) is not None:
                    raise problem
            now = self.last_id()
            if now != last or not self._settled():
                last, quiet_since = now, self.loop.time()
            never_s = NEVER_QUIET_S + self.world.settings.turn_idle_timeout_s
            assert self.loop.time() - began < never_s, f"P3: never at rest: {self._unsettled()}"

    @property
    def _lasting(self) -> str:
        """The rules whose decision to leave a turn nothing changes by itself."""
        return "'R1', 'R8'" if self.world.settings.auto_resume else "'R1', 'R7', 'R8'"

    def _settled(self) -> bool:
        return not self._unsettled()

    def _unsettled(self) -> dict[str, Any]:
        """What is still to be done, in the people's own lists and in the catalog."""
        count = fetch(
            self.db,
            # What nobody said waits where a turn was left for a person to continue.
            "SELECT (SELECT count(*) FROM inbox i JOIN head h ON h.session = i.session WHERE h.state <> 'waiting'"
            "  AND NOT (h.stays = 1 AND h.state = 'interrupted' AND i.what NOT IN ('message', 'steer', 'interrupt', 'edit'))),"
            " (SELECT count(*) FROM head h JOIN session s ON s.id = h.session WHERE h.state IN ('running', 'answered', 'interrupted')"
            f"  AND NOT (h.stays = 1 AND h.state = 'interrupted' AND s.rule IN ({self._lasting}))),"
            " (SELECT count(*) FROM outbox o JOIN head h ON h.session = o.session WHERE o.state NOT IN ('sent', 'dead')"
            "  AND NOT (o.live = 1 AND h.turn = o.turn AND h.state IN ('waiting', 'interrupted')))"
            " + (SELECT count(*) FROM arrived WHERE refused IS NULL),"
            " (SELECT count(*) FROM head h JOIN session s ON s.id = h.session WHERE"
            "  (SELECT max(id) FROM event e WHERE e.session = h.session"
            "   AND kind IN ('question.asked', 'question.answered', 'turn.waiting', 'turn.ended', 'session.resumed')) <= ?"
            "  AND (h.state = 'waiting' AND h.stays = 0 OR s.resume_pending AND h.state IN ('none', 'ended')))",
            (self.span.after_id,),
        )[0]
        late = fetch(self.db, "SELECT count(*) FROM journal WHERE state = 'recovering'")[0][0]
        server = self.world.server
        overdue = fetch(
            self.db,
            "SELECT c.schedule_id FROM schedule c JOIN head h ON h.session = c.session WHERE h.deleted = 0 AND c.due <= ?",
            (self.world.wall_ms(self.elapsed()),),
        )
        found = {
            "readers": self._behind(),
            "people": [person.name for person in self.world.people if not person.done],
            "processes": fetch(self.db, "SELECT process_id FROM process WHERE state = 'running'"),
            "schedules": overdue,
            "late journals": late,
            **dict(zip(("inbox", "turns", "outbox", "undecided"), count, strict=True)),
        }
        if self.world.reachable(self.number):
            found["says that it works"] = self._says_that_it_works()
            found["unconfirmed"] = [update.dedup_key for update in server.updates if update.dedup_key not in server.confirmed]
        else:
            del found["outbox"], found["schedules"]
        return {name: what for name, what in found.items() if what}

    def _behind(self) -> list[str]:
        """Who has not yet been shown everything that is stored."""
        heads = dict(fetch(self.db, "SELECT s.session_id, h.seq FROM head h JOIN session s ON s.id = h.session"))
        return [person.name for person in self.world.people for reader in person.readers if reader.cursor < heads.get(reader.session_id, 0)]

    def _says_that_it_works(self) -> list[str]:
        """Chats in which a turn that waits still seems to work: soon they will say what was said, and nothing more."""
        rows = fetch(
            self.db,
            "SELECT o.receipt FROM outbox o JOIN head h ON h.session = o.session"
            " WHERE o.live = 1 AND o.state = 'live' AND h.turn = o.turn AND h.state IN ('waiting', 'interrupted')",
        )
        shown = {sent.name: sent.text for sent in self.world.server.shown}
        return [receipt for (receipt,) in rows if "orking" in shown.get(receipt, "")]


class Restarts:
    """The note of the home, which is a file of its own, and what restarts a process (`ports.Restarts`). `begun`: the requests that were
    obeyed, by the id of what asked.
    """

    cuts = True

    def __init__(self, world: World) -> None:
        self._world = world
        self._note: list[Request] = []
        self.begun: list[str] = []

    def note(self) -> Sequence[Request]:
        return list(self._note)

    def keep(self, requests: Sequence[Request]) -> None:
        self._note = list(requests)

    def begin(self, request: Request) -> None:
        self.begun.append(request.id)
        self._world.lives[-1].leave("restart_timeout")


class _Alive:
    def __init__(self, world: World) -> None:
        self._world = world

    def alive(self, name: str) -> bool:
        return name in self._world.alive
