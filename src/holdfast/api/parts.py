"""Parts as they are shown: of a message, of an answer, of a result, of a question."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from holdfast.api import views
from holdfast.core import messages as m
from holdfast.core import output
from holdfast.core.content import AudioPart, BytesPart, ImagePart, Part, TextPart

Shorten = Callable[[str], output.Piece]

_BYTES: dict[type[BytesPart], type[views.BytesPartView]] = {ImagePart: views.ImagePartView, AudioPart: views.AudioPartView}


def content(parts: Sequence[Part], shorten: Shorten = output.Piece) -> list[views.ContentPartView]:
    return [_text(part.text, shorten) if isinstance(part, TextPart) else _bytes(part) for part in parts]


def answer(parts: Sequence[m.AnswerPart], shorten: Shorten, most_chars: int) -> list[views.PartView]:
    """Once the texts make up a page, the earlier ones with less of what they say."""
    shown: list[views.PartView] = []
    size = 0
    for part in reversed(parts):
        place: dict[str, Any] = {"id": part.id, "step": part.step}
        match part:
            case m.Said():
                text = _text(part.text, shorten if size < most_chars else output.glimpse, **place)
                size += len(text.text)
                shown.append(text)
            case m.Called():
                shown.append(views.CallPartView(offset=part.offset, call_id=part.call_id, **place))
            case m.Taken():
                shown.append(views.MessagePartView(offset=part.offset, message_id=part.message_id, **place))
            case m.Attached():
                shown.append(_bytes(part.part, **place))
    return shown[::-1]


def _text(text: str, shorten: Shorten, *, id: str | UnsetType = UNSET, step: int | UnsetType = UNSET) -> views.TextPartView:
    piece = shorten(text)
    return views.TextPartView(text=piece.text, id=id, step=step, text_omitted=piece.omitted or UNSET)


def _bytes(part: BytesPart, *, id: str | UnsetType = UNSET, step: int | UnsetType = UNSET) -> views.BytesPartView:
    view = _BYTES.get(type(part), views.FilePartView)
    return view(digest=part.blob, size=part.size, media_type=part.media_type, name=part.name, id=id, step=step)
