"""The terminal tool: one shell command in a session of its own, with an allow-listed environment.

A command is over when its shell has ended. What it left in the background goes on and is named in the result; a stop of the turn kills it,
and so does the end of the gateway that started it.
"""

import asyncio
import codecs
import contextlib
import hashlib
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from holdfast import processes, tool_processes
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.output import RESULT_HEAD, RESULT_TAIL, Ends
from holdfast.core.process_id import ProcessId
from holdfast.ports.tools import ToolContext, ToolResult
from holdfast.tools import shell as shells
from holdfast.tools.shell import Shell

# Tools see these and nothing else of our environment: no token, no home folder, no keys.
ALLOWED = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL")
# After the shell has ended: how long nothing may come until the output is over, and how long something may.
QUIET_S, LINGER_S = 0.1, 1.0
PIPE_BYTES = 1024 * 1024  # More than a pipe holds.
# What is left behind must still be there after this to be named: it may be about to end.
LEFT_S = 0.05
# Asked to end, then killed. Together well within the time that a stop has (A21).
TERM_GRACE_S, KILL_S = 0.5, 1.0
# A command that prints without end leaves the event loop to others for most of the time.
BYTES_PER_S = 16 * 1024 * 1024
NAMED_AT_MOST = 10


class Terminal:
    name = "terminal"
    effect = Effect.UNSAFE

    def __init__(self, *, home: Path, owner: str, folder: Path, environment: dict[str, str]) -> None:
        self._home, self._mark, self._folder = home, tool_processes.mark(home, owner), folder
        self._environment = {name: environment[name] for name in ALLOWED if name in environment}
        self._census = Census(home)
        self._left: set[Shell] = set()

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        command = arguments.get("command")
        if not isinstance(command, str) or not command.strip() or "\0" in command:
            return ToolResult(ToolOutcome.FAILED, "The terminal needs a `command`: a line of shell.")
        call = _call_mark(context)
        try:
            shell = shells.start(command, folder=self._folder, environment=self._environment | self._context(context, call))
        except OSError as error:
            return ToolResult(ToolOutcome.FAILED, f"The command could not be started: {error}.")
        try:
            text = await _read(shell, context)
            left = await self._left_running(call)
        except BaseException:  # Cancelled, or it cannot be recorded: nothing of it goes on.
            await self._end(shell, call)
            raise
        self._let_go(shell)
        return _result(text, shell.code or 0, left)

    def _context(self, context: ToolContext, call: str) -> dict[str, str]:
        return {
            tool_processes.SESSION: context.session_id,
            "HOLDFAST_SESSION_KEY": context.session_key,
            "HOLDFAST_GENERATION": str(context.generation),
            tool_processes.TURN: context.turn_id,
            tool_processes.CALL: call,
            tool_processes.VARIABLE: self._mark,
        }

    async def _left_running(self, call: str) -> list[str]:
        """The processes that the command left behind, for people."""
        found = await self._census.running(call)
        if not found:
            return []
        await asyncio.sleep(LEFT_S)
        named = [(tool_processes.name(process), process.pid) for process in found if processes.is_alive(process)]
        return [f"{name or 'a process'} (pid {pid})" for name, pid in named]

    def _let_go(self, shell: Shell) -> None:
        """Where others still hold the pipe, somebody must go on reading it."""
        self._left = {left for left in self._left if not left.closed}
        if shell.take() == b"":
            shell.close()
        else:
            self._left.add(shell)
            shell.leave()

    async def _end(self, shell: Shell, call: str) -> None:
        """Everything that the command started, wherever it went: asked to end, and killed after half a second."""
        shell.signal_group(signal.SIGTERM)
        await self._signal(call, signal.SIGTERM)
        await _within(TERM_GRACE_S, self._gone(call))
        shell.signal_group(signal.SIGKILL)
        for _ in range(tool_processes.PASSES):
            if not await self._signal(call, signal.SIGKILL):
                break
        await _within(KILL_S, shell.exited.wait())  # Where the system does not let it die yet, nobody waits for it.
        shell.close()

    async def _signal(self, call: str, number: int) -> bool:
        """Reaches every process of the call that is there; false when there is none. Many calls that end at once share their looking."""
        found = await self._census.running(call)
        for process in found:
            with contextlib.suppress(PermissionError):  # It runs as somebody else by now.
                processes.send_signal(process, number)
        return bool(found)

    async def _gone(self, call: str) -> None:
        while await self._census.running(call):  # noqa: ASYNC110 - processes that are not our children tell nobody.
            await asyncio.sleep(LEFT_S)

    async def stop(self, turn_id: str) -> int:
        return await asyncio.to_thread(
            tool_processes.kill_chosen,
            self._home,
            lambda environment: environment.get(tool_processes.TURN) == turn_id and environment[tool_processes.VARIABLE] == self._mark,
        )

    async def end_session(self, session_id: str) -> int:
        return await asyncio.to_thread(
            tool_processes.kill_chosen, self._home, lambda environment: environment.get(tool_processes.SESSION) == session_id
        )

    async def reap(self, lives: Callable[[str], bool]) -> int:
        killed = await asyncio.to_thread(tool_processes.kill, self._home, lambda owner: not lives(owner))
        if not lives(self._mark.rpartition("/")[2]):
            for shell in self._left:
                shell.close()
            self._left.clear()
        return killed


class Census:
    """What runs of whose call. Looking takes a few milliseconds: many who ask at once share a look that began after they asked."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._looking = asyncio.Lock()
        self._begun = 0
        self._found: dict[str, list[ProcessId]] = {}

    async def running(self, call: str) -> list[ProcessId]:
        asked = self._begun
        async with self._looking:
            if self._begun == asked:
                self._begun += 1
                self._found = await asyncio.to_thread(self._look)
            return self._found.get(call, [])

    def _look(self) -> dict[str, list[ProcessId]]:
        found: dict[str, list[ProcessId]] = {}
        for process, environment in tool_processes.running(self._home):
            found.setdefault(environment.get(tool_processes.CALL, ""), []).append(process)
        return found


async def _within(timeout_s: float, work: Awaitable[object]) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await work
    except TimeoutError:
        pass


def _call_mark(context: ToolContext) -> str:
    """Names a call of a turn in an environment, whatever characters its id has."""
    return hashlib.sha256(f"{context.turn_id}\0{context.call_id}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


async def _read(shell: Shell, context: ToolContext) -> str:
    """Passes the output on as it comes, until the shell has ended and the pipe is quiet. Of a long one the result keeps both ends."""
    decoder, kept = codecs.getincrementaldecoder("utf-8")("replace"), Ends(RESULT_HEAD, RESULT_TAIL)
    clock = asyncio.get_running_loop().time
    end, free_at = Ending(), clock()
    while True:
        exited = shell.exited.is_set()  # Before the pipe is looked at: what the shell put out is in it then.
        chunk = shell.take()
        text = decoder.decode(chunk or b"", final=chunk == b"")
        if text:
            await context.output(text)
            kept.add(text)
        if chunk == b"":
            await shell.exited.wait()
            break
        if exited and end.reached(chunk, clock()):
            break
        if chunk:
            free_at = max(free_at, clock()) + len(chunk) / BYTES_PER_S
            await asyncio.sleep(max(0.0, free_at - clock()))
        else:
            await shell.news(QUIET_S if exited else None)
    return kept.read().text


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


def _result(text: str, code: int, left: list[str]) -> ToolResult:
    more = [shells.ended(code)] if code else []
    if left:
        named = ", ".join(left[:NAMED_AT_MOST]) + (f" and {len(left) - NAMED_AT_MOST} more" if len(left) > NAMED_AT_MOST else "")
        more.append(f"still running in the background: {named}")
    lines = "\n".join(f"({line})" for line in more)
    if lines and text and not text.endswith("\n"):
        text += "\n"
    return ToolResult(ToolOutcome.FAILED if code else ToolOutcome.DONE, text + lines)
