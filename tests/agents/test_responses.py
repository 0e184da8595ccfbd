"""What only OpenAI's Responses have."""

from typing import Any

import pytest

from holdfast.agents.wires import providers
from holdfast.ports.models import Busy, Cut, ModelError, ModelSettings, NotAllowed, Rejected, TooLong
from tests.agents.wiring import KEY, asking, said, streamed, talking, thought
from tests.fakes.models import Reply, serving, text

ITEM = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]}


def done(output: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"type": "response.completed", "response": {"id": "r", "output": output, **more}}


async def test_nothing_is_stored_there_and_thoughts_come_encrypted() -> None:
    async with talking(Reply(say=text("Hi.")), wire="responses") as (client, server):
        await streamed(client, asking(settings=ModelSettings(effort="high")))
        await streamed(client, asking(thoughts=False))
    asked, thoughtless = (each.body for each in server.requests)
    assert (asked["store"], asked["include"]) == (False, ["reasoning.encrypted_content"])
    assert asked["reasoning"] == {"effort": "high", "summary": "auto"}
    assert thoughtless["store"] is False and not {"include", "reasoning"} & set(thoughtless)


@pytest.mark.parametrize(
    "words",
    ["Encrypted content is not supported with this model.", "Your organization must be verified to generate reasoning summaries."],
)
async def test_a_model_that_has_no_thoughts_is_not_asked_for_them_twice(words: str) -> None:
    refusal = Reply(status=400, error={"error": {"message": words, "type": "invalid_request_error"}})
    async with talking(refusal, Reply(say=text("Hi.")), wire="responses") as (client, server):
        with pytest.raises(Rejected) as raised:
            await streamed(client)
        assert raised.value.thoughts
        await streamed(client)
    assert ["include" in each.body for each in server.requests] == [True, False]


async def test_models_known_not_to_think_are_not_asked_to() -> None:
    async with serving(Reply(say=text("Hi."))) as server:
        for model in ("gpt-4.1-mini", "gpt-5-chat-latest", "gpt-5"):
            client = providers.client(f"openai:{model}", key=KEY, base_url=server.url)
            await streamed(client)
            await client.aclose()
    assert ["include" in each.body for each in server.requests] == [False, False, True]


async def test_items_that_the_end_does_not_repeat_and_text_without_pieces_are_found() -> None:
    for events in (({"type": "response.output_item.done", "output_index": 0, "item": ITEM}, done([])), (done([ITEM]),)):
        async with talking(Reply(events=events), wire="responses") as (client, _):
            pieces, response = await streamed(client)
        assert (said(pieces), response.text, response.blocks) == ("Hello.", "Hello.", (ITEM,))


async def test_parts_of_a_summary_and_messages_stand_apart() -> None:
    events = (
        {"type": "response.reasoning_summary_part.added", "summary_index": 0},
        {"type": "response.reasoning_summary_text.delta", "delta": "One."},
        {"type": "response.reasoning_summary_part.added", "summary_index": 1},
        {"type": "response.reasoning_summary_text.delta", "delta": "Two."},
        {"type": "response.output_item.added", "item": ITEM},
        {"type": "response.output_text.delta", "delta": "Hello."},
        {"type": "response.output_item.added", "item": ITEM},
        {"type": "response.output_text.delta", "delta": "Bye."},
        done([ITEM, ITEM]),
    )
    async with talking(Reply(events=events), wire="responses") as (client, _):
        pieces, response = await streamed(client)
    assert (thought(pieces), said(pieces), response.text) == ("One.\n\nTwo.", "Hello.\n\nBye.", "Hello.\n\nBye.")


async def test_a_refusal_is_said_and_told_as_filtered() -> None:
    refused = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    async with talking(Reply(events=({"type": "response.refusal.delta", "delta": "No."}, done([refused]))), wire="responses") as (
        client,
        _,
    ):
        _, response = await streamed(client)
    assert (response.text, response.finish) == ("No.", "filtered")


@pytest.mark.parametrize(
    "details", [{}, {"incomplete_details": None}, {"incomplete_details": {}}, {"incomplete_details": {"reason": "new"}}]
)
async def test_an_answer_that_is_incomplete_for_no_known_reason_has_reached_its_length(details: dict[str, Any]) -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "terminal", "arguments": '{"comm'}
    end = {"type": "response.incomplete", "response": {"id": "r", "status": "incomplete", "output": [ITEM, call]} | details}
    async with talking(Reply(events=(end,)), wire="responses") as (client, _):
        _, response = await streamed(client)
    assert response.finish == "length" and "length limit" in str(response.calls[-1].problem)


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "Sorry"}}}, Busy),
        ({"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded", "message": "Slow"}}}, Busy),
        ({"type": "response.failed", "response": {"error": {"code": "context_length_exceeded", "message": "Long"}}}, TooLong),
        ({"type": "error", "code": "insufficient_quota", "message": "You exceeded your current quota"}, NotAllowed),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "No"}}, Rejected),
        ({"type": "response.cancelled", "response": {}}, Cut),
    ],
)
async def test_an_error_within_the_stream_is_no_answer(event: dict[str, Any], kind: type[ModelError]) -> None:
    async with talking(Reply(events=({"type": "response.output_text.delta", "delta": "Half"}, event)), wire="responses") as (client, _):
        with pytest.raises(ModelError) as raised:
            await streamed(client)
    assert type(raised.value) is kind
