"""Responses of turns that a process was interrupted in: continued, written over, left, resumed, and told as they are (P3, P4, P7)."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI

from holdfast.gateway.settings import Settings
from tests.gateway import web
from tests.gateway.door import Read, is_chunk, is_response, sdk
from tests.gateway.web import World

Life = Callable[..., AbstractAsyncContextManager[tuple[World, AsyncOpenAI]]]


@pytest.fixture
def life(tmp_path: Path) -> Life:
    """A process on the same home as the one before it."""

    @asynccontextmanager
    async def begin(name: str, **settings: Any) -> AsyncIterator[tuple[World, AsyncOpenAI]]:
        async with web.world(tmp_path, life=name, settings=Settings(**settings)) as world, web.serving(world), sdk(world) as client:
            yield world, client
            await world.gateway.stop()  # What still runs is interrupted.

    return begin


async def begin_to_read(client: AsyncOpenAI, text: str) -> Read:
    """Up to the first words, and then the client is gone."""
    read = Read()
    async with await client.responses.create(model="holdfast", input=text, stream=True) as stream:
        async for event in stream:
            read.add(event)
            if read.text:
                break
    return read


async def read_on(client: AsyncOpenAI, read: Read) -> Read:
    name = read.events[0].response.id
    return await read.all(await client.responses.retrieve(name, stream=True, starting_after=read.last))


async def test_a_turn_that_the_next_process_resumes_completes_its_response(life: Life) -> None:
    async with life("one") as (_, client):
        read = await begin_to_read(client, "hold")
    async with life("two") as (world, client):
        world.agent.released.set()
        await read_on(client, read)
        read.is_whole()
        assert read.text == read.response.output_text == "holding"
        assert (read.response.status, (read.response.metadata or {})["attempt"]) == ("completed", "2")


async def test_what_a_later_attempt_says_instead_is_a_new_item(life: Life) -> None:
    """P7: a reader that only appends is told which text was written over, also one that comes back or comes late."""
    async with life("one") as (_, client):
        read = await begin_to_read(client, "attempt")
    async with life("two") as (world, client):
        world.agent.released.set()
        await read_on(client, read)
        read.is_whole()
        assert list(read.texts.values()) == ["attempt 1", "attempt 2"] and read.response.output_text == "attempt 2"
        late = await Read().all(await client.responses.retrieve(read.response.id, stream=True))
        assert late.events == read.events
        assert is_response(await client.responses.retrieve(read.response.id)).output_text == "attempt 2"


async def test_a_chat_completion_says_that_the_answer_starts_over(life: Life) -> None:
    messages: Any = [{"role": "user", "content": "attempt"}]
    again: Any = {"extra_headers": {"Idempotency-Key": "k"}}
    async with life("one") as (_, client):
        async with await client.chat.completions.create(model="holdfast", messages=messages, stream=True, **again) as stream:
            async for chunk in stream:
                if chunk.choices[0].delta.content:
                    break
    async with life("two") as (world, client):
        world.agent.released.set()
        stream = await client.chat.completions.create(model="holdfast", messages=messages, stream=True, **again)
        found = [is_chunk(chunk) async for chunk in stream]
        text = "".join(chunk.choices[0].delta.content or "" for chunk in found)
        assert text == "attempt 1\n\n(The answer starts over.)\n\nattempt 2"
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "next"}]
        completion = await client.chat.completions.create(model="holdfast", messages=messages)
        assert completion.id.partition(".")[0] == found[0].id.partition(".")[0], "it is the same conversation"


async def test_a_turn_that_is_left_is_incomplete_until_somebody_resumes_it(life: Life) -> None:
    """P3: nobody waits for an answer that nobody writes, and who comes back gets the rest."""
    async with life("one", auto_resume=False) as (_, client):
        read = await begin_to_read(client, "hold")
    async with life("two", auto_resume=False) as (world, client):
        name, session_id = read.events[0].response.id, read.events[0].response.conversation.id
        await read_on(client, read)
        assert (read.types[-1], read.response.status) == ("response.incomplete", "incomplete")
        shown: Any = await client.responses.retrieve(name)
        assert shown.incomplete_details.reason == "interrupted"
        assert "interrupted by a shutdown" in shown.metadata["why"]
        world.agent.released.set()
        resumed = await client.responses.create(model="holdfast", input="/resume", previous_response_id=name)
        assert resumed.status == "completed" and "continues" in resumed.output_text
        await world.until_state(session_id, "idle")
        await read_on(client, read)
        assert read.response.status == "completed" and read.text == read.response.output_text == "holding"
        fresh = await Read().all(await client.responses.retrieve(name, stream=True))
        fresh.is_whole()
        assert "response.incomplete" not in fresh.types


async def test_a_chat_completion_of_a_turn_that_is_left_says_so(life: Life) -> None:
    messages: Any = [{"role": "user", "content": "hold"}]
    again: Any = {"extra_headers": {"Idempotency-Key": "k"}}
    async with life("one", auto_resume=False) as (_, client):
        async with await client.chat.completions.create(model="holdfast", messages=messages, stream=True, **again) as stream:
            async for chunk in stream:
                if chunk.choices[0].delta.content:
                    break
    async with life("two", auto_resume=False) as (_, client):
        completion = await client.chat.completions.create(model="holdfast", messages=messages, **again)
        text = completion.choices[0].message.content or ""
        assert text.startswith("holding\n\nYour last request was interrupted by a shutdown") and "send /resume to continue it" in text
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "next"}]
        following = await client.chat.completions.create(model="holdfast", messages=messages)
        assert following.id.partition(".")[0] == completion.id.partition(".")[0]
        assert is_response(await client.responses.retrieve(completion.id)).status == "incomplete"


async def test_a_message_to_a_suspended_conversation_says_first_that_it_is_a_new_one(life: Life) -> None:
    async with life("one") as (world, client):
        messages: Any = [{"role": "user", "content": "one"}]
        first = await client.chat.completions.create(model="holdfast", messages=messages)
        session_id = first.id.removeprefix("chatcmpl-").partition(".")[0]
        await world.client.post(f"/api/sessions/{session_id}/suspend", json={})
        messages += [{"role": "assistant", "content": "one"}, {"role": "user", "content": "two"}]
        second = await client.chat.completions.create(model="holdfast", messages=messages)
        text = second.choices[0].message.content or ""
        assert "new conversation" in text and text.endswith("\n\ntwo") and session_id not in second.id
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "three"}]
        third = await client.chat.completions.create(model="holdfast", messages=messages)
        assert third.id.partition(".")[0] == second.id.partition(".")[0]
