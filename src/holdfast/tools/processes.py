"""The processes tool: commands in the background that outlive the gateway, each with a keeper of its own.

A start is on record before anything of it runs. What is read, waited for or killed is on record as consumed, with the result that says so,
and nobody is told of it again (E2).
"""

import asyncio
import codecs
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.core import events as e
from holdfast.core import processes
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.errors import HoldfastError, NotFound
from holdfast.core.notices import span
from holdfast.core.policy import PROCESSES
from holdfast.core.processes import KILLED, READ, WAITED, Process
from holdfast.ports.keepers import Chunk, Command, End, Keepers, Look
from holdfast.ports.process import Clock
from holdfast.ports.processes import Processes as Records
from holdfast.ports.processes import name_of, printed, recorded
from holdfast.ports.tools import ToolContext, ToolResult
from holdfast.tools.plain import PlainTool
from holdfast.tools.surroundings import Surroundings

START, LIST, READ_OUTPUT, WAIT, WRITE, KILL = ACTIONS = ("start", "list", "read", "wait", "write", "kill")
# With this a turn is cancelled that somebody stops (`ports.agents.Agent`).
STOPPED = "stop"
# What ends at once is told with its start.
SETTLES_S = 0.3
LOOK_S = 0.1
WAIT_S, LONGEST_WAIT_S = 60.0, 600.0
READ_BYTES, MOST_READ = 8 * 1024, 32 * 1024
MOST_TEXT = 64 * 1024
MOST_PATTERNS, PATTERN_CHARS = 8, 200

DESCRIPTION = (
    "Commands in the background of this conversation. `start` runs a line of shell and returns at once; the command continues after the"
    " turn and after restarts, until it ends or is killed. You are told when it ends, with the end of its output, unless you have waited"
    " for it or read its end, or started it with notify_on_complete false. `watch_patterns` has you told of lines of its output with one"
    " of these texts, too. `list` names all of them, `read` gives output, `wait` waits for an end, `write` writes to the input of one that"
    " was started with input, `kill` ends one with everything it started. Do not put `&` behind the command: what it leaves behind ends"
    " with it."
)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": list(ACTIONS)},
        "command": {"type": "string", "description": "start: a line of shell (sh)."},
        "input": {"type": "boolean", "description": "start: whether you will write to it. Without it, it has nothing to read."},
        "notify_on_complete": {"type": "boolean", "description": "start: whether you are told when it ends. Without it: true."},
        "watch_patterns": {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": PATTERN_CHARS},
            "maxItems": MOST_PATTERNS,
            "description": "start: you are told of lines of its output that hold one of these texts.",
        },
        "process_id": {"type": "string", "description": "read, wait, write, kill: which process."},
        "offset": {
            "type": "integer",
            "minimum": 0,
            "description": "read: from which byte of its output on. Without it: the end of the output.",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST_READ, "description": "read: how many bytes at most."},
        "timeout_s": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": LONGEST_WAIT_S,
            "description": f"wait: how long at most. Without it: {WAIT_S:g}.",
        },
        "text": {"type": "string", "maxLength": MOST_TEXT, "description": "write: the text, with its line ends."},
        "end": {"type": "boolean", "description": "write: whether nothing follows, so that the process comes to the end of its input."},
    },
    "required": ["action"],
    "additionalProperties": False,
}


class Processes(PlainTool):
    """`owner`: the number of this process of ours. `most`: how many may run at once, in all conversations."""

    name = PROCESSES
    description = DESCRIPTION
    schema = SCHEMA

    def __init__(
        self, *, records: Records, keepers: Keepers, surroundings: Surroundings, clock: Clock, owner: int, most: int, most_bytes: int
    ) -> None:
        self._records, self._keepers, self._surroundings, self._clock = records, keepers, surroundings, clock
        self._owner, self._most, self._most_bytes = owner, most, most_bytes
        self._actions: dict[str, Callable[[dict[str, Any], ToolContext], Awaitable[ToolResult]]] = {
            START: self._start,
            LIST: self._list,
            READ_OUTPUT: self._read,
            WAIT: self._wait,
            WRITE: self._write,
            KILL: self._kill,
        }

    def effect(self, arguments: dict[str, Any]) -> Effect:
        """A start that is repeated finds the process that it started."""
        match arguments.get("action"):
            case "list" | "read" | "wait":
                return Effect.PURE
            case "start" | "kill":
                return Effect.IDEMPOTENT
            case _:
                return Effect.UNSAFE

    async def ready(self) -> None:
        await self._surroundings.ready()

    def place(self, session_id: str, folder: str | None) -> str:
        return self._surroundings.place(session_id, folder)

    def confined(self, arguments: dict[str, Any]) -> bool:
        """A kill reaches only what this conversation has started."""
        return self._surroundings.confines or arguments.get("action") == KILL

    async def end_session(self, session_id: str) -> int:
        """Its processes are consumed on record first (A28)."""
        return await self._kill_all([process for process in await self._records.processes(session_id) if process.end is None])

    async def _kill_all(self, running: list[Process]) -> int:
        await asyncio.gather(*(self._keepers.kill(name_of(process)) for process in running))
        return len(running)

    async def kept(self) -> list[str]:
        return sorted({name.group for name in await self._keepers.names()})

    async def forget(self, session_id: str) -> None:
        for name in await self._keepers.names():
            if name.group == session_id:
                await self._keepers.forget(name)

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        action = self._actions.get(str(arguments.get("action")))
        if action is None:
            return _failed(f"The action must be one of {', '.join(ACTIONS)}.")
        try:
            return await action(arguments, context)
        except NotFound:
            wanted = str(arguments.get("process_id", ""))
            return _failed(f"There is no process {wanted!r} in this conversation. `list` names those that there are.")
        except (HoldfastError, OSError) as error:
            return _failed(str(error))

    # start

    async def _start(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        command = arguments.get("command")
        if not isinstance(command, str) or not command.strip() or "\0" in command:
            return _failed("`start` needs a `command`: a line of shell.")
        line = await self._surroundings.prepare(command, context)
        process_id = process_id_of(context.turn_id, context.key)
        wanted = e.ProcessStarted(
            process_id=process_id,
            command=command,
            turn_id=context.turn_id,
            call_id=context.call_id,
            owner=self._owner,
            notify=arguments.get("notify_on_complete", True),
            patterns=tuple(arguments.get("watch_patterns", ())),
        )
        process = await self._records.start_process(context.session_id, wanted, most=self._most, at=self._clock.now())
        started = Command(
            words=line.words,
            folder=str(line.folder),
            environment=line.environment,
            input=bool(arguments.get("input")),
            most_bytes=self._most_bytes,
        )
        try:
            await self._keepers.start(name_of(process), started)
            return await self._just_started(process, context)
        except asyncio.CancelledError as error:
            # Nobody has heard of it. A turn that is only interrupted makes the call again, and finds it.
            if STOPPED in error.args:
                await self._records.consume_process(process.process_id, how=KILLED, at=self._clock.now())
                await self._keepers.kill(name_of(process))
            raise

    async def _just_started(self, process: Process, context: ToolContext) -> ToolResult:
        found = await self._until_end(process, SETTLES_S)
        chunk = await printed(self._keepers, process, found, context.secrets, at=0, limit=READ_BYTES)
        text, _ = _text(chunk, context)
        if found.end is not None:
            said = f"{process.process_id} {_ended(process, found.end)}."
            failed = found.end.problem is not None or found.end.lost is not None
            return ToolResult(ToolOutcome.FAILED if failed else ToolOutcome.DONE, _joined(said, text), _consumed(process, READ))
        told = "You will be told when it ends." if process.notify else "You will not be told when it ends."
        if process.patterns:
            told += " You will be told of lines with " + ", ".join(repr(pattern) for pattern in process.patterns) + "."
        said = f"Started as {process.process_id}. {told}"
        return ToolResult(ToolOutcome.DONE, _joined(said, text))

    # list, read, wait

    async def _list(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Ends that are named here are known from now on."""
        known = await self._records.processes(context.session_id)
        if not known:
            return ToolResult(ToolOutcome.DONE, "This conversation has no background processes.")
        lines, consumed = [], []
        for process in known:
            found = await self._keepers.look(name_of(process)) if process.end is None else None
            end = process.end if found is None or found.end is None else recorded(process, found.end)
            for_s = f"runs for {span(self._clock.now() - process.started_at)}"
            lines.append(f"{process.process_id} {for_s if end is None else processes.how_it_ended(process, end)}: {process.name}")
            if end is not None and process.consumed is None:
                consumed.append(e.ProcessConsumed(process_id=process.process_id, how=READ))
        return ToolResult(ToolOutcome.DONE, "\n".join(lines), tuple(consumed))

    async def _read(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        process = await self._mine(arguments, context)
        found = await self._keepers.look(name_of(process))
        limit, offset = arguments.get("limit", READ_BYTES), arguments.get("offset")
        if offset is None:
            return self._shown(process, found, await self._tail(process, found, limit, context), context)
        chunk = await printed(self._keepers, process, found, context.secrets, at=offset, limit=limit)
        gone = f"(What it printed before byte {chunk.offset} is not kept, or is part of a secret.)\n" if chunk.offset > offset else ""
        return self._shown(process, found, chunk, context, before=gone)

    async def _wait(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        process, timeout_s = await self._mine(arguments, context), arguments.get("timeout_s", WAIT_S)
        found = await self._until_end(process, timeout_s)
        process = await self._records.process(process.process_id)  # A person may have ended it.
        chunk = await self._tail(process, found, READ_BYTES, context)
        return self._shown(process, found, chunk, context, waited_s=timeout_s, how=WAITED)

    async def _tail(self, process: Process, found: Look, limit: int, context: ToolContext) -> Chunk:
        """The end of the output, from the beginning of a line on."""
        at = max(0, found.out - limit)
        return await printed(self._keepers, process, found, context.secrets, at=at, limit=limit, from_line=True)

    def _shown(
        self,
        process: Process,
        found: Look,
        chunk: Chunk,
        context: ToolContext,
        *,
        before: str = "",
        waited_s: float | None = None,
        how: str = READ,
    ) -> ToolResult:
        end = process.end or (None if found.end is None else recorded(process, found.end))
        state = f"runs for {span(self._clock.now() - process.started_at)}"
        if end is not None:
            state = processes.how_it_ended(process, end)
        elif waited_s is not None:
            state = f"did not end within {waited_s:g} s and still runs"
        text, through = _text(chunk, context)
        said = f"{before}{process.process_id} {state}. Its output from byte {chunk.offset} to {through} of {max(found.out, through)}:"
        return ToolResult(ToolOutcome.DONE, _joined(said, text), () if end is None else _consumed(process, how))

    # write, kill

    async def _write(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        process, text = await self._mine(arguments, context), arguments.get("text", "")
        data = text.encode("utf-8", "replace")
        written = await self._keepers.write(name_of(process), data) if data else 0
        if written < len(data):
            return _failed(f"Only {written} of {len(data)} bytes were taken: it does not read. Write the rest when it does.")
        if arguments.get("end"):
            await self._keepers.close_input(name_of(process))
        return ToolResult(ToolOutcome.DONE, f"{written} bytes were written." + (" Its input is closed." if arguments.get("end") else ""))

    async def _kill(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """On record first: whatever dies now, nobody is told of its end."""
        process = await self._mine(arguments, context)
        await self._records.consume_process(process.process_id, how=KILLED, at=self._clock.now())
        await self._keepers.kill(name_of(process))
        found = await self._keepers.look(name_of(process))
        state = "runs, because the system does not let it die" if found.end is None else _ended(process, found.end)
        return ToolResult(ToolOutcome.DONE, f"{process.process_id} {state}.")

    # what they have in common

    async def _mine(self, arguments: dict[str, Any], context: ToolContext) -> Process:
        """Raises `NotFound` for one of another conversation, too."""
        process_id = str(arguments.get("process_id", ""))
        process = await self._records.process(process_id)
        if process.session_id != context.session_id:
            raise NotFound("process", process_id)
        return process

    async def _until_end(self, process: Process, timeout_s: float) -> Look:
        deadline = self._clock.monotonic() + timeout_s
        while True:
            found = await self._keepers.look(name_of(process))
            left_s = deadline - self._clock.monotonic()
            if not found.runs or left_s <= 0:
                return found
            await asyncio.sleep(min(LOOK_S, left_s))


def process_id_of(turn_id: str, key: str) -> str:
    """The same when the call is repeated: what it started is found again."""
    return "p_" + hashlib.sha256(f"{turn_id}\0{key}".encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _ended(process: Process, end: End) -> str:
    return processes.how_it_ended(process, recorded(process, end))


def _consumed(process: Process, how: str) -> tuple[e.Event, ...]:
    return () if process.consumed is not None else (e.ProcessConsumed(process_id=process.process_id, how=how),)


def _text(chunk: Chunk, context: ToolContext) -> tuple[str, int]:
    """The text, and up to which byte it goes: a character that is not whole yet is left for the next time."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(chunk.data)
    return context.secrets.text(text), chunk.next - len(decoder.getstate()[0])


def _joined(said: str, printed: str) -> str:
    return f"{said}\n\n{printed}" if printed.strip() else said


def _failed(why: str) -> ToolResult:
    return ToolResult(ToolOutcome.FAILED, why)
