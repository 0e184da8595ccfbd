"""OpenAI's Responses. A block is an output item; nothing is stored there, so that thoughts come and go back encrypted."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from holdfast.agents.wires.history import Told, call_id, content_of, told, usable_ids, usable_name
from holdfast.agents.wires.parts import Given, given
from holdfast.agents.wires.reading import Refusal, Said, count, proposed, settled
from holdfast.core.content import Content
from holdfast.core.events import Usage
from holdfast.core.history import User
from holdfast.ports.agents import Response
from holdfast.ports.models import CallPiece, ModelRequest, Piece, Taking, TextPiece, ThoughtPiece

WIRE = "responses"
# Names of models that never think, and refuse to be asked for thoughts.
THOUGHTLESS = ("gpt-3", "gpt-4", "chatgpt-")
# Words about a model or an account, not about one request: thoughts are not asked for again.
NEVER = ("not supported with this model", "organization must be verified")
CUT_BY = {"max_output_tokens": "length", "max_tokens": "length", "content_filter": "filtered"}


class Responses:
    name = WIRE
    path = "/responses"
    listing = "/models"

    def __init__(self, takes: frozenset[str] = frozenset()) -> None:
        self.takes = Taking(kinds=takes - {"audio"})
        self._never = False

    def headers(self, key: str | None) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def objected(self, words: str) -> None:
        self._never = self._never or any(phrase in words.lower() for phrase in NEVER)

    def reader(self, refused: Refusal) -> "ResponsesReader":
        return ResponsesReader(refused)

    async def body(self, request: ModelRequest, provider: str, model: str) -> dict[str, Any]:
        body: dict[str, Any] = {"model": model, "input": await self._input(request, provider), "stream": True, "store": False}
        if request.system:
            body["instructions"] = request.system
        if request.tools:
            body["tools"] = [
                {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.schema, "strict": False}
                for tool in request.tools
            ]
        settings = request.settings
        reasoning = {"effort": settings.effort} if settings.effort is not None else {}
        if request.thoughts and not self._never and not model.startswith(THOUGHTLESS) and "-chat" not in model:
            body["include"] = ["reasoning.encrypted_content"]
            reasoning["summary"] = "auto"
        named = {"max_output_tokens": settings.max_tokens, "temperature": settings.temperature, "reasoning": reasoning or None}
        return body | {name: value for name, value in named.items() if value is not None} | settings.extra

    async def _input(self, request: ModelRequest, provider: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        for item in told(request.history):
            if isinstance(item, User):
                if parts := await self._parts(item.content, request):
                    items.append({"type": "message", "role": "user", "content": parts})
            else:
                items += await self._step(item, request, provider)
        if request.note:
            items.append({"type": "message", "role": "developer", "content": request.note})
        return items

    async def _step(self, item: Told, request: ModelRequest, provider: str) -> list[dict[str, Any]]:
        """The items of the step and those of its results."""
        step, response = item.step, item.step.response
        if response is not None and (response.wire, response.provider) == (WIRE, provider):
            items = list(response.blocks) if request.thoughts else without_thoughts(response.blocks)
        else:
            items = [{"type": "message", "role": "assistant", "content": step.text}] if step.text else []
            items += [
                {
                    "type": "function_call",
                    "call_id": call_id(call.call_id),
                    "name": call.name,
                    "arguments": msgspec.json.encode(call.arguments).decode(),
                }
                for call in step.calls
            ]
        ids = usable_ids([each.get("call_id") for each in items if each["type"] == "function_call"], step.calls)
        named = iter(ids)
        items = [_named(each, next(named)) if each["type"] == "function_call" else each for each in items]
        for known, result in zip(ids, item.results, strict=True):
            parts = await self._parts(content_of(result), request)
            plain = len(parts) == 1 and parts[0]["type"] == "input_text"
            output = parts[0]["text"] if plain else parts or "(no output)"
            items.append({"type": "function_call_output", "call_id": known, "output": output})
        return items

    async def _parts(self, content: Content, request: ModelRequest) -> list[dict[str, Any]]:
        return [_part(part) for part in await given(content, self.takes, request.read)]


def without_thoughts(blocks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Words and calls alone, without their ids: an item under its id is refused without the thought that it came with."""
    items: list[dict[str, Any]] = []
    for block in blocks:
        if block["type"] == "message" and (said := _said(block)):
            items.append({"type": "message", "role": "assistant", "content": said})
        elif block["type"] == "function_call":
            items.append({name: value for name, value in block.items() if name != "id"})
    return items


def _said(message: dict[str, Any]) -> str:
    return "".join(part.get("text") or part.get("refusal") or "" for part in message.get("content") or ())


def _named(item: dict[str, Any], known: str) -> dict[str, Any]:
    return item | {"call_id": known, "name": usable_name(item.get("name") or "")}


def _part(part: str | Given) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    if part.kind == "image":
        return {"type": "input_image", "image_url": part.url, "detail": "auto"}
    return {"type": "input_file", "filename": part.name, "file_data": part.url}


class ResponsesReader:
    def __init__(self, refused: Refusal) -> None:
        self.finished = False
        self.last = False
        self._refused = refused
        self._said = Said()
        self._items: dict[int, dict[str, Any]] = {}
        self._response: dict[str, Any] = {}
        self._refusal = self._incomplete = False

    def feed(self, event: dict[str, Any]) -> Sequence[Piece]:
        match event.get("type"):
            case "response.output_text.delta":
                return self._said.add(event["delta"])
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return (ThoughtPiece(event["delta"]),) if event["delta"] else ()
            case "response.reasoning_summary_part.added":
                return (ThoughtPiece("\n\n"),) if event.get("summary_index") else ()
            case "response.output_item.added":
                self._said.part()
                item = event["item"]
                return (CallPiece(item["name"]),) if item["type"] == "function_call" else ()
            case "response.output_item.done":
                self._items[event["output_index"]] = event["item"]
            case "response.refusal.delta":
                self._refusal = True
                return self._said.add(event["delta"])
            case "response.completed" | "response.incomplete" as kind:
                self._response = event["response"]
                self._incomplete = kind == "response.incomplete"
                self.finished = self.last = True
                return self._unsaid()
            case "response.failed":
                raise self._refused(event["response"])
            case "error":
                raise self._refused({"error": event.get("error") or event})
        return ()

    def _blocks(self) -> list[dict[str, Any]]:
        """The items as they came whole, or as the end tells them once more if it knows more of them."""
        came = [item for _, item in sorted(self._items.items())]
        told: list[dict[str, Any]] = self._response.get("output") or []
        return told if len(told) > len(came) else came

    def _unsaid(self) -> tuple[TextPiece, ...]:
        """The text, where a server sent none of it as a piece."""
        if self._said.read():
            return ()
        return self._said.add("".join(_said(item) for item in self._blocks() if item["type"] == "message"))

    def read(self) -> Response:
        blocks = self._blocks()
        calls = [proposed(item.get("name", ""), item.get("arguments") or "") for item in blocks if item["type"] == "function_call"]
        reason = (self._response.get("incomplete_details") or {}).get("reason")
        finish = CUT_BY.get(reason, "length") if reason else "filtered" if self._refusal else "length" if self._incomplete else "end"
        settled_calls, finish = settled(calls, finish)
        return Response(
            text=self._said.read(),
            calls=settled_calls,
            blocks=tuple(blocks),
            finish=finish,
            usage=_usage_of(self._response.get("usage")),
            response_id=self._response.get("id"),
        )


def _usage_of(told: object) -> Usage:
    return Usage(
        input=count(told, "input_tokens"),
        output=count(told, "output_tokens"),
        cached=count(told, "input_tokens_details", "cached_tokens"),
        stored=count(told, "input_tokens_details", "cache_write_tokens"),
        thought=count(told, "output_tokens_details", "reasoning_tokens"),
    )
