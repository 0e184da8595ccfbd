"""Files over HTTP: in as uploads, out as blobs by their digest. What people sent is never run or guessed at by a browser of ours.

A digest is a name, not a permission: the credential of the request is, and a blob is given only while some session that is not deleted
names it.
"""

from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.api.requests import BlobQuery, UploadQuery
from holdfast.api.results import Uploaded
from holdfast.blobs import Blobs, Reading
from holdfast.core import blobs as rules
from holdfast.core.errors import BlobLost, DuplicateOtherContent, NotFound
from holdfast.web import ranges
from holdfast.web.bodies import body_parts, check_encoding
from holdfast.web.endpoints import Endpoint, Request
from holdfast.web.errors import NoSuchRange, UploadTooLarge
from holdfast.web.ranges import Span
from holdfast.web.responses import Header, Response, json_response

SENT_AT_ONCE = 256 * 1024
# Whatever the bytes are, as a document they can do nothing. A browser may keep them, but asks before it uses them again.
_HARMLESS: tuple[Header, ...] = (
    (b"content-security-policy", b"default-src 'none'; sandbox"),
    (b"cache-control", b"private, no-cache"),
    (b"accept-ranges", b"bytes"),
)


class Uploads:
    def __init__(self, blobs: Blobs, *, max_bytes: int) -> None:
        self._blobs, self._max_bytes = blobs, max_bytes

    def endpoints(self) -> Iterable[Endpoint]:
        yield Endpoint(
            method="POST",
            path="/api/uploads",
            handle=self.upload,
            summary="Upload a file, for the attachments of a message",
            octets=True,
            query=UploadQuery,
            responses={201: Uploaded, 200: Uploaded},
            refusals=(DuplicateOtherContent,),
        )
        yield Endpoint(
            method="GET",
            path="/api/blobs/{digest}",
            handle=self.blob,
            summary="The bytes of an attachment, or a range of them",
            query=BlobQuery,
            responses={200: bytes, 206: bytes, 304: None},
            content_types={200: rules.OCTETS, 206: rules.OCTETS},
            refusals=(NotFound, BlobLost, NoSuchRange),
        )

    async def upload(self, request: Request) -> ASGIApp:
        asked: UploadQuery = request.query
        check_encoding(request.headers)
        kind = asked.type or request.headers.get(b"content-type", b"").decode("latin-1")
        kept, new = await self._blobs.upload(
            body_parts(request.headers, request.receive, self._max_bytes, UploadTooLarge),
            name=rules.name_of(asked.name),
            media_type=rules.type_of(kind),
            client_id=asked.client_id,
        )
        return json_response(201 if new else 200, Uploaded(kept.attachment_id, kept.name, kept.size, kept.media_type))

    async def blob(self, request: Request) -> ASGIApp:
        digest, asked = request.params["digest"], request.query
        if not rules.DIGEST.fullmatch(digest):
            raise NotFound("blob", digest)
        reading = await self._blobs.open(digest)
        try:
            response = _response(request, reading, asked)
        except BaseException:
            reading.close()
            raise
        if isinstance(response, Response):
            reading.close()
        return response


def _response(request: Request, reading: Reading, asked: BlobQuery) -> ASGIApp:
    """The type is only ever one that a browser draws, plays or saves, whatever is asked for: naming it proves nothing."""
    kind = reading.blob.media_type if asked.type is None else rules.type_of(asked.type)
    blob, tag = reading.blob, f'"{reading.blob.digest}"'.encode()
    headers: tuple[Header, ...] = (*_HARMLESS, (b"etag", tag))
    if ranges.matches(request.headers.get(b"if-none-match"), tag):
        return Response(304, headers=headers)
    headers += (
        (b"content-type", rules.served_as(kind).encode()),
        (b"content-disposition", rules.disposition(kind, asked.name).encode()),
    )
    span = None
    if request.scope["method"] == "GET" and request.headers.get(b"if-range", tag) == tag:
        try:
            span = ranges.asked(request.headers.get(b"range"), blob.size)
        except ranges.Unsatisfiable:
            raise NoSuchRange(blob.size) from None
    return Octets(reading, span, headers)


class Octets:
    """Bytes of an open blob, as an ASGI application that closes it."""

    def __init__(self, reading: Reading, span: Span | None, headers: tuple[Header, ...]) -> None:
        self._reading, self._span, self._headers = reading, span, headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = self._reading.blob.size
        first, end = self._span or (0, size)
        headers = [*self._headers, (b"content-length", b"%d" % (end - first))]
        if self._span is not None:
            headers.append((b"content-range", b"bytes %d-%d/%d" % (first, end - 1, size)))
        try:
            await send({"type": "http.response.start", "status": 200 if self._span is None else 206, "headers": headers})
            while first < end and scope["method"] != "HEAD":
                data = await self._reading.read(first, min(SENT_AT_ONCE, end - first))
                first += len(data)
                await send({"type": "http.response.body", "body": data, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._reading.close()
