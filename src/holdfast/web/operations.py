"""The table of what can be asked: one row per method and path, from which requests are served and the OpenAPI document is made."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.core.errors import BadInput, Bug, HoldfastError, StoreFull, Unavailable
from holdfast.web.access import Access, Grant
from holdfast.web.bodies import Body, Headers, Query, check_type, decode_body, decode_query, read_body
from holdfast.web.errors import (
    ForeignOrigin,
    HeadTooLarge,
    Misdirected,
    NoSuchPath,
    NotJson,
    NotSignedIn,
    TooLarge,
    TooManyTries,
    TooSlow,
    WrongMethod,
    status_of,
)

HEADERS = "holdfast.headers"


class Call:
    """One request, as its handler sees it. `body` and `query` are of the types that its operation names; `grant` is what it was let in by,
    None where no credential is asked for."""

    __slots__ = ("body", "grant", "headers", "params", "query", "scope")

    def __init__(self, scope: Scope, headers: Headers, params: Mapping[str, str], grant: Grant | None) -> None:
        self.scope, self.headers, self.params, self.grant = scope, headers, params, grant
        self.body: Any = None
        self.query: Any = None

    @property
    def client(self) -> str:
        return client_of(self.scope)


def client_of(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


@dataclass(frozen=True, kw_only=True)
class Operation:
    """`answers` are its good ends: a status and the type of the body (None: no body, bytes: not JSON). `refusals` are the errors that are
    its own; those which any request can meet follow from `open`, `body` and `inside` (whether it reaches into the gateway)."""

    method: str
    path: str
    handle: Callable[[Call], Awaitable[ASGIApp]]
    summary: str
    answers: Mapping[int, Any]
    refusals: tuple[type[HoldfastError], ...] = ()
    body: type[Body] | None = None
    body_optional: bool = False
    query: type[Query] | None = None
    open: bool = False
    inside: bool = True
    streams: bool = False
    content_types: Mapping[int, str] = field(default_factory=dict)

    @property
    def failures(self) -> frozenset[int]:
        kinds: list[type[HoldfastError]] = [BadInput, Misdirected, ForeignOrigin, HeadTooLarge, *self.refusals]
        if not self.open:
            kinds += [NotSignedIn, TooManyTries]
        if self.body is not None:
            kinds += [TooSlow, TooLarge, NotJson]
        if self.inside:
            kinds += [Unavailable, StoreFull, Bug]
        return frozenset(status_of(kind) for kind in kinds)


class Resource:
    """All operations of one path, as an ASGI application. A credential is asked for before anything else is said."""

    def __init__(self, operations: Iterable[Operation], access: Access) -> None:
        self._access = access
        self._operations = {operation.method: operation for operation in operations}
        for operation in list(self._operations.values()):
            if operation.method == "GET" and not operation.streams:
                self._operations["HEAD"] = operation
        self._decoders = {
            operation.method: msgspec.json.Decoder(operation.body) for operation in self._operations.values() if operation.body is not None
        }
        self._open = all(operation.open for operation in self._operations.values())
        self.allow = ", ".join(sorted(self._operations))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: Headers = scope[HEADERS]
        operation = self._operations.get(scope["method"])
        grant = None
        if not (self._open if operation is None else operation.open):
            grant = self._access.check(headers, client_of(scope))
        if operation is None:
            raise WrongMethod(scope["method"], self.allow)
        call = Call(scope, headers, _params(scope), grant)
        if operation.query is not None:
            call.query = decode_query(operation.query, scope["query_string"])
        if operation.body is not None:
            body = await read_body(headers, receive)
            check_type(headers, body)
            if not body and operation.body_optional:
                body = b"{}"
            call.body = decode_body(self._decoders[operation.method], body)
        reply = await operation.handle(call)
        await reply(scope, receive, send)


def _params(scope: Scope) -> Mapping[str, str]:
    params: Mapping[str, str] = scope.get("path_params", {})
    for value in params.values():
        try:
            value.encode()
        except UnicodeEncodeError:  # No name of ours, and nothing that a store could look up.
            raise NoSuchPath(scope["path"]) from None
    return params
