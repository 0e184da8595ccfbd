"""An agent that is another program, tried from the command line: it is started, asked what it can do, and killed."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence

import holdfast
from holdfast.core import acp
from holdfast.core.acp import Abilities, Fold, Replied
from holdfast.core.errors import Refused

STARTS_S = 30.0
MOST_LINE = 1024 * 1024
REQUEST = "initialize"


class NoIntroduction(Refused):
    """The program did not introduce itself as an agent."""

    code = "no_introduction"


def introduces_itself(words: Sequence[str], environment: Mapping[str, str]) -> Abilities:
    """What the program says it can do. Blocks for at most half a minute. Raises `NoIntroduction`."""
    return asyncio.run(_introduced(words, environment))


async def _introduced(words: Sequence[str], environment: Mapping[str, str]) -> Abilities:
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment,
            limit=MOST_LINE,
            start_new_session=True,
        )
    except OSError as error:
        raise NoIntroduction(f"it cannot be started: {error.strerror or error}") from error
    assert process.stdin is not None and process.stdout is not None
    try:
        async with asyncio.timeout(STARTS_S):
            with contextlib.suppress(ConnectionError):
                process.stdin.write(acp.request(REQUEST, REQUEST, acp.initialize(holdfast.__version__)))
                await process.stdin.drain()
            replied = await _reply(process.stdout)
    except TimeoutError:
        raise NoIntroduction(f"it did not answer within {STARTS_S:g} s") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if replied.error is not None:
        raise NoIntroduction(f"it refused to introduce itself: {replied.error}")
    return acp.abilities(replied.result)


async def _reply(output: asyncio.StreamReader) -> Replied:
    fold = Fold(None)
    while True:
        try:
            line = await output.readline()
        except ValueError:
            raise NoIntroduction("it sent a line that is too long") from None
        if not line:
            raise NoIntroduction("it ended without an answer; run it in a terminal to see why")
        for move in fold.feed(line):
            if isinstance(move, Replied) and move.request == REQUEST:
                return move
