"""The rows that follow from messages and other causes: the inbox, what was said under a key, what clients recited."""

from holdfast.core import events as e
from holdfast.core.busy import Mode
from holdfast.core.content import digest, outline
from holdfast.core.delivery import DeliveryState
from holdfast.core.plans.edit import REPLACED
from holdfast.core.plans.repeats import NOTHING, REFUSED
from holdfast.core.recitals import Recital
from holdfast.core.sessions import title_of
from holdfast.store.heads import Head
from holdfast.store.projection.common import Rows, remember
from holdfast.store.projection.deliveries import OWED
from holdfast.store.rows import Change, Delete, Insert, Update

# Modes of a message that may be taken before those that came earlier.
AHEAD = (Mode.STEER, Mode.INTERRUPT)
WAITS = Insert("inbox", "session", "seq", "cause_id", "what")
EDITED = Update("inbox", "edited", where="session = ? AND cause_id = ?")
TAKEN = Delete("inbox", where="session = ? AND cause_id = ?")
INBOX_GONE = Delete("inbox", where="session = ?")
RECITED = Insert("recital", "digest", "session", "seq", "message", "instructions")
RECITALS_GONE = Delete("recital", where="session = ?")
TITLED = Update("session", "title", where="id = ? AND title IS NULL")


def _message_accepted(head: Head, event: e.MessageAccepted, at: int, in_turn: bool) -> list[Change]:
    what = event.mode if event.mode in AHEAD else "message"
    ref = event.message_id if event.mode != Mode.REJECT else REFUSED + event.message_id
    return [
        (WAITS, (head.session, head.seq, event.message_id, what)),
        *remember(event.dedup_key, digest(event.content), head, ref),
        *_recite(event.recital, head, event.message_id),
        (TITLED, (title_of(event.text or outline(event.content)), head.session)),
    ]


def _message_edited(head: Head, event: e.MessageEdited, at: int, in_turn: bool) -> list[Change]:
    waits: list[Change] = [(EDITED, (head.seq, head.session, event.message_id))] if event.effect == REPLACED else []
    return [*waits, *remember(event.dedup_key, digest(event.text), head, event.effect)]


def _message_refused(head: Head, event: e.MessageRefused, at: int, in_turn: bool) -> list[Change]:
    return [(TAKEN, (head.session, event.message_id))]


def _message_written(head: Head, event: e.MessageWritten, at: int, in_turn: bool) -> list[Change]:
    changes = remember(event.dedup_key, digest(event.content), head, event.message_id) if event.dedup_key is not None else []
    changes += _recite(event.recital, head, event.message_id)
    if event.delivery_id and not (head.deleted and in_turn):  # Nobody is owed what a turn of a deleted session said.
        turn = head.turn if in_turn else None
        changes.append((OWED, (event.delivery_id, head.session, head.seq, at, str(DeliveryState.PENDING), 0, 0, turn)))
    return changes


def _cause_recorded(head: Head, event: e.CauseRecorded, at: int, in_turn: bool) -> list[Change]:
    waits: Change = (WAITS, (head.session, head.seq, event.cause_id, event.what))
    return [waits, *remember(event.dedup_key, digest(event.content), head, event.cause_id)]


def _cause_gone(head: Head, event: e.CauseTaken | e.CauseDropped, at: int, in_turn: bool) -> list[Change]:
    return [(TAKEN, (head.session, event.cause_id))]


def _request_noted(head: Head, event: e.RequestNoted, at: int, in_turn: bool) -> list[Change]:
    return remember(event.dedup_key, event.what.encode(), head, NOTHING)


def _recite(recital: Recital | None, head: Head, message_id: str) -> list[Change]:
    return [] if recital is None else [(RECITED, (recital.digest, head.session, head.seq, message_id, recital.instructions))]


ROWS: Rows = {
    e.MessageAccepted: _message_accepted,
    e.MessageEdited: _message_edited,
    e.MessageRefused: _message_refused,
    e.CauseRecorded: _cause_recorded,
    e.CauseTaken: _cause_gone,
    e.CauseDropped: _cause_gone,
    e.RequestNoted: _request_noted,
    e.MessageWritten: _message_written,
}
