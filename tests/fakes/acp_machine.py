"""Agents of other programs on a simulated machine (`ports.keepers`): they go on by the clock of the world, whatever becomes of the process
that started them. What one does is written in its prompt, step by step, parted by `|`:

    say TEXT   think TEXT   tool NAME   permit NAME   sleep S   die   fail   stop REASON

`deeds`, `prompts` and `permissions` are what all of them ever did; `joined` are prompts that came while another one was being answered.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from holdfast.core.errors import Unavailable
from holdfast.keeper.files import InputClosed
from holdfast.ports.keepers import OUT, Chunk, Command, End, Look, Loss, Name

OFFERED = (("once", "Allow once", "allow_once"), ("always", "Always allow", "allow_always"), ("no", "Reject", "reject_once"))
STEP_S = 0.01


class Living:
    """One process: what it has put out, with the times, and what it still means to do."""

    def __init__(self, machine: "AcpMachine", name: Name, at: float) -> None:
        self._machine, self._name = machine, name
        self.out: list[tuple[float, bytes]] = []
        self.ended_at: float | None = None
        self.asked = False
        self._heard, self._session = b"", ""
        self._known: list[str] = []
        self._at = at
        self._doing: Iterator[float | None] | None = None
        self._permission: int | None = None
        self._outcome: dict[str, Any] | None = None
        self._requests = 0
        self._cancelled = False

    def live(self, now: float) -> None:
        """Does what it would have done by now."""
        while self._doing is not None and self._at <= now and self.ended_at is None:
            wait_s = next(self._doing, None)
            if wait_s is None:
                return
            self._at += wait_s

    def hear(self, data: bytes, now: float) -> None:
        self.live(now)
        self._heard += data
        *lines, self._heard = self._heard.split(b"\n")
        for line in filter(None, lines):
            self._answer(json.loads(line), now)
        self.live(now)

    def _answer(self, message: dict[str, Any], now: float) -> None:
        self._at = max(self._at, now)
        method, name, given = message.get("method"), message.get("id"), message.get("params") or {}
        match method:
            case None:
                if name == self._permission:
                    self._permission, self._outcome = None, message["result"]["outcome"]
            case "initialize":
                sessions: dict[str, Any] = {"resume": {}} if "resume" in self._machine.can else {}
                can = {"loadSession": "load" in self._machine.can, "sessionCapabilities": sessions}
                self._write({"id": name, "result": {"protocolVersion": 1, "agentCapabilities": can, "agentInfo": {"name": "scripted"}}})
            case "session/new":
                self._session = f"their-{self._name.id}"
                self._write({"id": name, "result": {"sessionId": self._session}})
            case "session/load" | "session/resume":
                known = self._machine.sessions.get(given["sessionId"])
                if known is None:
                    self._write({"id": name, "error": {"code": -32002, "message": "not found"}})
                else:
                    self._session, self._known = given["sessionId"], known
                    self._write({"id": name, "result": {}})
            case "session/prompt":
                words = [block["text"] for block in given["prompt"]]
                self._machine.prompts.append(words)
                if self._doing is not None:
                    self._machine.joined.append(words)
                self._cancelled = False
                self._doing = self._work(name, words)
            case "session/cancel":
                self._cancelled = True
            case _:
                self._write({"id": name, "error": {"code": -32601, "message": "Method not found"}})

    def _write(self, message: dict[str, Any]) -> None:
        self.out.append((self._at, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"))

    def _update(self, update: dict[str, Any]) -> None:
        self._write({"method": "session/update", "params": {"sessionId": self._session, "update": update}})

    def _work(self, name: Any, words: list[str]) -> Iterator[float | None]:
        reason = "end_turn"
        for number, step in enumerate(words[-1].split("|"), 1):
            yield STEP_S
            if self._cancelled:
                break
            word, _, rest = step.strip().partition(" ")
            if word == "fail":
                self._write({"id": name, "error": {"code": -32603, "message": "as it was told"}})
                self._doing = None
                return
            if word == "stop":
                reason = rest
            else:
                yield from self._do(word, rest, f"call-{number}")
            if self.ended_at is not None:
                return
        self._known.append(words[-1])
        self._machine.sessions[self._session] = self._known
        self._doing = None
        self._write({"id": name, "result": {"stopReason": "cancelled" if self._cancelled else reason}})

    def _do(self, word: str, rest: str, call: str) -> Iterator[float | None]:
        match word:
            case "say" | "think":
                kind = "agent_message_chunk" if word == "say" else "agent_thought_chunk"
                self._update({"sessionUpdate": kind, "content": {"type": "text", "text": rest}})
            case "sleep":
                until = self._at + float(rest)
                while self._at < until and not (self._cancelled and "slow" not in self._machine.can):
                    yield STEP_S
            case "tool":
                yield from self._tool(rest, call)
            case "permit":
                yield from self._permit(rest, call)
            case "die":
                self.ended_at = self._at

    def _tool(self, name: str, call: str) -> Iterator[float | None]:
        self._update({"sessionUpdate": "tool_call", "toolCallId": call, "kind": "execute", "status": "pending"})
        self._update({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "in_progress", "rawInput": {"command": name}})
        yield STEP_S
        self._machine.deeds.append(name)
        content = [{"type": "content", "content": {"type": "text", "text": f"{name} was done"}}]
        self._update({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "completed", "content": content})

    def _permit(self, name: str, call: str) -> Iterator[float | None]:
        shown = {"toolCallId": call, "kind": "execute", "status": "pending", "rawInput": {"command": name}}
        options = [{"optionId": option, "name": label, "kind": kind} for option, label, kind in OFFERED]
        self._requests += 1
        self._permission, self._outcome = self._requests, None
        given = {"sessionId": self._session, "toolCall": shown, "options": options}
        self._write({"id": self._requests, "method": "session/request_permission", "params": given})
        while self._outcome is None:
            yield None
        chosen = self._outcome.get("optionId", self._outcome["outcome"])
        self._machine.permissions.append(f"{name} {chosen}")
        if chosen in ("once", "always"):
            yield from self._tool(name, call)
        self._update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": f"{name}: {chosen}."}})


class AcpMachine:
    """All of them. `can`: what they can do besides (`load`, `resume`), or `slow`: in its sleep none hears a cancellation."""

    def __init__(self, *can: str) -> None:
        self.can = frozenset(can)
        self.running: dict[Name, Living] = {}
        self.sessions: dict[str, list[str]] = {}
        self.deeds: list[str] = []
        self.prompts: list[list[str]] = []
        self.joined: list[list[str]] = []
        self.permissions: list[str] = []
        self.unreachable: set[Name] = set()

    def keepers(self, now: Callable[[], float]) -> "AcpKeepers":
        return AcpKeepers(self, now)


class AcpKeepers:
    """As one process of ours sees them (`ports.keepers.Keepers`)."""

    def __init__(self, machine: AcpMachine, now: Callable[[], float]) -> None:
        self._machine, self._now = machine, now

    def _of(self, name: Name) -> Living | None:
        found = self._machine.running.get(name)
        if found is not None:
            found.live(self._now())
        return found

    async def start(self, name: Name, command: Command) -> End | None:
        self._machine.running.setdefault(name, Living(self._machine, name, self._now()))
        return None

    async def look(self, name: Name) -> Look:
        found = self._of(name)
        if found is None:
            return Look(lost=Loss.NEVER_RAN)
        size = sum(len(data) for _, data in found.out)
        if found.ended_at is not None:
            return Look(end=End(at=int(found.ended_at), code=3, asked=found.asked), out=size)
        return Look(out=size)

    async def give_up(self, name: Name) -> End:
        raise AssertionError("nobody gives up an agent")

    async def read(self, name: Name, *, offset: int, limit: int, stream: str = OUT) -> Chunk:
        found = self._of(name)
        data = b"".join(data for _, data in found.out) if found is not None and stream == OUT else b""
        return Chunk(offset, data[offset : offset + limit])

    async def write(self, name: Name, data: bytes) -> int:
        found = self._of(name)
        if found is None or found.ended_at is not None:
            raise InputClosed("it has ended")
        found.hear(data, self._now())
        return len(data)

    async def close_input(self, name: Name) -> None:
        raise AssertionError("nobody closes it")

    async def drop(self, name: Name, *, before: int, stream: str = OUT) -> None:
        pass

    async def kill(self, name: Name) -> None:
        if name in self._machine.unreachable:
            raise Unavailable("The disk does not answer.")
        found = self._of(name)
        if found is not None and found.ended_at is None:
            found.ended_at, found.asked = self._now(), True

    async def names(self) -> list[Name]:
        return sorted(self._machine.running)

    async def forget(self, name: Name) -> None:
        await self.kill(name)
        self._machine.running.pop(name, None)
