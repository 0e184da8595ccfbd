"""Around every request: the headers of each response, the count of responses, and the boundary where an error becomes a response."""

from collections import Counter

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.core.errors import BadInput
from holdfast.core.redaction import Secrets
from holdfast.web.access import Access
from holdfast.web.endpoints import HEADERS
from holdfast.web.errors import Gone, HeadTooLarge, plain, response_to
from holdfast.web.openai import errors as door

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
ALWAYS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
NO_STORE = (b"cache-control", b"no-store")
# Limits for a request before its sender is known.
MAX_HEAD, MAX_HEADERS = 64 * 1024, 100
# Headers that would be ambiguous if they came twice.
SINGLE = (b"host", b"origin", b"authorization", b"content-type", b"content-length", b"last-event-id")

log = structlog.get_logger()


class Envelope:
    """The outermost layer. `responses` counts responses by status. `secrets` are in no message of an error."""

    def __init__(self, app: ASGIApp, secrets: Secrets) -> None:
        self._app, self._secrets = app, secrets
        self.responses: Counter[int] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await _no_http(scope, receive, send)
            return
        started = False

        async def dressed(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                self.responses[message["status"]] += 1
                headers = message["headers"]
                named = {name for name, _ in headers}
                if b"cache-control" not in named:
                    headers.append(NO_STORE)
                headers += [header for header in ALWAYS if header[0] not in named]
            await send(message)

        try:
            await self._app(scope, receive, dressed)
        except Gone:
            pass
        except Exception as error:  # The boundary of a request: every error reaches the client in one shape.
            if started:
                log.error("a response was cut short", path=scope["path"], exc_info=error)
                raise
            shape = door.shape if scope["path"].startswith(door.PREFIX) else plain
            await response_to(error, self._secrets, shape)(scope, receive, dressed)


class Guard:
    """Accepts only heads of a sensible size, our own host names, and requests from our own pages."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope["headers"]
        head = len(scope.get("raw_path") or b"") + len(scope["query_string"]) + sum(len(name) + len(value) for name, value in raw)
        if len(raw) > MAX_HEADERS or head > MAX_HEAD:
            raise HeadTooLarge
        headers: dict[bytes, bytes] = dict(raw)
        if len(headers) != len(raw):
            names = [name for name, _ in raw]
            for name in SINGLE:
                if names.count(name) > 1:
                    raise BadInput(f"The header {name.decode()} came more than once.")
        host = headers.get(b"host")
        self._access.check_host(host)
        self._access.check_origin(headers.get(b"origin"), host or b"", scope.get("scheme", "http"))
        scope[HEADERS] = headers
        await self._app(scope, receive, send)


async def _no_http(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    while True:  # lifespan: nothing of ours starts or ends with the web server.
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
