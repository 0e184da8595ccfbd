"""Chat completions, with the official SDK: a conversation that grows turn by turn is one session, found by its words alone."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest

from tests.gateway import web
from tests.gateway.door import is_chunk, is_completion, sdk
from tests.gateway.web import World


@pytest.fixture
async def client(served: World) -> AsyncIterator[Any]:
    async with sdk(served) as made:
        yield made


def session_of(completion: Any) -> str:
    """Which session a completion is of, by its own id."""
    return str(completion.id).removeprefix("chatcmpl-").partition(".")[0]


class Talk:
    """A client that keeps the conversation itself and sends all of it each time."""

    def __init__(self, client: Any, *first: dict[str, Any], **options: Any) -> None:
        self.client, self.messages, self.options = client, list(first), options
        self.sessions: list[str] = []

    async def say(self, text: Any, **more: Any) -> str:
        self.messages.append({"role": "user", "content": text})
        completion = is_completion(
            await self.client.chat.completions.create(model="holdfast", messages=self.messages, **(self.options | more))
        )
        return self.heard(completion, completion.choices[0].message.content or "")

    def heard(self, completion: Any, text: str) -> str:
        self.sessions.append(session_of(completion))
        self.messages.append({"role": "assistant", "content": text})
        return text

    @property
    def one_session(self) -> str:
        assert len(set(self.sessions)) == 1, self.sessions
        return self.sessions[0]


async def users(world: World, session_id: str) -> list[str]:
    return [message["text"] for message in (await world.view(session_id))["messages"] if message["role"] == "user"]


async def chunks(client: Any, messages: list[dict[str, Any]], **more: Any) -> list[Any]:
    stream = await client.chat.completions.create(model="holdfast", messages=messages, stream=True, **more)
    return [is_chunk(chunk) async for chunk in stream]


def content(found: list[Any]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in found if chunk.choices)


async def test_a_conversation_that_grows_turn_by_turn_is_one_session(served: World, client: Any) -> None:
    talk = Talk(client, {"role": "system", "content": "Be brief."})
    for text in ("one", "two  words", "ask Which?", "blue", "/status", "three"):
        await talk.say(text)
    said = await users(served, talk.one_session)
    assert sorted(said) == sorted(
        ["Instructions from the client:\nBe brief.\n\nMessage:\none", "two  words", "ask Which?", "blue", "/status", "three"]
    )
    assert talk.messages[6]["content"] == "Which?" and talk.messages[8]["content"] == "told: blue"


async def test_what_a_client_trims_or_reflows_is_still_the_same_conversation(client: Any) -> None:
    talk = Talk(client)
    await talk.say("first \n  line")
    talk.messages = [{"role": each["role"], "content": " ".join(each["content"].split()) + "\n"} for each in talk.messages]
    await talk.say("second")
    assert talk.one_session


async def test_clients_that_begin_with_the_same_words_have_each_their_own_session(served: World, client: Any) -> None:
    talks = [Talk(client) for _ in range(4)]
    for text in ("hi", "how are you", "bye"):
        await asyncio.gather(*(talk.say(text) for talk in talks))
    found = {session for talk in talks for session in talk.sessions}
    assert len(found) == 4
    for session_id in found:
        assert await users(served, session_id) == ["hi", "how are you", "bye"]


async def test_the_page_and_the_client_share_a_conversation(served: World, client: Any) -> None:
    talk = Talk(client)
    await talk.say("one")
    await served.say(talk.one_session, "said on the page")
    await talk.say("two")
    assert await users(served, talk.one_session) == ["one", "said on the page", "two"]


async def test_an_edited_message_begins_a_session_that_is_told_what_came_before(served: World, client: Any) -> None:
    talk = Talk(client)
    for text in ("one", "two", "three"):
        await talk.say(text)
    branch = Talk(client, *talk.messages[:2])
    await branch.say("other two")
    await branch.say("other three")
    assert branch.one_session != talk.one_session
    assert (await users(served, branch.one_session))[0] == (
        "Earlier messages, as the client sent them:\nUser: one\n\nAssistant: one\n\nMessage:\nother two"
    )
    await talk.say("four")
    assert talk.one_session


async def test_an_answer_that_the_client_changed_is_another_conversation(client: Any) -> None:
    talk = Talk(client)
    await talk.say("one")
    talk.messages[-1]["content"] = "something else"
    await talk.say("two")
    assert len(set(talk.sessions)) == 2


async def test_a_client_that_left_in_the_middle_of_an_answer_finds_its_conversation(served: World, client: Any) -> None:
    talk = Talk(client, {"role": "user", "content": "hold"})
    stream = await client.chat.completions.create(model="holdfast", messages=talk.messages, stream=True)
    async with stream:
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                talk.heard(chunk, chunk.choices[0].delta.content[:4])
                break
    next_message = asyncio.get_running_loop().create_task(talk.say("next"))
    session_id = talk.one_session
    await served.until_state(session_id, "running")
    await served.until(lambda: _queued(served, session_id))
    served.agent.released.set()
    assert await next_message == "next"
    assert talk.one_session == session_id


async def _queued(served: World, session_id: str) -> bool:
    return bool((await served.view(session_id))["queued"])


async def test_after_an_error_the_conversation_continues(served: World, client: Any) -> None:
    talk = Talk(client)
    await talk.say("one")
    with pytest.raises(openai.InternalServerError) as failed:
        await talk.say("fail")
    assert (failed.value.status_code, failed.value.code) == (502, "turn_failed")
    assert failed.value.response.headers["x-should-retry"] == "false"
    await talk.say("two")
    assert await users(served, talk.one_session) == ["one", "fail", "two"]


async def test_several_new_messages_are_said_as_one(served: World, client: Any) -> None:
    talk = Talk(client)
    await talk.say("one")
    talk.messages.append({"role": "user", "content": "two"})
    await talk.say("three")
    assert await users(served, talk.one_session) == ["one", "two\n\nthree"]


async def test_the_header_names_a_session_by_its_id_or_by_a_name_of_ones_own(served: World, client: Any) -> None:
    by_name = Talk(client, extra_headers={"X-Holdfast-Session": "my chat 7"})
    await asyncio.gather(*(Talk(client, extra_headers=by_name.options["extra_headers"]).say(f"one of {n}") for n in range(3)))
    await by_name.say("one")
    by_name.messages = by_name.messages[:1]  # A client that forgets what was said.
    await by_name.say("two")
    assert len(await users(served, by_name.one_session)) == 5
    by_id = Talk(client, extra_headers={"X-Holdfast-Session": by_name.one_session})
    await by_id.say("three")
    assert by_id.one_session == by_name.one_session
    fresh = Talk(client)
    raw = await client.chat.completions.with_raw_response.create(model="holdfast", messages=[{"role": "user", "content": "hello"}])
    assert raw.headers["x-holdfast-session"] == session_of(raw.parse())
    with pytest.raises(openai.NotFoundError):
        await fresh.say("one", extra_headers={"X-Holdfast-Session": "s_nosuchsession"})


async def test_a_client_with_a_header_says_only_what_is_new(served: World, client: Any) -> None:
    talk = Talk(client, extra_headers={"X-Holdfast-Session": "mine"})
    for text in ("one", "fail", "two", "three"):
        try:
            await talk.say(text)
        except openai.InternalServerError:
            pass
    assert await users(served, talk.one_session) == ["one", "fail", "two", "three"]


async def test_a_stream_has_a_role_pieces_a_reason_and_the_usage(client: Any) -> None:
    found = await chunks(client, [{"role": "user", "content": "count 6"}], stream_options={"include_usage": True})
    assert found[0].choices[0].delta.role == "assistant" and content(found) == "0 1 2 "
    assert found[-2].choices[0].finish_reason == "stop"
    assert found[-1].choices == [] and found[-1].usage.total_tokens == 0
    assert len({chunk.id for chunk in found}) == 1
    thoughts = "".join(getattr(chunk.choices[0].delta, "reasoning_content", None) or "" for chunk in found if chunk.choices)
    assert thoughts == "(0)(1)(2)"


async def test_calls_stand_next_to_the_answer_and_are_not_for_the_client_to_run(client: Any) -> None:
    completion = await client.chat.completions.create(model="holdfast", messages=[{"role": "user", "content": "lines words"}])
    message = completion.choices[0].message
    assert (message.content, message.tool_calls) == ("words", None)
    assert message.reasoning_content == 'words\n\nprinter {"text":"words"}'
    found = await chunks(client, [{"role": "user", "content": "lines words"}])
    assert not any(chunk.choices[0].delta.tool_calls for chunk in found)


@pytest.mark.parametrize(("finish", "reason"), [("end", "stop"), ("length", "length"), ("filtered", "content_filter")])
async def test_the_steps_of_a_model_are_one_text(client: Any, finish: str, reason: str) -> None:
    completion = await client.chat.completions.create(model="holdfast", messages=[{"role": "user", "content": f"model {finish}"}])
    [choice] = completion.choices
    assert (choice.message.content, choice.finish_reason) == ("Let me look.\n\nIt is so.", reason)
    assert choice.message.reasoning_content == 'hm\n\nprinter {"text":"seen"}\n\nhm'
    assert (completion.model, completion.usage.prompt_tokens, completion.usage.completion_tokens) == ("test:big", 200, 20)
    found = await chunks(client, [{"role": "user", "content": f"model {finish}"}], stream_options={"include_usage": True})
    assert content(found) == choice.message.content and found[-1].usage.total_tokens == 220


async def test_an_approval_is_asked_for_and_given_in_words(client: Any) -> None:
    talk = Talk(client)
    asked = await talk.say("approve this")
    assert "May I run `printer`" in asked and "/approve q_" in asked and "/deny q_" in asked
    waits = await talk.say("yes please")
    assert "needs your approval first" in waits and "/approve q_" in waits
    assert await talk.say("/approve") == "The call is approved.\n\ndone: this"
    assert await talk.say("done?") == "done?"
    assert talk.one_session


async def test_a_failed_turn_ends_a_stream_with_an_error(client: Any) -> None:
    with pytest.raises(openai.APIError, match="The agent did not answer"):
        await chunks(client, [{"role": "user", "content": "fail"}])


async def test_a_stopped_turn_says_so(served: World, client: Any) -> None:
    talk = Talk(client)
    answer = asyncio.get_running_loop().create_task(talk.say("hold"))

    async def running() -> str | None:
        sessions = (await served.client.get("/api/sessions")).json()["sessions"]
        return next((each["session_id"] for each in sessions if each["state"] == "running"), None)

    session_id = await served.until(running)
    await served.client.post(f"/api/sessions/{session_id}/stop", json={})
    assert (await answer).removeprefix("holding").strip() == "(Stopped.)"
    await talk.say("next")
    assert talk.one_session == session_id


async def test_a_client_that_disconnects_stops_nothing(served: World) -> None:
    async with sdk(served) as leaving:
        task = asyncio.get_running_loop().create_task(Talk(leaving).say("hold"))
        await web.eventually(lambda: served.gateway.feed.readers == 1)
        task.cancel()
        await asyncio.wait([task])
    await web.eventually(lambda: served.gateway.feed.readers == 0)
    [session] = (await served.client.get("/api/sessions")).json()["sessions"]
    assert session["state"] == "running"
    served.agent.released.set()
    view = await served.until_state(session["session_id"], "idle")
    assert view["turns"][0]["outcome"] == "completed"


async def test_the_same_key_is_answered_once_and_streamed_again_from_the_beginning(served: World, client: Any) -> None:
    talk = Talk(client)
    await talk.say("hello")
    again = [*talk.messages, {"role": "user", "content": "more"}]
    headers = {"Idempotency-Key": "k"}
    streams = await asyncio.gather(*(chunks(client, again, extra_headers=headers) for _ in range(3)))
    assert [content(found) for found in streams] == ["more"] * 3
    assert await users(served, talk.one_session) == ["hello", "more"]
    completion = await client.chat.completions.create(model="holdfast", messages=again, extra_headers=headers)
    assert completion.id == streams[0][0].id


async def test_the_id_of_a_completion_names_its_response(client: Any) -> None:
    completion = await client.chat.completions.create(model="holdfast", messages=[{"role": "user", "content": "hello"}])
    response = await client.responses.retrieve(completion.id)
    assert response.output_text == "hello" and response.id == completion.id.replace("chatcmpl-", "resp_")


async def test_images_and_recordings_become_parts(served: World, client: Any) -> None:
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,aW1n"}},
        {"type": "input_audio", "input_audio": {"data": "c291bmQ=", "format": "wav"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,cGRm"}},
    ]
    talk = Talk(client)
    await talk.say(parts)
    await talk.say("and now?")
    first = (await served.view(talk.one_session))["messages"][0]
    assert [(part["type"], part.get("name")) for part in first["parts"]] == [
        ("text", None),
        ("image", "image.jpeg"),
        ("audio", "audio.wav"),
        ("file", "a.pdf"),
    ]


async def test_messages_are_counted_by_how_their_conversation_was_found(served: World, client: Any) -> None:
    talk = Talk(client)
    await talk.say("one")
    await talk.say("two")
    text = (await served.client.get("/metrics")).text
    assert 'holdfast_door_messages_total{conversation="new",door="chat"} 1.0' in text
    assert 'holdfast_door_messages_total{conversation="known",door="chat"} 1.0' in text
