"""The terminal tool: one shell command in the folder of its session, in a sandbox where there is one, with an allow-listed environment.

A command is over when its shell has ended. What it left in the background goes on and is named in the result; a stop of the turn kills it,
and so does the end of the gateway that started it.
"""

import asyncio
import contextlib
import hashlib
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from holdfast import processes, tool_processes
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.ports.tools import ToolContext, ToolResult
from holdfast.sandbox import Sandbox
from holdfast.tools import shell as shells
from holdfast.tools.census import Census
from holdfast.tools.reading import read
from holdfast.tools.shell import Shell
from holdfast.tools.surroundings import Surroundings

# What is left behind must still be there after this to be named: it may be about to end.
LEFT_S = 0.05
# Asked to end, then killed. Together well within the time that a stop has (A21).
TERM_GRACE_S, KILL_S = 0.5, 1.0
NAMED_AT_MOST = 10
LONGEST_S = 1800.0


class Terminal:
    name = "terminal"
    version = ""

    def __init__(
        self,
        *,
        home: Path,
        owner: str,
        surroundings: Surroundings,
        timeout_s: float = LONGEST_S,
    ) -> None:
        self._home, self._mark, self._surroundings = home, tool_processes.mark(home, owner), surroundings
        self._timeout_s = timeout_s
        self._census = Census(home)
        self._left: set[Shell] = set()
        self.description = (
            "Runs a line of shell in the working folder of this conversation and returns its output. There is nothing to read from, and no"
            " terminal. What it starts in the background continues after the call, until the turn is stopped or Holdfast ends."
        )
        self.schema: dict[str, Any] = {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "A line of shell (sh)."},
                "timeout_s": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "maximum": timeout_s,
                    "description": f"After this many seconds the command is killed, with all it started. Without it: {timeout_s:g}.",
                },
            },
            "required": ["command"],
            "additionalProperties": False,
        }

    def effect(self, arguments: dict[str, Any]) -> Effect:
        return Effect.UNSAFE

    async def ready(self) -> None:
        await self._surroundings.ready()

    def place(self, session_id: str, folder: str | None) -> str:
        return self._surroundings.place(session_id, folder)

    def confined(self, arguments: dict[str, Any]) -> bool:
        return self._surroundings.confines

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        command, timeout_s = arguments.get("command"), arguments.get("timeout_s", self._timeout_s)
        if not isinstance(command, str) or not command.strip() or "\0" in command:
            return ToolResult(ToolOutcome.FAILED, "The terminal needs a `command`: a line of shell.")
        if not isinstance(timeout_s, int | float) or not 0 < timeout_s <= self._timeout_s:
            return ToolResult(ToolOutcome.FAILED, f"`timeout_s` must be a number of seconds, at most {self._timeout_s:g}.")
        call = _call_mark(context)
        try:
            line = await self._surroundings.prepare(command, context)
            marks = {tool_processes.CALL: call, tool_processes.VARIABLE: self._mark}
            shell = shells.start(line.words, folder=line.folder, environment=line.environment | marks)
        except OSError as error:
            return ToolResult(ToolOutcome.FAILED, f"The command could not be started: {error}.")
        try:
            text, over = await read(shell, context, within_s=timeout_s)
            if not over:
                await self._end(shell, call)
                return _result(text, [f"not over after {timeout_s:g} s, so it was stopped with everything it had started"], failed=True)
            left = await self._left_running(call, line.sandbox)
        except BaseException:  # Cancelled, or it cannot be recorded: nothing of it goes on.
            await self._end(shell, call)
            raise
        self._let_go(shell)
        code = shell.code or 0
        return _result(text, [*([shells.ended(code)] if code else []), *left], failed=code != 0)

    async def _left_running(self, call: str, sandbox: Sandbox) -> list[str]:
        """The processes that the command left behind, in words for people; nothing if there are none. The sandbox's own is not one."""
        found = await self._census.running(call)
        if not found:
            return []
        await asyncio.sleep(LEFT_S)
        named = [(tool_processes.name(process), process.pid) for process in found if processes.is_alive(process)]
        left = [f"{name or 'a process'} (pid {pid})" for name, pid in named if not sandbox.runs_as(name)]
        if not left:
            return []
        more = f" and {len(left) - NAMED_AT_MOST} more" if len(left) > NAMED_AT_MOST else ""
        where = ", where other commands cannot see it" if sandbox.hides_processes else ""
        return [f"still running in the background{where}: {', '.join(left[:NAMED_AT_MOST])}{more}"]

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
        if await self._signal(call, signal.SIGKILL):
            await _within(KILL_S, self._killed(call))  # Where the system does not let it die, nobody waits for it.
        await shell.exits(KILL_S)
        shell.close()

    async def _signal(self, call: str, number: int) -> bool:
        """Reaches every process of the call that is there; false when there is none. Many calls that end at once share their looking."""
        found = await self._census.running(call)
        for process in found:
            with contextlib.suppress(PermissionError):  # It runs as somebody else by now.
                processes.send_signal(process, number)
        return bool(found)

    async def _killed(self, call: str) -> None:
        """What is killed may have started more while it was being looked for."""
        while await self._signal(call, signal.SIGKILL):  # noqa: ASYNC110 - processes that are not our children tell nobody.
            await asyncio.sleep(tool_processes.DYING_S)

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

    async def kept(self) -> list[str]:
        return await asyncio.to_thread(self._surroundings.workspaces.sessions)

    async def forget(self, session_id: str) -> None:
        await self.end_session(session_id)
        await asyncio.to_thread(self._surroundings.workspaces.remove, session_id)

    def shared(self, arguments: dict[str, Any]) -> bool:
        return False

    async def reap(self, lives: Callable[[str], bool]) -> int:
        killed = await asyncio.to_thread(tool_processes.kill, self._home, lambda owner: not lives(owner))
        if not lives(self._mark.rpartition("/")[2]):
            for shell in self._left:
                shell.close()
            self._left.clear()
        return killed


async def _within(timeout_s: float, work: Awaitable[object]) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await work
    except TimeoutError:
        pass


def _call_mark(context: ToolContext) -> str:
    """Names a call of a turn in an environment, whatever characters its id has."""
    return hashlib.sha256(f"{context.turn_id}\0{context.call_id}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _result(text: str, more: list[str], *, failed: bool) -> ToolResult:
    lines = "\n".join(f"({line})" for line in more)
    if lines and text and not text.endswith("\n"):
        text += "\n"
    return ToolResult(ToolOutcome.FAILED if failed else ToolOutcome.DONE, text + lines)
