"""Rows of a server whose agent answers with a model. The model server is a process of its own on this machine; next to each figure stands
what a reader of the same events needs that does nothing else.
"""

import asyncio
import subprocess
import sys
import time
from typing import NamedTuple

import aiohttp
import uvloop

from bench import wire_rows
from bench.figures import Figure, at_most, middle, plain
from bench.load import Address, Api, Reader, attached, batches
from bench.server_rows import PACE_S, PIECE_S, Since, first_text_ms, piece_of, stream
from bench.serving import Serving
from bench.setting import Setting

TOKEN = wire_rows.TOKEN
SHORT = 2
SESSIONS = 20
WAIT_S = 600.0
# What a process has loaded that serves without a model, and what one with a model loads on top of it.
IMPORT = "import holdfast.main, time\nbegan = time.process_time()\n{what}\nprint(1000 * (time.process_time() - began))"
AGENT = """import holdfast.agents.choice, holdfast.agents.instructions, holdfast.agents.model, holdfast.agents.prices
import holdfast.agents.wires.client, holdfast.agents.wires.chat"""


class _Cost(NamedTuple):
    """Milliseconds of processor time per token: of the server, and of a bare reader."""

    ours: float
    bare: float

    @property
    def more(self) -> float:
        return self.ours - self.bare


def model(setting: Setting) -> list[Figure]:
    sizes = setting.sizes
    paced = int(sizes.tokens_s / PACE_S)

    def once() -> tuple[tuple[list[float], list[float]], _Cost, _Cost]:
        return _first_texts(setting), _cost(setting, paced, PACE_S), _cost(setting, sizes.unpaced, 0.0)

    found = setting.measure(once)
    bare = [middle(first) for (_, first), _, _ in found]
    above = [[each - floor for each in first] for ((first, _), _, _), floor in zip(found, bare, strict=True)]
    imports = [[_import_ms(AGENT)] for _ in found]
    return [
        at_most("first text, above a bare reader", "ms", above, 10),
        at_most("the same, worst hundredth", "ms", above, 50, judged="p99"),
        plain("first text of the bare reader", "ms", [first for (_, first), _, _ in found]),
        at_most("CPU per token at 50/s, above it", "ms", [[slow.more] for _, slow, _ in found], 0.1),
        plain("CPU of the bare reader at 50/s", "ms", [[slow.bare] for _, slow, _ in found]),
        at_most("CPU per token unpaced, above it", "ms", [[fast.more] for _, _, fast in found], 0.1),
        plain("CPU of the bare reader, unpaced", "ms", [[fast.bare] for _, _, fast in found]),
        at_most("CPU to import the agent and a wire", "ms", imports, 400),
        plain("of that aiohttp", "ms", [[_import_ms("import aiohttp")] for _ in found]),
    ]


def model_turns(setting: Setting) -> list[Figure]:
    sizes, figures = setting.sizes, []
    for turns in (sizes.many // 5, sizes.many):
        found = setting.measure(lambda turns=turns: _crowd(setting, turns))  # type: ignore[misc]
        figures += [
            at_most(f"{turns:,} turns: piece stored to client", "ms", [each.stored for each in found], 250, judged="p99"),
            plain(f"{turns:,} turns: CPU per piece", "ms", [[each.cost] for each in found]),
            plain(f"{turns:,} turns: of one core", "%", [[each.share] for each in found]),
        ]
    return figures


def _answering(setting: Setting, url: str) -> Serving:
    variables = {"HOLDFAST_MODEL": "chat:fake", "HOLDFAST_MODEL_BASE_URL": url, "HOLDFAST_AGENT_TITLES": "false"}
    return Serving(setting.home(), profiles=setting.profiles, variables=variables)


def _first_texts(setting: Setting) -> tuple[list[float], list[float]]:
    """One at a time: of turns, and of requests to the same model server."""
    count = setting.sizes.first_texts

    async def ours(address: Address) -> list[float]:
        async with Api(address) as api:
            ids = await api.new_sessions(SESSIONS)
            async with attached(address, [Reader(address, session_id) for session_id in ids]) as readers:
                await first_text_ms(api, readers[0], "hello")
                return [await first_text_ms(api, readers[number % SESSIONS], "hello") for number in range(count)]

    async def bare(url: str) -> list[float]:
        async with aiohttp.ClientSession() as session:
            return [await _bare_first_ms(session, url) for _ in range(count)]

    with wire_rows.serving(setting, SHORT, 0.0) as url, _answering(setting, url) as server:
        return uvloop.run(ours(server.address)), uvloop.run(bare(url))


async def _bare_first_ms(session: aiohttp.ClientSession, url: str) -> float:
    began, came, read = time.perf_counter(), 0.0, b""
    async with session.post(f"{url}/chat/completions", data=wire_rows.BODY) as response:
        async for chunk in response.content.iter_any():
            read += chunk
            if not came and TOKEN.encode() in read:
                came = time.perf_counter()
    return 1000 * (came - began)


def _cost(setting: Setting, tokens: int, pace_s: float) -> _Cost:
    turns = setting.sizes.turns
    with wire_rows.serving(setting, tokens, pace_s) as url:
        bare = wire_rows.cpu_ms(turns, tokens, wire_rows.bare(turns, url))
        with _answering(setting, url) as server:
            used = Since(server.cpu_s)
            uvloop.run(stream(server.address, 1, "hello", used))
            _, cpu_s = uvloop.run(stream(server.address, turns, "hello", used))
    return _Cost(1000 * cpu_s / (turns * tokens), bare)


class _Crowd(NamedTuple):
    """`stored`: milliseconds from each stored piece to its reader. `cost`: milliseconds of processor time per token. `share`: of a core."""

    stored: list[float]
    cost: float
    share: float


def _crowd(setting: Setting, turns: int) -> _Crowd:
    pieces = setting.sizes.many_pieces
    with wire_rows.serving(setting, pieces, PIECE_S) as url, _answering(setting, url) as server:
        return uvloop.run(_crowded(server, turns, pieces))


async def _crowded(server: Serving, turns: int, pieces: int) -> _Crowd:
    address, received = server.address, list[tuple[float, bytes]]()

    def heard(name: bytes, data: bytes) -> None:
        if name == b"text":
            received.append((time.time(), data))

    async with Api(address) as api:
        ids = await api.new_sessions(turns)
        async with attached(address, [Reader(address, session_id, heard) for session_id in ids]) as readers:
            ended = [reader.next(b"turn.ended") for reader in readers]
            used, began = server.cpu_s(), time.perf_counter()
            for some in batches(ids, 100):
                await asyncio.gather(*(api.post(session_id, "hello") for session_id in some))
            await asyncio.wait_for(asyncio.gather(*ended), WAIT_S)
            took, used = time.perf_counter() - began, server.cpu_s() - used
    came = [(at, piece_of(data)) for at, data in received]
    if (said := sum(len(piece.text) for _, piece in came)) != turns * pieces * len(TOKEN):
        raise RuntimeError(f"{said} characters of {turns * pieces * len(TOKEN)} arrived")
    stored = [1000 * (at - piece.at.timestamp()) for at, piece in came]
    return _Crowd(stored, 1000 * used / (turns * pieces), 100 * used / took)


def _import_ms(what: str) -> float:
    said = subprocess.run([sys.executable, "-c", IMPORT.format(what=what)], check=True, capture_output=True, text=True)
    return float(said.stdout)
