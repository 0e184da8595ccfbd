"""The rows of what is sent to chats."""

from holdfast.core import events as e
from holdfast.core.delivery import IN_FLIGHT, DeliveryState
from holdfast.core.notices import LOST_MESSAGE
from holdfast.store.heads import Head
from holdfast.store.projection.common import Rows
from holdfast.store.rows import Change, Form, Insert, Update

OWED = Insert("outbox", "delivery_id", "session", "seq", "at", "state", "tries", "retry_at", "turn")
OPENED = Insert("outbox", "delivery_id", "session", "seq", "at", "state", "tries", "retry_at", "owner", "turn", "live", "tried_at")
PIECE = "delivery_id = ? AND part = ?"
_MOVED = ("state", "tries", "retry_at", "owner", "receipt", "error")
DELIVERY = Update("outbox", *_MOVED, where=PIECE)
DELIVERY_TRIED = Update("outbox", *_MOVED, "tried_at", where=PIECE)
DELIVERY_ANEW = Update("outbox", "target = NULL", where=PIECE)
PLANNED = Update("outbox", "planned", "target", where="delivery_id = ? AND part = 0")
PIECE_OWED = Form(
    "outbox",
    "INSERT INTO outbox (delivery_id, part, session, seq, at, state, tries, retry_at, turn, planned, target)"
    " SELECT delivery_id, ?, session, seq, at, 'pending', 0, 0, turn, ?, ? FROM outbox WHERE delivery_id = ? AND part = 0",
)
NO_LONGER_LIVE = Update("outbox", "state", "owner = NULL", "error", where="delivery_id = ? AND live = 1")


def _delivery_opened(head: Head, event: e.DeliveryOpened, at: int, in_turn: bool) -> list[Change]:
    state = str(DeliveryState.SENDING)
    return [(OPENED, (event.delivery_id, head.session, head.seq, at, state, 1, 0, event.owner, event.turn_id, 1, at))]


def _delivery_planned(head: Head, event: e.DeliveryPlanned, at: int, in_turn: bool) -> list[Change]:
    name, first = event.delivery_id, event.pieces[0]
    return [
        (PLANNED, (head.seq, first.target, name)),
        *((PIECE_OWED, (part, head.seq, piece.target, name)) for part, piece in enumerate(event.pieces) if part),
        *((NO_LONGER_LIVE, (str(DeliveryState.SENT), None, live)) for live in event.live),
        *((NO_LONGER_LIVE, (str(DeliveryState.DEAD), LOST_MESSAGE, lost)) for lost in event.lost),
    ]


def _delivery_changed(head: Head, event: e.DeliveryChanged, at: int, in_turn: bool) -> list[Change]:
    moved, piece = (event.state, event.tries, event.retry_at, event.owner, event.receipt, event.error), (event.delivery_id, event.part)
    changes: list[Change] = [(DELIVERY_TRIED, (*moved, at, *piece)) if event.state in IN_FLIGHT else (DELIVERY, (*moved, *piece))]
    return [*changes, (DELIVERY_ANEW, piece)] if event.anew else changes


ROWS: Rows = {e.DeliveryOpened: _delivery_opened, e.DeliveryPlanned: _delivery_planned, e.DeliveryChanged: _delivery_changed}
