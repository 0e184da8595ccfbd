"""What an agent that is another program is given: the messages of a turn, and the conversation so far if it does not know that."""

import base64
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from holdfast.core import content
from holdfast.core.acp import Abilities
from holdfast.core.content import AudioPart, BytesPart, ImagePart, TextPart
from holdfast.core.history import Item, Result, Step, User

MOST_TOLD = 60_000
MOST_EACH = 4_000
DIED = (
    "[System note: your process ended in the middle of this turn and was started again. Continue the interrupted work. Check what was done"
    " before you repeat anything. The request was:]"
)
CANCELLED = "[System note: this turn was interrupted, and it now continues. Do not repeat what was done. The request was:]"

Read = Callable[[str], Awaitable[bytes]]


async def blocks(causes: Iterable[User], can: Abilities, read: Read, *, first: Sequence[str | None] = ()) -> list[dict[str, Any]]:
    """`first`: our own notes, which come before the causes."""
    told = [_text(words) for words in first if words]
    for cause in causes:
        if cause.about is not None:
            told.append(_text(cause.about))
        for part in content.parts(cause.content):
            told.append(_text(part.text) if isinstance(part, TextPart) else await _bytes(part, can, read))
    return told or [_text("")]


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


async def _bytes(part: BytesPart, can: Abilities, read: Read) -> dict[str, Any]:
    kind = "image" if isinstance(part, ImagePart) else "audio" if isinstance(part, AudioPart) else "file"
    if kind not in can.takes:
        return _text(f"[The user attached {part.name or 'a file'} ({part.media_type}, {part.size} bytes), which you cannot read.]")
    data = base64.b64encode(await read(part.blob)).decode()
    return {"type": kind, "mimeType": part.media_type, "data": data}


def transcript(history: Sequence[Item], generation: int) -> str | None:
    """The turns before this one, for an agent that has not seen them. Of long ones only the newest part."""
    lines = [line for item in _before(history, generation) if (line := _told(item))]
    if not lines:
        return None
    kept: list[str] = []
    size = 0
    for line in reversed(lines):
        size += len(line)
        if size > MOST_TOLD:
            break
        kept.append(line)
    left_out = "\n\n[Earlier messages are left out.]" if len(kept) < len(lines) else ""
    told = "\n\n".join(reversed(kept))
    return f"[The conversation so far, which you have not seen in this session.]{left_out}\n\n{told}\n\n[The new message:]"


def _before(history: Sequence[Item], generation: int) -> Iterable[Item]:
    for item in history:
        if not isinstance(item, Result) and item.generation >= generation:
            return
        yield item


def _told(item: Item) -> str:
    match item:
        case User():
            return f"{item.sender or 'User'}: {_short(content.outline(item.content))}"
        case Step():
            return f"You: {_short(item.text)}" if item.text else ""
        case Result():
            return f"[You ran {item.name}: {item.outcome}. {_short(item.text)}]"


def _short(text: str) -> str:
    return text if len(text) <= MOST_EACH else f"{text[: MOST_EACH // 2]} [...] {text[-MOST_EACH // 2 :]}"
