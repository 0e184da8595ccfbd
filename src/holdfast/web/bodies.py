"""The body and the query of a request: read completely, within limits, and decoded strictly."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive

from holdfast.api.requests import Query
from holdfast.core.errors import BadInput
from holdfast.web.errors import Gone, NotJson, TooLarge, TooSlow

MAX_BODY = 8 * 1024 * 1024
MAX_FIELDS = 50
# How long a body may take; it gets more time only while it arrives at this rate.
BODY_S = 20.0
LEAST_RATE = 16 * 1024
# The content types that clients send for JSON; the charset is always UTF-8.
_JSON_TYPE = re.compile(rb"\s*application/json\s*(;\s*charset\s*=\s*\"?utf-8\"?\s*)?;?\s*", re.IGNORECASE)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

Headers = dict[bytes, bytes]


async def read_body(headers: Headers, receive: Receive) -> bytes:
    """The whole body."""
    parts = [part async for part in body_parts(headers, receive, MAX_BODY)]
    return b"".join(parts) if len(parts) > 1 else parts[0]


async def body_parts(
    headers: Headers, receive: Receive, most: int, too_large: Callable[[int], Exception] = TooLarge
) -> AsyncIterator[bytes]:
    """The body as it comes, at least one part. One that is too large is refused by its announced length, or as soon as it has grown too
    large; one that drips in, when its time is over.
    """
    length = headers.get(b"content-length", b"")
    if length.isdigit() and (len(length) > 15 or int(length) > most):
        raise too_large(most)
    deadline = asyncio.get_running_loop().time() + BODY_S
    size, more = 0, True
    while more:
        try:
            async with asyncio.timeout_at(deadline + size / LEAST_RATE):
                message = await receive()
        except TimeoutError:
            raise TooSlow("The body of the request") from None
        if message["type"] == "http.disconnect":
            raise Gone
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > most:
            raise too_large(most)
        more = message.get("more_body", False)
        yield part


def check_encoding(headers: Headers) -> None:
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise BadInput("A compressed body is not understood. Send the bytes as they are.")


def check_type(headers: Headers, body: bytes) -> None:
    kind = headers.get(b"content-type")
    if kind is None:
        if body:
            raise NotJson("The body has no content type.")
    elif not _JSON_TYPE.fullmatch(kind):
        raise NotJson(f"A body of type {kind.decode('latin-1')!r} is not supported.")
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise NotJson("A compressed body is not supported.")


def decode_body(decoder: "msgspec.json.Decoder[Any]", body: bytes) -> Any:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise BadInput(f"The body is not valid: {_plain(error)}.") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"The body is not UTF-8{_bad_byte(body)}.") from error
    except RecursionError as error:
        raise BadInput("The body is nested too deeply.") from error
    except msgspec.DecodeError as error:
        if not body.strip():
            raise BadInput("The body is empty. Send a JSON object.") from error
        if _SURROGATE.search(body):
            raise BadInput("The body is not valid JSON: one of its \\u escapes may be half of a surrogate pair.") from error
        raise BadInput(f"The body is not valid JSON: {error}.") from error


def decode_query(kind: type[Query], query_string: bytes) -> Any:
    """The last of several values counts; an empty value counts as missing."""
    try:
        fields = dict(parse_qsl(query_string.decode("utf-8", "replace"), max_num_fields=MAX_FIELDS))
    except ValueError as error:
        raise BadInput(f"The query has more than {MAX_FIELDS} fields.") from error
    try:
        return msgspec.convert(fields, kind, strict=False)
    except msgspec.ValidationError as error:
        raise BadInput(f"The query is not valid: {_plain(error)}.") from error


def _plain(error: msgspec.ValidationError) -> str:
    return str(error).replace("`$.", "`").replace("`$[", "`[")


def _bad_byte(body: bytes) -> str:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return f": byte {error.start} is {body[error.start]:#04x}"
    return ""
