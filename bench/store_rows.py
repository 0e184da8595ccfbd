"""Rows that the store answers for alone, measured in this process on uvloop, as the gateway uses it."""

import asyncio
import itertools
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from bench import prepared
from bench.figures import Figure, at_least, at_most, middle, plain, shown, summary
from bench.floor import bare_appends_per_s
from bench.processes import written_bytes
from bench.setting import Setting
from holdfast.core.events import SessionChanged, Text, encode
from holdfast.core.plans.start import StartedTurn
from holdfast.store import SqliteStore
from holdfast.store.sqlite.store import DATABASE

T = TypeVar("T")
PIECE = Text(offset=0, text="x" * 200)
MESSAGE = "x" * 300
SLOW_FLOOR_MS = 1.0


def _run(setting: Setting, work: Coroutine[Any, Any, T]) -> T:
    with setting.profiles.of_this_process():
        return uvloop.run(work)


async def _timed(call: Callable[[], Awaitable[object]], count: int) -> list[float]:
    """Milliseconds of each of `count` calls, one after the other."""
    took = []
    for _ in range(count):
        began = time.perf_counter()
        await call()
        took.append(1000 * (time.perf_counter() - began))
    return took


class Producer:
    """Appends one piece after the other to a turn of its own."""

    def __init__(self, store: SqliteStore, started: StartedTurn) -> None:
        self._store, self._started, self._position = store, started, started.position

    @classmethod
    async def new(cls, store: SqliteStore, owner: int) -> "Producer":
        session_id = await prepared.new_session(store)
        return cls(store, await prepared.running_turn(store, session_id, owner))

    async def append(self) -> None:
        started = self._started
        self._position = await self._store.append_turn(
            started.lease,
            turn_id=started.turn_id,
            attempt=started.attempt,
            position=self._position,
            events=(PIECE,),
            at=prepared.now(),
        )


def append(setting: Setting) -> list[Figure]:
    async def once() -> list[float]:
        async with prepared.opened(home) as store:
            producer = await Producer.new(store, await prepared.new_owner(store, prepared.new_id("o")))
            await _timed(producer.append, setting.sizes.samples // 10)
            return await _timed(producer.append, setting.sizes.samples)

    home = setting.home()
    found = setting.measure(lambda: _run(setting, once()))
    setting.drop(home)
    floor = setting.floor_p50
    limit, goal = (floor + 0.15, "floor+0.15") if floor < SLOW_FLOOR_MS else (1.2 * floor, "1.2 x floor")
    return [at_most("one fenced append of 200 bytes", "ms", found, limit, goal=f"p50 <= {shown(limit)} ({goal})")]


def accepted(setting: Setting) -> list[Figure]:
    """One message at a time, each to a conversation that has few others waiting."""

    async def once() -> list[float]:
        home = setting.home()
        async with prepared.opened(home) as store:
            ids = [await prepared.new_session(store) for _ in range(setting.sizes.samples // 20)]
            for session_id in ids:
                await prepared.accept(store, session_id, MESSAGE)
            took = await _timed(lambda: prepared.accept(store, random.choice(ids), MESSAGE), setting.sizes.samples)
        setting.drop(home)
        return took

    found = setting.measure(lambda: _run(setting, once()))
    limit = setting.floor_p50 + 0.25
    return [at_most("one message of 300 bytes", "ms", found, limit, goal=f"p50 <= {shown(limit)} (floor+0.25)")]


def group(setting: Setting) -> list[Figure]:
    sizes = setting.sizes

    async def through_the_store(home: Path) -> tuple[float, list[float]]:
        async with prepared.opened(home) as store:
            owner = await prepared.new_owner(store, prepared.new_id("o"))
            producers = [await Producer.new(store, owner) for _ in range(sizes.producers)]
            took: list[float] = []
            until = time.perf_counter() + sizes.seconds

            async def produce(producer: Producer) -> None:
                while (began := time.perf_counter()) < until:
                    await producer.append()
                    took.append(1000 * (time.perf_counter() - began))

            began = time.perf_counter()
            await asyncio.gather(*(produce(producer) for producer in producers))
            return len(took) / (time.perf_counter() - began), took

    async def turns(home: Path) -> list[StartedTurn]:
        async with prepared.opened(home) as store:
            owner = await prepared.new_owner(store, prepared.new_id("o"))
            ids = [await prepared.new_session(store) for _ in range(sizes.producers)]
            return [await prepared.running_turn(store, session_id, owner) for session_id in ids]

    def once() -> tuple[float, float, list[float]]:
        home = setting.home()
        bare_turns = uvloop.run(turns(home / "bare"))
        bare = bare_appends_per_s(home / "bare" / DATABASE, bare_turns, seconds=sizes.seconds, body=encode(PIECE))
        rate, took = _run(setting, through_the_store(home / "store"))
        setting.drop(home)
        return bare, rate, took

    found = setting.measure(once)
    return [
        at_least("appends/s through the store", "/s", [[rate] for _, rate, _ in found], 40_000),
        plain("the same statements in a bare loop", "/s", [[bare] for bare, _, _ in found]),
        at_least("share of the bare loop", "%", [[100 * rate / bare] for bare, rate, _ in found], 70),
        plain("one of these appends", "ms", [took for _, _, took in found]),
    ]


def update(setting: Setting) -> list[Figure]:
    sizes = setting.sizes
    few, many = setting.home("few"), setting.home("many")

    async def fill(home: Path, count: int) -> list[str]:
        ids: list[str] = []
        async with prepared.opened(home) as store:

            async def one(number: int) -> None:
                ids.append(await prepared.new_session(store, f"title {number}"))

            await prepared.each(range(count), one)
        return ids

    known = {few: uvloop.run(fill(few, 10)), many: uvloop.run(fill(many, sizes.sessions))}

    async def once() -> dict[Path, list[float]]:
        """In turns, so that both see the same disk."""
        took: dict[Path, list[float]] = {few: [], many: []}
        async with prepared.opened(few) as one, prepared.opened(many) as other:
            stores = {few: one, many: other}
            for _ in range(10):
                for home, store in stores.items():
                    took[home] += await _timed(lambda store=store, home=home: _retitle(store, known[home]), sizes.samples // 10)  # type: ignore[misc]
        return took

    found = setting.measure(lambda: _run(setting, once()))
    floor = setting.floor_p50
    goal = f"p50 <= {shown(3 * floor)} (3 x floor)"
    growth = [[summary(each[many]).p50 / summary(each[few]).p50] for each in found]
    return [
        at_most("with 10 sessions", "ms", [each[few] for each in found], 3 * floor, goal=goal),
        at_most(f"with {sizes.sessions:,} sessions", "ms", [each[many] for each in found], 3 * floor, goal=goal),
        at_most("growth from few to many", "x", growth, 1.3),
    ]


_titles = itertools.count()


async def _retitle(store: SqliteStore, ids: list[str]) -> None:
    await store.change_session(random.choice(ids), SessionChanged(title=f"a new title {next(_titles)}"), at=prepared.now())


def message(setting: Setting) -> list[Figure]:
    sizes = setting.sizes
    home = setting.big_home()
    samples = max(sizes.samples, sizes.tail_floor_samples)

    async def once() -> list[float]:
        async with prepared.opened(home) as store:
            ids = [session.session_id for session in (await store.sessions(limit=100)).sessions]
            return await _timed(lambda: prepared.accept(store, random.choice(ids), MESSAGE), samples)

    found = setting.measure(lambda: _run(setting, once()), floor_samples=sizes.tail_floor_samples)
    setting.drop(home)
    floor = middle([each.p999 for each in setting.steady.floors])
    return [
        at_most(
            f"one message, {sizes.messages:,} stored",
            "ms",
            found,
            10 * floor,
            judged="p999",
            goal=f"p99.9 <= {shown(10 * floor)} (10 x)",
        ),
        plain("the slowest of all", "ms", [[max(took)] for took in found]),
    ]


def last_events(setting: Setting) -> list[Figure]:
    sizes = setting.sizes
    home = setting.home()
    session_id = prepared.long_stream(home, events=sizes.stream)

    async def once() -> list[float]:
        async with prepared.opened(home) as store:
            session = await store.session(session_id)

            async def last_ten() -> None:
                page = await store.events(session_id, after=session.seq - 10, limit=100)
                assert len(page) == 10

            return await _timed(last_ten, sizes.samples)

    found = setting.measure(lambda: _run(setting, once()))
    setting.drop(home)
    return [at_most(f"last 10 of {sizes.stream:,} events", "ms", found, 2.0)]


def search(setting: Setting) -> list[Figure]:
    """The words of the prepared text differ in how common they are by more than a thousandfold."""
    sizes = setting.sizes
    home = setting.big_home()
    common, next_common, rare = prepared.WORDS[0], prepared.WORDS[1], prepared.WORDS[-1000]
    queries = {"common": common, "rare": rare, "two words": f"{next_common} {rare[:4]}", "prefix": common[:2]}

    async def once() -> dict[str, list[float]]:
        took: dict[str, list[float]] = {}
        async with prepared.opened(home) as store:
            took["list"] = await _timed(lambda: store.sessions(limit=20), sizes.searches)
            for name, query in queries.items():
                took[name] = await _timed(lambda query=query: store.sessions(limit=20, query=query), sizes.searches)  # type: ignore[misc]
        return took

    found = setting.measure(lambda: _run(setting, once()))
    setting.drop(home)
    return [
        *(at_most(f"search {sizes.messages:,} messages, {name}", "ms", [each[name] for each in found], 10.0) for name in queries),
        at_most(f"list 20 of {sizes.sessions:,} sessions", "ms", [each["list"] for each in found], 2.0),
    ]


def message_bytes(setting: Setting) -> list[Figure]:
    """What the kernel counts as written to the disk, checkpoints included, per message that is committed by itself."""
    sizes = setting.sizes

    async def written(home: Path) -> float:
        async with prepared.opened(home) as store:
            ids = [session.session_id for session in (await store.sessions(limit=100)).sessions]
            before = written_bytes()
            for _ in range(sizes.samples):
                await prepared.accept(store, random.choice(ids), MESSAGE)
        return (written_bytes() - before) / sizes.samples / 1024

    async def hundred_sessions(home: Path) -> None:
        async with prepared.opened(home) as store:
            await prepared.each(range(100), lambda number: _made(store))

    def once() -> tuple[float, float]:
        new, old = setting.home(), setting.big_home()
        uvloop.run(hundred_sessions(new))
        both = uvloop.run(written(new)), uvloop.run(written(old))
        setting.drop(new)
        setting.drop(old)
        return both

    found = setting.measure(once)
    return [
        at_most("300-byte message, no history", "KB", [[few] for few, _ in found], 16),
        at_most(f"300-byte message, {sizes.messages:,} stored", "KB", [[many] for _, many in found], 16),
    ]


async def _made(store: SqliteStore) -> None:
    await prepared.new_session(store)
