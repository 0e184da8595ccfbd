"""The gateway as a whole: its status, its health, its end."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.types import ASGIApp

from holdfast.api.times import rfc3339
from holdfast.core.errors import HandOverFailed, NotNow
from holdfast.gateway.gateway import Gateway
from holdfast.web.bodies import Body, Nothing
from holdfast.web.metrics import CONTENT_TYPE, Metrics
from holdfast.web.operations import Call, Operation
from holdfast.web.replies import Reply, answer, text

MAX_PAUSE_S = 24 * 3600.0


class StatusView(msgspec.Struct):
    """What the process says of itself. Whoever builds it may say more."""

    pid: int
    started_at: str
    version: str
    gateway_state: str
    since: str
    why: str | None
    url: str
    public_url: str | None
    running_turns: int
    retiring: list[Any]
    inbox: int
    outbox: int
    suspended: int
    pending: int
    safe_mode: bool
    paused_by: str | None
    paused_until: str | None
    supervisor: str
    platforms: Any
    home: str
    agent: str
    degraded: str | None


class Ordered(msgspec.Struct):
    gateway_state: str


class Released(msgspec.Struct):
    """Safe mode is over, if it was on."""

    safe_mode: bool


class NewPause(Body, frozen=True):
    """`holder` says who holds up the work, for those who wonder; it ends by itself after `for_s` seconds."""

    holder: Annotated[str, Meta(min_length=1, max_length=200)] = "owner"
    for_s: Annotated[float, Meta(gt=0, le=MAX_PAUSE_S)] = 3600.0


class Paused(msgspec.Struct):
    gateway_state: str
    holder: str
    until: str


class Restarted(msgspec.Struct):
    """`mode`: `hand_over` (the process `pid` of `version` serves now) or `exit` (this one ends, and its supervisor starts the next)."""

    mode: str
    pid: int
    version: str


class Admin:
    def __init__(
        self,
        gateway: Gateway,
        metrics: Metrics,
        status: Callable[[], Awaitable[dict[str, Any]]],
        request_stop: Callable[[], None],
        request_restart: Callable[[], Awaitable[dict[str, Any]]],
    ) -> None:
        self._gateway, self._metrics, self._status = gateway, metrics, status
        self._request_stop, self._request_restart = request_stop, request_restart

    def operations(self) -> Iterable[Operation]:
        yield Operation(method="GET", path="/api/status", handle=self.status, summary="The status", answers={200: StatusView})
        yield Operation(
            method="GET",
            path="/healthz",
            handle=self.health,
            summary="Whether the gateway can store",
            answers={200: bytes, 503: bytes},
            content_types={200: "text/plain", 503: "text/plain"},
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
        yield Operation(
            method="POST",
            path="/api/admin/restart",
            handle=self.restart,
            summary="Restart: by hand-over where it can be, else by ending with code 75",
            body=Nothing,
            body_optional=True,
            answers={200: Restarted},
            refusals=(NotNow, HandOverFailed),
        )
        yield Operation(
            method="POST",
            path="/api/admin/pause",
            handle=self.pause,
            summary="Start no turn for a while; messages are kept",
            body=NewPause,
            body_optional=True,
            answers={200: Paused},
            refusals=(NotNow,),
        )
        yield Operation(
            method="POST",
            path="/api/admin/unpause",
            handle=self.unpause,
            summary="Resume after a pause",
            body=Nothing,
            body_optional=True,
            answers={200: Ordered},
        )

    async def status(self, call: Call) -> ASGIApp:
        return answer(200, await self._status())

    async def health(self, call: Call) -> ASGIApp:
        """No more than that: a client need not be signed in to ask."""
        return text(200, "ok\n") if self._gateway.store.degraded is None else text(503, "not ok\n")

    async def metrics(self, call: Call) -> ASGIApp:
        return Reply(200, await self._metrics.text(), content_type=CONTENT_TYPE)

    async def stop(self, call: Call) -> ASGIApp:
        return answer(202, Ordered(self._gateway.state), then=self._request_stop)

    async def resume(self, call: Call) -> ASGIApp:
        self._gateway.resume_all()
        return answer(200, Released(self._gateway.safe_mode))

    async def restart(self, call: Call) -> ASGIApp:
        return answer(200, await self._request_restart())

    async def pause(self, call: Call) -> ASGIApp:
        wanted: NewPause = call.body
        paused = await self._gateway.life.pause(wanted.holder, wanted.for_s)
        return answer(200, Paused(self._gateway.state, paused.holder, rfc3339(paused.until)))

    async def unpause(self, call: Call) -> ASGIApp:
        await self._gateway.life.unpause()
        return answer(200, Ordered(self._gateway.state))
