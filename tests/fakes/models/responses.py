"""OpenAI's Responses, from the server's side."""

import hashlib
from typing import Any

from tests.fakes.models.script import Reply, Say
from tests.fakes.models.speaking import NAME, Refused, call_id, encoded, fragments

path = "/v1/responses"


def events(reply: Reply, number: int) -> list[bytes]:
    stream = _Stream(number)
    stream.send("response.created", response=stream.response("in_progress"))
    thoughts = [say.thought for say in reply.say if say.thought is not None]
    texts = [say.text for say in reply.say if say.text is not None]
    calls = [say for say in reply.say if say.call is not None]
    # An item that came with a thought says so in its id: it is refused without that thought.
    tied = "_tied" if thoughts else ""
    if thoughts:
        stream.reasoning(f"rs_{number}", thoughts)
    if texts:
        stream.message(f"msg_{number}{tied}", texts)
    if calls:
        stream.calls(calls, f"fc_{number}{tied}", interleave=reply.interleave)
    given, made, cached = reply.usage
    usage = {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + made,
    }
    status = "incomplete" if reply.finish else "completed"
    details = {"incomplete_details": {"reason": reply.finish}} if reply.finish else {}
    stream.send(f"response.{status}", response=stream.response(status) | {"usage": usage} | details)
    return stream.sent


class _Stream:
    """The events of one response, numbered, and its items so far."""

    def __init__(self, number: int) -> None:
        self.sent: list[bytes] = []
        self._number = number
        self._items: list[dict[str, Any]] = []

    def send(self, kind: str, **fields: Any) -> None:
        self.sent.append(encoded({"type": kind, "sequence_number": len(self.sent), **fields}, kind))

    def response(self, status: str) -> dict[str, Any]:
        return {
            "id": f"resp_{self._number}",
            "object": "response",
            "created_at": 1_700_000_000,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": "fake",
            "output": list(self._items),
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "usage": None,
        }

    def reasoning(self, known: str, thoughts: list[str]) -> None:
        place, whole = len(self._items), "".join(thoughts)
        self.send("response.output_item.added", output_index=place, item={"id": known, "type": "reasoning", "summary": []})
        at = {"item_id": known, "output_index": place, "summary_index": 0}
        self.send("response.reasoning_summary_part.added", **at, part={"type": "summary_text", "text": ""})
        for piece in thoughts:
            self.send("response.reasoning_summary_text.delta", **at, delta=piece)
        self.send("response.reasoning_summary_text.done", **at, text=whole)
        self.send("response.reasoning_summary_part.done", **at, part={"type": "summary_text", "text": whole})
        item = {"id": known, "type": "reasoning", "summary": [{"type": "summary_text", "text": whole}], "encrypted_content": sealed(whole)}
        self._done(place, item)

    def message(self, known: str, texts: list[str]) -> None:
        place, whole = len(self._items), "".join(texts)
        item = {"id": known, "type": "message", "status": "in_progress", "role": "assistant", "content": []}
        self.send("response.output_item.added", output_index=place, item=item)
        at = {"item_id": known, "output_index": place, "content_index": 0}
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        self.send("response.content_part.added", **at, part=part)
        for piece in texts:
            self.send("response.output_text.delta", **at, delta=piece, logprobs=[])
        self.send("response.output_text.done", **at, text=whole, logprobs=[])
        self.send("response.content_part.done", **at, part=part | {"text": whole})
        self._done(place, item | {"status": "completed", "content": [part | {"text": whole}]})

    def calls(self, calls: list[Say], known: str, *, interleave: bool) -> None:
        start = len(self._items)
        items = [
            {
                "id": f"{known}_{place}",
                "type": "function_call",
                "status": "in_progress",
                "call_id": call_id(say, self._number, place),
                "name": say.call,
                "arguments": "",
            }
            for place, say in enumerate(calls)
        ]
        begun: set[int] = set()
        for place, piece in fragments(calls, interleave=interleave):
            if place not in begun:
                begun.add(place)
                self.send("response.output_item.added", output_index=start + place, item=items[place])
            at = {"item_id": items[place]["id"], "output_index": start + place}
            self.send("response.function_call_arguments.delta", **at, delta=piece)
        for place, say in enumerate(calls):
            at = {"item_id": items[place]["id"], "output_index": start + place}
            self.send("response.function_call_arguments.done", **at, name=say.call, arguments=say.written)
            self._done(start + place, items[place] | {"status": "completed", "arguments": say.written})

    def _done(self, place: int, item: dict[str, Any]) -> None:
        self.send("response.output_item.done", output_index=place, item=item)
        self._items.append(item)


def sealed(thought: str) -> str:
    return hashlib.sha256(b"sealed:" + thought.encode()).hexdigest()[:24]


def steps(body: dict[str, Any]) -> int:
    """A response is a run of items that a model made."""
    made = [item["type"] in ("reasoning", "function_call") or item.get("role") == "assistant" for item in _items(body)]
    return sum(now and not before for before, now in zip([False, *made], made, strict=False))


def check(body: dict[str, Any]) -> None:
    """Every call has one output, behind it; a thought is as it was sealed, and items that came with one are there with it or without id."""
    items = _items(body)
    open_calls: list[str] = []
    thought = False
    for item in items:
        kind = item["type"]
        if kind == "reasoning":
            thought = True
            if item.get("encrypted_content") != sealed("".join(part["text"] for part in item["summary"])):
                raise refused("The encrypted content could not be verified.", code="invalid_encrypted_content")
        elif "_tied" in item.get("id", "") and not thought:
            raise refused(f"Item '{item['id']}' of type '{kind}' was provided without its required 'reasoning' item.")
        if kind == "function_call":
            if not NAME.fullmatch(item["name"]):
                raise refused("Invalid 'input[1].name': string does not match pattern.")
            open_calls.append(item["call_id"])
        elif kind == "function_call_output":
            if item["call_id"] not in open_calls:
                raise refused(f"No tool call found for function call output with call_id {item['call_id']}.")
            open_calls.remove(item["call_id"])
        elif kind == "message" and item["role"] != "assistant":
            thought = False
            if open_calls:
                raise refused(f"No tool output found for function call {open_calls[0]}.")
    if open_calls:
        raise refused(f"No tool output found for function call {open_calls[0]}.")


def _items(body: dict[str, Any]) -> list[dict[str, Any]]:
    given = body["input"]
    return [{"type": "message"} | item for item in given] if isinstance(given, list) else [{"type": "message", "role": "user"}]


def too_long() -> Refused:
    told = "Your input exceeds the context window of this model. Please adjust your input and try again."
    return refused(told, code="context_length_exceeded")


def refused(words: str, code: str | None = None) -> Refused:
    return Refused(400, {"error": {"message": words, "type": "invalid_request_error", "param": "input", "code": code}})
