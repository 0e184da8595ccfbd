"""The reader of chat completions. Compatible servers number, name and spell things in their own ways; all of them are read."""

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.agents.wires.reading import Refusal, Said, count, proposed, settled
from holdfast.core.events import Usage
from holdfast.ports.agents import Response
from holdfast.ports.models import CallPiece, Cut, Piece, ThoughtPiece

# Where a message holds thoughts, by provider.
THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details")
FINISH = {
    "stop": "end",
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "filtered",
}
# Reasons that say that the answer is not whole.
BROKEN = frozenset({"error", "insufficient_system_resource", "abort"})


class _Call:
    """A call that is being written. `kept`: what the server sent of it besides, which it wants back."""

    def __init__(self, index: object) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.kept: dict[str, Any] = {}

    def block(self) -> dict[str, Any]:
        named = {"id": self.id} if self.id else {}
        return named | {"type": "function", "function": {"name": self.name, "arguments": "".join(self.arguments)}} | self.kept


class ChatReader:
    def __init__(self, refused: Refusal) -> None:
        self.finished = False
        self.last = False
        self._refused = refused
        self._said = Said()
        self._thoughts: dict[str, list[str]] = {}
        self._details: list[dict[str, Any]] = []
        self._refusal: list[str] = []
        self._calls: list[_Call] = []
        self._parts: list[dict[str, Any]] = []
        self._kept: dict[str, Any] = {}
        self._finish = ""
        self._usage: object = None
        self._id: str | None = None

    def feed(self, event: dict[str, Any]) -> Sequence[Piece]:
        if event.get("type") == "[DONE]":
            self.last = True
            return ()
        if event.get("error"):
            raise self._refused(event)
        self._id = event.get("id") or self._id
        usage = event.get("usage") or _usage_of_groq(event)
        if usage:
            self._usage = usage
        pieces: list[Piece] = []
        for choice in event.get("choices") or ():
            if choice.get("index"):
                continue
            if delta := choice.get("delta"):
                pieces += self._delta(delta)
            if reason := choice.get("finish_reason"):
                if reason in BROKEN:
                    raise Cut(f"The provider ended its stream because of an error ({reason}).")
                self._finish, self.finished = FINISH.get(reason, "end"), True
        return pieces

    def _delta(self, delta: dict[str, Any]) -> list[Piece]:
        pieces: list[Piece] = []
        for name in THOUGHTS[:2]:
            if thought := delta.get(name):
                self._thoughts.setdefault(name, []).append(thought)
                if not pieces:  # Some say the same under both names.
                    pieces.append(ThoughtPiece(thought))
        for detail in delta.get("reasoning_details") or ():
            self._detail(detail)
        content = delta.get("content")
        if content:
            in_parts = self._parts or not isinstance(content, str)
            pieces += self._content_parts(content) if in_parts else self._said.add(content)
        if refusal := delta.get("refusal"):
            self._refusal.append(refusal)
            pieces += self._said.add(refusal)
        for written in delta.get("tool_calls") or ():
            pieces += self._call(written)
        if extra := delta.get("extra_content"):
            self._kept["extra_content"] = extra
        return pieces

    def _content_parts(self, content: str | list[dict[str, Any]]) -> list[Piece]:
        """Mistral sends the content of models that think as parts, and takes it back so."""
        pieces: list[Piece] = []
        if not self._parts and (text := self._said.read()):
            self._parts.append({"type": "text", "text": text})
        parts: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in parts:
            thinks = part.get("type") == "thinking"
            text = "".join(each.get("text", "") for each in part["thinking"]) if thinks else part.get("text", "")
            made = _thinking(text) if thinks else {"type": "text", "text": text}
            if self._parts and self._parts[-1]["type"] == made["type"]:
                before = self._parts.pop()
                made = _thinking(before["thinking"][0]["text"] + text) if thinks else {"type": "text", "text": before["text"] + text}
            self._parts.append(made)
            pieces += [ThoughtPiece(text)] if thinks else self._said.add(text)
        return pieces

    def _detail(self, detail: dict[str, Any]) -> None:
        """OpenRouter's thoughts come in pieces with an index, and go back as a list of whole ones."""
        known = next((each for each in self._details if _same_detail(each, detail)), None)
        if known is None:
            self._details.append(dict(detail))
            return
        for name, value in detail.items():
            if name in ("text", "summary", "data") and isinstance(known.get(name), str) and isinstance(value, str):
                known[name] += value
            elif value is not None:
                known[name] = value

    def _call(self, written: dict[str, Any]) -> tuple[CallPiece, ...]:
        function = written.get("function") or {}
        name, known_id, arguments = function.get("name") or "", written.get("id") or "", function.get("arguments")
        index = written.get("index")
        call = next((each for each in reversed(self._calls) if each.index == index), None)
        if call is None and index is None and self._calls:
            call = self._calls[-1]
        begins = call is None or _begins(call, name, known_id)
        if call is None or begins:
            call = _Call(index)
            self._calls.append(call)
        call.id, call.name = call.id or known_id, call.name or name
        if arguments:
            call.arguments.append(arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode())
        call.kept |= {key: value for key, value in written.items() if key not in ("index", "id", "type", "function") and value is not None}
        return (CallPiece(call.name),) if begins and call.name else ()

    def read(self) -> Response:
        text = self._said.read()
        blocks = [call.block() for call in self._calls]
        refused = "".join(self._refusal)
        message: dict[str, Any] = {"role": "assistant", "content": self._parts or (text if text and not refused else None)}
        message |= {"refusal": refused} if refused else {}
        message |= {"tool_calls": blocks} if blocks else {}
        message |= {name: "".join(pieces) for name, pieces in self._thoughts.items()}
        message |= {"reasoning_details": self._details} if self._details else {}
        calls, finish = settled(
            [proposed(block["function"]["name"], block["function"]["arguments"]) for block in blocks],
            "filtered" if refused else self._finish,
        )
        return Response(
            text=text, calls=calls, blocks=(message | self._kept,), finish=finish, usage=_usage_of(self._usage), response_id=self._id
        )


def _usage_of(told: object) -> Usage:
    return Usage(
        input=count(told, "prompt_tokens"),
        output=count(told, "completion_tokens"),
        cached=count(told, "prompt_tokens_details", "cached_tokens") or count(told, "prompt_cache_hit_tokens"),
        stored=count(told, "prompt_tokens_details", "cache_write_tokens"),
        thought=count(told, "completion_tokens_details", "reasoning_tokens"),
    )


def _usage_of_groq(event: dict[str, Any]) -> object:
    own = event.get("x_groq")
    return own.get("usage") if isinstance(own, dict) else None


def _thinking(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


def _same_detail(known: dict[str, Any], detail: dict[str, Any]) -> bool:
    return (known.get("index"), known.get("type")) == (detail.get("index"), detail.get("type")) and detail.get("index") is not None


def _begins(call: _Call, name: str, known_id: str) -> bool:
    """Whether a piece at the place of `call` begins another: some servers number all calls 0, some repeat name and id in every piece."""
    if known_id and call.id and known_id != call.id:
        return True
    if not name or not call.name:
        return False
    return name != call.name or (bool(call.arguments) and proposed(name, "".join(call.arguments)).problem is None)
