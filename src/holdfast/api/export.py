"""A conversation as a file to keep: Markdown, JSON, or a page that needs nothing else."""

import html
from collections.abc import Iterator

import msgspec

from holdfast.api import conversation
from holdfast.api.times import rfc3339
from holdfast.core.content import TextPart
from holdfast.core.messages import Called, Message, Said, ToolCall
from holdfast.core.sessions import Session
from holdfast.core.transcript import Transcript

NAMES = {"user": "You", "assistant": "Holdfast", "notice": "Note", "interruption": "Interrupted", "cause": "Event"}
MEDIA_TYPES = {"md": b"text/markdown; charset=utf-8", "json": b"application/json", "html": b"text/html; charset=utf-8"}

_STYLE = (
    "body{max-width:46rem;margin:2rem auto;padding:0 1rem;font:16px/1.6 system-ui,sans-serif;color:#17211e;background:#fbfbf8}"
    "h1{font:600 1.5rem Georgia,serif}article{margin:1.25rem 0}.user{background:#dcebe4;border-radius:12px;padding:.5rem .9rem}"
    ".notice,.interruption,.cause{color:#855408;font-size:.9rem}header{color:#5d6a65;font-size:.8rem}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f4f6f1;border:1px solid #e2e6de;border-radius:8px;padding:.6rem .8rem}"
    ".text{white-space:pre-wrap;overflow-wrap:anywhere}"
    "@media (prefers-color-scheme:dark){body{color:#e4ebe7;background:#0e1514}.user{background:#17352e}"
    "pre{background:#0a1110;border-color:#202c29}}"
)


def export(session: Session, transcript: Transcript, kind: str) -> bytes:
    if kind == "json":
        return msgspec.json.format(msgspec.json.encode(conversation.session(session, transcript, conversation.WHOLE)), indent=2)
    return (_markdown(session, transcript) if kind == "md" else _page(session, transcript)).encode()


def file_name(session: Session, kind: str) -> str:
    """Letters, digits and hyphens of its title: what every system takes."""
    words = "".join(char if char.isascii() and char.isalnum() else " " for char in session.title or "conversation").split()
    return f"{'-'.join(words)[:60] or 'conversation'}.{kind}"


def _messages(transcript: Transcript) -> list[Message]:
    return [*transcript.messages, *transcript.queued.values()]


def _markdown(session: Session, transcript: Transcript) -> str:
    parts = [f"# {session.title or 'Conversation'}", f"*{session.session_id}, {rfc3339(session.created_at)}*"]
    for message in _messages(transcript):
        parts.append(f"**{NAMES.get(message.role, message.role)}** · {rfc3339(message.created_at)}")
        for kind, text in _pieces(message):
            parts.append(text if kind == "text" else _fenced(text))
    return "\n\n".join(part for part in parts if part) + "\n"


def _fenced(text: str) -> str:
    """In a fence that is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _page(session: Session, transcript: Transcript) -> str:
    title = html.escape(session.title or "Conversation")
    body = [f"<h1>{title}</h1>"]
    for message in _messages(transcript):
        body.append(
            f'<article class="{html.escape(message.role)}">'
            f"<header>{NAMES.get(message.role, message.role)} · {rfc3339(message.created_at)}</header>"
        )
        body += [
            f"<div class=text>{html.escape(text)}</div>" if kind == "text" else f"<pre>{html.escape(text)}</pre>"
            for kind, text in _pieces(message)
        ]
        body.append("</article>")
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}"><title>{title}</title><style>{_STYLE}</style>'
    )
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'


def _pieces(message: Message) -> Iterator[tuple[str, str]]:
    """What a message says, in order: (`text`, words) or (`call`, what was called and what came of it)."""
    if message.role != "assistant" or message.made_of is None:
        yield "text", message.text + (f" ({message.decision})" if message.decision else "")
        yield from (("text", f"[attached: {part.name or 'a file'}]") for part in message.parts if not isinstance(part, TextPart))
        return
    calls = {call.call_id: call for call in message.tool_calls}
    for part in message.answer:
        match part:
            case Said():
                yield "text", part.text
            case Called() if part.call_id in calls:
                yield "call", _call(calls[part.call_id])


def _call(call: ToolCall) -> str:
    arguments = (
        call.arguments.get("command") if isinstance(call.arguments.get("command"), str) else msgspec.json.encode(call.arguments).decode()
    )
    said = call.result if call.result is not None else call.output
    return f"{call.name}: {arguments}\n[{call.outcome or 'not finished'}]\n{said}".rstrip()
