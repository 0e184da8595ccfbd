"""What a request of the door says: messages, instructions, files and approvals. What cannot be honoured is refused by name."""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.api.openai import NewCompletion, NewResponse
from holdfast.core.approvals import APPROVE, DENY
from holdfast.core.blobs import MOST_ATTACHMENTS, OCTETS
from holdfast.core.errors import BadInput
from holdfast.core.recitals import ASSISTANT, USER, Line
from holdfast.web.openai.errors import Unsupported

_DATA = re.compile(r"data:([^;,]*)(?:;[^;,]+)*;base64,", re.IGNORECASE)
_INSTRUCTING = ("system", "developer")
_TEXTS = ("text", "input_text", "output_text")
# What a client sends back of earlier responses. It is on record here.
_ECHOED = ("reasoning", "mcp_call", "mcp_approval_request", "mcp_list_tools", "item_reference")
_OWN_TOOLS = "The agent here brings its own tools and runs them itself."
# How many messages a request may have, and parts in all of them: no conversation that people have is longer.
MOST_MESSAGES, MOST_PARTS = 10_000, 20_000
_AUDIO = {"wav": "audio/wav", "mp3": "audio/mpeg"}


class File(msgspec.Struct, frozen=True):
    """A file of a message: base64 text, not decoded yet, or the id of an upload."""

    name: str
    media_type: str
    data: str = ""
    attachment_id: str | None = None

    def decoded(self) -> bytes:
        try:
            return base64.b64decode(self.data, validate=True)
        except (binascii.Error, ValueError) as error:
            raise BadInput(f"The data of {self.name!r} is not base64: {error}.") from error


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """`lines`: what people and assistants said, oldest first; `attached` of a line are its `File`s. An approval is a line, too: the command
    that a person would write.
    """

    lines: list[Line]
    instructions: str | None = None


def completion(body: NewCompletion) -> Asked:
    _refuse_tools(body.tools, body.tool_choice)
    if body.functions:
        raise Unsupported("functions", f"{_OWN_TOOLS} Leave `functions` out.")
    if body.n not in (None, 1):
        raise Unsupported("n", "A message gets one answer here. Leave `n` out.")
    if body.logprobs:
        raise Unsupported("logprobs", "Log probabilities are not known here. Leave `logprobs` out.")
    if set(body.modalities or ()) - {"text"}:
        raise Unsupported("modalities", "Answers are text here. Leave `modalities` out.")
    _refuse_format("response_format", body.response_format)
    if not body.messages:
        raise Unsupported("messages", "`messages` is empty. Send at least one message.")
    return _asked(list(_messages("messages", body.messages)))


def response(body: NewResponse) -> Asked:
    _refuse_tools(body.tools, body.tool_choice)
    if body.prompt is not None:
        raise Unsupported("prompt", "There are no stored prompts here. Send the words themselves as `input` and `instructions`.")
    if body.store is False:
        raise Unsupported("store", "Holdfast keeps every conversation. Leave `store` out, and delete the session when it is over.")
    _refuse_format("text.format", (body.text or {}).get("format"))
    if isinstance(body.input, str):
        return Asked(lines=[Line(USER, body.input)], instructions=body.instructions or None)
    asked = _asked(list(_messages("input", body.input)))
    said = [each for each in (body.instructions, asked.instructions) if each]
    return msgspec.structs.replace(asked, instructions="\n\n".join(said) or None)


def _asked(found: list[Line]) -> Asked:
    instructions = "\n\n".join(line.text for line in found if line.role in _INSTRUCTING and line.text)
    return Asked(lines=[line for line in found if line.role not in _INSTRUCTING], instructions=instructions or None)


def _refuse_tools(tools: list[Any] | None, choice: Any) -> None:
    if tools and choice != "none":
        raise Unsupported("tools", f"{_OWN_TOOLS} Leave `tools` out.")


def _refuse_format(param: str, wanted: Any) -> None:
    if isinstance(wanted, dict) and wanted.get("type", "text") != "text":
        raise Unsupported(param, "The form of an answer cannot be promised here. Ask for it in words, and leave the format out.")


def _verdict(where: str, item: dict[str, Any]) -> Line:
    question_id, approve, reason = item.get("approval_request_id"), item.get("approve"), item.get("reason") or ""
    if not isinstance(question_id, str) or not re.fullmatch(r"\w{1,100}", question_id):
        raise Unsupported(f"{where}.approval_request_id", "`approval_request_id` is the `id` of an `mcp_approval_request`.")
    if not isinstance(approve, bool) or not isinstance(reason, str):
        raise Unsupported(f"{where}.approve", "`approve` is true or false, `reason` a text.")
    return Line(USER, f"/{APPROVE} {question_id}" if approve else f"/{DENY} {question_id} {reason}".rstrip())


def _messages(param: str, items: list[dict[str, Any]]) -> Iterator[Line]:
    parts = sum(len(item["content"]) for item in items if isinstance(item.get("content"), list))
    if len(items) > MOST_MESSAGES or parts > MOST_PARTS:
        raise Unsupported(param, f"A request takes at most {MOST_MESSAGES} messages with {MOST_PARTS} parts. Leave the oldest out.")
    for place, item in enumerate(items):
        where, kind, role = f"{param}[{place}]", item.get("type", "message"), item.get("role")
        if kind in _ECHOED:
            continue
        if kind == "mcp_approval_response":
            yield _verdict(where, item)
            continue
        if kind != "message" or role in ("tool", "function"):
            raise Unsupported(where, f"{_OWN_TOOLS} Messages of the roles user, assistant, system and developer are taken.")
        if role not in (USER, ASSISTANT, *_INSTRUCTING):
            raise Unsupported(f"{where}.role", "`role` is one of user, assistant, system and developer.")
        yield _line(where, role, item.get("content"))


def _line(where: str, role: str, content: Any) -> Line:
    if content is None and role == ASSISTANT:  # One that only called tools.
        return Line(role, "")
    if isinstance(content, str):
        return Line(role, content)
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise Unsupported(f"{where}.content", "`content` is a text or a list of parts.")
    texts, files = [], []
    for place, part in enumerate(content):
        found = _part(f"{where}.content[{place}]", part)
        if isinstance(found, File):
            files.append(found)
        else:
            texts.append(found)
    if len(files) > MOST_ATTACHMENTS:
        raise Unsupported(f"{where}.content", f"A message takes at most {MOST_ATTACHMENTS} files. Send the others with the next one.")
    return Line(role, "\n\n".join(text for text in texts if text), tuple(files))


def _part(where: str, part: dict[str, Any]) -> str | File:
    match part:
        case {"type": kind, "text": str(text)} if kind in _TEXTS:
            return text
        case {"type": "refusal", "refusal": str(text)}:
            return text
        case {"type": "image_url", "image_url": {"url": str(url)}} | {"type": "input_image", "image_url": str(url)}:
            return _of_url(where, url, name="image")
        case {"type": "file", "file": {"file_data": str(data), **more}} | {"type": "input_file", "file_data": str(data), **more}:
            name = more.get("filename")
            return _of_url(where, data, name=name if isinstance(name, str) else "file")
        case {"type": "file", "file": {"file_id": str(id_)}} | {"type": "input_file" | "input_image", "file_id": str(id_)}:
            return File("", "", attachment_id=id_)
        case {"type": "input_audio", "input_audio": {"data": str(data), "format": str(format_)}}:
            return File(f"audio.{format_}", _AUDIO.get(format_, OCTETS), data)
        case {"type": "input_file", "file_url": _}:
            raise Unsupported(where, "Files are not fetched from other servers. Send the file itself.")
        case _:
            raise Unsupported(where, "Text, images, audio and files are taken: see docs/doors.md for how each is written.")


def _of_url(where: str, url: str, *, name: str) -> File:
    found = _DATA.match(url)
    if found is None and re.match(r"https?:", url, re.IGNORECASE):
        raise Unsupported(where, "Files are not fetched from other servers. Send the file itself, as a data: URL.")
    if found is None:
        return File(name, OCTETS, url)  # Bare base64, as some clients send it.
    kind = found[1] or OCTETS
    return File(name if "." in name else f"{name}.{kind.rpartition('/')[2].partition('+')[0]}", kind, url[found.end() :])
