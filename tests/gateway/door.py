"""The official SDK as a client of a gateway in this process. Its types hold every answer to what the protocol says."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.gateway.web import TOKEN, World

_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


@asynccontextmanager
async def sdk(world: World, **options: Any) -> AsyncIterator[AsyncOpenAI]:
    """It tries nothing again by itself, unless it is told to."""
    http = openai.DefaultAsyncHttpxClient(verify=False, trust_env=False)
    async with AsyncOpenAI(base_url=f"{world.url}/v1", api_key=TOKEN, http_client=http, **({"max_retries": 0} | options)) as client:
        yield client


def is_response(given: Any) -> Response:
    """Strictly what the protocol says, apart from `interrupted`, for which it has no word."""
    fields = given if isinstance(given, dict) else given.model_dump()
    if (fields["incomplete_details"] or {}).get("reason") == "interrupted":
        fields = fields | {"incomplete_details": None}
    return Response.model_validate(fields)


def is_event(given: Any) -> Any:
    fields = given.model_dump()
    if fields["type"] == "response.incomplete":
        is_response(fields["response"])
        fields["response"]["incomplete_details"] = None
    return _EVENT.validate_python(fields)


def is_completion(given: Any) -> ChatCompletion:
    return ChatCompletion.model_validate(given.model_dump())


def is_chunk(given: Any) -> ChatCompletionChunk:
    return ChatCompletionChunk.model_validate(given.model_dump())


class Read:
    """What a reader has of a stream of events."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def add(self, event: Any) -> None:
        is_event(event)
        if event.type != "error":
            assert not self.events or event.sequence_number > self.events[-1].sequence_number, "numbers must grow"
        self.events.append(event)

    async def all(self, stream: Any) -> "Read":
        async for event in stream:
            self.add(event)
        return self

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]

    @property
    def last(self) -> int:
        return int(self.events[-1].sequence_number)

    @property
    def response(self) -> Response:
        """As the last event has it."""
        return is_response(self.events[-1].response)

    @property
    def text(self) -> str:
        return "".join(event.delta for event in self.events if event.type == "response.output_text.delta")

    @property
    def texts(self) -> dict[str, str]:
        """By item, what its pieces make up."""
        found: dict[str, str] = {}
        for event in self.events:
            if event.type == "response.output_text.delta":
                found[event.item_id] = found.get(event.item_id, "") + event.delta
        return found

    def is_whole(self) -> None:
        """Everything that was added was done, each text is what its pieces make up, and the response at the end has just that."""
        added = [event.item.id for event in self.events if event.type == "response.output_item.added"]
        done = {event.item.id: event.item for event in self.events if event.type == "response.output_item.done"}
        assert sorted(added) == sorted(done) and len(set(added)) == len(added)
        texts = {event.item_id: event.text for event in self.events if event.type == "response.output_text.done"}
        assert texts == self.texts
        shown = [item.id for item in self.response.output]
        assert [name for name in added if name in shown] == shown
        assert all(done[name].status == "incomplete" for name in added if name not in shown), "only what was written over is left out"
        for item in self.response.output:
            assert item == done[item.id]
