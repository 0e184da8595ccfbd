"""The built page. Its files are read once at the start: only those files are served, whatever a path says, and an upgrade of the files
under a running process does not mix two versions of the page."""

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from starlette.types import Receive, Scope, Send

from holdfast.web.endpoints import HEADERS
from holdfast.web.errors import NoSuchPath, WrongMethod
from holdfast.web.responses import Header, Response, text_response

INDEX = "index.html"
# Compressed copies that the build puts next to a file, smallest first.
_CODINGS = {".br": b"br", ".gz": b"gzip"}
# The build names these by their content: they never change.
_HASHED = re.compile(r"assets/.+-[A-Za-z0-9_-]{8,}\.[a-z0-9]+")
# Our own table: the system's is read from files and differs between machines.
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


class Form(NamedTuple):
    """One form of a file: as it is (`coding` is empty), or compressed."""

    coding: bytes
    tag: bytes
    response: Response


class Pages:
    """`/`, `/s/...` and `/operations` are the page itself; everything else is one of its files, or nothing. A browser that comes to an
    address where there is nothing gets the page, which says so; a program gets an error.
    """

    def __init__(self, static: Path | None) -> None:
        self._files: dict[str, tuple[Form, ...]] = {}
        if static is not None and (static / INDEX).is_file():
            found = dict(_found(str(static.resolve())))
            for name in found:
                if not name.endswith(tuple(_CODINGS)):
                    forms = [*((coding, name + suffix) for suffix, coding in _CODINGS.items()), (b"", name)]
                    self._files[name] = tuple(_form(name, coding, found[form]) for coding, form in forms if form in found)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = self._response(scope)
        if scope["method"] not in ("GET", "HEAD"):
            raise WrongMethod(scope["method"], "GET, HEAD")
        await response(scope, receive, send)

    def _response(self, scope: Scope) -> Response:
        path: str = scope["path"]
        headers: dict[bytes, bytes] = scope[HEADERS]
        home = path in ("/", "/operations") or path.startswith("/s/")
        forms = self._files.get(INDEX if home else path[1:])
        if forms is not None:
            form = _accepted(forms, headers.get(b"accept-encoding", b""))
            if form.tag in headers.get(b"if-none-match", b""):
                return Response(304, headers=form.response.headers)
            return form.response
        if home and not self._files:
            return text_response(200, MISSING)
        if self._files and not path.startswith("/api/") and b"text/html" in headers.get(b"accept", b""):
            page = _accepted(self._files[INDEX], headers.get(b"accept-encoding", b"")).response
            return Response(404, page.body, content_type=page.content_type, headers=page.headers)
        raise NoSuchPath(path)


def _found(root: str) -> Iterator[tuple[str, bytes]]:
    """The files below a folder by their names there, with what is in them; no link leads out of it."""
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and (not os.path.islink(path) or os.path.realpath(path).startswith(root + os.sep)):
                with open(path, "rb") as file:
                    yield os.path.relpath(path, root).replace(os.sep, "/"), file.read()


def _form(name: str, coding: bytes, content: bytes) -> Form:
    kind = _TYPES.get(os.path.splitext(name)[1], "application/octet-stream")
    tag = b'"%b"' % hashlib.sha256(content).hexdigest()[:20].encode()
    keep = b"public, max-age=31536000, immutable" if _HASHED.fullmatch(name) else b"no-cache"
    headers: list[Header] = [(b"cache-control", keep), (b"etag", tag), (b"vary", b"accept-encoding")]
    if coding:
        headers.append((b"content-encoding", coding))
    return Form(coding, tag, Response(200, content, content_type=kind.encode(), headers=tuple(headers)))


def _accepted(forms: tuple[Form, ...], accepts: bytes) -> Form:
    """The first form whose coding the client accepts. The last is the uncompressed file, which every client accepts."""
    taken = {coding.strip() for coding, _, rank in (part.lower().partition(b";") for part in accepts.split(b",")) if not _refused(rank)}
    return next((form for form in forms if form.coding in taken), forms[-1])


def _refused(rank: bytes) -> bool:
    return re.fullmatch(rb"\s*q\s*=\s*0(\.0*)?\s*", rank) is not None
