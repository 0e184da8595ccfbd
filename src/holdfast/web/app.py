"""The web application, put together from its parts. Its order, from the outside: proxies, envelope, guard, routes, endpoint."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
from starlette.types import ASGIApp

import holdfast
from holdfast.api.status import Status
from holdfast.blobs import Blobs
from holdfast.core.forwarding import Network
from holdfast.core.redaction import NO_SECRETS, Secrets
from holdfast.gateway.editors import Editors
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.series import Series
from holdfast.gateway.tasks import Tasks
from holdfast.web.access import Access
from holdfast.web.admin import Admin
from holdfast.web.approvals import Approvals
from holdfast.web.commands import Commands
from holdfast.web.desk import Desk
from holdfast.web.editors import EditorDoor
from holdfast.web.endpoints import Endpoint, Resource
from holdfast.web.envelope import Envelope, Guard
from holdfast.web.hooks import Hooks
from holdfast.web.login import Login
from holdfast.web.messages import Messages
from holdfast.web.metrics import Metrics
from holdfast.web.openai.chat import Chat
from holdfast.web.openai.conversations import Conversations
from holdfast.web.openai.delivered import Delivered
from holdfast.web.openai.following import Means
from holdfast.web.openai.models import Models
from holdfast.web.openai.responses import Responses
from holdfast.web.openapi import OpenApi
from holdfast.web.operations import Operations
from holdfast.web.pages import Pages
from holdfast.web.paths import Paths
from holdfast.web.processes import Processes
from holdfast.web.proxies import Proxies
from holdfast.web.questions import Questions
from holdfast.web.schedules import Schedules
from holdfast.web.sessions import Sessions
from holdfast.web.stream import Streams, Timing
from holdfast.web.tab import Tabs
from holdfast.web.uploads import Uploads
from holdfast.web.usage import Usage

STATIC = Path(__file__).parent / "static"


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """The process, as its operator sees it over HTTP. `series`: what it measures of itself. `request_stop` is called once the response to
    `POST /api/admin/stop` is sent; it must return at once. `request_restart` returns the response to `POST /api/admin/restart`, once the
    successor serves.
    """

    status: Callable[[], Awaitable[Status]]
    series: Series
    request_stop: Callable[[], None]
    request_restart: Callable[[], Awaitable[dict[str, Any]]]


def build_app(
    gateway: Gateway,
    process: Process,
    *,
    blobs: Blobs,
    access: Access,
    editors: Editors,
    max_upload_bytes: int = 25_000_000,
    static: Path | None = STATIC,
    trusted_proxies: tuple[Network, ...] = (),
    secrets: Secrets = NO_SECRETS,
    timing: Timing = Timing(),  # noqa: B008 - it is a value
) -> ASGIApp:
    """The ASGI application for one gateway, which must have been built with `encode=holdfast.web.frames.encode`.

    `static` is the folder of the built page; without it a plain text says so.
    """
    paths = Paths(Pages(static))
    envelope = Envelope(Guard(paths, access), secrets)
    tasks = Tasks()
    delivered = Delivered()
    conversations = Conversations(gateway, blobs, delivered, max_upload_bytes=max_upload_bytes)
    means = Means(gateway, access, tasks, timing, delivered)
    metrics = Metrics(gateway, envelope.responses, conversations.counted)
    endpoints: list[Endpoint] = [
        *Messages(gateway).endpoints(),
        *Streams(gateway, access, tasks, timing).endpoints(),
        *Tabs(gateway, access, process.status, Tasks(), timing).endpoints(),
        *Sessions(gateway).endpoints(),
        *Desk(gateway, blobs).endpoints(),
        *EditorDoor(gateway, editors).endpoints(),
        *Operations(gateway, process.series, process.status, access.now).endpoints(),
        *Usage(gateway).endpoints(),
        *Questions(gateway).endpoints(),
        *Approvals(gateway).endpoints(),
        *Schedules(gateway).endpoints(),
        *Commands().endpoints(),
        *Processes(gateway).endpoints(),
        *Hooks(gateway).endpoints(),
        *Uploads(blobs, max_bytes=max_upload_bytes).endpoints(),
        *Responses(means, conversations).endpoints(),
        *Chat(means, conversations).endpoints(),
        *Models(conversations).endpoints(),
        *Admin(gateway, metrics, process.status, process.request_stop, process.request_restart).endpoints(),
        *Login(access, gateway.store).endpoints(),
    ]
    endpoints += OpenApi(endpoints, holdfast.__version__).endpoints()
    of_path: dict[str, list[Endpoint]] = {}
    for endpoint in endpoints:
        of_path.setdefault(endpoint.path, []).append(endpoint)
    for path, same in of_path.items():
        paths.add(path, Resource(same, access), rest=same[0].rest)
    return Proxies(envelope, trusted_proxies)
