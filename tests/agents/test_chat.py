"""Chat completions as compatible servers speak them, each in its own way."""

from typing import Any

import pytest

from holdfast.core.events import Usage
from holdfast.ports.agents import Response
from holdfast.ports.models import Busy, Cut, ModelError, NotAllowed, TooLong
from tests.agents.wiring import asking, results, said, step, streamed, talking, thought, user
from tests.fakes.models import Reply, text


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def called(*pieces: dict[str, Any], finish: str = "tool_calls") -> Reply:
    return Reply(events=(*(chunk({"tool_calls": [piece]}) for piece in pieces), chunk({}, finish), "[DONE]"))


def piece(index: int | None, name: str | None, arguments: Any, id: str | None = None) -> dict[str, Any]:
    return {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


async def read(reply: Reply) -> Response:
    async with talking(reply) as (client, _):
        return (await streamed(client))[1]


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([piece(0, "a", '{"x":1}', "i"), piece(0, "b", '{"x":2}', "j")], id="all numbered 0"),
        pytest.param([piece(0, "a", '{"x":1}'), piece(0, "b", '{"x":2}')], id="all numbered 0, without ids"),
        pytest.param([piece(0, "a", '{"x":1}', "i"), piece(0, "b", '{"x":2}', "i")], id="all numbered 0, one id for both"),
        pytest.param([piece(None, "a", '{"x":1}'), piece(None, "b", '{"x":2}')], id="not numbered"),
        pytest.param([piece(0, "a", '{"x"'), piece(0, "a", ":1}"), piece(1, "b", '{"x":2}')], id="the name in every piece"),
        pytest.param([piece(0, "a", '{"x"'), piece(0, "", ":1}"), piece(1, "b", '{"x":2}')], id="empty names"),
        pytest.param([piece(0, "a", {"x": 1}, "i"), piece(1, "b", {"x": 2}, "j")], id="arguments as objects"),
        pytest.param([piece(3, "a", '{"x":1}', "i"), piece(7, "b", '{"x":2}', "j")], id="odd numbers"),
    ],
)
async def test_calls_of_odd_servers_are_kept_apart_and_answered_one_by_one(pieces: list[dict[str, Any]]) -> None:
    """Ids are missing, repeated, or all calls have the same number. The server checks that each result names a call of its own."""
    async with talking(called(*pieces), Reply(say=text("Done."))) as (client, server):
        _, response = await streamed(client)
        assert [(call.name, call.arguments, call.problem) for call in response.calls] == [("a", {"x": 1}, None), ("b", {"x": 2}, None)]
        first = step(response)
        await streamed(client, asking(user("Go."), first, *results(first, "one", "two")))
    sent = server.requests[1].body["messages"]
    assert [call["id"] for call in sent[2]["tool_calls"]] == [message["tool_call_id"] for message in sent[3:]]
    assert [message["content"] for message in sent[3:]] == ["one", "two"]


async def test_two_calls_of_one_tool_under_one_number_and_one_id_are_two() -> None:
    response = await read(called(piece(0, "a", '{"x":1}', "i"), piece(0, "a", '{"x":2}', "i")))
    assert [call.arguments for call in response.calls] == [{"x": 1}, {"x": 2}]


async def test_what_a_server_sends_along_with_calls_and_thoughts_goes_back() -> None:
    """Gemini's signatures, OpenRouter's details."""
    signed = piece(0, "a", "{}", "i") | {"extra_content": {"google": {"thought_signature": "s"}}}
    details = [
        {"type": "reasoning.text", "text": "Let ", "index": 0},
        {"type": "reasoning.text", "text": "me see.", "signature": "x", "index": 0},
        {"type": "reasoning.encrypted", "data": "zzz", "id": "e"},
    ]
    events = [
        chunk({"reasoning": "Let ", "reasoning_details": details[:1]}),
        chunk({"reasoning": "me see.", "reasoning_details": details[1:]}),
    ]
    async with talking(Reply(events=(*events, chunk({"tool_calls": [signed]}, "tool_calls"))), Reply(say=text("Done."))) as (
        client,
        server,
    ):
        pieces, response = await streamed(client)
        assert thought(pieces) == "Let me see."
        first = step(response)
        await streamed(client, asking(user("Go."), first, *results(first, "one")))
        await streamed(client, asking(user("Go."), first, *results(first, "one"), thoughts=False))
    (_, _, sent, _), (_, _, thoughtless, _) = (asked.body["messages"] for asked in server.requests[1:])
    assert sent["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s"}}
    assert sent["reasoning_details"] == [{"type": "reasoning.text", "text": "Let me see.", "signature": "x", "index": 0}, details[2]]
    assert sent["reasoning"] == "Let me see."
    assert not {"reasoning", "reasoning_details"} & set(thoughtless)


async def test_content_in_parts_is_read_and_goes_back_in_parts() -> None:
    """Mistral's models that think."""
    thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": words}]} for words in ("Hm", "m.")]
    events = (chunk({"content": thinking[:1]}), chunk({"content": thinking[1:]}), chunk({"content": [{"type": "text", "text": "Hi"}]}))
    async with talking(Reply(events=(*events, chunk({"content": "!"}, "stop"))), Reply(say=text("Done."))) as (client, server):
        pieces, response = await streamed(client)
        assert (thought(pieces), said(pieces), response.text) == ("Hmm.", "Hi!", "Hi!")
        await streamed(client, asking(user("Go."), step(response), user("And?")))
        await streamed(client, asking(user("Go."), step(response), user("And?"), thoughts=False))
    whole, thoughtless = (asked.body["messages"][2]["content"] for asked in server.requests[1:])
    assert [part["type"] for part in whole] == ["thinking", "text"] and whole[0]["thinking"][0]["text"] == "Hmm."
    assert thoughtless == [{"type": "text", "text": "Hi!"}]


async def test_a_refusal_is_said_and_told_as_filtered() -> None:
    response = await read(Reply(events=(chunk({"refusal": "I will "}), chunk({"refusal": "not."}), chunk({}, "stop"))))
    assert (response.text, response.finish, response.blocks[0]["refusal"]) == ("I will not.", "filtered", "I will not.")


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"error": {"message": "Overloaded", "code": 503}}, Busy),
        ({"error": {"message": "Upstream failed", "code": 502, "metadata": {"raw": "context length exceeded"}}}, TooLong),
        ({"error": {"message": "Insufficient credits", "code": 402}}, NotAllowed),
        ({"error": "something broke"}, Busy),
        (chunk({"content": "half"}, "error"), Cut),
        (chunk({"content": "half"}, "insufficient_system_resource"), Cut),
    ],
)
async def test_an_error_within_the_stream_is_no_answer(event: Any, kind: type[ModelError]) -> None:
    async with talking(Reply(events=(chunk({"content": "Half an "}), event))) as (client, _):
        with pytest.raises(ModelError) as raised:
            await streamed(client)
    assert type(raised.value) is kind


async def test_the_end_without_a_reason_is_cut_even_if_it_says_that_it_is_done() -> None:
    async with talking(Reply(events=(chunk({"content": "Half"}), "[DONE]"))) as (client, _):
        with pytest.raises(Cut):
            await streamed(client)


@pytest.mark.parametrize(
    ("last", "usage"),
    [
        ({"x_groq": {"usage": {"prompt_tokens": 7, "completion_tokens": 3}}}, Usage(input=7, output=3)),
        ({"usage": {"prompt_tokens": 7, "completion_tokens": 3, "prompt_cache_hit_tokens": 5}}, Usage(input=7, output=3, cached=5)),
        ({"usage": {"completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 2}}}, Usage(output=3, thought=2)),
        ({"usage": None}, Usage()),
        ({}, Usage()),
    ],
)
async def test_usage_is_found_wherever_it_is_told(last: dict[str, Any], usage: Usage) -> None:
    response = await read(Reply(events=(chunk({"content": "Hi"}, "stop"), {"choices": [], **last})))
    assert response.usage == usage


async def test_messages_of_the_user_in_a_row_are_one() -> None:
    """Templates of many open models refuse two in a row."""
    async with talking(Reply(say=text("Hi."))) as (client, server):
        await streamed(client, asking(user("One."), user("Two."), note="[Three.]"))
    assert server.requests[0].body["messages"][1:] == [{"role": "user", "content": "One.\n\nTwo.\n\n[Three.]"}]
