"""Chat completions: the wire of OpenAI's first API, and of most others since. Its one block is the assembled message of the assistant."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from holdfast.agents.wires.chat_reading import THOUGHTS, ChatReader
from holdfast.agents.wires.history import Told, content_of, told, usable_ids, usable_name
from holdfast.agents.wires.parts import SOUNDS, Given, given
from holdfast.agents.wires.reading import Refusal, proposed
from holdfast.core.content import Content
from holdfast.core.events import ProposedCall
from holdfast.core.history import User
from holdfast.ports.models import ModelRequest, Taking

WIRE = "chat"
ATTACHED = "[What follows belongs to the results of the tools above. The user did not write it.]"


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """Where compatible servers differ. `usage`: whether it must be asked for usage. `call_extra` goes along with calls that another
    provider's model wrote.
    """

    usage: bool = True
    call_extra: dict[str, Any] = {}


class Chat:
    name = WIRE
    path = "/chat/completions"
    listing = "/models"

    def __init__(self, takes: frozenset[str] = frozenset(), dialect: Dialect | None = None) -> None:
        self.takes = Taking(kinds=takes)
        self._dialect = dialect or Dialect()

    def headers(self, key: str | None) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def objected(self, words: str) -> None:
        """To thoughts of this request; the next may have others."""

    def reader(self, refused: Refusal) -> ChatReader:
        return ChatReader(refused)

    async def body(self, request: ModelRequest, provider: str, model: str) -> dict[str, Any]:
        body: dict[str, Any] = {"model": model, "messages": await self._messages(request, provider), "stream": True}
        if self._dialect.usage:
            body["stream_options"] = {"include_usage": True}
        if request.tools:
            body["tools"] = [
                {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema}}
                for tool in request.tools
            ]
        settings = request.settings
        named = {"max_tokens": settings.max_tokens, "temperature": settings.temperature, "reasoning_effort": settings.effort}
        return body | {name: value for name, value in named.items() if value is not None} | settings.extra

    async def _messages(self, request: ModelRequest, provider: str) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = [{"role": "system", "content": request.system}] if request.system else []
        for item in told(request.history):
            if isinstance(item, User):
                _add_user(messages, await self._parts(item.content, request))
            else:
                messages += await self._step(item, request, provider)
        if request.note:
            _add_user(messages, [{"type": "text", "text": request.note}])
        for message in messages:
            if message["role"] == "user" and all(part["type"] == "text" for part in message["content"]):
                message["content"] = "\n\n".join(part["text"] for part in message["content"])
        return messages

    async def _parts(self, content: Content, request: ModelRequest) -> list[dict[str, Any]]:
        return [_part(part) for part in await given(content, self.takes, request.read)]

    async def _step(self, item: Told, request: ModelRequest, provider: str) -> list[dict[str, Any]]:
        """The message of the step and those of its results."""
        step, response = item.step, item.step.response
        if response is not None and (response.wire, response.provider) == (WIRE, provider) and response.blocks:
            message = _returned(response.blocks[0], response.calls, thoughts=request.thoughts)
        else:
            message = {"role": "assistant", "content": step.text or None}
            if step.calls:
                message["tool_calls"] = [
                    {"type": "function", "function": {"name": call.name, "arguments": msgspec.json.encode(call.arguments).decode()}}
                    | self._dialect.call_extra
                    for call in step.calls
                ]
        calls = message.get("tool_calls") or []
        if not calls and not message.get("content"):
            return []
        ids = usable_ids([call.get("id") for call in calls], step.calls)
        if calls:
            message["tool_calls"] = [_named(call, known) for call, known in zip(calls, ids, strict=True)]
        messages, attached = [message], list[dict[str, Any]]()
        for known, result in zip(ids, item.results, strict=True):
            parts = await given(content_of(result), self.takes, request.read)
            content = "\n\n".join(part if isinstance(part, str) else f"[{part.name} follows]" for part in parts) or "(no output)"
            messages.append({"role": "tool", "tool_call_id": known, "content": content})
            attached += [_part(part) for part in parts if isinstance(part, Given)]
        if attached:  # A result can only be text here, and nothing may stand between the results.
            messages.append({"role": "user", "content": [{"type": "text", "text": ATTACHED}, *attached]})
        return messages


def _named(call: dict[str, Any], known: str) -> dict[str, Any]:
    function = call["function"]
    return call | {"id": known, "function": function | {"name": usable_name(function["name"])}}


def _add_user(messages: list[dict[str, Any]], parts: list[dict[str, Any]]) -> None:
    """To the user's last message if that is the last: templates of many open models refuse two in a row."""
    if messages and messages[-1]["role"] == "user":
        messages[-1]["content"] += parts
    elif parts:
        messages.append({"role": "user", "content": parts})


def _part(part: str | Given) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if part.kind == "image":
        return {"type": "image_url", "image_url": {"url": part.url}}
    if part.kind == "audio":
        return {"type": "input_audio", "input_audio": {"data": part.base64, "format": SOUNDS[part.media_type]}}
    return {"type": "file", "file": {"filename": part.name, "file_data": part.url}}


def _returned(block: dict[str, Any], calls: Sequence[ProposedCall], *, thoughts: bool) -> dict[str, Any]:
    """The message as it came. Only arguments that are not JSON are wrapped: many servers parse what they are sent and refuse it."""
    message = block if thoughts else without_thoughts(block)
    if not any(call.problem for call in calls):
        return dict(message)
    written = message["tool_calls"]
    return message | {"tool_calls": [_readable(each) for each in written]}


def without_thoughts(block: dict[str, Any]) -> dict[str, Any]:
    content = block.get("content")
    if isinstance(content, list):
        content = [part for part in content if part["type"] != "thinking"]
    return {name: value for name, value in block.items() if name not in THOUGHTS} | {"content": content}


def _readable(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    if proposed("any", function["arguments"]).problem is None:
        return call
    return call | {"function": function | {"arguments": msgspec.json.encode({"malformed": function["arguments"]}).decode()}}
