"""Asks a model for the title of a conversation: the one that answers there, or the one that is configured for titles."""

from collections.abc import AsyncGenerator, Awaitable, Callable

import msgspec

from holdfast.agents.prices import Prices
from holdfast.core import titles
from holdfast.core.history import User
from holdfast.core.model_choice import AgentGone
from holdfast.ports.agents import Response
from holdfast.ports.models import Cut, ModelClient, ModelRequest, ModelSettings

# Some models think before they write a few words.
MOST_TOKENS = 2_000


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The model that is asked for some conversations, and how."""

    model: str
    client: Callable[[str], ModelClient]
    settings: Callable[[str], ModelSettings]
    prices: Prices


class ModelTitles:
    """`asked`: by what a conversation has chosen, which model; None if none can be asked. `read`: the bytes of a blob."""

    name = "titles"

    def __init__(self, asked: Callable[[str | None], Asked | None], *, read: Callable[[str], Awaitable[bytes]]) -> None:
        self._asked, self._read = asked, read
        self._clients: dict[tuple[str | None, str], ModelClient] = {}

    def model(self, chosen: str | None) -> str | None:
        asked = self._asked(chosen)
        return asked.model if asked is not None else None

    async def title(self, words: str, *, chosen: str | None) -> Response:
        asked = self._asked(chosen)
        if asked is None:
            raise AgentGone(chosen or "")
        asked.prices.expect(asked.model)
        pieces = self._client(chosen, asked).stream(
            ModelRequest(
                system=titles.INSTRUCTIONS,
                history=[User(id="title", content=words)],
                tools=(),
                settings=ModelSettings(max_tokens=MOST_TOKENS, extra=asked.settings(asked.model).extra),
                read=self._read,
            )
        )
        response = None
        try:
            async for piece in pieces:
                if isinstance(piece, Response):
                    response = piece
        finally:
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()
        if response is None:
            raise Cut(f"{asked.model} sent no response")
        return msgspec.structs.replace(response, cost=await asked.prices.cost(asked.model, response.usage))

    def _client(self, chosen: str | None, asked: Asked) -> ModelClient:
        """One for each way to reach a model: the same name may be that of another server for another agent."""
        key = (chosen if chosen is not None and ":" not in chosen else None, asked.model)
        if key not in self._clients:
            self._clients[key] = asked.client(asked.model)
        return self._clients[key]

    async def aclose(self) -> None:
        for client in self._clients.values():
            await client.aclose()
