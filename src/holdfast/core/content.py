"""What stands wherever something is said: a list of parts. Text is a part like images, audio and files; bytes lie in blobs, by digest."""

import hashlib
from collections.abc import Iterable

import msgspec


class TextPart(msgspec.Struct, frozen=True, tag="text"):
    text: str


class _Bytes(msgspec.Struct, frozen=True, kw_only=True):
    """`blob` is the digest of the bytes; `media_type` is what their sender said they are."""

    blob: str
    size: int
    media_type: str = "application/octet-stream"
    name: str | None = None


class ImagePart(_Bytes, frozen=True, tag="image"): ...


class AudioPart(_Bytes, frozen=True, tag="audio"): ...


class FilePart(_Bytes, frozen=True, tag="file"): ...


BytesPart = ImagePart | AudioPart | FilePart
Part = TextPart | BytesPart

_TEXTS = ("application/json", "application/xml", "application/yaml", "application/toml", "application/x-sh", "application/javascript")
# More of a text file than this is for a tool to read.
TEXT_LIMIT = 128 * 1024

# Content that is text and nothing else is held as that text; everything else as its parts. No content has two forms.
Content = str | tuple[Part, ...]


def of(given: Iterable[Part]) -> Content:
    """These parts, in the form in which content is held."""
    held = tuple(given)
    if not held:
        return ""
    return held[0].text if len(held) == 1 and isinstance(held[0], TextPart) else held


def parts(content: Content) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    return content


def text(content: Content) -> str:
    """Only its words, for readers that want no more."""
    if isinstance(content, str):
        return content
    return "\n\n".join(part.text for part in content if isinstance(part, TextPart) and part.text)


def outline(content: Content) -> str:
    """Its words and, in brackets, the names of what is attached: for titles, quotations and the search, which hold only text."""
    if isinstance(content, str):
        return content
    names = ", ".join(part.name or part.media_type for part in attached(content))
    return "\n".join(each for each in (text(content), f"[{names}]" if names else "") if each)


def attached(content: Content) -> tuple[BytesPart, ...]:
    """Its parts that are not text."""
    return () if isinstance(content, str) else tuple(part for part in content if not isinstance(part, TextPart))


def bytes_part(*, blob: str, size: int, media_type: str, name: str | None) -> BytesPart:
    """The part for an attachment, by its media type."""
    kind = media_type.partition("/")[0]
    made: type[BytesPart] = ImagePart if kind == "image" else AudioPart if kind == "audio" else FilePart
    return made(blob=blob, size=size, media_type=media_type, name=name)


def is_given_as_text(part: BytesPart) -> bool:
    """Whether a model gets a file's text instead of its bytes."""
    return isinstance(part, FilePart) and part.size <= TEXT_LIMIT and is_text(plain_type(part.media_type))


def is_text(media_type: str) -> bool:
    """`media_type`: as `plain_type` gives it."""
    return media_type.startswith("text/") or media_type in _TEXTS or media_type.endswith(("+json", "+xml"))


def plain_type(media_type: str) -> str:
    """Without parameters, in small letters."""
    return media_type.partition(";")[0].strip().lower()


def followed_by(content: Content, words: str) -> Content:
    """With a paragraph behind it."""
    if not words:
        return content
    return f"{content}\n\n{words}" if isinstance(content, str) and content else of([*parts(content), TextPart(words)])


def joined(content: Content) -> tuple[Part, ...]:
    """Its parts, with texts that follow each other as one."""
    found: list[Part] = []
    for part in parts(content):
        if isinstance(part, TextPart) and found and isinstance(found[-1], TextPart):
            found[-1] = TextPart(f"{found[-1].text}\n\n{part.text}")
        else:
            found.append(part)
    return tuple(found)


def digest(content: Content) -> bytes:
    """By which the same content is known again."""
    data = content.encode() if isinstance(content, str) else msgspec.json.encode(content)
    return hashlib.sha256(data).digest()[:16]
