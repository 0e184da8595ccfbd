"""What a model is given of attachments: bytes where it takes them, a text file as text, otherwise a line that names what was not given."""

from base64 import b64encode
from collections.abc import Awaitable, Callable, Collection, Mapping

import msgspec

from holdfast.core.content import AudioPart, BytesPart, Content, ImagePart, TextPart, is_given_as_text, parts, plain_type
from holdfast.core.errors import NotFound
from holdfast.ports.models import Taking

MB = 1024 * 1024
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
SOUNDS: Mapping[str, str] = {"audio/wav": "wav", "audio/mpeg": "mp3"}
PDF = "application/pdf"
LIMIT = 20 * MB
_MEDIA_TYPES: Mapping[str, Collection[str]] = {"image": IMAGES, "audio": SOUNDS, "file": (PDF,)}


class Given(msgspec.Struct, frozen=True):
    """Bytes that the model is given. `kind`: image, audio or file."""

    kind: str
    media_type: str
    name: str
    data: bytes

    @property
    def base64(self) -> str:
        return b64encode(self.data).decode()

    @property
    def url(self) -> str:
        return f"data:{self.media_type};base64,{self.base64}"


def problem(part: BytesPart, taking: Taking) -> str | None:
    """Why a model that takes this is not given its content."""
    kind, media_type = _kind(part), _plain(part.media_type)
    return None if is_given_as_text(part) else _problem(kind, media_type, part.size, taking)


async def given(content: Content, taking: Taking, read: Callable[[str], Awaitable[bytes]]) -> list[str | Given]:
    """The parts of a message or result, in order, as texts and bytes that this model takes."""
    if isinstance(content, str):
        return [content] if content else []
    return [part.text if isinstance(part, TextPart) else await _given(part, taking, read) for part in parts(content)]


async def _given(part: BytesPart, taking: Taking, read: Callable[[str], Awaitable[bytes]]) -> str | Given:
    kind = _kind(part)
    media_type = _plain(part.media_type)
    name = part.name or f"{kind} without a name"
    if why := problem(part, taking):
        return f"[{name} ({media_type}, {part.size} bytes) was not given to you: {why}]"
    try:
        data = await read(part.blob)
    except NotFound:
        return f"[{name} ({media_type}, {part.size} bytes) was not given to you: its bytes are missing]"
    if is_given_as_text(part):
        return f"[{name} ({media_type})]\n{data.decode(errors='replace')}"
    return Given(kind=kind, media_type=media_type, name=name, data=data)


def _kind(part: BytesPart) -> str:
    return "image" if isinstance(part, ImagePart) else "audio" if isinstance(part, AudioPart) else "file"


def _problem(kind: str, media_type: str, size: int, taking: Taking) -> str | None:
    if kind not in taking.kinds:
        return f"this model does not take {'audio' if kind == 'audio' else f'{kind}s'}"
    if media_type not in _MEDIA_TYPES[kind]:
        return f"this model does not take {media_type}"
    if size > (taking.image_limit if kind == "image" else LIMIT):
        return "it is too large for this model"
    return None


def _plain(media_type: str) -> str:
    """Without parameters, in the spelling that providers know."""
    plain = plain_type(media_type)
    return {"image/jpg": "image/jpeg", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "audio/mp3": "audio/mpeg"}.get(plain, plain)
