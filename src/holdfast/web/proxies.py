"""Behind a reverse proxy: restores the form that a request had when it reached the first of our proxies."""

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.core import forwarding
from holdfast.core.forwarding import Network

FOR, PROTO, HOST = b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host"


class Proxies:
    """`trusted` are the addresses of our proxies. From anyone else these headers are ignored."""

    def __init__(self, app: ASGIApp, trusted: tuple[Network, ...]) -> None:
        self._app, self._trusted = app, trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._trusted and scope["type"] == "http":
            client = scope.get("client")
            if client and forwarding.trusted(client[0], self._trusted):
                scope = _before(scope, client[0], self._trusted)
        await self._app(scope, receive, send)


def _before(scope: Scope, peer: str, trusted: tuple[Network, ...]) -> Scope:
    said: dict[bytes, list[str]] = {FOR: [], PROTO: [], HOST: []}
    for name, value in scope["headers"]:
        if name in said:
            said[name] += value.decode("latin-1").split(",")
    changed = {**scope, "client": (forwarding.client(peer, ",".join(said[FOR]), trusted), 0)}
    # The last value comes from the proxy nearest to us.
    if said[PROTO] and (scheme := said[PROTO][-1].strip().lower()) in ("http", "https"):
        changed["scheme"] = scheme
    if said[HOST] and (host := said[HOST][-1].strip()):
        others = [(name, value) for name, value in scope["headers"] if name != b"host"]
        changed["headers"] = [*others, (b"host", host.encode("latin-1"))]
    return changed
