"""HTTP responses. Each is itself an ASGI application: built whole, then sent."""

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

Header = tuple[bytes, bytes]
JSON = b"application/json"
TEXT = b"text/plain; charset=utf-8"


class Response:
    """`then` is called once the response is sent."""

    __slots__ = ("body", "content_type", "headers", "status", "then")

    def __init__(
        self,
        status: int,
        body: bytes = b"",
        *,
        content_type: bytes = JSON,
        headers: tuple[Header, ...] = (),
        then: Callable[[], None] | None = None,
    ) -> None:
        self.status, self.body, self.content_type, self.headers, self.then = status, body, content_type, headers, then

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = list(self.headers)
        if self.status not in (204, 304):
            headers += [(b"content-type", self.content_type), (b"content-length", b"%d" % len(self.body))]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else self.body})
        if self.then is not None:
            self.then()


def json_response(status: int, value: Any, *, then: Callable[[], None] | None = None) -> Response:
    return Response(status, msgspec.json.encode(value), then=then)


def text_response(status: int, text: str) -> Response:
    return Response(status, text.encode(), content_type=TEXT)
