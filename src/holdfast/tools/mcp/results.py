"""What a server answers, as content: its words as one text with both ends kept, its images and files as blobs."""

import base64
import binascii
import json
from collections.abc import AsyncIterator
from typing import Any

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from holdfast.core import output
from holdfast.core.content import BytesPart, Content, TextPart, bytes_part, of
from holdfast.core.redaction import Secrets
from holdfast.core.texts import storable
from holdfast.ports.blobs import Put

MOST_ATTACHED = 10
UNKNOWN = "application/octet-stream"
MOST_NAME = 100
# How the images begin that models take. What only says that it is one would make a provider refuse the whole conversation, for ever.
_BEGINNINGS = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
    "application/pdf": (b"%PDF-",),
}


async def content(answer: CallToolResult, put: Put, secrets: Secrets) -> Content:
    """Secrets are replaced before anything is left out: half of one would not be known any more."""
    words: list[str] = []
    attached: list[BytesPart] = []
    for number, block in enumerate(answer.content, 1):
        match block:
            case TextContent(text=text):
                words.append(text)
            case ImageContent(data=data, mime_type=kind) | AudioContent(data=data, mime_type=kind):
                await _attach(attached, words, data, kind, f"{kind.partition('/')[0]} {number}", put)
            case EmbeddedResource(resource=TextResourceContents(text=text, uri=uri)):
                words.append(f"[{str(uri)[:MOST_NAME]}]\n{text}")
            case EmbeddedResource(resource=BlobResourceContents(blob=data, mime_type=kind, uri=uri)):
                await _attach(attached, words, data, kind, _last(str(uri)), put)
            case ResourceLink(name=name, uri=uri):
                words.append(f"[The resource {name[:MOST_NAME]}: {str(uri)[:1000]}]")
    if not words and answer.structured_content is not None:
        words.append(_json(answer.structured_content))
    text = output.result(secrets.text(storable("\n\n".join(words))))
    return of((*([TextPart(text)] if text else []), *attached))


async def _attach(attached: list[BytesPart], words: list[str], data: str, kind: str | None, name: str, put: Put) -> None:
    if len(attached) == MOST_ATTACHED:
        words.append(f"[{name} was left out: a result has at most {MOST_ATTACHED} attachments.]")
        return
    try:
        found = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        words.append(f"[{name} cannot be read.]")
        return
    media_type = _kind(kind or UNKNOWN, found)
    blob = await put(_whole(found), media_type=media_type)
    attached.append(bytes_part(blob=blob.digest, size=blob.size, media_type=media_type, name=name[:MOST_NAME]))


def _kind(said: str, data: bytes) -> str:
    """Its type, if the bytes are what it says."""
    plain = storable(said.partition(";")[0].strip().lower())[:MOST_NAME]
    beginnings = _BEGINNINGS.get({"image/jpg": "image/jpeg"}.get(plain, plain))
    if not data or not plain or (beginnings is not None and not data.startswith(beginnings)):
        return UNKNOWN
    return plain


async def _whole(data: bytes) -> AsyncIterator[bytes]:
    yield data


def _last(uri: str) -> str:
    return storable(uri.rstrip("/").rpartition("/")[2]) or "file"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
