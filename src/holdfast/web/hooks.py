"""Requests of chat platforms themselves, for accounts that are told what is new rather than ask. Each is signed in its own way."""

from collections.abc import Iterable

from starlette.types import ASGIApp

from holdfast.core.chat_errors import Unsigned
from holdfast.core.errors import NotFound
from holdfast.gateway.gateway import Gateway
from holdfast.web.bodies import read_body
from holdfast.web.endpoints import Endpoint, Request
from holdfast.web.responses import Response


class Hooks:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def endpoints(self) -> Iterable[Endpoint]:
        yield Endpoint(
            method="POST",
            path="/hooks/{platform}",
            handle=self.take,
            summary="What a chat platform has to tell",
            responses={200: bytes},
            content_types={200: "text/plain"},
            refusals=(NotFound, Unsigned),
            octets=True,
            open=True,
        )

    async def take(self, request: Request) -> ASGIApp:
        """Stored once this answers: until then the platform tells it again (P1)."""
        body = await read_body(request.headers, request.receive)
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in request.headers.items()}
        found = await self._gateway.intake.hooked(request.params["platform"], headers, body)
        return Response(200, found.reply, content_type=found.media_type.encode())
