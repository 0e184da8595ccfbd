"""The table of endpoints: one row per method and path. Requests are served from it, and the OpenAPI document is made from it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.api.requests import Body, Nothing, Query
from holdfast.core.errors import BadInput, Bug, HoldfastError, StoreFull, Unavailable
from holdfast.web.access import Access, Grant
from holdfast.web.bodies import Headers, check_type, decode_body, decode_query, read_body
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


class Request:
    """One request, as its handler sees it. `body` and `query` have the types that the endpoint names; `grant` is what let it in, None where
    no credential is needed. `receive` is for those that read the body themselves."""

    __slots__ = ("body", "grant", "headers", "params", "query", "receive", "scope")

    def __init__(self, scope: Scope, receive: Receive, headers: Headers, params: Mapping[str, str], grant: Grant | None) -> None:
        self.scope, self.receive, self.headers, self.params, self.grant = scope, receive, headers, params, grant
        self.body: Any = None
        self.query: Any = None

    @property
    def client(self) -> str:
        return client_of(self.scope)


def client_of(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one path. `responses`: a status of success and the type of its body (None: no body, bytes: not JSON). `refusals`: its
    own errors; those that any request can meet follow from `open` (no credential needed), `body` and `inside` (it uses the gateway).
    `octets`: its body is bytes of any type, which it reads itself. `rest`: the last name in its path takes the rest of it."""

    method: str
    path: str
    handle: Callable[[Request], Awaitable[ASGIApp]]
    summary: str
    responses: Mapping[int, Any]
    refusals: tuple[type[HoldfastError], ...] = ()
    body: type[Body] | None = None
    body_optional: bool = False
    octets: bool = False
    rest: bool = False
    query: type[Query] | None = None
    open: bool = False
    inside: bool = True
    streams: bool = False
    content_types: Mapping[int, str] = {}

    @property
    def failures(self) -> frozenset[int]:
        kinds: list[type[HoldfastError]] = [BadInput, Misdirected, ForeignOrigin, HeadTooLarge, *self.refusals]
        if not self.open:
            kinds += [NotSignedIn, TooManyTries]
        if self.body is not None or self.octets:
            kinds += [TooSlow, TooLarge]
        if self.body is not None:
            kinds.append(NotJson)
        if self.inside:
            kinds += [Unavailable, StoreFull, Bug]
        return frozenset(status_of(kind) for kind in kinds)


def command(
    path: str,
    handle: Callable[[Request], Awaitable[ASGIApp]],
    summary: str,
    responses: Mapping[int, Any],
    *,
    body: type[Body] = Nothing,
    refusals: tuple[type[HoldfastError], ...] = (),
    inside: bool = True,
) -> Endpoint:
    """A POST that tells something to act. Its body may be left out."""
    return Endpoint(
        method="POST",
        path=path,
        handle=handle,
        summary=summary,
        responses=responses,
        body=body,
        body_optional=True,
        refusals=refusals,
        inside=inside,
    )


class Resource:
    """All endpoints of one path, as an ASGI application. The credential is checked before anything else."""

    def __init__(self, endpoints: Iterable[Endpoint], access: Access) -> None:
        self._access = access
        self._endpoints = {endpoint.method: endpoint for endpoint in endpoints}
        for endpoint in list(self._endpoints.values()):
            if endpoint.method == "GET" and not endpoint.streams:
                self._endpoints["HEAD"] = endpoint
        self._decoders = {
            endpoint.method: msgspec.json.Decoder(endpoint.body) for endpoint in self._endpoints.values() if endpoint.body is not None
        }
        self._open = all(endpoint.open for endpoint in self._endpoints.values())
        self.allow = ", ".join(sorted(self._endpoints))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: Headers = scope[HEADERS]
        endpoint = self._endpoints.get(scope["method"])
        grant = None
        if not (self._open if endpoint is None else endpoint.open):
            grant = self._access.check(headers, client_of(scope))
        if endpoint is None:
            raise WrongMethod(scope["method"], self.allow)
        request = Request(scope, receive, headers, _params(scope), grant)
        if endpoint.query is not None:
            request.query = decode_query(endpoint.query, scope["query_string"])
        if endpoint.body is not None:
            body = await read_body(headers, receive)
            check_type(headers, body)
            if not body and endpoint.body_optional:
                body = b"{}"
            request.body = decode_body(self._decoders[endpoint.method], body)
        response = await endpoint.handle(request)
        await response(scope, receive, send)


def _params(scope: Scope) -> Mapping[str, str]:
    params: Mapping[str, str] = scope.get("path_params", {})
    for value in params.values():
        try:
            value.encode()
        except UnicodeEncodeError:  # No name of ours, and nothing that a store could look up.
            raise NoSuchPath(scope["path"]) from None
    return params
