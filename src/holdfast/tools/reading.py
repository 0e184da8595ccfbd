"""Reading what a command puts out, until the command is over or its time is."""

import asyncio
import codecs

from holdfast.core.output import RESULT_HEAD, RESULT_TAIL, Ends
from holdfast.core.redaction import Secrets
from holdfast.ports.tools import ToolContext
from holdfast.tools.shell import Shell

# After the shell has ended: how long nothing may come until the output is over, and how long something may.
QUIET_S, LINGER_S = 0.1, 1.0
PIPE_BYTES = 1024 * 1024  # More than a pipe holds.
# A command that prints without end leaves the event loop to others for most of the time.
BYTES_PER_S = 16 * 1024 * 1024


class Kept:
    """Of a long output both ends. Secrets are replaced before anything is left out: half of one would not be known any more."""

    def __init__(self, secrets: Secrets) -> None:
        self._held, self._ends = secrets.stream(), Ends(RESULT_HEAD, RESULT_TAIL)

    def add(self, text: str) -> None:
        self._ends.add(self._held.add(text))

    def read(self) -> str:
        """All of it. Nothing is added after this."""
        self._ends.add(self._held.end())
        return self._ends.read().text


async def read(shell: Shell, context: ToolContext, *, within_s: float) -> tuple[str, bool]:
    """Passes the output on as it comes, until the shell has ended and the pipe is quiet. Gives the result's text and whether the command
    was over in time.
    """
    decoder, kept = codecs.getincrementaldecoder("utf-8")("replace"), Kept(context.secrets)
    clock = asyncio.get_running_loop().time
    end, free_at, late_at = Ending(), clock(), clock() + within_s
    while True:
        exited = shell.exited.is_set()  # Before the pipe is looked at: what the shell put out is in it then.
        if not exited and clock() >= late_at:
            return kept.read(), False
        chunk = shell.take()
        text = decoder.decode(chunk or b"", final=chunk == b"")
        if text:
            await context.output(text)
            kept.add(text)
        if chunk == b"":
            return kept.read(), await shell.exits(late_at - clock())
        if exited and end.reached(chunk, clock()):
            return kept.read(), True
        if chunk:
            free_at = max(free_at, clock()) + len(chunk) / BYTES_PER_S
            await asyncio.sleep(max(0.0, free_at - clock()))
        else:
            await shell.news(QUIET_S if exited else late_at - clock())


class Ending:
    """The shell has ended and others hold its pipe: whether everything that belongs to the command was read. What it put out itself lies in
    the pipe; behind that comes what its children say, for as long as they are not quiet, but not for long.
    """

    def __init__(self) -> None:
        self._emptied_at: float | None = None
        self._quiet_since: float | None = None
        self._read = 0

    def reached(self, chunk: bytes | None, now: float) -> bool:
        if chunk:
            self._read, self._quiet_since = self._read + len(chunk), None
            lingered = self._emptied_at is not None and now - self._emptied_at >= LINGER_S
            return lingered or self._read >= PIPE_BYTES
        self._emptied_at = now if self._emptied_at is None else self._emptied_at
        self._quiet_since = now if self._quiet_since is None else self._quiet_since
        return now - self._quiet_since >= QUIET_S
