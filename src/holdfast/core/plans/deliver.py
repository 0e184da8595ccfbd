"""How what is owed to a chat is sent: in which pieces, and into which messages that already show an answer (P4, B11)."""

from collections.abc import Sequence

import msgspec

from holdfast.core import content, markdown, notices, splitting
from holdfast.core.capabilities import Capabilities
from holdfast.core.content import Content, TextPart
from holdfast.core.delivery import REPEAT_LABEL, DeliveryState
from holdfast.core.events import DeliveryPlanned, Piece
from holdfast.core.rich import Rich
from holdfast.core.splitting import Size

# The role of what a turn answers.
ANSWER = "assistant"


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """A message that shows an answer while it is being written. `receipt`: the platform's name of it, None while it is not known to be
    there. `seq`: where in the log it was opened. `followed`: something else was written to the chat below it.
    """

    delivery_id: str
    state: DeliveryState
    seq: int
    receipt: str | None = None
    owner: int | None = None
    followed: bool = False


def rich(text: str) -> Rich:
    return markdown.read(text)


def room(can: Capabilities) -> int:
    """How much of a message is for its text: what may have to stand before it fits as well."""
    return can.text_limit - 2 * len(REPEAT_LABEL) - 20 if can.text_limit > 200 else can.text_limit


def plan(said: Content, can: Capabilities, size: Size) -> list[Piece]:
    """In the order of its parts. A file that is too large for the platform is named instead. A text of nothing but blanks is none, because
    platforms refuse it.
    """
    found: list[Piece] = []
    number = 0
    for part in content.joined(said):
        if isinstance(part, TextPart):
            found += [Piece(text=text) for text in splitting.split(rich(part.text), room(can), size) if text.text.strip()]
            continue
        if part.size > can.bytes_out:
            found.append(Piece(text=Rich(notices.too_large(part.name or part.media_type, part.size, can.bytes_out))))
        else:
            found.append(Piece(file=number))
        number += 1
    return found or [Piece(text=Rich(notices.nothing_said()))]


def into(found: Sequence[Piece], live: Sequence[Live]) -> tuple[tuple[Piece, ...], tuple[str, ...], tuple[str, ...]]:
    """Puts pieces of text, in their order, into the messages that show the answer: those that nothing else stands below, so that the answer
    is read where it belongs. Gives the pieces, the messages that are used, and those that were lost: what follows a lost one may be a
    repeat.
    """
    lost = tuple(one.delivery_id for one in live if one.state is DeliveryState.UNKNOWN)
    free = [one for one in live if one.state is DeliveryState.LIVE and one.receipt is not None and not one.followed]
    placed: list[Piece] = []
    used: list[str] = []
    for number, piece in enumerate(found):
        if free and piece.file is None and len(used) == number:
            used.append(free[0].delivery_id)
            piece = msgspec.structs.replace(piece, target=free.pop(0).receipt)
        elif lost and number == len(used):
            piece = msgspec.structs.replace(piece, repeat=True)
        placed.append(piece)
    return tuple(placed), tuple(used), lost


def planned(delivery_id: str, said: Content, can: Capabilities, size: Size, live: Sequence[Live] = ()) -> DeliveryPlanned | None:
    """None where it is sent as it is, in one message."""
    found = plan(said, can, size)
    if len(found) == 1 and found[0].file is None and not live:
        return None
    placed, used, lost = into(found, live)
    return DeliveryPlanned(delivery_id=delivery_id, pieces=placed, live=used, lost=lost)


def words(said: Content, piece: Piece | None) -> Rich:
    """The text of a piece; without one, all there is to say."""
    if piece is not None and piece.text is not None:
        return piece.text
    text = rich(content.text(said))
    return text if text.text.strip() else Rich(notices.nothing_said())
