"""Anthropic's messages. A block is a content block, signed thoughts included; those must go back exactly as they came."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.agents.wires.history import Told, call_id, content_of, told, usable_ids, usable_name
from holdfast.agents.wires.parts import MB, Given, given
from holdfast.agents.wires.reading import Refusal, Said, count, proposed, settled
from holdfast.core.content import Content
from holdfast.core.effects import ToolOutcome
from holdfast.core.events import ProposedCall, Usage
from holdfast.core.history import User
from holdfast.ports.agents import Response
from holdfast.ports.models import CallPiece, ModelRequest, Piece, Taking, ThoughtPiece

WIRE = "anthropic"
VERSION = "2023-06-01"
# The wire wants a limit in every request.
MAX_TOKENS = 16384
# An image may have 5 MB in base64.
IMAGE_LIMIT = 5 * MB * 3 // 4
THOUGHTS = frozenset({"thinking", "redacted_thinking"})
CACHED = {"cache_control": {"type": "ephemeral"}}
BEGINNING = "[The conversation continues.]"
FINISH = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filtered",
    "pause_turn": "paused",
}
# Deltas by the field of the block that they continue.
DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature", "input_json_delta": "partial_json"}


class Anthropic:
    name = WIRE
    path = "/v1/messages"
    listing = "/v1/models?limit=1000"

    def __init__(self, takes: frozenset[str] = frozenset()) -> None:
        self.takes = Taking(kinds=takes - {"audio"}, image_limit=IMAGE_LIMIT)

    def headers(self, key: str | None) -> Mapping[str, str]:
        return {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})

    def objected(self, words: str) -> None:
        """To thoughts of this request; the next may have others."""

    def reader(self, refused: Refusal) -> "AnthropicReader":
        return AnthropicReader(refused)

    async def body(self, request: ModelRequest, provider: str, model: str) -> dict[str, Any]:
        settings = request.settings
        body: dict[str, Any] = {"model": model, "max_tokens": settings.max_tokens or MAX_TOKENS, "stream": True}
        if request.system:
            body["system"] = [{"type": "text", "text": request.system} | CACHED]
        if request.tools:
            tools = [{"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in request.tools]
            body["tools"] = [*tools[:-1], tools[-1] | CACHED]
        body["messages"] = await self._messages(request, provider)
        # No temperature: the API has none any more, and newer models refuse it. For an older one it can be given in `extra`.
        if settings.effort is not None:
            body |= {"output_config": {"effort": settings.effort}, "thinking": {"type": "adaptive", "display": "summarized"}}
        body |= settings.extra
        if not request.thoughts:  # A model that thinks wants its last thoughts back, so that it cannot think now.
            body.pop("thinking", None)
        return body

    async def _messages(self, request: ModelRequest, provider: str) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = []
        for item in told(request.history):
            if isinstance(item, User):
                _add(messages, "user", await self._parts(item.content, request))
            else:
                said, results = await self._step(item, request, provider)
                _add(messages, "assistant", said)
                _add(messages, "user", results)
        if not messages or messages[0]["role"] != "user":
            messages.insert(0, {"role": "user", "content": [{"type": "text", "text": BEGINNING}]})
        # The end of what stays: the next request begins with the same. What a model wrote is not touched.
        last = next(message["content"] for message in reversed(messages) if message["role"] == "user")
        last[-1] = last[-1] | CACHED
        if request.note:
            _add(messages, "user", [{"type": "text", "text": request.note}])
        return messages

    async def _step(self, item: Told, request: ModelRequest, provider: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The blocks of the step and those of its results."""
        step, response = item.step, item.step.response
        if response is not None and (response.wire, response.provider) == (WIRE, provider):
            blocks = [block for block in response.blocks if block["type"] not in THOUGHTS or request.thoughts]
            blocks = [block for block in blocks if block.get("text") != ""]  # Sent by the provider, refused by the provider.
        else:
            blocks = [{"type": "text", "text": step.text}] if step.text.strip() else []
            blocks += [{"type": "tool_use", "id": call_id(call.call_id), "name": call.name, "input": call.arguments} for call in step.calls]
        ids = usable_ids([block.get("id") for block in blocks if block["type"] == "tool_use"], step.calls)
        named = iter(ids)
        blocks = [_named(block, next(named)) if block["type"] == "tool_use" else block for block in blocks]
        results: list[dict[str, Any]] = []
        for known, result in zip(ids, item.results, strict=True):
            content = await self._parts(content_of(result), request) or [{"type": "text", "text": "(no output)"}]
            failed = {} if result.outcome is ToolOutcome.DONE else {"is_error": True}
            results.append({"type": "tool_result", "tool_use_id": known, "content": content} | failed)
        return blocks, results

    async def _parts(self, content: Content, request: ModelRequest) -> list[dict[str, Any]]:
        return [_part(part) for part in await given(content, self.takes, request.read) if part]


def _add(messages: list[dict[str, Any]], role: str, blocks: list[dict[str, Any]]) -> None:
    """Those of the same role stand in one message: results of calls must come first in the message behind them."""
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] += blocks
    elif blocks:
        messages.append({"role": role, "content": blocks})


def _named(block: dict[str, Any], known: str) -> dict[str, Any]:
    return block | {"id": known, "name": usable_name(block["name"])}


def _part(part: str | Given) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    source = {"type": "base64", "media_type": part.media_type, "data": part.base64}
    return {"type": "image", "source": source} if part.kind == "image" else {"type": "document", "source": source, "title": part.name}


class AnthropicReader:
    def __init__(self, refused: Refusal) -> None:
        self.finished = False
        self.last = False
        self._refused = refused
        self._said = Said()
        self._blocks: dict[int, dict[str, Any]] = {}
        self._written: dict[int, dict[str, list[str]]] = {}
        self._stop: str | None = None
        self._usage: dict[str, Any] = {}
        self._id: str | None = None

    def feed(self, event: dict[str, Any]) -> Sequence[Piece]:
        match event.get("type"):
            case "content_block_delta":
                return self._delta(event["index"], event["delta"])
            case "content_block_start":
                return self._begin(event["index"], event["content_block"])
            case "message_start":
                self._id = event["message"].get("id")
                self._usage |= event["message"].get("usage") or {}
            case "message_delta":
                self._stop = event["delta"].get("stop_reason") or self._stop
                self._usage |= {name: value for name, value in (event.get("usage") or {}).items() if value is not None}
            case "message_stop":
                self.finished, self.last = self._stop is not None, True
            case "error":
                raise self._refused(event)
        return ()

    def _begin(self, index: int, block: dict[str, Any]) -> Sequence[Piece]:
        self._blocks[index], self._written[index] = block, {}
        if block["type"] == "text":
            return self._said.add(block.get("text", ""))
        self._said.part()
        return (CallPiece(block["name"]),) if block["type"] == "tool_use" else ()

    def _delta(self, index: int, delta: dict[str, Any]) -> Sequence[Piece]:
        kind = delta["type"]
        if kind == "citations_delta":
            block = self._blocks[index]
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        if kind not in DELTAS:
            return ()
        field = DELTAS[kind]
        piece = delta[field]
        if field == "signature":  # Comes whole.
            self._blocks[index]["signature"] = piece
            return ()
        self._written[index].setdefault(field, []).append(piece)
        if kind == "text_delta":
            return self._said.add(piece)
        return (ThoughtPiece(piece),) if kind == "thinking_delta" and piece else ()

    def read(self) -> Response:
        blocks: list[dict[str, Any]] = []
        calls: list[ProposedCall] = []
        for index, block in sorted(self._blocks.items()):
            written = {field: "".join(pieces) for field, pieces in self._written[index].items()}
            whole = block | {field: block.get(field, "") + text for field, text in written.items() if field != "partial_json"}
            if block["type"] == "tool_use":
                call = _call(block, written.get("partial_json"))
                whole["input"] = call.arguments
                calls.append(call)
            elif "partial_json" in written:
                whole["input"] = proposed(block["type"], written["partial_json"]).arguments
            blocks.append(whole)
        settled_calls, finish = settled(calls, FINISH.get(self._stop or "", "end"))
        return Response(
            text=self._said.read(),
            calls=settled_calls,
            blocks=tuple(blocks),
            finish=finish,
            usage=_usage_of(self._usage),
            response_id=self._id,
        )


def _call(block: dict[str, Any], written: str | None) -> ProposedCall:
    given = block.get("input")
    if not written and isinstance(given, dict):
        return ProposedCall(name=block["name"], arguments=given)
    return proposed(block["name"], written or "")


def _usage_of(told: Mapping[str, Any]) -> Usage:
    cached, stored = count(told, "cache_read_input_tokens"), count(told, "cache_creation_input_tokens")
    return Usage(
        input=count(told, "input_tokens") + cached + stored,  # Told as three numbers that do not overlap.
        output=count(told, "output_tokens"),
        cached=cached,
        stored=stored,
        thought=count(told, "output_tokens_details", "thinking_tokens"),
    )
