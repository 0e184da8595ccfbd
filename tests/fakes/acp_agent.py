"""An agent that speaks the Agent Client Protocol, as a process of its own: `python -m tests.fakes.acp_agent FOLDER [OPTION...]`.

Standard library only, and what it does is written in its prompt, step by step, parted by `|`:

    say TEXT        a piece of its answer                       think TEXT      a piece of a thought
    count N S       the numbers up to N, each after S seconds   tool NAME       a call: begins, puts out, ends
    permit NAME     asks for a permission, and tells the choice sleep S         seconds without a word
    die             ends itself                                 fail            an error as the reply
    stop REASON     ends with that reason                       wants METHOD    a request that nobody serves
    remember        says what its session knows                 junk            something that is no message

In FOLDER it notes each of its lives (`lives`), each prompt (`prompts`), each deed of a tool (`deeds`), and keeps its sessions. Options:
`load`, `resume`: it can; `forgetful`: it says that it can, and cannot; `once`: it offers no permission for good; `locked`: nobody is signed
in; `deaf`: it does not hear a cancellation; `image`: it takes images.
"""

import base64
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

OFFERED = (("once", "Allow once", "allow_once"), ("always", "Always allow", "allow_always"), ("no", "Reject", "reject_once"))


class Agent:
    def __init__(self, folder: Path, options: frozenset[str]) -> None:
        self.folder, self.options = folder, options
        self.session: str | None = None
        self.known: list[str] = []
        self.cancelled = threading.Event()
        self._answers: dict[int, Any] = {}
        self._answered = threading.Condition()
        self._asked = 0
        self._writing = threading.Lock()

    def note(self, file: str, text: str) -> None:
        with (self.folder / file).open("a") as notes:
            notes.write(text + "\n")

    def write(self, message: dict[str, Any]) -> None:
        with self._writing:
            sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            sys.stdout.buffer.flush()

    def serve(self) -> None:
        self.note("lives", str(os.getpid()))
        print("the scripted agent is up", file=sys.stderr, flush=True)
        for line in sys.stdin.buffer:
            if not line.strip():
                continue
            try:
                message = json.loads(line)
            except ValueError:
                self.note("garbage", line.decode(errors="replace").strip())
                continue
            if "method" not in message:
                with self._answered:
                    self._answers[message["id"]] = message.get("result") or message.get("error")
                    self._answered.notify_all()
            elif message["method"] == "session/prompt":
                threading.Thread(target=self.prompt, args=(message["id"], message["params"]), daemon=True).start()
            else:
                self.hear(message)

    def hear(self, message: dict[str, Any]) -> None:
        method, name, given = message["method"], message.get("id"), message.get("params") or {}
        if method == "initialize":
            sessions: dict[str, Any] = {"resume": {}} if "resume" in self.options else {}
            prompts = {"image": "image" in self.options}
            can = {"loadSession": "load" in self.options, "promptCapabilities": prompts, "sessionCapabilities": sessions}
            ways = [{"id": "login", "name": "Sign in", "description": "Run `scripted login`"}] if "locked" in self.options else []
            info = {"name": "scripted", "title": "Scripted", "version": "1"}
            self.write({"id": name, "result": {"protocolVersion": 1, "agentCapabilities": can, "authMethods": ways, "agentInfo": info}})
        elif method == "session/new":
            if "locked" in self.options:
                self.write({"id": name, "error": {"code": -32000, "message": "Authentication required"}})
                return
            self.session, self.known = f"their-{os.getpid()}-{time.monotonic_ns()}", []
            self.write({"id": name, "result": {"sessionId": self.session}})
        elif method in ("session/load", "session/resume"):
            kept = self.folder / f"{given['sessionId']}.json"
            if "forgetful" in self.options or not kept.exists():
                self.write({"id": name, "error": {"code": -32002, "message": "Resource not found"}})
                return
            self.session, self.known = given["sessionId"], json.loads(kept.read_text())
            self.note("lives", method)
            if method == "session/load":
                for told in self.known:
                    self.update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": f"(again: {told})"}})
            self.write({"id": name, "result": {}})
        elif method == "session/cancel":
            if "deaf" not in self.options:
                self.cancelled.set()
        elif name is not None:
            self.write({"id": name, "error": {"code": -32601, "message": "Method not found"}})

    def update(self, update: dict[str, Any]) -> None:
        self.write({"method": "session/update", "params": {"sessionId": self.session, "update": update}})

    def prompt(self, name: str, given: dict[str, Any]) -> None:
        self.cancelled.clear()
        words = [block["text"] for block in given["prompt"] if block["type"] == "text"]
        others = [f"{block['type']} {len(base64.b64decode(block['data']))}" for block in given["prompt"] if block["type"] != "text"]
        self.note("prompts", json.dumps([*words, *others]))
        reason = "end_turn"
        for number, step in enumerate(words[-1].split("|"), 1):
            if self.cancelled.is_set():
                break
            word, _, rest = step.strip().partition(" ")
            if word == "fail":
                self.write({"id": name, "error": {"code": -32603, "message": "as it was told"}})
                return
            reason = self.do(word, rest, number) or reason
        self.known.append(words[-1])
        (self.folder / f"{self.session}.json").write_text(json.dumps(self.known))
        self.write({"id": name, "result": {"stopReason": "cancelled" if self.cancelled.is_set() else reason}})

    def say(self, text: str, kind: str = "agent_message_chunk") -> None:
        self.update({"sessionUpdate": kind, "content": {"type": "text", "text": text}})

    def do(self, word: str, rest: str, number: int) -> str | None:
        match word:
            case "say":
                self.say(rest)
            case "think":
                self.say(rest, "agent_thought_chunk")
            case "count":
                last, _, pause = rest.partition(" ")
                for count in range(1, int(last) + 1):
                    if self.cancelled.wait(float(pause or 0)):
                        return None
                    self.say(f"{count} ")
            case "tool":
                self.tool(rest, f"call-{number}")
            case "permit":
                self.permit(rest, f"call-{number}")
            case "sleep":
                self.cancelled.wait(float(rest))
            case "die":
                os._exit(int(rest or 3))
            case "stop":
                return rest
            case "wants":
                self.say(f"refused: {self.ask(rest, {})['code']}")
            case "remember":
                self.say(f"knows {self.known}")
            case "junk":
                with self._writing:
                    sys.stdout.buffer.write(b"Warning: this is no message\n[1]\n\xff\n")
                    sys.stdout.buffer.flush()
            case _:
                self.say(f"heard {word} {rest}".strip())
        return None

    def tool(self, name: str, call: str) -> None:
        self.update(
            {"sessionUpdate": "tool_call", "toolCallId": call, "title": name, "kind": "execute", "status": "pending", "rawInput": {}}
        )
        begun = {"status": "in_progress", "rawInput": {"command": name}}
        self.update({"sessionUpdate": "tool_call_update", "toolCallId": call, **begun})
        self.note("deeds", name)
        content = [{"type": "content", "content": {"type": "text", "text": f"{name} was done"}}]
        self.cancelled.wait(0.02)
        self.update({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "in_progress", "content": content})
        self.update({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "completed", "content": content})

    def permit(self, name: str, call: str) -> None:
        shown = {"toolCallId": call, "title": name, "kind": "execute", "status": "pending", "rawInput": {"command": name}}
        self.update({"sessionUpdate": "tool_call", **shown})
        offered = [OFFERED[0], OFFERED[2]] if "once" in self.options else OFFERED
        options = [{"optionId": option, "name": label, "kind": kind} for option, label, kind in offered]
        answer = self.ask("session/request_permission", {"sessionId": self.session, "toolCall": shown, "options": options})
        outcome = answer["outcome"]
        self.note("permissions", f"{name} {outcome.get('optionId', outcome['outcome'])}")
        if outcome.get("optionId") in ("once", "always"):
            self.tool(name, call)
        else:
            self.update({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "failed"})
        self.say(f"{name}: {outcome.get('optionId', outcome['outcome'])}. ")

    def ask(self, method: str, given: dict[str, Any]) -> Any:
        with self._answered:
            self._asked += 1
            name = self._asked
        self.write({"id": name, "method": method, "params": given})
        with self._answered:
            self._answered.wait_for(lambda: name in self._answers)
            return self._answers[name]


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    Agent(Path(sys.argv[1]), frozenset(sys.argv[2:])).serve()
