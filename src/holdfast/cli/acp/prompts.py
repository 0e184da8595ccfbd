"""What an editor sends in a prompt, as a message for a conversation: its text, and the files that come with it. Pure."""

import base64
import binascii
import mimetypes
import re
from typing import Any, NamedTuple

from holdfast.cli.acp.editor import INVALID_PARAMS, BadRequest

# What an editor may send besides text and links.
TAKES = {"image": True, "audio": True, "embeddedContext": True}
MOST_NAME = 100


class File(NamedTuple):
    name: str
    data: bytes


class Message(NamedTuple):
    text: str
    files: tuple[File, ...]


def message(blocks: Any) -> Message:
    """Raises `BadRequest`."""
    if not isinstance(blocks, list) or not blocks:
        raise BadRequest(INVALID_PARAMS, "`prompt` must be a list of content blocks.")
    texts: list[str] = []
    files: list[File] = []
    for block in blocks:
        if not isinstance(block, dict):
            raise BadRequest(INVALID_PARAMS, "A content block must be an object.")
        match block.get("type"):
            case "text":
                texts.append(_string(block, "text"))
            case "resource_link":
                texts.append(f"[{_string(block, 'name')}]({_string(block, 'uri')})")
            case "resource":
                _embedded(block.get("resource"), texts, files)
            case "image" | "audio" as kind:
                files.append(File(_name(block, kind, len(files)), _bytes(block, "data")))
            case other:
                raise BadRequest(INVALID_PARAMS, f"Holdfast takes no content of the type {other!r}.")
    text = "".join(texts)  # An editor splits a sentence at each mention of a file.
    if not text.strip() and not files:
        raise BadRequest(INVALID_PARAMS, "The prompt is empty.")
    return Message(text, tuple(files))


def _embedded(resource: Any, texts: list[str], files: list[File]) -> None:
    if not isinstance(resource, dict):
        raise BadRequest(INVALID_PARAMS, "A block of the type 'resource' must have a `resource`.")
    uri = _string(resource, "uri")
    if "blob" in resource:
        files.append(File(_file_name(uri), _bytes(resource, "blob")))
        return
    body = _string(resource, "text")
    fence = "```"
    while fence in body:
        fence += "`"
    texts.append(f"\n\n{uri}\n{fence}\n{body}\n{fence}\n\n")


def _file_name(uri: str) -> str:
    """The last part of an address, as every file system takes it."""
    return re.sub(r"[^\w.-]", "_", uri.rpartition("/")[2])[-MOST_NAME:] or "file"


def _name(block: dict[str, Any], kind: str, number: int) -> str:
    ending = mimetypes.guess_extension(str(block.get("mimeType"))) or ""
    return f"{kind}-{number + 1}{ending}"


def _string(block: dict[str, Any], field: str) -> str:
    if not isinstance(found := block.get(field), str):
        raise BadRequest(INVALID_PARAMS, f"`{field}` of a content block must be text.")
    return found


def _bytes(block: dict[str, Any], field: str) -> bytes:
    try:
        return base64.b64decode(_string(block, field), validate=True)
    except binascii.Error:
        raise BadRequest(INVALID_PARAMS, f"`{field}` of a content block is not base64.") from None
