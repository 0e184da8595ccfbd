"""The Responses API, with the official SDK: a response is a message in a session, its stream is the log (P1, P4, P7)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from holdfast.core.events import SessionChanged
from holdfast.gateway.settings import Settings
from tests.gateway import web
from tests.gateway.door import Read, is_response, sdk
from tests.gateway.web import World


@pytest.fixture
async def client(served: World) -> AsyncIterator[AsyncOpenAI]:
    async with sdk(served) as made:
        yield made


async def ask(client: AsyncOpenAI, text: Any, **more: Any) -> Any:
    return is_response(await client.responses.create(model="holdfast", input=text, **more))


async def stream(client: AsyncOpenAI, text: Any, **more: Any) -> Read:
    return await Read().all(await client.responses.create(model="holdfast", input=text, stream=True, **more))


async def test_a_response_is_the_answer_to_a_message_in_a_session(served: World, client: AsyncOpenAI) -> None:
    response = await ask(client, "hello")
    assert (response.status, response.output_text, response.model) == ("completed", "hello", "holdfast")
    view = await served.view(response.conversation.id)
    assert [(message["role"], message["text"]) for message in view["messages"]] == [("user", "hello"), ("assistant", "hello")]
    assert response.id == f"resp_{view['session_id']}.{view['messages'][0]['id']}"
    assert response.metadata["turn_id"] == view["turns"][0]["id"]
    assert is_response(await client.responses.retrieve(response.id)) == response


async def test_previous_responses_and_conversations_name_the_session(served: World, client: AsyncOpenAI) -> None:
    first = await ask(client, "one")
    second = await ask(client, "two", previous_response_id=first.id)
    third = await ask(client, "three", conversation=first.conversation.id)
    fourth = await ask(client, "four", conversation={"id": first.conversation.id})
    other = await ask(client, "one")
    assert {each.conversation.id for each in (first, second, third, fourth)} == {first.conversation.id} != {other.conversation.id}
    view = await served.view(first.conversation.id)
    assert [message["text"] for message in view["messages"][::2]] == ["one", "two", "three", "four"]


async def test_a_stream_tells_everything_from_the_beginning_to_the_end(client: AsyncOpenAI) -> None:
    read = await stream(client, "count 6")
    read.is_whole()
    assert read.types[:2] == ["response.created", "response.in_progress"] and read.types[-1] == "response.completed"
    assert read.text == read.response.output_text == "0 1 2 "
    assert [item.type for item in read.response.output] == ["message", "reasoning", "reasoning", "reasoning"]


async def test_a_stream_continues_behind_any_of_its_events(client: AsyncOpenAI) -> None:
    """P7: what comes behind is exactly what a reader got that never left."""
    whole = await stream(client, "lines some words")
    name = whole.response.id
    for place, event in enumerate(whole.events):
        rest = await Read().all(await client.responses.retrieve(name, stream=True, starting_after=event.sequence_number))
        assert rest.events == whole.events[place + 1 :]
    again = await Read().all(await client.responses.retrieve(name, stream=True))
    assert again.events == whole.events


async def test_a_client_that_leaves_stops_nothing_and_reads_on_later(served: World, client: AsyncOpenAI) -> None:
    read = Read()
    async with await client.responses.create(model="holdfast", input="hold", stream=True) as events:
        async for event in events:
            read.add(event)
            if read.text:
                break
    name, session_id = read.events[0].response.id, read.events[0].response.conversation.id
    await web.eventually(lambda: served.gateway.feed.readers == 0)
    assert is_response(await client.responses.retrieve(name)).status == "in_progress"
    served.agent.released.set()
    await served.until_state(session_id, "idle")
    await read.all(await client.responses.retrieve(name, stream=True, starting_after=read.last))
    read.is_whole()
    assert read.response.output_text == read.text == "holding"


async def test_in_the_background_the_response_comes_at_once(served: World, client: AsyncOpenAI) -> None:
    response = await ask(client, "hold", background=True)
    assert response.status in ("queued", "in_progress")
    behind = await ask(client, "hello", background=True, previous_response_id=response.id)
    assert behind.status == "queued"
    served.agent.released.set()
    await served.until_state(response.conversation.id, "idle")
    assert [is_response(await client.responses.retrieve(each.id)).output_text for each in (response, behind)] == ["holding", "hello"]


async def test_two_clients_at_once_get_each_their_own_answer(served: World, client: AsyncOpenAI) -> None:
    first = await ask(client, "hello")
    async with sdk(served) as other:
        reads = await asyncio.gather(
            *(stream(each, f"words of {number}", previous_response_id=first.id) for number, each in enumerate([client, other] * 5))
        )
    assert [read.text for read in reads] == [f"words of {number}" for number in range(10)]
    for read in reads:
        read.is_whole()
    assert len((await served.view(first.conversation.id))["turns"]) == 11


async def test_calls_are_items_that_the_client_does_not_run(client: AsyncOpenAI) -> None:
    read = await stream(client, "lines <b>words</b>")
    read.is_whole()
    [call] = [item for item in read.response.output if item.type == "mcp_call"]
    assert (call.name, call.arguments, call.output, call.status) == ("printer", '{"text":"<b>words</b>"}', "<b>words</b>", "completed")
    assert not [item for item in read.response.output if item.type == "function_call"]


async def test_the_steps_of_a_model_are_items_and_their_usage_is_summed_up(client: AsyncOpenAI) -> None:
    read = await stream(client, "model end")
    read.is_whole()
    response: Any = read.response
    assert [item.type for item in response.output] == ["reasoning", "message", "mcp_call", "reasoning", "message"]
    assert [(item.content[0].text, item.phase) for item in response.output if item.type == "message"] == [
        ("Let me look.", "commentary"),
        ("It is so.", "final_answer"),
    ]
    assert (response.model, response.usage.input_tokens, response.usage.output_tokens) == ("test:big", 200, 20)
    assert (response.usage.input_tokens_details.cached_tokens, response.usage.output_tokens_details.reasoning_tokens) == (80, 10)


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_output_tokens"), ("filtered", "content_filter")])
async def test_an_answer_that_its_model_broke_off_is_incomplete(client: AsyncOpenAI, finish: str, reason: str) -> None:
    read = await stream(client, f"model {finish}")
    assert (read.types[-1], read.response.status) == ("response.incomplete", "incomplete")
    assert read.response.incomplete_details is not None and read.response.incomplete_details.reason == reason


async def test_a_question_completes_the_response_and_the_next_message_answers_it(client: AsyncOpenAI) -> None:
    asked = await ask(client, "choose red|blue")
    assert (asked.status, asked.output_text) == ("completed", "Which one?\n- red\n- blue")
    answered = await ask(client, "blue", previous_response_id=asked.id)
    assert answered.output_text == "chosen: blue"
    assert answered.metadata["turn_id"] == asked.metadata["turn_id"]
    assert is_response(await client.responses.retrieve(asked.id)).output_text == "Which one?\n- red\n- blue"


async def test_the_metadata_of_a_response_names_what_its_turn_waits_for(client: AsyncOpenAI) -> None:
    asked = await ask(client, "approve this")
    [item] = [item for item in asked.output if item.type == "mcp_approval_request"]
    assert asked.metadata["waiting_for"] == item.id


@pytest.mark.parametrize(("approve", "said"), [(True, "done: this"), (False, "failed: ")])
async def test_an_approval_is_asked_for_and_given_in_the_shapes_of_the_protocol(client: AsyncOpenAI, approve: bool, said: str) -> None:
    read = await stream(client, "approve this")
    read.is_whole()
    [item] = [item for item in read.response.output if item.type == "mcp_approval_request"]
    assert (item.name, item.arguments) == ("printer", '{"text":"this"}')
    assert f"/approve {item.id}" in read.text
    verdict = {"type": "mcp_approval_response", "approval_request_id": item.id, "approve": approve, "reason": "so"}
    judged = await stream(client, [verdict], previous_response_id=read.response.id)
    judged.is_whole()
    assert said in judged.text
    calls = [each for each in judged.response.output if each.type == "mcp_call"]
    assert [call.approval_request_id for call in calls] == ([item.id] if approve else [None])


async def test_a_message_does_not_approve_and_says_that_it_waits(served: World, client: AsyncOpenAI) -> None:
    asked = await ask(client, "approve this")
    held = await ask(client, "yes, go ahead", previous_response_id=asked.id)
    assert held.status == "queued" and "needs your approval first" in held.output_text
    [item] = [item for item in asked.output if item.type == "mcp_approval_request"]
    approved = await ask(client, f"/approve {item.id}", previous_response_id=asked.id)
    assert approved.output_text == "The call is approved.\n\ndone: this"
    await served.until_state(asked.conversation.id, "idle")
    assert is_response(await client.responses.retrieve(held.id)).output_text.endswith("yes, go ahead")


async def test_a_stream_of_a_message_that_waits_ends_or_in_the_background_waits_with_it(served: World, client: AsyncOpenAI) -> None:
    asked = await ask(client, "approve this")
    ended = await stream(client, "one", previous_response_id=asked.id)
    assert (ended.types[-1], ended.response.status) == ("response.incomplete", "queued")
    read = Read()
    waits: Any = {"background": True, "stream": True, "previous_response_id": asked.id}
    async with await client.responses.create(model="holdfast", input="two", **waits) as events:
        async for event in events:
            read.add(event)
            if "waits" in read.text and len(read.events) < 10:
                await client.responses.create(model="holdfast", input="/deny", previous_response_id=asked.id)
    read.is_whole()
    assert read.response.output_text.endswith("two")
    rest = await client.responses.retrieve(ended.response.id, stream=True, starting_after=ended.last)
    assert (await ended.all(rest)).response.output_text.endswith("one")


async def test_commands_are_answered_by_the_gateway(client: AsyncOpenAI) -> None:
    first = await ask(client, "hello")
    status = await ask(client, "/status", previous_response_id=first.id)
    assert status.output_text.startswith("This conversation is idle.")
    fresh = await ask(client, "/new", previous_response_id=first.id)
    assert fresh.conversation.id != first.conversation.id
    assert (await ask(client, "hi", previous_response_id=fresh.id)).conversation.id == fresh.conversation.id


async def test_a_failed_turn_is_a_failed_response(client: AsyncOpenAI) -> None:
    read = await stream(client, "fail")
    read.is_whole()
    assert (read.types[-1], read.response.status) == ("response.failed", "failed")
    assert read.response.error is not None and read.response.error.message


async def test_a_cancelled_response_ends_and_says_so(served: World, client: AsyncOpenAI) -> None:
    response = await ask(client, "hold", background=True)
    await served.until_state(response.conversation.id, "running")
    cancelled = is_response(await client.responses.cancel(response.id))
    assert (cancelled.status, cancelled.output_text) == ("cancelled", "holding")
    assert is_response(await client.responses.cancel(response.id)) == cancelled
    read = await Read().all(await client.responses.retrieve(response.id, stream=True))
    assert read.types[-1] == "response.incomplete" and read.response.status == "cancelled"


async def test_a_message_that_waits_is_taken_back_by_cancelling_its_response(served: World, client: AsyncOpenAI) -> None:
    """P1: no turn, and one visible refusal."""
    running = await ask(client, "hold", background=True)
    waits = await ask(client, "hello", background=True, previous_response_id=running.id)
    assert is_response(await client.responses.cancel(waits.id)).status == "cancelled"
    served.agent.released.set()
    view = await served.until_state(running.conversation.id, "idle")
    assert len(view["turns"]) == 1 and [message["status"] for message in view["messages"]] == ["complete", "complete", "refused"]
    assert is_response(await client.responses.retrieve(running.id)).status == "completed"


async def test_a_message_of_a_conversation_that_is_left_is_refused_aloud(served: World, client: AsyncOpenAI) -> None:
    running = await ask(client, "hold", background=True)
    waits = await ask(client, "hello", background=True, previous_response_id=running.id)
    await served.client.post(f"/api/sessions/{running.conversation.id}/reset", json={})
    response = is_response(await client.responses.retrieve(waits.id))
    assert response.status == "failed" and response.error is not None
    assert response.error.message == "refused: a new conversation was started first"


async def test_the_same_key_gives_the_same_response_and_nothing_is_said_twice(served: World, client: AsyncOpenAI) -> None:
    headers = {"Idempotency-Key": "k1"}
    made = await asyncio.gather(*(ask(client, "hello", extra_headers=headers) for _ in range(5)))
    assert len({each.id for each in made}) == 1
    read = await stream(client, "hello", extra_headers=headers)
    assert read.response.id == made[0].id and read.text == "hello"
    assert len((await served.client.get("/api/sessions")).json()["sessions"]) == 1
    with pytest.raises(openai.ConflictError) as refused:
        await ask(client, "other", extra_headers=headers)
    assert refused.value.code == "idempotency_key_reused"


async def test_a_key_counts_across_conversations_and_with_instructions(served: World, client: AsyncOpenAI) -> None:
    first = await ask(client, "hello", instructions="Be brief.")
    headers = {"Idempotency-Key": "k2"}
    made = [await ask(client, "again", instructions="Be long.", previous_response_id=first.id, extra_headers=headers) for _ in range(2)]
    assert made[0] == made[1]
    assert len((await served.view(first.conversation.id))["turns"]) == 2


AGAIN = {"X-Stainless-Retry-Count": "1"}


async def undelivered(served: World, client: AsyncOpenAI, text: str, **more: Any) -> None:
    """A request whose client left before it had an answer."""
    readers = served.gateway.feed.readers
    task = asyncio.get_running_loop().create_task(ask(client, text, **more))
    await web.eventually(lambda: served.gateway.feed.readers == readers + 1)
    task.cancel()
    await asyncio.wait([task])
    await web.eventually(lambda: served.gateway.feed.readers == readers)


async def test_what_an_sdk_tries_again_is_taken_for_the_same_request(served: World, client: AsyncOpenAI) -> None:
    """P1, P5: it sends no key, but says in a header that it has tried before."""
    await undelivered(served, client, "hold")
    served.agent.released.set()
    response = await ask(client, "hold", extra_headers=AGAIN)
    assert response.output_text == "holding"
    served.agent.released.clear()
    await undelivered(served, client, "hold", previous_response_id=response.id)
    served.agent.released.set()
    second = await ask(client, "hold", previous_response_id=response.id, extra_headers=AGAIN)
    [session] = (await served.client.get("/api/sessions")).json()["sessions"]
    assert len((await served.view(session["session_id"]))["turns"]) == 2 and second.id != response.id


async def test_what_was_answered_or_is_said_elsewhere_is_not_taken_for_a_repetition(served: World, client: AsyncOpenAI) -> None:
    """P1: the same words at another place are another message."""
    first = await ask(client, "hello")
    assert (await ask(client, "hello", extra_headers=AGAIN)).id != first.id, "that one has reached its client"
    yes = await ask(client, "yes", previous_response_id=first.id)
    again = await ask(client, "yes", previous_response_id=yes.id, extra_headers=AGAIN)
    assert again.id != yes.id
    await undelivered(served, client, "hold", conversation=first.conversation.id)
    served.agent.released.set()
    await ask(client, "hold", conversation=first.conversation.id, extra_headers=AGAIN)
    said = [message["text"] for message in (await served.view(first.conversation.id))["messages"] if message["role"] == "user"]
    assert said == ["hello", "yes", "yes", "hold", "hold"], "a session alone does not say which of two messages is meant"


async def test_a_repetition_that_comes_much_later_is_a_new_message(served: World, client: AsyncOpenAI) -> None:
    await undelivered(served, client, "hold")
    served.agent.released.set()
    served.clock.pass_s(601)
    await ask(client, "hold", extra_headers=AGAIN)
    assert len((await served.client.get("/api/sessions")).json()["sessions"]) == 2


async def test_instructions_are_told_once_and_again_when_they_change(served: World, client: AsyncOpenAI) -> None:
    first = await ask(client, "one", instructions="Be brief.")
    for text, instructions in (("two", "Be brief."), ("three", None), ("/status", "Be kind."), ("four", "Be long."), ("five", "Be long.")):
        await ask(client, text, previous_response_id=first.id, **({"instructions": instructions} if instructions else {}))
    messages = (await served.view(first.conversation.id))["messages"]
    said = [message["text"] for message in messages if message["role"] == "user" and message["status"] != "command"]
    assert said == [
        "Instructions from the client:\nBe brief.\n\nMessage:\none",
        "two",
        "three",
        "Instructions from the client:\nBe long.\n\nMessage:\nfour",
        "five",
    ]


async def test_a_list_of_messages_may_be_the_whole_conversation(served: World, client: AsyncOpenAI) -> None:
    first = await ask(client, [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "lines one"}])
    history = [{"role": "user", "content": "lines one"}, *(item.model_dump() for item in first.output)]
    second = await ask(client, [*history, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "two"}]}])
    assert second.conversation.id == first.conversation.id
    named = [{"type": "item_reference", "id": item.id} for item in first.output]  # As some clients send back what they got.
    other = await ask(client, [*history[:1], *named, {"role": "user", "content": "three"}])
    assert other.conversation.id != first.conversation.id, "it does not know what was said since"
    third = await ask(client, [*history[:1], *named, {"role": "user", "content": "three"}, {"role": "user", "content": "four"}])
    assert third.conversation.id == other.conversation.id
    assert (await served.view(first.conversation.id))["messages"][-2]["text"] == "two"


async def test_a_chosen_model_is_the_conversations_model_from_then_on(tmp_path: Path) -> None:
    async with web.world(tmp_path, settings=Settings(models=("a:first", "b:sec/ond"))) as world, web.serving(world), sdk(world) as client:
        assert [model.id async for model in client.models.list()] == ["holdfast", "a:first", "b:sec/ond"]
        assert (await client.models.retrieve("b:sec/ond")).id == "b:sec/ond"
        first: Any = await client.responses.create(model="a:first", input="hello")
        assert (await world.view(first.conversation.id))["model"] is None  # It is the default.
        for name, chosen in (("b:sec/ond", "b:sec/ond"), ("holdfast", "b:sec/ond"), ("a:first", "a:first")):
            await client.responses.create(model=name, input="hello", previous_response_id=first.id)
            assert (await world.view(first.conversation.id))["model"] == chosen
        await world.gateway.change_session(first.conversation.id, SessionChanged(model=None))
        with pytest.raises(openai.NotFoundError) as unknown:
            await client.responses.create(model="gpt-4", input="hello")
        assert unknown.value.code == "model_not_found" and "b:sec/ond" in str(unknown.value)


async def test_pieces_that_were_pruned_come_whole_and_never_twice(served: World, client: AsyncOpenAI) -> None:
    """P7: a reader that has some of the text gets the rest in the events that end it."""
    whole = await stream(client, "count 12")
    await ask(client, "hello", previous_response_id=whole.response.id)
    served.clock.pass_s(8 * 24 * 3600)
    assert await served.gateway.store.prune_streams(before=served.clock.now(), at=served.clock.now(), limit=100)
    fresh = await Read().all(await client.responses.retrieve(whole.response.id, stream=True))
    fresh.is_whole()
    assert fresh.text == whole.text
    deltas = [event for event in whole.events if event.type == "response.output_text.delta"]
    for event in (deltas[0], deltas[-1]):
        read = await Read().all(await client.responses.retrieve(whole.response.id, stream=True, starting_after=event.sequence_number))
        assert read.text == "" and read.response.output_text == whole.text
        assert [each.text for each in read.events if each.type == "response.output_text.done"] == [whole.text]


async def test_a_deleted_session_ends_its_streams_and_its_responses(served: World, client: AsyncOpenAI) -> None:
    response = await ask(client, "hold", background=True)
    await served.until_state(response.conversation.id, "running")
    waiting = asyncio.get_running_loop().create_task(Read().all(await client.responses.retrieve(response.id, stream=True)))
    await web.eventually(lambda: served.gateway.feed.readers == 1)
    await served.client.delete(f"/api/sessions/{response.conversation.id}")
    read = await waiting
    assert read.types[-1] in ("error", "response.incomplete")
    with pytest.raises(openai.APIStatusError) as gone:
        await client.responses.retrieve(response.id)
    assert gone.value.status_code == 410


async def test_files_become_parts_of_the_message(served: World, client: AsyncOpenAI) -> None:
    uploaded = (await served.client.post("/api/uploads", params={"name": "big.bin"}, content=b"big")).json()["attachment_id"]
    content = [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": "data:image/png;base64,aW1n", "detail": "auto"},
        {"type": "input_file", "filename": "../a b.txt", "file_data": "data:text/plain;base64,dGV4dA=="},
        {"type": "input_file", "file_id": uploaded},
    ]
    response = await ask(client, [{"role": "user", "content": content}])
    parts = (await served.view(response.conversation.id))["messages"][0]["parts"]
    assert [(part["type"], part.get("name"), part.get("media_type"), part.get("size")) for part in parts] == [
        ("text", None, None, None),
        ("image", "image.png", "image/png", 3),
        ("file", "a b.txt", "text/plain", 4),
        ("file", "big.bin", "application/octet-stream", 3),
    ]
    answer = await served.client.get(f"/api/blobs/{parts[2]['digest']}")
    assert answer.content == b"text"


async def test_a_gateway_that_stops_tells_its_readers_where_to_continue(served: World, client: AsyncOpenAI) -> None:
    response = await ask(client, "hold", background=True)
    await served.until_state(response.conversation.id, "running")
    streaming = asyncio.get_running_loop().create_task(Read().all(await client.responses.retrieve(response.id, stream=True)))
    waiting = asyncio.get_running_loop().create_task(ask(client, "next", previous_response_id=response.id))
    await web.eventually(lambda: served.gateway.feed.readers == 2)
    served.gateway.feed.end("shutdown")
    read = await streaming
    assert read.types[-1] == "error" and read.events[-1].code == "shutdown" and response.id in read.events[-1].message
    with pytest.raises(openai.InternalServerError) as restarting:
        await waiting
    assert (restarting.value.status_code, restarting.value.code) == (503, "restarting")
    assert restarting.value.response.headers["retry-after"] == "1"
