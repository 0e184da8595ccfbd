"""What the scripted server does, whatever wire it is on. Everything that happens to it is noted in a file, which outlives it.

tool        does
echo        gives back `text`
add         appends `line` to lines.txt
put         the same, unless a call with this key did already
slow        takes `seconds`, reporting progress `times` times
hang        never answers
die         appends `line` and ends, without an answer
big         answers with `size` characters
values      answers with a list of `count` empty lists
flood       tells `times` times that something happened, as fast as it can, then answers
image       answers with a picture, something that only says it is one, and a file
fail        says that it failed
odd         answers something that is no answer
noise       prints `lines` lines that are no messages, then answers
change      is described differently from then on, and tells so
ask         asks the user `question`, `times` times at once, and answers with what it was told first
"""

import base64
import itertools
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LEGACY, MODERN = "2025-11-25", "2026-07-28"
PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 20).decode()
WORD = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
NO_ANSWER = object()

Send = Callable[[dict[str, Any]], None]


def tool(name: str, description: str = "", schema: dict[str, Any] | None = None, **hints: bool) -> dict[str, Any]:
    return {"name": name, "description": description or f"Does {name}.", "inputSchema": schema or {"type": "object"}, "annotations": hints}


TOOLS = [
    tool("echo", schema=WORD, readOnlyHint=True),
    tool("add"),
    tool("put", idempotentHint=True, destructiveHint=False),
    tool("slow", readOnlyHint=True),
    tool("hang"),
    tool("die"),
    tool("die_reading", readOnlyHint=True),
    tool("big", readOnlyHint=True),
    tool("values", readOnlyHint=True),
    tool("flood", readOnlyHint=True),
    tool("image", readOnlyHint=True),
    tool("fail"),
    tool("odd"),
    tool("noise", readOnlyHint=True),
    tool("change", readOnlyHint=True),
    tool("ask"),
]


class Refusal(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Logic:
    """`folder`: where it notes what happens. `modern`: it speaks the protocol without sessions, and nothing else. `busy`: it does one
    thing at a time.
    """

    def __init__(self, folder: Path, *, modern: bool = False, busy: bool = False) -> None:
        self._folder, self.modern, self._busy = folder, modern, busy
        self._writing = threading.Lock()
        self._cancelled: dict[Any, threading.Event] = {}
        self._asked: dict[str, tuple[threading.Event, list[Any]]] = {}
        self._numbers = itertools.count(1)
        self._subscribers: list[tuple[Any, Send]] = []
        self.note("started", pid=os.getpid(), environment=dict(os.environ), folder=os.getcwd())

    def note(self, what: str, **more: Any) -> None:
        line = json.dumps({"what": what, "pid": os.getpid(), **more}) + "\n"
        with self._writing, (self._folder / "notes.jsonl").open("a") as file:
            file.write(line)

    def tools(self) -> list[Any]:
        file = self._folder / "tools.json"
        return list(json.loads(file.read_text())) if file.exists() else TOOLS

    def take(self, message: dict[str, Any], send: Send) -> None:
        """Answers with `send`, at once or later."""
        if "method" not in message:
            self.note("told", refused="error" in message)
            if asked := self._asked.get(str(message.get("id"))):
                asked[1].append(message.get("result"))
                asked[0].set()
        elif "id" not in message:
            self.note(message["method"], params=message.get("params"))
            if message["method"] == "notifications/cancelled":
                self._cancelled.setdefault(message["params"]["requestId"], threading.Event()).set()
        elif message["method"] == "tools/call" and not self._busy:
            threading.Thread(target=self._answer, args=(message, send), daemon=True).start()
        else:
            self._answer(message, send)

    def _answer(self, message: dict[str, Any], send: Send) -> None:
        try:
            result = self._result(message, message.get("params") or {}, send)
        except Refusal as error:
            send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": error.code, "message": str(error)}})
            return
        if result is not NO_ANSWER:
            send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _result(self, message: dict[str, Any], params: dict[str, Any], send: Send) -> Any:
        capabilities = {"tools": {"listChanged": True}}
        match message["method"]:
            case "server/discover" if self.modern:
                return self._complete(supportedVersions=[MODERN], capabilities=capabilities)
            case "initialize" if not self.modern:
                self.note("initialize", capabilities=params.get("capabilities"))
                return {"protocolVersion": LEGACY, "capabilities": capabilities, "serverInfo": {"name": "scripted", "version": "1"}}
            case "ping" if not self.modern:
                self.note("ping")
                return {}
            case "tools/list":
                self.note("tools/list")
                return self._page(params)
            case "subscriptions/listen":
                self._subscribers.append((message["id"], send))
                self.note("subscriptions/listen")
                acked = {"notifications": params["notifications"], "_meta": {SUBSCRIPTION: message["id"]}}
                send({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": acked})
                return NO_ANSWER
            case "tools/call":
                meta = params.get("_meta") or {}
                self.note("call", tool=params["name"], arguments=params.get("arguments"), key=meta.get("holdfast/key"))
                return self._call(message["id"], params, send)
            case other:
                raise Refusal(-32601, f"there is no {other}")

    def _complete(self, **fields: Any) -> dict[str, Any]:
        known = {"name": "scripted", "version": "1"}
        more = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "_meta": {"io.modelcontextprotocol/serverInfo": known}}
        return {**fields, **(more if self.modern else {})}

    def _page(self, params: dict[str, Any]) -> dict[str, Any]:
        """Half of the tools at a time; without an end where the file `endless` is there."""
        tools, cursor = self.tools(), int(params.get("cursor") or 0)
        if (self._folder / "endless").exists():
            return self._complete(tools=[tool(f"tool_{cursor}")], nextCursor=str(cursor + 1))
        half = (len(tools) + 1) // 2
        return self._complete(tools=tools[:half], nextCursor="1") if cursor == 0 and len(tools) > 1 else self._complete(tools=tools[half:])

    def _call(self, request_id: Any, params: dict[str, Any], send: Send) -> Any:
        given, name = params.get("arguments") or {}, params["name"]
        cancelled = self._cancelled.setdefault(request_id, threading.Event())
        match name:
            case "add" | "die" | "die_reading":
                self._append(given.get("line", "."))
                if name != "add" and (name == "die" or len(self.lines()) == 1):
                    os._exit(3)
                return self._said(f"added {given.get('line')}")
            case "put":
                done = self._folder / f"done-{(params.get('_meta') or {}).get('holdfast/key')}"
                if not done.exists():
                    self._append(given["line"])
                    done.touch()
                time.sleep(given.get("seconds", 0.0))
                return self._said(f"put {given['line']}")
            case "slow":
                return self._slow(given, (params.get("_meta") or {}).get("progressToken"), cancelled, send)
            case "hang":
                cancelled.wait()
                return NO_ANSWER
            case "big":
                return self._said("x" * given["size"])
            case "values":
                return self._complete(content=[], structuredContent={"values": [[]] * given["count"]})
            case "flood":
                told = {"level": "info", "data": "x"}
                for _ in range(given["times"]):
                    send({"jsonrpc": "2.0", "method": "notifications/message", "params": told})
                return self._said("that was all")
            case "image":
                return self._image()
            case "fail":
                return {**self._said("it went wrong"), "isError": True}
            case "odd":
                return {"content": 7, **({"resultType": "complete"} if self.modern else {})}
            case "noise":
                self.print_noise(given["lines"])
                return self._said("that was noise")
            case "change":
                changed = [tool(each["name"], f"{each['description']} Or else.", each["inputSchema"]) for each in self.tools()]
                (self._folder / "tools.json").write_text(json.dumps(changed))
                self._tell_of_change(send)
                return self._said("changed")
            case "ask":
                return self._ask(given, params, send)
            case "echo":
                return self._said(given["text"])
        raise Refusal(-32602, f"there is no tool {name}")

    def print_noise(self, lines: int) -> None:
        """As a wire may have it."""

    def _said(self, text: str) -> dict[str, Any]:
        return self._complete(content=[{"type": "text", "text": text}])

    def _append(self, line: str) -> None:
        with self._writing, (self._folder / "lines.txt").open("a") as file:
            file.write(f"{line}\n")

    def lines(self) -> list[str]:
        return (self._folder / "lines.txt").read_text().splitlines()

    def _slow(self, given: dict[str, Any], token: Any, cancelled: threading.Event, send: Send) -> Any:
        times = given.get("times", 0)
        for number in range(times):
            told = {"progressToken": token, "progress": number + 1, "total": times, "message": f"part {number + 1}"}
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": told})
            time.sleep(given["seconds"] / times)
        if not times:
            cancelled.wait(given["seconds"])
        return NO_ANSWER if cancelled.is_set() else self._said("at last")

    def _image(self) -> dict[str, Any]:
        file = {"uri": "file:///tmp/notes.bin", "mimeType": "application/octet-stream", "blob": base64.b64encode(b"bytes").decode()}
        return self._complete(
            content=[
                {"type": "text", "text": "a picture"},
                {"type": "image", "data": PICTURE, "mimeType": "image/png"},
                {"type": "image", "data": base64.b64encode(b"no picture").decode(), "mimeType": "image/png"},
                {"type": "resource", "resource": file},
                {"type": "resource_link", "name": "a link", "uri": "file:///tmp/elsewhere"},
            ]
        )

    def _tell_of_change(self, send: Send) -> None:
        changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        if not self.modern:
            send(changed)
        for request_id, subscriber in self._subscribers:
            subscriber({**changed, "params": {"_meta": {SUBSCRIPTION: request_id}}})

    def _ask(self, given: dict[str, Any], params: dict[str, Any], send: Send) -> Any:
        """The user's answer as text. With the newer protocol, the question is the answer, and the state says which one it was."""
        wanted = given.get("schema") or {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        asked = {"mode": "form", "message": given["question"], "requestedSchema": wanted}
        if not self.modern:
            event, answers = threading.Event(), list[Any]()
            for _ in range(given.get("times", 1)):
                number = f"ask-{next(self._numbers)}"
                self._asked[number] = event, answers
                send({"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": asked})
            event.wait()
            while len(answers) < given.get("times", 1):
                time.sleep(0.01)
            return self._said(json.dumps([each for each in answers if each is not None], sort_keys=True))
        answers_by_key = params.get("inputResponses")
        if not answers_by_key:
            requests = {"first": {"method": "elicitation/create", "params": asked}}
            return {"resultType": "input_required", "inputRequests": requests, "requestState": f"state of {given['question']}"}
        self.note("answered", state=params.get("requestState"))
        return self._said(json.dumps(answers_by_key["first"], sort_keys=True))
