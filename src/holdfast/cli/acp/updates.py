"""What an editor is shown: the events of one turn, and a conversation that is replayed, as updates of the Agent Client Protocol. Pure."""

from collections.abc import Iterator
from typing import Any

from holdfast.cli.messages.following import STARTS_OVER, Following, Note, Piece, Text
from holdfast.cli.terminal.layout import given, one_line
from holdfast.core.effects import SHOWN_OUTPUT
from holdfast.core.plans.ask import asks

Update = dict[str, Any]

# The protocol's kinds of tools. The calls that another ACP agent reports are named by their kind already.
KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
KIND_OF = {
    "terminal": "execute",
    "processes": "execute",
    "read_file": "read",
    "list_files": "read",
    "search_files": "search",
    "write_file": "edit",
    "edit_file": "edit",
    "fetch_url": "fetch",
}
UNKNOWN = "Whether this call did its work is not known."
MOST_TITLE = 200


class Updates:
    """Of the turn that `following` follows."""

    def __init__(self, following: Following) -> None:
        self.following = following
        self._outputs: dict[str, str] = {}  # What each call that was shown has printed.
        self._ended: set[str] = set()
        self._messages = 0

    def apply(self, event: str, data: dict[str, Any]) -> list[Update]:
        pieces = self.following.apply(event, data)
        if event == "snapshot":
            return [*self._see_calls(data), *self._said(pieces)]
        mine = self.following.turn_id is not None and data.get("turn_id") == self.following.turn_id
        match event:
            case "tool.started" | "tool.output" | "tool.finished":
                return self._call(event, data) if mine else []
            case "reasoning":
                return [_chunk("agent_thought_chunk", data["text"])] if mine else []
            case _:
                return self._said(pieces)

    def see(self, view: dict[str, Any]) -> None:
        """The turn as it was just replayed: only what follows is shown."""
        self.following.see(view)
        for call in _calls(view, self.following.turn_id):
            self._outputs[call["call_id"]] = call["output"]
            if call["outcome"] is not None:
                self._ended.add(call["call_id"])

    def pending(self, question: dict[str, Any]) -> list[Update]:
        """The call that an approval is about, as far as it is not shown yet."""
        name, call = question["call_id"], question["call"]
        if name in self._outputs or call is None:
            return []
        self._outputs[name] = ""
        return [_started(name, call["name"], call["arguments"], new=True) | {"status": "pending"}]

    def _said(self, pieces: list[Piece]) -> list[Update]:
        shown = []
        for piece in pieces:
            if isinstance(piece, Text):
                shown.append(_chunk("agent_message_chunk", piece.text, f"{self.following.message_id}.{self._messages}"))
            elif isinstance(piece, Note):
                self._messages += piece.text == STARTS_OVER  # What follows is another message.
                shown.append(note(piece.text))
        return shown

    def _call(self, event: str, data: dict[str, Any]) -> list[Update]:
        name = data["call_id"]
        if event == "tool.started":
            if asks(data["name"]):  # A question is shown as text.
                return []
            new = name not in self._outputs
            self._outputs.setdefault(name, "")
            return [_started(name, data["name"], data["arguments"], new=new)]
        if name not in self._outputs or name in self._ended:
            return []
        if event == "tool.output":
            self._outputs[name] = (self._outputs[name] + data["text"])[-SHOWN_OUTPUT:]
            return [_changed(name, "in_progress", self._outputs[name])]
        self._ended.add(name)
        return [_ended(name, data["outcome"], data["result"] or self._outputs[name])]

    def _see_calls(self, view: dict[str, Any]) -> list[Update]:
        """Where the stream could not continue, what became of calls since."""
        if self.following.turn_id is None:
            return []
        shown: list[Update] = []
        for call in _calls(view, self.following.turn_id):
            name = call["call_id"]
            if asks(call["name"]) or name in self._ended:
                continue
            if name not in self._outputs:
                shown.append(_started(name, call["name"], call["arguments"], new=True))
            self._outputs[name] = call["output"]
            if call["outcome"] is not None:
                self._ended.add(name)
                shown.append(_ended(name, call["outcome"], call["result"] or call["output"]))
        return shown


def replay(view: dict[str, Any]) -> Iterator[Update]:
    """A whole conversation, in its order. What was thought comes before the answer."""
    thoughts = {turn["id"]: [each["text"] for each in turn.get("thoughts", ())] for turn in view["turns"]}
    for message in view["messages"]:
        if message.get("status") == "superseded":
            continue
        if message["role"] == "user":
            yield _chunk("user_message_chunk", _words(message), message["id"])
        elif message["role"] == "assistant":
            yield from (_chunk("agent_thought_chunk", f"{text}\n\n") for text in thoughts.pop(message["turn_id"], ()))
            yield from _answer(message)
        elif message["text"].strip():
            yield note(message["text"])


def _answer(message: dict[str, Any]) -> Iterator[Update]:
    calls = {call["call_id"]: call for call in message.get("tool_calls", ())}
    step = None  # Of the text that came last.
    for part in message["parts"]:
        call = calls.get(part.get("call_id"))
        if part["type"] == "text" and part["text"]:
            gap = "\n\n" if step not in (None, part["step"]) else ""
            yield _chunk("agent_message_chunk", gap + part["text"], message["id"])
            step = part["step"]
        elif call is not None and not asks(call["name"]):
            yield _started(call["call_id"], call["name"], call["arguments"], new=True)
            if call["outcome"] is not None:
                yield _ended(call["call_id"], call["outcome"], call["result"] or call["output"])
            elif call["output"]:
                yield _changed(call["call_id"], "in_progress", call["output"])


def _words(message: dict[str, Any]) -> str:
    attached = [f"[attached: {part['name'] or part['type']}]" for part in message["parts"] if "digest" in part]
    return "\n".join([*filter(None, [message["text"]]), *attached])


def _calls(view: dict[str, Any], turn_id: str | None) -> Iterator[dict[str, Any]]:
    for message in view["messages"]:
        if message["turn_id"] == turn_id:
            yield from message.get("tool_calls", ())


def note(text: str) -> Update:
    """A sentence of ours. The protocol has no place for those, and the answer's own text must stay whole."""
    return _chunk("agent_thought_chunk", f"{text}\n\n")


def _chunk(kind: str, text: str, message: str | None = None) -> Update:
    named = {} if message is None else {"messageId": message}
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}, **named}


def _started(name: str, tool: str, arguments: dict[str, Any], *, new: bool) -> Update:
    title = f"{tool}: {one_line(given(arguments))}" if arguments else tool
    return {
        "sessionUpdate": "tool_call" if new else "tool_call_update",
        "toolCallId": name,
        "title": title if len(title) <= MOST_TITLE else title[: MOST_TITLE - 1] + "…",
        "kind": tool if tool in KINDS else KIND_OF.get(tool, "other"),
        "status": "in_progress",
        "rawInput": arguments,
    }


def _ended(name: str, outcome: str, text: str) -> Update:
    told = text if outcome != "unknown" else f"{text}\n\n{UNKNOWN}".strip()
    return _changed(name, "completed" if outcome == "done" else "failed", told)


def _changed(name: str, status: str, text: str) -> Update:
    content = [{"type": "content", "content": {"type": "text", "text": text}}] if text else []
    return {"sessionUpdate": "tool_call_update", "toolCallId": name, "status": status, "content": content}
