"""The gateway as a whole: its status, its health, its end."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec
from starlette.types import ASGIApp

from holdfast.gateway.gateway import Gateway
from holdfast.web.bodies import Nothing
from holdfast.web.errors import NotYet, Unhealthy
from holdfast.web.metrics import CONTENT_TYPE, Metrics
from holdfast.web.operations import Call, Operation
from holdfast.web.replies import Reply, answer, text


class StatusView(msgspec.Struct):
    """What the process says of itself. Whoever builds it may say more."""

    pid: int
    started_at: str
    version: str
    gateway_state: str
    running_turns: int
    retiring: list[Any]
    inbox: int
    outbox: int
    suspended: int
    pending: int
    safe_mode: bool
    platforms: Any
    home: str
    agent: str
    degraded: str | None


class Ordered(msgspec.Struct):
    gateway_state: str


class Released(msgspec.Struct):
    """Safe mode is over, if it was on."""

    safe_mode: bool


class Admin:
    def __init__(
        self,
        gateway: Gateway,
        metrics: Metrics,
        status: Callable[[], Awaitable[dict[str, Any]]],
        request_stop: Callable[[], None],
    ) -> None:
        self._gateway, self._metrics, self._status, self._request_stop = gateway, metrics, status, request_stop

    def operations(self) -> Iterable[Operation]:
        yield Operation(method="GET", path="/api/status", handle=self.status, summary="The status", answers={200: StatusView})
        yield Operation(
            method="GET",
            path="/healthz",
            handle=self.health,
            summary="Whether the gateway can store",
            answers={200: bytes},
            content_types={200: "text/plain"},
            refusals=(Unhealthy,),
            open=True,
            inside=False,
        )
        yield Operation(
            method="GET",
            path="/metrics",
            handle=self.metrics,
            summary="Figures for Prometheus",
            answers={200: bytes},
            content_types={200: "text/plain"},
        )
        yield Operation(
            method="POST",
            path="/api/admin/stop",
            handle=self.stop,
            summary="Stop the gateway, as SIGTERM does",
            body=Nothing,
            body_optional=True,
            answers={202: Ordered},
            inside=False,
        )
        yield Operation(
            method="POST",
            path="/api/admin/resume",
            handle=self.resume,
            summary="Leave safe mode: what is pending is decided again",
            body=Nothing,
            body_optional=True,
            answers={200: Released},
            inside=False,
        )
        for order, what in (("restart", "Restarting"), ("pause", "Pausing"), ("unpause", "Unpausing")):
            yield Operation(
                method="POST",
                path=f"/api/admin/{order}",
                handle=_not_yet(f"{what} over HTTP"),
                summary=f"{what} the gateway",
                answers={},
                refusals=(NotYet,),
                inside=False,
            )

    async def status(self, call: Call) -> ASGIApp:
        return answer(200, await self._status())

    async def health(self, call: Call) -> ASGIApp:
        if self._gateway.store.degraded is not None:
            raise Unhealthy
        return text(200, "ok\n")

    async def metrics(self, call: Call) -> ASGIApp:
        return Reply(200, await self._metrics.text(), content_type=CONTENT_TYPE)

    async def stop(self, call: Call) -> ASGIApp:
        return answer(202, Ordered(self._gateway.state), then=self._request_stop)

    async def resume(self, call: Call) -> ASGIApp:
        self._gateway.resume_all()
        return answer(200, Released(self._gateway.safe_mode))


def _not_yet(what: str) -> Callable[[Call], Awaitable[ASGIApp]]:
    async def refuse(call: Call) -> ASGIApp:
        raise NotYet(what)

    return refuse
