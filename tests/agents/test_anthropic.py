"""What only Anthropic's messages have."""

from typing import Any

import pytest

from holdfast.core.events import Usage
from holdfast.core.history import Item
from holdfast.ports.models import Busy, Cut, ModelError, ModelSettings, Rejected
from tests.agents.wiring import TERMINAL, asking, results, step, streamed, talking, user
from tests.fakes.models import Reply, call, text
from tests.fakes.models import thought as thinks

START = {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 3, "cache_creation_input_tokens": 2}}}
STOP = {"type": "message_stop"}
MARK = {"type": "ephemeral"}


def end(reason: str | None) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 8}}


def block(index: int, content: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    continued = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *continued,
        {"type": "content_block_stop", "index": index},
    ]


async def test_the_prefix_that_stays_is_marked_for_the_cache_and_the_note_is_not() -> None:
    async with talking(Reply(say=(*thinks("Hm."), call("terminal"))), Reply(say=text("Done.")), wire="anthropic") as (client, server):
        _, response = await streamed(client)
        first = step(response)
        history: tuple[Item, ...] = (user("Go."), first, *results(first, "noon"))
        await streamed(client, asking(*history, tools=(TERMINAL, TERMINAL), note="[A note.]"))
    body = server.requests[1].body
    assert body["system"][-1]["cache_control"] == MARK
    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]
    assert [["cache_control" in part for part in message["content"]] for message in body["messages"]] == [
        [False],
        [False, False],
        [True, False],
    ]
    assert body["messages"][-1]["content"][-1] == {"type": "text", "text": "[A note.]"}


async def test_blocks_of_every_kind_are_kept_whole() -> None:
    """Encrypted thoughts, tools that the provider runs itself, citations; a text that a citation splits is one text."""
    searched = {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srv", "content": [{"type": "web_search_result", "url": "u"}]}
    events = (
        START,
        *block(0, {"type": "redacted_thinking", "data": "xyz"}),
        *block(
            1, searched, {"type": "input_json_delta", "partial_json": '{"query"'}, {"type": "input_json_delta", "partial_json": ':"q"}'}
        ),
        *block(2, found),
        *block(3, {"type": "text", "text": ""}, {"type": "text_delta", "text": "It is "}),
        *block(
            4,
            {"type": "text", "text": ""},
            {"type": "text_delta", "text": "noon"},
            {"type": "citations_delta", "citation": {"url": "u"}},
        ),
        {"type": "ping"},
        end("pause_turn"),
        STOP,
    )
    async with talking(Reply(events=events), Reply(say=text("Done.")), wire="anthropic") as (client, server):
        _, response = await streamed(client)
        assert (response.text, response.finish, response.calls) == ("It is noon", "paused", ())
        assert response.usage == Usage(input=5, stored=2, output=8)
        await streamed(client, asking(user("When?"), step(response)))
    assert tuple(server.requests[1].body["messages"][1]["content"]) == response.blocks
    assert response.blocks[1]["input"] == {"query": "q"}
    assert response.blocks[4] == {"type": "text", "text": "noon", "citations": [{"url": "u"}]}


async def test_an_empty_text_that_the_provider_sent_is_not_sent_back() -> None:
    events = (START, *block(0, {"type": "text", "text": ""}), *block(1, {"type": "tool_use", "id": "t", "name": "a", "input": {"x": 1}}))
    async with talking(Reply(events=(*events, end("tool_use"), STOP)), Reply(say=text("Done.")), wire="anthropic") as (client, _):
        _, response = await streamed(client)
        assert response.calls[0].arguments == {"x": 1}
        first = step(response)
        await streamed(client, asking(user("Go."), first, *results(first, "one")))


async def test_the_end_without_a_reason_is_cut() -> None:
    for events in ((START, end(None), STOP), (START, STOP), (START, end("end_turn"))):
        async with talking(Reply(events=events), wire="anthropic") as (client, _):
            with pytest.raises(Cut):
                await streamed(client)


@pytest.mark.parametrize(
    ("kind", "raised"), [("overloaded_error", Busy), ("api_error", Busy), ("invalid_request_error", Rejected), ("new_error", Busy)]
)
async def test_an_error_within_the_stream_is_no_answer(kind: str, raised: type[ModelError]) -> None:
    events = (START, {"type": "error", "error": {"type": kind, "message": "No."}})
    async with talking(Reply(events=events), wire="anthropic") as (client, _):
        with pytest.raises(ModelError) as error:
            await streamed(client)
    assert type(error.value) is raised


async def test_a_model_that_thinks_does_not_where_its_thoughts_are_left_out() -> None:
    """It would want its last thoughts back."""
    async with talking(Reply(say=text("Hi.")), wire="anthropic") as (client, server):
        for thoughts in (True, False):
            await streamed(client, asking(settings=ModelSettings(effort="high"), thoughts=thoughts))
    assert [asked.body.get("thinking", {}).get("type") for asked in server.requests] == ["adaptive", None]
    assert [asked.body["output_config"] for asked in server.requests] == [{"effort": "high"}] * 2


async def test_a_history_that_begins_with_an_answer_gets_a_beginning() -> None:
    async with talking(Reply(say=text("Hi.")), wire="anthropic") as (client, server):
        _, response = await streamed(client)
        await streamed(client, asking(step(response), user("Go on.")))
    assert [message["role"] for message in server.requests[1].body["messages"]] == ["user", "assistant", "user"]
