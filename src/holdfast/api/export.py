"""A conversation as a file to keep: Markdown, JSON, or a page that needs nothing else."""

import html
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

import msgspec

from holdfast.api import conversation
from holdfast.api.times import rfc3339
from holdfast.core import content
from holdfast.core.content import BytesPart
from holdfast.core.messages import Attached, Called, Message, Said, ToolCall
from holdfast.core.sessions import Session
from holdfast.core.texts import visible
from holdfast.core.transcript import Transcript

NAMES = {"user": "You", "assistant": "Holdfast", "notice": "Note", "interruption": "Interrupted", "cause": "Event"}
MEDIA_TYPES = {"md": b"text/markdown; charset=utf-8", "json": b"application/json", "html": b"text/html; charset=utf-8"}

_STYLE = (
    "body{max-width:46rem;margin:2rem auto;padding:0 1rem;font:16px/1.6 system-ui,sans-serif;color:#17211e;background:#fbfbf8}"
    "h1{font:600 1.5rem Georgia,serif}article{margin:1.25rem 0}.user{background:#dcebe4;border-radius:12px;padding:.5rem .9rem}"
    ".notice,.interruption,.cause{color:#855408;font-size:.9rem}header{color:#5d6a65;font-size:.8rem}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f4f6f1;border:1px solid #e2e6de;border-radius:8px;padding:.6rem .8rem}"
    ".text{white-space:pre-wrap;overflow-wrap:anywhere}.prose{overflow-wrap:anywhere}code{font:.9em ui-monospace,monospace}"
    "img{max-width:100%;border-radius:8px}blockquote{margin:0;padding-left:1rem;border-left:3px solid #cbd2c9}"
    "table{border-collapse:collapse}th,td{padding:.25rem .6rem;border:1px solid #e2e6de;text-align:left}.right{text-align:right}"
    ".center{text-align:center}a{color:#1a6554}.file{font-size:.9rem}"
    "@media (prefers-color-scheme:dark){body{color:#e4ebe7;background:#0e1514}.user{background:#17352e}"
    "pre{background:#0a1110;border-color:#202c29}th,td{border-color:#202c29}a{color:#6cc7aa}.notice,.interruption,.cause{color:#e7bb6c}"
    "header{color:#8d9c96}}"
)
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; img-src data:; base-uri 'none';"
    " form-action 'none'"
)
# Pictures that a browser draws and never runs, and how much of them a page carries.
DRAWABLE = ("image/png", "image/jpeg", "image/gif", "image/webp")
MOST_OF_ONE = 5 * 1024 * 1024
MOST_PICTURES = 25 * 1024 * 1024
# More than so many characters of texts are not read as Markdown: the rest stands there as it was written.
MOST_READ = 600_000


class Row(NamedTuple):
    """A message: by whom and when, and what it says, in order. A piece is (`text`, words), (`call`, what was called and what came of it) or
    (`file`, what is attached).
    """

    role: str
    name: str
    at: int
    pieces: Sequence[tuple[str, str | BytesPart]]


class Whole(NamedTuple):
    """A conversation as it was at one moment, apart from what goes on in it."""

    title: str
    session_id: str
    created_at: int
    rows: Sequence[Row]


def whole(session: Session, transcript: Transcript) -> Whole:
    messages = (*transcript.messages, *transcript.queued.values())
    rows = [Row(message.role, _name(message), message.created_at, [*_pieces(message)]) for message in messages]
    return Whole(session.title or "Conversation", session.session_id, session.created_at, rows)


def as_json(session: Session, transcript: Transcript) -> bytes:
    return msgspec.json.format(msgspec.json.encode(conversation.session(session, transcript, conversation.WHOLE)), indent=2)


def pictures(found: Whole) -> list[BytesPart]:
    """Those that its page carries, each once."""
    chosen: dict[str, BytesPart] = {}
    left = MOST_PICTURES
    for row in found.rows:
        for _, part in row.pieces:
            if isinstance(part, str) or part.blob in chosen or part.media_type not in DRAWABLE or part.size > min(MOST_OF_ONE, left):
                continue
            chosen[part.blob] = part
            left -= part.size
    return [*chosen.values()]


def file_name(session: Session, kind: str) -> str:
    """Letters, digits and hyphens of its title: what every system takes."""
    words = "".join(char if char.isascii() and char.isalnum() else " " for char in session.title or "conversation").split()
    return f"{'-'.join(words)[:60] or 'conversation'}.{kind}"


def _name(message: Message) -> str:
    if message.role == "user" and message.sender not in (None, "owner"):
        return message.sender_name or str(message.sender)
    return NAMES.get(message.role, message.role)


def markdown(found: Whole) -> bytes:
    parts = [f"# {found.title}", f"*{found.session_id}, {rfc3339(found.created_at)}*"]
    for row in found.rows:
        parts.append(f"**{row.name}** · {rfc3339(row.at)}")
        for kind, said in row.pieces:
            parts.append(_attached(said) if not isinstance(said, str) else said if kind == "text" else _fenced(said))
    return ("\n\n".join(part for part in parts if part) + "\n").encode()


def _attached(part: BytesPart) -> str:
    return f"[attached: {part.name or 'a file'}, {part.media_type}, {part.size:,} bytes]"


def _fenced(text: str) -> str:
    """In a fence that is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def page(found: Whole, bytes_of: Mapping[str, bytes], *, most_read: int = MOST_READ) -> bytes:
    """`bytes_of`: of the pictures, by their digests. What is not there is named."""
    from holdfast.api import prose  # Loads what reads Markdown.

    title = html.escape(found.title)
    body, left = [f"<h1>{title}</h1>"], most_read
    for row in found.rows:
        body.append(
            f'<article class="{html.escape(row.role)}"><header>{html.escape(visible(row.name))} · <time>{rfc3339(row.at)}</time></header>'
        )
        for kind, said in row.pieces:
            if not isinstance(said, str):
                body.append(_file(said, bytes_of.get(said.blob)))
            elif kind == "call":
                lines = visible(said.replace("\r\n", "\n"))
                body.append(f"<pre>{html.escape(lines)}</pre>")
            elif said:
                left -= len(said)
                read = row.role in ("user", "assistant") and left >= 0
                body.append(f'<div class="prose">{prose.drawn(said)}</div>' if read else f'<div class="text">{html.escape(said)}</div>')
        body.append("</article>")
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width"><title>{title}</title><style>{_STYLE}</style>'
    )
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'.encode()


def _file(part: BytesPart, found: bytes | None) -> str:
    if found is None or part.media_type not in DRAWABLE:
        return f'<p class="file">{html.escape(visible(_attached(part)))}</p>'
    name = html.escape(visible(part.name or "a picture"))
    return f'<p><img alt="{name}" src="data:{part.media_type};base64,{b64encode(found).decode()}"></p>'


def _pieces(message: Message) -> Iterator[tuple[str, str | BytesPart]]:
    if message.role != "assistant" or message.made_of is None:
        yield "text", message.text + (f" ({message.decision})" if message.decision else "")
        yield from (("file", part) for part in content.attached(message.content))
        return
    calls = {call.call_id: call for call in message.tool_calls}
    for part in message.answer:
        match part:
            case Said():
                yield "text", part.text
            case Called() if part.call_id in calls:
                yield "call", _call(calls[part.call_id])
                result = calls[part.call_id].content
                yield from (("file", each) for each in content.attached(result or ""))
            case Attached():
                yield "file", part.part


def _call(call: ToolCall) -> str:
    arguments = (
        call.arguments.get("command") if isinstance(call.arguments.get("command"), str) else msgspec.json.encode(call.arguments).decode()
    )
    said = call.result if call.result is not None else call.output
    return f"{call.name}: {arguments}\n[{call.outcome or 'not finished'}]\n{said}".rstrip()
