"""Anthropic's messages, from the server's side."""

import hashlib
from typing import Any

from tests.fakes.models.script import Reply, Say
from tests.fakes.models.speaking import NAME, Refused, encoded, fragments

path = "/v1/messages"


def events(reply: Reply, number: int) -> list[bytes]:
    def sent(kind: str, **fields: Any) -> bytes:
        return encoded({"type": kind, **fields}, kind)

    given, made, cached = reply.usage
    usage = {"input_tokens": given - cached, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0, "output_tokens": 1}
    head: dict[str, Any] = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "fake",
        "content": [],
        "stop_reason": None,
    }
    result = [sent("message_start", message=head | {"stop_sequence": None, "usage": usage}), sent("ping")]
    index = 0
    for kind, group in _groups(reply.say):
        if kind == "call":
            result += _calls(group, index, number, sent, interleave=reply.interleave)
            index += len(group)
            continue
        words = "".join((say.thought if kind == "thinking" else say.text) or "" for say in group)
        begun = {"type": "thinking", "thinking": "", "signature": ""} if kind == "thinking" else {"type": "text", "text": ""}
        result.append(sent("content_block_start", index=index, content_block=begun))
        for say in group:
            delta = {"type": "thinking_delta", "thinking": say.thought} if kind == "thinking" else {"type": "text_delta", "text": say.text}
            result.append(sent("content_block_delta", index=index, delta=delta))
        if kind == "thinking":
            result.append(sent("content_block_delta", index=index, delta={"type": "signature_delta", "signature": signature(words)}))
        result.append(sent("content_block_stop", index=index))
        index += 1
    stop = reply.finish or ("tool_use" if any(say.call is not None for say in reply.say) else "end_turn")
    result.append(sent("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage={"output_tokens": made}))
    return [*result, sent("message_stop")]


def _calls(calls: list[Say], start: int, number: int, sent: Any, *, interleave: bool) -> list[bytes]:
    result: list[bytes] = []
    begun: set[int] = set()
    for place, piece in fragments(calls, interleave=interleave):
        if place not in begun:
            begun.add(place)
            known = calls[place].id or f"toolu_{number}_{start + place}"
            block: dict[str, Any] = {"type": "tool_use", "id": known, "name": calls[place].call, "input": {}}
            result.append(sent("content_block_start", index=start + place, content_block=block))
        delta = {"type": "input_json_delta", "partial_json": piece}
        result.append(sent("content_block_delta", index=start + place, delta=delta))
    return result + [sent("content_block_stop", index=start + place) for place in sorted(begun)]


def _groups(said: tuple[Say, ...]) -> list[tuple[str, list[Say]]]:
    """Pieces of the same kind in a row make a block; calls in a row are blocks that may come in turns."""
    groups: list[tuple[str, list[Say]]] = []
    for say in said:
        kind = "call" if say.call is not None else "thinking" if say.thought is not None else "text"
        if not groups or groups[-1][0] != kind:
            groups.append((kind, []))
        groups[-1][1].append(say)
    return groups


def signature(thinking: str) -> str:
    return hashlib.sha256(b"signed:" + thinking.encode()).hexdigest()[:24]


def steps(body: dict[str, Any]) -> int:
    return sum(message["role"] == "assistant" for message in body["messages"])


def check(body: dict[str, Any]) -> None:
    """Results first in the message behind their calls; thoughts as they were signed; at most four marks, none of them on a thought."""
    if "max_tokens" not in body:
        raise refused("max_tokens: Field required")
    open_calls: list[str] = []
    for place, message in enumerate(body["messages"]):
        blocks = message["content"] if isinstance(message["content"], list) else [{"type": "text", "text": message["content"]}]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(results) != sorted(open_calls) or [block["type"] for block in blocks[: len(results)]] != ["tool_result"] * len(results):
            raise refused(f"messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after.")
        open_calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if len(set(open_calls)) < len(open_calls):
            raise refused(f"messages.{place}: `tool_use` ids must be unique")
        for block in blocks:
            if block["type"] == "tool_use" and not NAME.fullmatch(block["name"]):
                raise refused(f"messages.{place}.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
            if block["type"] == "text" and not block["text"]:
                raise refused(f"messages.{place}: text content blocks must be non-empty")
            if block["type"] == "thinking" and (block["signature"] != signature(block["thinking"]) or "cache_control" in block):
                raise refused(f"messages.{place}.content.0: Invalid `signature` in `thinking` block")
    if open_calls or body["messages"][0]["role"] != "user":
        raise refused("messages: `tool_use` ids were found without `tool_result` blocks immediately after.")
    if str(body).count("cache_control") > 4:
        raise refused("A maximum of 4 blocks with cache_control may be provided.")


def too_long() -> Refused:
    return refused("prompt is too long: 208310 tokens > 200000 maximum")


def refused(words: str) -> Refused:
    return Refused(400, {"type": "error", "error": {"type": "invalid_request_error", "message": words}, "request_id": "req_1"})
