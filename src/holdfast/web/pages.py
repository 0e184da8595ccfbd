"""The built page. Its files are read once at the start: only what was there then is served, whatever a path says, and an upgrade of the
files under a running process does not tear the page apart."""

import hashlib
import re
from pathlib import Path

from starlette.types import Receive, Scope, Send

from holdfast.web.errors import NoSuchPath, WrongMethod
from holdfast.web.operations import HEADERS
from holdfast.web.replies import Reply, text

INDEX = "index.html"
# The builder names these by their content: they never change.
_HASHED = re.compile(r"assets/.+-[A-Za-z0-9_-]{8,}\.[a-z0-9]+")
# Our own table: the system's would be read from files at the start, and differs from machine to machine.
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
}

MISSING = """Holdfast is running, but its page is not built in.

The API works: GET /api/openapi.json describes it, and `holdfast send` and `holdfast show` use it.
To build the page, see docs/http-api.md and the folder page/ of the source.
"""


class Pages:
    """`/` and `/s/...` are the page itself; everything else is one of its files, or nothing."""

    def __init__(self, static: Path | None) -> None:
        self._files: dict[str, tuple[Reply, bytes]] = {}
        if static is not None and (static / INDEX).is_file():
            root = static.resolve()
            for path in sorted(root.rglob("*")):
                if path.is_file() and path.resolve().is_relative_to(root):
                    name = path.relative_to(root).as_posix()
                    self._files[name] = _file(name, path.read_bytes())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = self._reply(scope)
        if scope["method"] not in ("GET", "HEAD"):
            raise WrongMethod(scope["method"], "GET, HEAD")
        await reply(scope, receive, send)

    def _reply(self, scope: Scope) -> Reply:
        path: str = scope["path"]
        home = path == "/" or path.startswith("/s/")
        found = self._files.get(INDEX if home else path[1:])
        if found is None:
            if home and not self._files:
                return text(200, MISSING)
            raise NoSuchPath(path)
        reply, tag = found
        if tag in scope[HEADERS].get(b"if-none-match", b""):
            return Reply(304, headers=reply.headers)
        return reply


def _file(name: str, content: bytes) -> tuple[Reply, bytes]:
    kind = _TYPES.get(Path(name).suffix, "application/octet-stream")
    tag = b'"%b"' % hashlib.sha256(content).hexdigest()[:20].encode()
    keep = b"public, max-age=31536000, immutable" if _HASHED.fullmatch(name) else b"no-cache"
    return Reply(200, content, content_type=kind.encode(), headers=((b"cache-control", keep), (b"etag", tag))), tag
