"""The gateway as a whole: its status, its health, its end."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from starlette.types import ASGIApp

from holdfast.api.requests import NewPause
from holdfast.api.results import Ordered, Paused, Released, Restarted
from holdfast.api.status import Status
from holdfast.api.times import rfc3339
from holdfast.core.errors import HandOverFailed, NotNow
from holdfast.gateway.gateway import Gateway
from holdfast.web.endpoints import Endpoint, Request, command
from holdfast.web.metrics import CONTENT_TYPE, Metrics
from holdfast.web.responses import Response, json_response, text_response


class Admin:
    def __init__(
        self,
        gateway: Gateway,
        metrics: Metrics,
        status: Callable[[], Awaitable[Status]],
        request_stop: Callable[[], None],
        request_restart: Callable[[], Awaitable[dict[str, Any]]],
    ) -> None:
        self._gateway, self._metrics, self._status = gateway, metrics, status
        self._request_stop, self._request_restart = request_stop, request_restart

    def endpoints(self) -> Iterable[Endpoint]:
        yield Endpoint(method="GET", path="/api/status", handle=self.status, summary="The status", responses={200: Status})
        yield Endpoint(
            method="GET",
            path="/healthz",
            handle=self.health,
            summary="Whether the gateway can store",
            responses={200: bytes, 503: bytes},
            content_types={200: "text/plain", 503: "text/plain"},
            open=True,
            inside=False,
        )
        yield Endpoint(
            method="GET",
            path="/metrics",
            handle=self.metrics,
            summary="Figures for Prometheus",
            responses={200: bytes},
            content_types={200: "text/plain"},
        )
        yield command("/api/admin/stop", self.stop, "Stop the gateway, as SIGTERM does", {202: Ordered}, inside=False)
        yield command("/api/admin/resume", self.resume, "Leave safe mode: pending work is decided again", {200: Released}, inside=False)
        yield command(
            "/api/admin/restart",
            self.restart,
            "Restart: by hand-over where possible, otherwise by ending with code 75",
            {200: Restarted},
            refusals=(NotNow, HandOverFailed),
        )
        yield command(
            "/api/admin/pause",
            self.pause,
            "Start no turn for a while; messages are kept",
            {200: Paused},
            body=NewPause,
            refusals=(NotNow,),
        )
        yield command("/api/admin/unpause", self.unpause, "Resume after a pause", {200: Ordered})

    async def status(self, request: Request) -> ASGIApp:
        return json_response(200, await self._status())

    async def health(self, request: Request) -> ASGIApp:
        """No more than that: a client need not be signed in to ask."""
        return text_response(200, "ok\n") if self._gateway.store.degraded is None else text_response(503, "not ok\n")

    async def metrics(self, request: Request) -> ASGIApp:
        return Response(200, await self._metrics.text(), content_type=CONTENT_TYPE)

    async def stop(self, request: Request) -> ASGIApp:
        return json_response(202, Ordered(self._gateway.state), then=self._request_stop)

    async def resume(self, request: Request) -> ASGIApp:
        self._gateway.resume_all()
        return json_response(200, Released(self._gateway.safe_mode))

    async def restart(self, request: Request) -> ASGIApp:
        return json_response(200, await self._request_restart())

    async def pause(self, request: Request) -> ASGIApp:
        wanted: NewPause = request.body
        paused = await self._gateway.pausing.pause(wanted.holder, wanted.for_s)
        return json_response(200, Paused(self._gateway.state, paused.holder, rfc3339(paused.until)))

    async def unpause(self, request: Request) -> ASGIApp:
        await self._gateway.pausing.unpause()
        return json_response(200, Ordered(self._gateway.state))
