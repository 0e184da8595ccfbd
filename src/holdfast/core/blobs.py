"""Rules for bytes that people send: how they are named and typed, how many fit in a message, how they may be shown, and how long they are
kept when no conversation names them."""

import re

# Of the home folder; the files of blobs lie in it.
FOLDER = "blobs"
UNUSED_FOR_MS = 24 * 3_600_000
MOST_ATTACHMENTS = 20
UNNAMED = "attachment"
OCTETS = "application/octet-stream"
DIGEST = re.compile(r"[0-9a-f]{64}")
# What a browser only draws or plays. SVG is missing on purpose: it can carry scripts.
SHOWN = frozenset(
    {
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
        "image/avif",
        "audio/mpeg",
        "audio/mp4",
        "audio/aac",
        "audio/ogg",
        "audio/wav",
        "audio/webm",
        "audio/flac",
    }
)
_LONGEST_NAME = 200
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")


def name_of(given: str | None) -> str:
    """A file's own name: no folders, no control characters, no surrogates, not too long. The ending survives the cut."""
    last = re.split(r"[/\\]", given or "")[-1]
    clean = "".join(char for char in last if char.isprintable()).strip()
    if clean in ("", ".", ".."):
        return UNNAMED
    if len(clean) <= _LONGEST_NAME:
        return clean
    stem, dot, ending = clean.rpartition(".")
    if not dot or len(ending) > 20:
        return clean[:_LONGEST_NAME]
    return f"{stem[: _LONGEST_NAME - len(ending) - 1]}.{ending}"


def type_of(given: str | None) -> str:
    """A media type without its parameters. What is no media type counts as octets."""
    kind = (given or "").partition(";")[0].strip().lower()
    return kind if _TYPE.fullmatch(kind) else OCTETS


def served_as(media_type: str) -> str:
    """The type under which a browser gets these bytes: their own if it only draws or plays it, else one that it only saves."""
    return media_type if media_type in SHOWN else OCTETS


def disposition(media_type: str, name: str | None) -> str:
    """The header that says whether a browser may show the bytes, and under which name it saves them."""
    how = "inline" if media_type in SHOWN else "attachment"
    if name is None:
        return how
    encoded = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in name_of(name).encode())
    return f"{how}; filename*=UTF-8''{encoded}"
