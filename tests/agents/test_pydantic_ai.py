"""The bridge to pydantic-ai, with its own models for tests behind it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai import exceptions
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from holdfast.agents.wires import providers
from holdfast.agents.wires.pydantic_ai import Bridge
from holdfast.core.content import ImagePart, TextPart
from holdfast.core.effects import ToolOutcome
from holdfast.core.errors import BadInput
from holdfast.core.history import Item
from holdfast.ports.agents import Response
from holdfast.ports.models import Busy, CallPiece, Cut, ModelError, NotAllowed, Rejected, TooLong
from tests.agents.wiring import KEY, asking, results, said, step, streamed, talking, thought, user
from tests.fakes.models import ModelServer, Reply, call, serving, text


class Finishing(WrapperModel):
    """Tells the reason for its end, as providers do and pydantic-ai's models for tests do not."""

    reason: Any = "stop"

    @asynccontextmanager
    async def request_stream(self, *arguments: Any, **named: Any) -> AsyncIterator[Any]:
        async with super().request_stream(*arguments, **named) as stream:
            stream.finish_reason = self.reason
            yield stream


def bridge(function: Any, *, reason: Any = "stop", **options: Any) -> Bridge:
    model = Finishing(FunctionModel(stream_function=function))
    model.reason = reason
    return Bridge(model, provider="other", name="fake", timeout_s=5, **options)


async def plain(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
    yield "Hel"
    yield "lo."


async def busy(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
    yield {0: DeltaThinkingPart(content="Hm."), 1: DeltaThinkingPart(content="", signature="s")}
    yield {2: DeltaToolCall(name="terminal", json_args='{"comm', tool_call_id="a"), 3: DeltaToolCall(name="terminal", json_args="{bro")}
    yield {2: DeltaToolCall(json_args='and": "date"}'), 3: DeltaToolCall(json_args="ken")}


async def test_text_comes_as_pieces_and_then_whole() -> None:
    client = bridge(plain)
    pieces, response = await streamed(client)
    await client.aclose()
    assert (said(pieces), response.text, response.finish) == ("Hello.", "Hello.", "end")
    assert (response.wire, response.provider, response.model) == ("pydantic-ai", "other", "fake")
    assert response.usage.output > 0


async def test_thoughts_and_calls_are_told_and_malformed_arguments_are_a_problem() -> None:
    pieces, response = await streamed(bridge(busy))
    assert thought(pieces) == "Hm."
    assert [piece for piece in pieces if isinstance(piece, CallPiece)] == [CallPiece("terminal")] * 2
    assert response.finish == "calls"
    assert response.calls[0].arguments == {"command": "date"}
    assert "not JSON" in str(response.calls[1].problem)


async def test_a_stream_that_ends_without_a_reason_is_cut() -> None:
    """pydantic-ai calls it complete."""
    for reason in (None, "error"):
        with pytest.raises(Cut):
            await streamed(bridge(plain, reason=reason))
    with pytest.raises(Cut):
        await streamed(Bridge(TestModel(), provider="other", name="fake", timeout_s=5), asking(tools=()))


async def test_the_last_call_of_an_answer_without_room_is_not_run() -> None:
    _, response = await streamed(bridge(busy, reason="length"))
    assert response.finish == "length" and "length limit" in str(response.calls[-1].problem)


async def given(*history: Item, **more: Any) -> list[ModelMessage]:
    """What the model is given."""
    seen: list[ModelMessage] = []

    async def looking(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        seen.extend(messages)
        assert [tool.name for tool in info.function_tools] == ["terminal"]
        yield "Done."

    takes = more.pop("takes", frozenset())
    await streamed(bridge(looking, takes=takes), asking(*history, **more))
    return seen


async def test_its_own_blocks_go_back_with_their_ids_and_thoughts() -> None:
    _, response = await streamed(bridge(busy))
    first = step(response)
    history: tuple[Item, ...] = (user("Go."), first, *results(first, "noon", "no", outcome=ToolOutcome.FAILED))
    messages = await given(*history, note="[A note.]")
    assert [part.part_kind for part in messages[0].parts] == ["system-prompt", "user-prompt"]
    assert [part.part_kind for part in messages[1].parts] == ["thinking", "thinking", "tool-call", "tool-call"]
    kinds = [part.part_kind for part in messages[2].parts]
    assert kinds == ["tool-return", "tool-return", "user-prompt"]
    assert messages[2].parts[0].tool_call_id == "a" and messages[2].parts[0].outcome == "failed"  # type: ignore[union-attr]
    thoughtless = await given(*history, thoughts=False)
    assert [part.part_kind for part in thoughtless[1].parts] == ["tool-call", "tool-call"]


async def test_a_step_of_another_wire_and_what_it_does_not_take_are_told() -> None:
    async with talking(Reply(say=(*text("Let me see."), call("terminal", {"command": "date"})))) as (client, _):
        first = step((await streamed(client))[1])
    picture = ImagePart(blob="p", size=3, media_type="image/png", name="cat.png")

    async def read(digest: str) -> bytes:
        return b"PNG"

    history: tuple[Item, ...] = (user((TextPart("Look:"), picture)), first, *results(first, "noon"))
    blind, seeing = await given(*history, read=read), await given(*history, read=read, takes=frozenset({"image"}))
    assert "cat.png (image/png, 3 bytes) was not given to you" in str(blind[0])
    assert "PNG" in str(seeing[0]) and "was not given" not in str(seeing[0])
    answer = blind[1]
    assert isinstance(answer, ModelResponse) and answer.text == "Let me see."
    assert [part.args for part in answer.parts if isinstance(part, ToolCallPart)] == [{"command": "date"}]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (exceptions.ModelHTTPError(429, "m", {"error": "Slow"}, headers={"retry-after": "3"}), Busy),
        (exceptions.ModelHTTPError(400, "m", {"error": "prompt is too long"}), TooLong),
        (exceptions.ModelHTTPError(401, "m", None), NotAllowed),
        (exceptions.ModelContextWindowExceededError("m", "long"), TooLong),
        (exceptions.ModelQuotaExceededError("m", "poor"), NotAllowed),
        (exceptions.ModelOverloadedError("m", "busy"), Busy),
        (exceptions.ModelRequestRejectedError("m", "no"), Rejected),
        (exceptions.ModelConnectionError("m", "refused"), Busy),
        (exceptions.UnexpectedModelBehavior("odd"), Busy),
        (exceptions.UserError("no key"), Rejected),
    ],
)
async def test_a_failure_is_told_by_who_must_act(error: Exception, kind: type[ModelError]) -> None:
    async def failing(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        raise error
        yield

    with pytest.raises(ModelError) as raised:
        await streamed(bridge(failing))
    assert type(raised.value) is kind and raised.value.__context__ is None
    if isinstance(raised.value, Busy):
        assert raised.value.retry_after_s in (3, None)


async def test_a_connection_lost_within_the_answer_is_cut() -> None:
    async def failing(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        yield "Half an "
        raise exceptions.ModelConnectionError("m", "reset")

    with pytest.raises(Cut):
        await streamed(bridge(failing))


async def test_a_provider_that_nobody_knows_or_that_lacks_its_library_is_refused_with_what_to_do() -> None:
    with pytest.raises(BadInput, match="Unknown model"):
        providers.client("nobody:x")
    with pytest.raises(BadInput, match="install"):
        providers.client("bedrock:x")


async def test_a_response_survives_the_log() -> None:
    _, response = await streamed(bridge(busy))
    assert msgspec.json.decode(msgspec.json.encode(response), type=Response) == response


@pytest.mark.parametrize("provider", ["other", "elsewhere"])
async def test_a_name_that_a_model_made_up_goes_back_as_every_provider_takes_it(provider: str) -> None:
    async def odd(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        yield {0: DeltaToolCall(name="functions.terminal", json_args="{}", tool_call_id="a")}

    given: list[ModelMessage] = []

    async def listening(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        given.extend(messages)
        yield "Done."

    _, response = await streamed(bridge(odd))
    first = step(msgspec.structs.replace(response, provider=provider))
    await streamed(bridge(listening), asking(user("Go."), first, *results(first, "There is no such tool.")))
    names = [part.tool_name for message in given for part in message.parts if isinstance(part, ToolCallPart | ToolReturnPart)]
    assert names == ["functions_terminal"] * 2


@asynccontextmanager
async def their_model(library: str, server: ModelServer) -> AsyncIterator[Model]:
    """With the retries that its library begins with."""
    if library == "anthropic":
        async with AsyncAnthropic(base_url=server.root, api_key=KEY) as claude:
            yield AnthropicModel("fake", provider=AnthropicProvider(anthropic_client=claude))
    else:
        kind = OpenAIChatModel if library == "chat" else OpenAIResponsesModel
        async with AsyncOpenAI(base_url=server.url, api_key=KEY) as client:
            yield kind("fake", provider=OpenAIProvider(openai_client=client))


@pytest.mark.parametrize("library", ["chat", "responses", "anthropic"])
@pytest.mark.parametrize("wrong", [{"status": 500}, {"status": 429}, {"drop": True}], ids=["broken", "busy", "dropped"])
async def test_no_library_tries_again_unseen(library: str, wrong: dict[str, Any]) -> None:
    """P3: one request is one request; ours are on record before they are repeated."""
    reply = Reply(error={"error": {"message": "No.", "type": "x"}}, **wrong)
    async with serving(reply) as server, their_model(library, server) as model:
        client = Bridge(model, provider="other", name="fake", timeout_s=30)
        with pytest.raises(Busy):
            await streamed(client)
        await client.aclose()
        assert len(server.requests) == 1
