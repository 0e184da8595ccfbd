"""What models used, over HTTP."""

from collections.abc import Iterable

from starlette.types import ASGIApp

from holdfast.api import usage
from holdfast.api.requests import UsageQuery
from holdfast.gateway.gateway import Gateway
from holdfast.web.endpoints import Endpoint, Request
from holdfast.web.responses import json_response


class Usage:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def endpoints(self) -> Iterable[Endpoint]:
        yield Endpoint(
            method="GET",
            path="/api/usage",
            handle=self.read,
            summary="What models used and cost in the last days",
            query=UsageQuery,
            responses={200: usage.UsageReport},
        )

    async def read(self, request: Request) -> ASGIApp:
        wanted: UsageQuery = request.query
        since, spent = await self._gateway.spent(days=wanted.days)
        return json_response(200, usage.report(since, spent, *await self._gateway.spent_on(since)))
