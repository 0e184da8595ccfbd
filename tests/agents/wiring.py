"""What the tests of the wires share: requests, items of a history, and what a stream gives."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from holdfast.agents.wires import providers
from holdfast.core.content import Content
from holdfast.core.effects import ToolOutcome
from holdfast.core.events import ModelResponded
from holdfast.core.history import Item, Result, Step, User, calls_of
from holdfast.ports.agents import Response
from holdfast.ports.models import ModelClient, ModelRequest, ModelSettings, Piece, TextPiece, ThoughtPiece
from holdfast.ports.tools import ToolSpec
from tests.fakes.models import ModelServer, Reply, Script, serving

KEY = "sk-a-key-that-nobody-may-see"
TURN = "0195f1c0-7a00-7000-8000-0000000000aa"
TERMINAL = ToolSpec(
    "terminal", "Runs a command.", {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
)


async def no_bytes(digest: str) -> bytes:
    raise AssertionError(f"{digest} is read, though no part names it")


def asking(*history: Item, tools: Sequence[ToolSpec] = (TERMINAL,), **more: Any) -> ModelRequest:
    given: dict[str, Any] = {"system": "You are Holdfast.", "read": no_bytes, "settings": ModelSettings()} | more
    return ModelRequest(history=history or (user("Hello."),), tools=tools, **given)


def user(content: Content, name: str = "m1") -> User:
    return User(id=name, content=content)


def step(response: Response, number: int = 1) -> Step:
    """The response as it comes back from the log."""
    recorded = ModelResponded(
        step=number,
        text=response.text,
        calls=response.calls,
        blocks=response.blocks,
        finish=response.finish,
        wire=response.wire,
        provider=response.provider,
        model=response.model,
    )
    return Step(turn_id=TURN, number=number, text=response.text, calls=calls_of(TURN, recorded), response=recorded)


def results(of: Step, *contents: Content, outcome: ToolOutcome = ToolOutcome.DONE) -> list[Result]:
    return [
        Result(call_id=call.call_id, name=call.name, outcome=outcome, content=content)
        for call, content in zip(of.calls, contents, strict=True)
    ]


async def streamed(client: ModelClient, request: ModelRequest | None = None) -> tuple[list[Piece], Response]:
    """The pieces and the response, which must come last and once."""
    pieces: list[Piece] = []
    response: Response | None = None
    async with aclosing(client.stream(request or asking())) as stream:  # type: ignore[type-var]
        async for piece in stream:
            assert response is None
            if isinstance(piece, Response):
                response = piece
            else:
                pieces.append(piece)
    assert response is not None
    return pieces, response


def said(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))


def thought(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, ThoughtPiece))


WIRES = ("chat", "responses", "anthropic")


@asynccontextmanager
async def talking(
    *replies: Reply, wire: str = "chat", script: Script | None = None, **options: Any
) -> AsyncIterator[tuple[ModelClient, ModelServer]]:
    """A client of this wire and the server it talks to."""
    async with serving(*replies, script=script) as server:
        client = client_of(wire, server, **options)
        try:
            yield client, server
        finally:
            await client.aclose()


def client_of(wire: str, server: ModelServer, **options: Any) -> ModelClient:
    base_url = server.root if wire == "anthropic" else server.url
    return providers.client(f"{wire}:fake", base_url=base_url, **({"key": KEY} | options))
