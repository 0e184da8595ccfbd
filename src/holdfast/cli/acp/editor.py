"""The editor on the other side of standard input and output: lines of JSON-RPC, written by any thread, read by one."""

import json
import queue
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO

from holdfast.core.errors import Refused

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR, NOT_FOUND = -32700, -32600, -32601, -32602, -32603, -32002
# A prompt may hold images.
MOST_LINE = 64 * 1024 * 1024

Id = int | str


class BadRequest(Refused):
    """The editor asked for something that makes no sense. `rpc`: the error's number in the protocol."""

    code = "bad_request"

    def __init__(self, rpc: int, message: str) -> None:
        super().__init__(message)
        self.rpc = rpc


class Message:
    """A request, or a notification, which has no id."""

    def __init__(self, method: str, params: dict[str, Any], id: Id | None) -> None:
        self.method, self.params, self.id = method, params, id


class Editor:
    def __init__(self, reading: BinaryIO, writing: BinaryIO) -> None:
        self._reading, self._writing = reading, writing
        self._lock = threading.Lock()
        self._asked = 0
        self._replies: dict[Id, queue.SimpleQueue[dict[str, Any] | None]] = {}

    def messages(self) -> Iterator[Message]:
        """What the editor sends until it closes its side. Answers what cannot be read, and passes replies to those who asked."""
        while line := self._reading.readline(MOST_LINE):
            if not line.endswith(b"\n") and len(line) >= MOST_LINE:
                self._skip_line()
                self.refuse(None, INVALID_REQUEST, f"A line is longer than {MOST_LINE} bytes.")
            elif line.strip():
                try:
                    message = self._read(line)
                except BadRequest as error:
                    self.refuse(None, error.rpc, str(error))
                else:
                    if message is not None:
                        yield message
        for waiting in list(self._replies.values()):
            waiting.put(None)

    def _skip_line(self) -> None:
        while (rest := self._reading.readline(MOST_LINE)) and not rest.endswith(b"\n"):
            pass

    def _read(self, line: bytes) -> Message | None:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            raise BadRequest(PARSE_ERROR, "A line is not JSON.") from None
        if not isinstance(found, dict) or isinstance(found.get("id"), bool | float | list | dict):
            raise BadRequest(INVALID_REQUEST, "A line must be a JSON object of JSON-RPC 2.0; batches are not supported.")
        method, params, name = found.get("method"), found.get("params"), found.get("id")
        if isinstance(method, str):
            return Message(method, params if isinstance(params, dict) else {}, name)
        if name is None or ("result" not in found and "error" not in found):
            raise BadRequest(INVALID_REQUEST, "A message has neither a method nor a result.")
        if (waiting := self._replies.get(name)) is not None:
            result = found.get("result")
            waiting.put(None if "error" in found else result if isinstance(result, dict) else {})
        return None

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """Blocks until the editor has replied. None if it replied with an error, or is gone."""
        waiting: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        with self._lock:
            self._asked += 1
            name = f"holdfast-{self._asked}"
            self._replies[name] = waiting
        self._write({"id": name, "method": method, "params": params})
        try:
            return waiting.get()
        finally:
            del self._replies[name]

    def update(self, session_id: str, update: dict[str, Any]) -> None:
        self._write({"method": "session/update", "params": {"sessionId": session_id, "update": update}})

    def reply(self, name: Id, result: dict[str, Any]) -> None:
        self._write({"id": name, "result": result})

    def refuse(self, name: Id | None, rpc: int, message: str) -> None:
        self._write({"id": name, "error": {"code": rpc, "message": message}})

    def _write(self, message: dict[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with self._lock:
            self._writing.write(line)
            self._writing.flush()
