"""The official SDKs as judges: their parsers of our servers, their types of our requests."""

from collections.abc import Iterable, Iterator
from types import UnionType
from typing import Any, Required, Union, get_args, get_origin, get_type_hints, is_typeddict

import anthropic
import openai
import pytest
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from holdfast.core.content import AudioPart, Content, FilePart, ImagePart, TextPart
from holdfast.core.effects import ToolOutcome
from holdfast.core.history import Item
from holdfast.ports.models import Busy, ModelRequest, ModelSettings
from tests.agents.wiring import KEY, TERMINAL, WIRES, asking, results, step, streamed, talking, user
from tests.fakes.models import ModelServer, Reply, call, serving, text, thought

BODIES: dict[str, Any] = {
    "chat": CompletionCreateParamsStreaming,
    "responses": ResponseCreateParamsStreaming,
    "anthropic": MessageCreateParamsStreaming,
}
SAID = (*thought("Hm", "m."), *text("Let me ", "see."), call("terminal", {"command": "date"}), call("terminal", {"command": "uptime"}))
HELLO: Any = [{"role": "user", "content": "Hello."}]

# Their parsers


async def spoken(wire: str, server: ModelServer) -> tuple[str, list[tuple[str, str]], str]:
    """What the SDK reads: the text, the calls, the reason for the end."""
    if wire == "chat":
        async with openai.AsyncOpenAI(api_key=KEY, base_url=server.url, max_retries=0) as client:
            async with client.chat.completions.stream(model="fake", messages=HELLO) as stream:
                completion = await stream.get_final_completion()
        choice = completion.choices[0]
        calls = [(each.function.name, each.function.arguments) for each in choice.message.tool_calls or ()]
        assert completion.usage is not None and completion.usage.prompt_tokens == 10
        return choice.message.content or "", calls, choice.finish_reason
    if wire == "responses":
        async with openai.AsyncOpenAI(api_key=KEY, base_url=server.url, max_retries=0) as client:
            async with client.responses.stream(model="fake", input="Hello.") as events:
                response = await events.get_final_response()
        made = [(item.name, item.arguments) for item in response.output if item.type == "function_call"]
        assert response.usage is not None and response.usage.input_tokens_details.cached_tokens == 4
        return response.output_text, made, str(response.status)
    async with anthropic.AsyncAnthropic(api_key=KEY, base_url=server.root, max_retries=0) as claude:
        async with claude.messages.stream(model="fake", max_tokens=9, messages=HELLO) as message_stream:
            message = await message_stream.get_final_message()
    used = [(block.name, str(block.input)) for block in message.content if block.type == "tool_use"]
    assert message.usage.cache_read_input_tokens == 4
    return "".join(block.text for block in message.content if block.type == "text"), used, str(message.stop_reason)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("interleave", [False, True])
async def test_the_sdk_reads_what_our_server_says(wire: str, interleave: bool) -> None:
    async with serving(Reply(say=SAID, interleave=interleave and wire != "anthropic")) as server:
        words, calls, finish = await spoken(wire, server)
    assert words == "Let me see." and finish in ("tool_calls", "completed", "tool_use")
    assert [(name, "date" in written, "uptime" in written) for name, written in calls] == [
        ("terminal", True, False),
        ("terminal", False, True),
    ]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
async def test_the_sdk_knows_the_refusals_of_our_server(wire: str, status: int) -> None:
    async with serving(Reply(status=status, error={"error": {"message": "No.", "type": "x"}})) as server:
        with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)) as raised:
            await spoken(wire, server)
    assert getattr(raised.value, "status_code", None) == status


ENDS = {
    "chat": [("length", "length"), ("content_filter", "filtered")],
    "responses": [("max_output_tokens", "length"), ("content_filter", "filtered")],
    "anthropic": [("max_tokens", "length"), ("refusal", "filtered")],
}


@pytest.mark.parametrize(("wire", "finish", "ours"), [(wire, *end) for wire in WIRES for end in ENDS[wire]])
async def test_the_sdk_reads_the_ends_of_our_server_that_are_not_the_models_own(wire: str, finish: str, ours: str) -> None:
    """So that what we read of such an end is what a real server would send."""
    reply = Reply(say=text("Let me ", "see."), finish=finish)
    async with serving(reply) as server:
        assert await ended(wire, server) == ("Let me see.", finish)
    async with talking(reply, wire=wire) as (client, _):
        _, response = await streamed(client)
    assert (response.text, response.finish) == ("Let me see.", ours)


async def ended(wire: str, server: ModelServer) -> tuple[str, str | None]:
    """What the SDK reads of a stream, event by event: its text, and why it ended."""
    words = ""
    why: str | None = None
    if wire == "chat":
        async with openai.AsyncOpenAI(api_key=KEY, base_url=server.url, max_retries=0) as client:
            async for chunk in await client.chat.completions.create(model="fake", messages=HELLO, stream=True):
                for choice in chunk.choices:
                    words, why = words + (choice.delta.content or ""), choice.finish_reason or why
    elif wire == "responses":
        async with openai.AsyncOpenAI(api_key=KEY, base_url=server.url, max_retries=0) as client:
            async for event in await client.responses.create(model="fake", input="Hello.", stream=True):
                if event.type == "response.output_text.delta":
                    words += event.delta
                elif event.type == "response.incomplete":
                    assert event.response.status == "incomplete" and event.response.incomplete_details is not None
                    why = event.response.incomplete_details.reason
    else:
        async with anthropic.AsyncAnthropic(api_key=KEY, base_url=server.root, max_retries=0) as claude:
            async with claude.messages.stream(model="fake", max_tokens=9, messages=HELLO) as message_stream:
                message = await message_stream.get_final_message()
        words, why = "".join(block.text for block in message.content if block.type == "text"), message.stop_reason
    return words, why


FAILED: dict[str, Any] = {
    "chat": {"error": {"message": "No more.", "type": "server_error", "code": None, "param": None}},
    "responses": {"type": "error", "code": "server_error", "message": "No more.", "param": None, "sequence_number": 1},
    "anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "No more."}},
}


@pytest.mark.parametrize("wire", WIRES)
async def test_the_sdk_knows_an_error_within_a_stream_of_our_server(wire: str) -> None:
    """And so do we: it is no end of an answer."""
    reply = Reply(events=(FAILED[wire],))
    async with serving(reply) as server:
        if wire == "responses":  # As an event of its own, which the SDK hands on.
            async with openai.AsyncOpenAI(api_key=KEY, base_url=server.url, max_retries=0) as client:
                events = [event async for event in await client.responses.create(model="fake", input="Hello.", stream=True)]
            assert [(event.type, getattr(event, "message", None)) for event in events] == [("error", "No more.")]
        else:
            with pytest.raises((openai.APIError, anthropic.APIError), match=r"No more\."):
                await ended(wire, server)
    async with talking(reply, wire=wire) as (ours, _):
        with pytest.raises(Busy, match=r"No more\."):
            await streamed(ours)


# Their types


async def read(digest: str) -> bytes:
    return b"bytes"


async def requests() -> Iterator[ModelRequest]:
    """Everything that a history can hold: attachments, results of every outcome, thoughts, steps of every wire, notes, settings."""
    files: Content = (
        TextPart("Look:"),
        ImagePart(blob="p", size=3, media_type="image/png", name="cat.png"),
        AudioPart(blob="s", size=3, media_type="audio/wav", name="a.wav"),
        FilePart(blob="f", size=3, media_type="application/pdf", name="paper.pdf"),
        FilePart(blob="z", size=3, media_type="application/zip"),
    )
    made: list[ModelRequest] = []
    for wrote in WIRES:
        async with talking(Reply(say=SAID), wire=wrote) as (client, _):
            first = step((await streamed(client))[1])
        done, failed = results(first, files, "no such command")
        wrong = type(failed)(call_id=failed.call_id, name=failed.name, outcome=ToolOutcome.FAILED, content=failed.content)
        history: tuple[Item, ...] = (user(files), first, done, wrong, user("And?"))
        settings = ModelSettings(max_tokens=100, temperature=1.0, effort="high")
        made.append(asking(*history, read=read, tools=(TERMINAL, TERMINAL), note="[A note.]", settings=settings))
        made.append(asking(*history, read=read, thoughts=False))
    return iter([*made, asking(), asking(system="", tools=())])


@pytest.mark.parametrize("wire", WIRES)
async def test_our_requests_are_what_the_sdk_would_send(wire: str) -> None:
    taking = frozenset({"image", "audio", "file"})
    bodies = []
    for request in await requests():
        async with talking(Reply(say=text("Done.")), wire=wire, takes=taking) as (client, server):
            await streamed(client, request)
            bodies.append(server.requests[0].body)
    checked = TypeAdapter(listed(BODIES[wire]))
    for body in bodies:
        assert set(body) <= set(get_type_hints(BODIES[wire]))
        checked.validate_python(body)


def listed(kind: Any, within: tuple[Any, ...] = ()) -> Any:
    """The same type with lists where it says Iterable: those would be checked only when somebody reads them."""
    if is_typeddict(kind):
        if kind in within:
            return dict
        hints = get_type_hints(kind).items()
        fields = {
            name: Required[listed(each, (*within, kind))] if name in kind.__required_keys__ else listed(each, (*within, kind))
            for name, each in hints
        }
        return TypedDict(kind.__name__, fields, total=False)  # type: ignore[operator]
    arguments = tuple(listed(each, within) for each in get_args(kind))
    origin = get_origin(kind)
    if origin is Iterable:
        return list[arguments[0]]  # type: ignore[valid-type]
    return Union[arguments] if origin in (Union, UnionType) else kind  # noqa: UP007
