"""A wire without a network: our request goes to the fake server's speech, and the events of its reply to our reader. For simulated time."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from holdfast.agents.wires.anthropic import Anthropic
from holdfast.agents.wires.chat import Chat
from holdfast.agents.wires.client import Wire
from holdfast.agents.wires.responses import Responses
from holdfast.agents.wires.sse import Events
from holdfast.ports.agents import Response
from holdfast.ports.models import ModelError, ModelRequest, Piece, Taking
from tests.fakes.models.script import Script
from tests.fakes.models.server import SPEECHES

WIRES = ("chat", "responses", "anthropic")
EVENT_S = 0.0001


def _wire(name: str) -> Wire:
    return {"chat": Chat, "responses": Responses, "anthropic": Anthropic}[name]()


class WiredModel:
    """Replies by the number of its responses that a request holds. `requests`: the bodies, each checked as the real server would."""

    takes = Taking()

    def __init__(self, wire: str, script: Script) -> None:
        self.provider, self.model, self.wire = wire, "test", wire
        self._wire, self._speech, self._script = _wire(wire), SPEECHES[wire], script
        self.requests: list[dict[str, Any]] = []

    async def aclose(self) -> None: ...

    async def stream(self, request: ModelRequest) -> AsyncIterator[Piece | Response]:
        body = msgspec.json.decode(msgspec.json.encode(await self._wire.body(request, self.provider, self.model)))
        self.requests.append(body)
        self._speech.check(body)
        reply = self._script.replies[min(self._speech.steps(body), len(self._script.replies) - 1)]
        reader, events = self._wire.reader(_refused), Events()
        for sent in self._speech.events(reply, len(self.requests)):
            await asyncio.sleep(EVENT_S)
            for data in events.feed(sent):
                for piece in reader.feed({"type": "[DONE]"} if data == b"[DONE]" else msgspec.json.decode(data)):
                    yield piece
        yield msgspec.structs.replace(reader.read(), wire=self.wire, provider=self.provider, model=self.model)


def _refused(event: object) -> ModelError:
    return ModelError(f"refused: {event}")
