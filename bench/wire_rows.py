"""The row that the wires to models answer for alone: their processor time per token, next to that of a reader that only splits events."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import uvloop

from bench.figures import Figure, at_most, plain
from bench.setting import Setting
from holdfast.agents.wires import providers
from holdfast.core.history import User
from holdfast.ports.models import ModelRequest
from tests.fakes.models.script import Reply, Script, text

ROOT = Path(__file__).parents[1]
PACE_S = 0.02
TOKEN = "token "
BODY = msgspec.json.encode({"model": "fake", "messages": [{"role": "user", "content": "Hello."}], "stream": True})
# More than a bare reader of the same events needs, per token.
LIMIT_MS = 0.05


def wire(setting: Setting) -> list[Figure]:
    sizes = setting.sizes
    paced = int(sizes.tokens_s / PACE_S)

    def once() -> list[float]:
        took: list[float] = []
        for tokens, pace_s in ((paced, PACE_S), (sizes.unpaced, 0.0)):
            with serving(setting, tokens, pace_s) as url:
                took += [cpu_ms(sizes.turns, tokens, bare(sizes.turns, url)), cpu_ms(sizes.turns, tokens, _ours(sizes.turns, url))]
        return took

    found = setting.measure(once)
    return [
        at_most("50 tokens/s: above a bare reader", "ms", [[each[1] - each[0]] for each in found], LIMIT_MS),
        plain("the bare reader at 50 tokens/s", "ms", [[each[0]] for each in found]),
        at_most("unpaced: above a bare reader", "ms", [[each[3] - each[2]] for each in found], LIMIT_MS),
        plain("the bare reader, unpaced", "ms", [[each[2]] for each in found]),
    ]


@contextmanager
def serving(setting: Setting, tokens: int, pace_s: float) -> Iterator[str]:
    """A model server that says so many tokens to everybody."""
    script = setting.folder / "script.json"
    script.write_bytes(msgspec.json.encode(Script(replies=(Reply(say=text(*[TOKEN] * tokens), delay_s=pace_s),))))
    command = [sys.executable, "-m", "tests.fakes.models", "--script", str(script)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.kill()


def cpu_ms(streams: int, tokens: int, work: Coroutine[Any, Any, None]) -> float:
    """Milliseconds of this process's time per token."""
    began = time.process_time()
    uvloop.run(work)
    return 1000 * (time.process_time() - began) / (streams * tokens)


async def _ours(streams: int, url: str) -> None:
    client = providers.client("chat:fake", base_url=url)

    async def read(digest: str) -> bytes:
        return b""

    async def one() -> None:
        request = ModelRequest(system="Say something.", history=(User(id="m", content="Hello."),), tools=(), read=read)
        async with aclosing(client.stream(request)) as pieces:  # type: ignore[type-var]
            async for _ in pieces:
                pass

    await asyncio.gather(*(one() for _ in range(streams)))
    await client.aclose()


async def bare(streams: int, url: str) -> None:
    """Reads so many answers at once, and does nothing but split them into events."""

    async def one(session: aiohttp.ClientSession) -> None:
        async with session.post(f"{url}/chat/completions", data=BODY) as response:
            rest = b""
            async for chunk in response.content.iter_any():
                *_, rest = (rest + chunk).split(b"\n\n")

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(one(session) for _ in range(streams)))
