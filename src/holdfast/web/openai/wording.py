"""What a client is told in words, where its protocol has no shape for it."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from holdfast.core import approvals, notices
from holdfast.core.answering import Answering, Status
from holdfast.core.content import BytesPart
from holdfast.core.pieces import Asks

STARTS_OVER = "(The answer starts over.)"
STOPPED = "(Stopped.)"
LONGEST_ARGUMENTS = 2000


def question(asked: Asks) -> str:
    """With how to answer it."""
    if asked.form == approvals.FORM:
        return notices.approve_how(asked.text, asked.question_id, asked.pattern)
    return "\n".join([asked.text, *(f"- {choice}" for choice in asked.choices)])


def attached(parts: Sequence[BytesPart]) -> str:
    """Where the bytes are, for clients that hold the token."""
    return "Attached: " + ", ".join(map(_link, parts))


def _link(part: BytesPart) -> str:
    name = part.name or part.media_type
    shown = "".join(char for char in name if char not in "[]\\")
    return f"[{shown}](/api/blobs/{part.blob}?name={quote(name, safe='')}&type={quote(part.media_type, safe='')})"


def arguments(given: Mapping[str, Any]) -> str:
    return msgspec.json.encode(given).decode()


def call(name: str, given: Mapping[str, Any]) -> str:
    text = arguments(given)
    return f"{name} {text if len(text) <= LONGEST_ARGUMENTS else text[:LONGEST_ARGUMENTS] + ' ...'}"


def ending(answering: Answering) -> str | None:
    """How it ended, where the text alone would not say."""
    if answering.status is Status.CANCELLED:
        return STOPPED
    if answering.status is Status.INCOMPLETE:
        return f"(Not finished: {answering.why}. Send a message to continue.)"
    return None
