"""Rows that need a whole server: a real process of its own, with load clients in this one."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import uvloop

from bench import prepared, processes, served
from bench.figures import Figure, at_least, at_most, plain
from bench.load import Address, Api, Counter, Reader, attached, batches
from bench.serving import Serving
from bench.setting import Setting
from holdfast.gateway.journal import TICK_S

T = TypeVar("T")
FURTHER = 50
CUT_TEXT = "count 150 0.2"
ALL_RESUMED_S = 60.0
OUT_OF_TURN = 20  # Twice as many as get under way at once.
PACE_S = 0.02
PIECE_S = 0.2
NEW_MESSAGE_S = 0.05
SHORT_PAST = 50
OTHERS = 100  # As many as are asked within five seconds, so that no two questions meet in one session.


class Piece(msgspec.Struct):
    at: datetime
    text: str = ""


piece_of = msgspec.json.Decoder(Piece).decode


def _serving(setting: Setting, home: Path, *, scripted: bool = False) -> Serving:
    return Serving(home, profiles=setting.profiles, scripted=scripted)


async def first_text_ms(api: Api, reader: Reader, text: str) -> float:
    """From the moment a message is posted until its first text is here; returns when the turn has ended."""
    first, ended = reader.next(b"text"), reader.next(b"turn.ended")
    began = time.perf_counter()
    await api.post(reader.session_id, text)
    came = await asyncio.wait_for(first, 60)
    await asyncio.wait_for(ended, 60)
    return 1000 * (came - began)


def start(setting: Setting) -> list[Figure]:
    sizes = setting.sizes
    cut = setting.big_home("cut")
    turns = prepared.cut_turns(cut, turns=sizes.interrupted, text=CUT_TEXT)

    async def new_messages(address: Address) -> tuple[list[float], int]:
        async with Api(address) as api:
            took = []
            for _ in range(1 + FURTHER):
                session_id = await api.new_session()
                async with attached(address, [Reader(address, session_id)]) as (reader,):
                    took.append(await first_text_ms(api, reader, "hello"))
            _, answer = await api.request("GET", "/api/status")
            status = msgspec.json.decode(answer)
            if status["safe_mode"]:
                raise RuntimeError("it started in safe mode: nothing was resumed, and nothing of this was measured")
            return took, status["running_turns"]

    def once() -> _Start:
        home = setting.copy(cut)
        with _serving(setting, home) as server:
            took, running = uvloop.run(new_messages(server.address))
            deadline = time.monotonic() + ALL_RESUMED_S
            while uvloop.run(_resumed(server.address)) < len(turns.sessions) and time.monotonic() < deadline:
                time.sleep(0.1)
            all_s = server.age_s
        out_of_turn = _out_of_turn(turns.sessions, prepared.resumed(home, turns.events))
        setting.drop(home)
        return _Start(1000 * server.imported_s, 1000 * server.healthy_s, took, running, all_s, out_of_turn)

    found = setting.measure(once)
    setting.drop(cut)
    setting.notes.append(f"{min(each.running for each in found)} or more turns ran when the last new message was answered")
    setting.notes.append(
        f"all {len(turns.sessions):,} were resumed, oldest first: 19 of 20 within {max(each.out_of_turn for each in found)} of their place"
    )
    return [
        at_most("healthy, after the imports", "ms", [[each.healthy - each.imported] for each in found], 500),
        at_most("first text of the first new message", "ms", [[each.took[0]] for each in found], 50),
        at_most(f"first text of {FURTHER} further messages", "ms", [each.took[1:] for each in found], 50),
        plain("interpreter and imports before that", "ms", [[each.imported] for each in found]),
        plain("process started to all turns resumed", "s", [[each.all_s] for each in found]),
    ]


class _Start(NamedTuple):
    """What one start gave; times in ms, but `all_s`. `out_of_turn`: how far from its place 19 of 20 resumed turns were at most."""

    imported: float
    healthy: float
    took: list[float]
    running: int
    all_s: float
    out_of_turn: int


async def _resumed(address: Address) -> int:
    async with Api(address) as api:
        _, metrics = await api.request("GET", "/metrics")
    decided = [line.rpartition(b" ")[2] for line in metrics.splitlines() if line.startswith(b'holdfast_recoveries_total{rule="R9"}')]
    return int(float(decided[0])) if decided else 0


def _out_of_turn(due: list[str], came: list[str]) -> int:
    """By how many places the resumes that came differ from the order they were due in. Several get under way at once, and one whose record
    is slow to read is overtaken; all others must come in their turn.
    """
    if sorted(due) != sorted(came):
        raise RuntimeError(f"of {len(due)} cut turns {len(set(due) & set(came))} were resumed, in {len(came)} attempts")
    place = {session_id: number for number, session_id in enumerate(due)}
    off = sorted(abs(place[session_id] - number) for number, session_id in enumerate(came))
    if off[int(0.95 * len(off))] > OUT_OF_TURN:
        raise RuntimeError(f"one turn in twenty was resumed {off[int(0.95 * len(off))]} or more places from its own: not the oldest first")
    return off[int(0.95 * len(off))]


def last_events(setting: Setting) -> list[Figure]:
    sizes = setting.sizes
    home = setting.home()
    session_id = prepared.long_stream(home, events=sizes.stream)

    async def ten(address: Address) -> list[float]:
        async with Api(address) as api:
            _, answer = await api.request("GET", f"/api/sessions/{session_id}")
        log, _, seq = msgspec.json.decode(answer)["cursor"].rpartition(".")
        took = []
        for _ in range(sizes.tail_samples):
            began = time.perf_counter()
            counter = _Last(address, session_id, f"{log}.{int(seq) - 10}", int(seq))
            async with attached(address, [counter]):
                await counter.done()
                took.append(1000 * (time.perf_counter() - began))
        return took

    with _serving(setting, home) as server:
        found = setting.measure(lambda: uvloop.run(ten(server.address)))
    setting.drop(home)
    return [at_most(f"last 10 of {sizes.stream:,}, with connecting", "ms", found, 5.0)]


class _Last(Reader):
    """Is done when it has seen an event."""

    def __init__(self, address: Address, session_id: str, after: str, until: int) -> None:
        super().__init__(address, session_id, self._look, after=after)
        self._until = until

    def _look(self, name: bytes, data: bytes) -> None:
        if self.seq == self._until:
            self._done.set_result(None)


async def stream(address: Address, turns: int, text: str, around: Callable[[], Awaitable[T]]) -> tuple[float, T]:
    """Runs a turn with this message in as many new sessions, a reader on each, until all have ended. `around` looks at the server before
    and after; what it gives after is handed on with the seconds between.
    """
    async with Api(address) as api, AsyncExitStack() as closing:
        ids = await api.new_sessions(turns)
        readers = await closing.enter_async_context(attached(address, [Reader(address, session_id) for session_id in ids]))
        ended = [reader.next(b"turn.ended") for reader in readers]
        await around()
        began = time.perf_counter()
        await asyncio.gather(*(api.post(session_id, text) for session_id in ids))
        await asyncio.wait_for(asyncio.gather(*ended), 300)
        took = time.perf_counter() - began
        return took, await around()


class Since:
    """How much a counter of the server grew between two looks."""

    def __init__(self, look: Callable[[], float]) -> None:
        self._look, self._before = look, 0.0

    async def __call__(self) -> float:
        now = self._look()
        grown, self._before = now - self._before, now
        return grown


def cpu(setting: Setting) -> list[Figure]:
    sizes = setting.sizes
    paced = int(sizes.tokens_s / PACE_S)

    def once() -> tuple[float, float, float]:
        home = setting.home()
        with _serving(setting, home) as server:
            used = Since(server.cpu_s)
            uvloop.run(stream(server.address, 2, "count 50 0", used))
            took, slow_cpu = uvloop.run(stream(server.address, sizes.turns, f"count {paced} {PACE_S}", used))
            _, fast_cpu = uvloop.run(stream(server.address, sizes.turns, f"count {sizes.unpaced} 0", used))
        setting.drop(home)
        return 1000 * slow_cpu / (sizes.turns * paced), 1000 * fast_cpu / (sizes.turns * sizes.unpaced), 100 * slow_cpu / took

    found = setting.measure(once)
    return [
        at_most(f"{sizes.turns} turns, {1 / PACE_S:.0f} tokens/s, per token", "ms", [[slow] for slow, _, _ in found], 0.1),
        at_most(f"{sizes.turns} turns unpaced, per token", "ms", [[fast] for _, fast, _ in found], 0.1),
        plain("of one core, paced", "%", [[share] for _, _, share in found]),
    ]


def history(setting: Setting) -> list[Figure]:
    """Turns of one session, one at a time: what each costs with a short past, and with a long one."""
    sizes = setting.sizes

    async def turns(api: Api, reader: Reader, count: int) -> None:
        for _ in range(count):
            await first_text_ms(api, reader, "hello")

    async def run(address: Address, used: Since) -> tuple[float, float]:
        async with Api(address) as api:
            async with attached(address, [Reader(address, await api.new_session())]) as (reader,):
                await turns(api, reader, SHORT_PAST)
                await used()
                await turns(api, reader, SHORT_PAST)
                short = await used()
                await turns(api, reader, sizes.history - 3 * SHORT_PAST)
                await used()
                await turns(api, reader, SHORT_PAST)
                return 1000 * short / SHORT_PAST, 1000 * await used() / SHORT_PAST

    def once() -> tuple[float, float]:
        home = setting.home()
        with _serving(setting, home) as server:
            found = uvloop.run(run(server.address, Since(server.cpu_s)))
        setting.drop(home)
        return found

    found = setting.measure(once)
    return [
        plain(f"a turn behind {SHORT_PAST} others", "ms", [[short] for short, _ in found]),
        plain(f"a turn behind {sizes.history:,} others", "ms", [[long] for _, long in found]),
        at_most("the second by the first", "x", [[long / short] for short, long in found], 1.2),
    ]


def first_text(setting: Setting) -> list[Figure]:
    sizes = setting.sizes

    async def warm(address: Address) -> list[float]:
        async with Api(address) as api:
            ids = await api.new_sessions(20)
            async with attached(address, [Reader(address, session_id) for session_id in ids]) as readers:
                await first_text_ms(api, readers[0], "hello")
                return [await first_text_ms(api, readers[number % 20], "hello") for number in range(sizes.first_texts)]

    async def ten_at_once(address: Address) -> list[float]:
        took: list[float] = []
        async with Api(address) as api:
            ids = await api.new_sessions(20)
            async with attached(address, [Reader(address, session_id) for session_id in ids]) as readers:
                for number in range(sizes.first_texts // 5):
                    some = readers[:10] if number % 2 else readers[10:]
                    took += await asyncio.gather(*(first_text_ms(api, reader, "hello") for reader in some))
        return took

    def once() -> tuple[list[float], list[float], float]:
        home = setting.home()
        with _serving(setting, home) as server:
            one = uvloop.run(warm(server.address))
            used = server.cpu_s()
            ten = uvloop.run(ten_at_once(server.address))
            used = server.cpu_s() - used
        setting.drop(home)
        return one, ten, 1000 * used / len(ten)

    found = setting.measure(once)
    one, ten = [one for one, _, _ in found], [ten for _, ten, _ in found]
    return [
        at_most("one at a time", "ms", one, 10),
        at_most("one at a time, worst hundredth", "ms", one, 50, judged="p99"),
        at_most("ten at once", "ms", ten, 30),
        at_most("ten at once, worst hundredth", "ms", ten, 50, judged="p99"),
        plain("processor time per whole turn", "ms", [[used] for _, _, used in found]),
    ]


class _Many:
    """What one repeat of very many turns saw, in milliseconds."""

    def __init__(self) -> None:
        self.stored: list[float] = []
        self.said: list[float] = []
        self.accepted: list[float] = []
        self.answered: list[float] = []
        self.client_share = 0.0
        self.server_share = 0.0


def many_turns(setting: Setting) -> list[Figure]:
    sizes = setting.sizes

    def once() -> _Many:
        home = setting.home()
        with _serving(setting, home, scripted=True) as server:
            many = uvloop.run(_many(server, sizes.many, sizes.many_pieces))
        setting.drop(home)
        return many

    found = setting.measure(once)
    setting.notes.append(
        f"every reader saw every event in order, none was cut; pieces are gathered by a tick of {1000 * TICK_S:.0f} ms or more"
    )
    server, clients = max(each.server_share for each in found), max(each.client_share for each in found)
    setting.notes.append(f"of one core each: server {server:.0f} %, clients {clients:.0f} %")
    return [
        at_most("piece stored to client", "ms", [each.stored for each in found], 250, judged="p99"),
        plain("piece said to client, with gathering", "ms", [each.said for each in found], judged="p99"),
        at_most("a new message accepted meanwhile", "ms", [each.accepted for each in found], 100, judged="p99"),
        plain("its first text meanwhile", "ms", [each.answered for each in found], judged="p99"),
    ]


async def _many(server: Serving, turns: int, pieces: int) -> _Many:
    address, many = server.address, _Many()
    received: list[tuple[float, bytes]] = []

    def heard(name: bytes, data: bytes) -> None:
        if name == b"text":
            received.append((time.time(), data))

    async with Api(address) as api, AsyncExitStack() as closing:
        ids = await api.new_sessions(turns)
        readers = await closing.enter_async_context(attached(address, [Reader(address, session_id, heard) for session_id in ids]))
        others = await api.new_sessions(OTHERS)
        other_readers = await closing.enter_async_context(attached(address, [Reader(address, session_id) for session_id in others]))
        ended = asyncio.gather(*(reader.next(b"turn.ended") for reader in readers))
        used, own, began = server.cpu_s(), processes.own_cpu_s(), time.perf_counter()
        for some in batches(ids, 100):
            await asyncio.gather(*(api.post(session_id, f"stamp {pieces} {PIECE_S}") for session_id in some))
        asked: list[asyncio.Task[None]] = []
        number = 0
        while not ended.done():
            asked.append(asyncio.ensure_future(_ask_meanwhile(api, other_readers[number % OTHERS], many)))
            number += 1
            await asyncio.wait({ended}, timeout=NEW_MESSAGE_S)
        await ended
        await asyncio.gather(*asked)
        took = time.perf_counter() - began
        many.server_share, many.client_share = 100 * (server.cpu_s() - used) / took, 100 * (processes.own_cpu_s() - own) / took
        broken = [reader.failure for reader in (*readers, *other_readers) if reader.failure]
        if broken:
            raise RuntimeError(f"{len(broken)} readers were cut off or missed something, the first: {broken[0]}")
    for at, data in received:
        piece = piece_of(data)
        many.stored.append(1000 * (at - piece.at.timestamp()))
        many.said += [served.since(int(each), 1000 * at) for each in piece.text.split()]
    if len(many.said) != turns * pieces:
        raise RuntimeError(f"{len(many.said)} pieces of {turns * pieces} arrived")
    return many


async def _ask_meanwhile(api: Api, reader: Reader, many: _Many) -> None:
    first, began = reader.next(b"text"), time.perf_counter()
    many.accepted.append(await api.post(reader.session_id, "hello"))
    many.answered.append(1000 * (await asyncio.wait_for(first, 60) - began))


def fan_out(setting: Setting) -> list[Figure]:
    sizes = setting.sizes

    async def delivered(address: Address) -> tuple[float, float]:
        async with Api(address) as api:
            session_id = await api.new_session()
            counters = [Counter(address, session_id, b"reasoning", sizes.thoughts) for _ in range(sizes.readers)]
            async with attached(address, counters):
                await api.post(session_id, f"think {sizes.thoughts}")
                await asyncio.gather(*(counter.done() for counter in counters))
        began, ended = min(counter.first_at for counter in counters), max(counter.last_at for counter in counters)
        return sum(counter.count for counter in counters) / (ended - began), 1000 * (ended - began)

    def once() -> list[tuple[float, float]]:
        home = setting.home()
        with _serving(setting, home, scripted=True) as server:
            found = [uvloop.run(delivered(server.address)) for _ in range(3)]
        setting.drop(home)
        return found

    found = setting.measure(once)
    best = [sorted(each)[1] for each in found]
    return [
        at_least(f"events/s to {sizes.readers} readers in all", "/s", [[rate] for rate, _ in best], 100_000),
        plain(f"{sizes.thoughts:,} events to every reader", "ms", [[took] for _, took in best]),
    ]


def stop(setting: Setting) -> list[Figure]:
    sizes = setting.sizes

    async def stopped(server: Serving) -> float:
        async with Api(server.address) as api:
            ids = await api.new_sessions(sizes.stopping)
            async with attached(server.address, [Reader(server.address, session_id) for session_id in ids]) as readers:
                started = [reader.next(b"text") for reader in readers]
                await asyncio.gather(*(api.post(session_id, "count 5000 0.1") for session_id in ids))
                await asyncio.wait_for(asyncio.gather(*started), 60)
                return await asyncio.get_running_loop().run_in_executor(None, server.stop)

    def once() -> float:
        home = setting.home()
        with _serving(setting, home) as server:
            took = uvloop.run(stopped(server))
        cut = prepared.left_pending(home)
        if cut != sizes.stopping:
            raise RuntimeError(f"{cut} of {sizes.stopping} turns were on record as cut by the stop")
        setting.drop(home)
        return took

    found = setting.measure(once)
    return [at_most(f"with {sizes.stopping} turns and their readers", "s", [[took] for took in found], 2.0)]


def cold_start(setting: Setting) -> list[Figure]:
    def once() -> tuple[list[float], list[float], list[float]]:
        healthy, memory, imports = [], [], []
        for _ in range(setting.sizes.starts):
            home = setting.home()
            with _serving(setting, home) as server:
                imports.append(1000 * server.imported_s)
                healthy.append(1000 * server.healthy_s)
                memory.append(server.memory_mb())
            setting.drop(home)
        return healthy, memory, imports

    once()  # Compiled modules and a warm cache: the first start after an installation is another matter.
    found = setting.measure(once)
    return [
        at_most("process started to healthy", "ms", [healthy for healthy, _, _ in found], 500),
        at_most("resident memory when healthy", "MB", [memory for _, memory, _ in found], 60),
        plain("of that interpreter and imports", "ms", [imports for _, _, imports in found]),
    ]


def stream_bytes(setting: Setting) -> list[Figure]:
    sizes = setting.sizes
    tokens = int(sizes.tokens_s / PACE_S)

    async def turns_one_by_one(address: Address, count: int) -> None:
        async with Api(address) as api:
            session_id = await api.new_session()
            async with attached(address, [Reader(address, session_id)]) as (reader,):
                for _ in range(count):
                    await first_text_ms(api, reader, "x" * 300)

    def once() -> tuple[float, float]:
        home = setting.home()
        with _serving(setting, home) as server:
            written = Since(server.written_bytes)
            took, streamed = uvloop.run(stream(server.address, sizes.turns, f"count {tokens} {PACE_S}", written))
            uvloop.run(_looked(written))
            uvloop.run(turns_one_by_one(server.address, sizes.first_texts // 2))
            turns = uvloop.run(_looked(written))
        setting.drop(home)
        return streamed / took / sizes.turns / 1024, turns / (sizes.first_texts // 2) / 1024

    found = setting.measure(once)
    return [
        at_most(f"per conversation, {sizes.turns} at {1 / PACE_S:.0f} tokens/s", "KB/s", [[each] for each, _ in found], 20),
        plain("300-byte message and its whole turn", "KB", [[each] for _, each in found]),
    ]


async def _looked(counter: Callable[[], Coroutine[Any, Any, float]]) -> float:
    return await counter()
