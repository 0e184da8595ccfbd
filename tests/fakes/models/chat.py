"""Chat completions, from the server's side."""

from typing import Any

from tests.fakes.models.script import Reply
from tests.fakes.models.speaking import NAME, Refused, call_id, encoded, fragments

path = "/v1/chat/completions"


def events(reply: Reply, number: int) -> list[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return encoded(_chunk(number) | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    calls = [say for say in reply.say if say.call is not None]
    sent = [chunk({"role": "assistant", "content": ""})]
    for say in reply.say:
        if say.thought is not None:
            sent.append(chunk({"reasoning_content": say.thought}))
        elif say.text is not None:
            sent.append(chunk({"content": say.text}))
    begun: set[int] = set()
    for index, piece in fragments(calls, interleave=reply.interleave):
        if index not in begun:
            begun.add(index)
            first = {
                "id": call_id(calls[index], number, index),
                "type": "function",
                "function": {"name": calls[index].call, "arguments": ""},
            }
            sent.append(chunk({"tool_calls": [{"index": index} | first]}))
        sent.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    sent.append(chunk({}, reply.finish or ("tool_calls" if calls else "stop")))
    given, made, cached = reply.usage
    usage = {
        "prompt_tokens": given,
        "completion_tokens": made,
        "total_tokens": given + made,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return [*sent, encoded(_chunk(number) | {"choices": [], "usage": usage}), encoded("[DONE]")]


def _chunk(number: int) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "fake"}


def steps(body: dict[str, Any]) -> int:
    return sum(message["role"] == "assistant" for message in body["messages"])


def check(body: dict[str, Any]) -> None:
    """Every call of a message is answered by the messages directly behind it, once, and nothing else is."""
    open_calls: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                raise refused(400, "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")
            open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            raise refused(400, "An assistant message with 'tool_calls' must be followed by tool messages responding to each.")
        if message["role"] == "assistant":
            open_calls = [call["id"] for call in message.get("tool_calls", ())]
            if not all(NAME.fullmatch(call["function"]["name"]) for call in message.get("tool_calls", ())):
                raise refused(400, "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern.")
            if not open_calls and not message.get("content"):
                raise refused(400, "Invalid value for 'content': expected a string, got null.")
    if open_calls:
        raise refused(400, "An assistant message with 'tool_calls' must be followed by tool messages responding to each.")


def too_long() -> Refused:
    told = "This model's maximum context length is 100 tokens. However, your messages resulted in more."
    return refused(400, told, code="context_length_exceeded")


def refused(status: int, words: str, code: str | None = None) -> Refused:
    return Refused(status, {"error": {"message": words, "type": "invalid_request_error", "param": None, "code": code}})
