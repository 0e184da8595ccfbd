"""The terminal tool: one shell command in a process group of its own, with an allow-listed environment."""

import asyncio
import codecs
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast import marks
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.output import RESULT_HEAD, RESULT_TAIL, Ends
from holdfast.ports import ToolContext, ToolResult

# Tools see these and nothing else of our environment: no token, no home folder, no keys.
ALLOWED = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL")
CHUNK = 65536
TERM_GRACE_S = 0.5


class Terminal:
    name = "terminal"
    effect = Effect.UNSAFE

    def __init__(self, *, home: Path, owner: str, folder: Path, environment: dict[str, str]) -> None:
        self._home, self._mark, self._folder = home, marks.mark(home, owner), folder
        self._environment = {name: environment[name] for name in ALLOWED if name in environment}

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        command = arguments.get("command")
        if not isinstance(command, str) or not command.strip() or "\0" in command:
            return ToolResult(ToolOutcome.FAILED, "The terminal needs a `command`: a line of shell.")
        try:
            process = await asyncio.create_subprocess_shell(
                command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                cwd=self._folder,
                env=self._environment | self._context(context),
                start_new_session=True,
            )
        except OSError as error:
            return ToolResult(ToolOutcome.FAILED, f"The command could not be started: {error}.")
        try:
            text = await _read(process, context)
            code = await process.wait()
        finally:
            await _kill_group(process)
        if code == 0:
            return ToolResult(ToolOutcome.DONE, text)
        return ToolResult(ToolOutcome.FAILED, f"{text}\n(exit code {code})".lstrip("\n"))

    def _context(self, context: ToolContext) -> dict[str, str]:
        return {
            "HOLDFAST_SESSION_KEY": context.session_key,
            "HOLDFAST_GENERATION": str(context.generation),
            "HOLDFAST_TURN_ID": context.turn_id,
            marks.VARIABLE: self._mark,
        }

    async def reap(self, lives: Callable[[str], bool]) -> int:
        return await asyncio.to_thread(marks.kill, self._home, lambda owner: not lives(owner))


async def _read(process: asyncio.subprocess.Process, context: ToolContext) -> str:
    """Streams the output as it comes; of a very long one the result keeps the beginning and the end."""
    assert process.stdout is not None
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    kept = Ends(RESULT_HEAD, RESULT_TAIL)
    while chunk := await process.stdout.read(CHUNK):
        text = decoder.decode(chunk)
        await context.output(text)
        kept.add(text)
    return kept.read().text


async def _kill_group(process: asyncio.subprocess.Process) -> None:
    """Ends whatever is left of the process group: asked first, killed after half a second."""
    if not _signal_group(process.pid, signal.SIGTERM):
        return
    try:
        async with asyncio.timeout(TERM_GRACE_S):
            await process.wait()
    except TimeoutError:
        pass
    _signal_group(process.pid, signal.SIGKILL)
    await process.wait()


def _signal_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
