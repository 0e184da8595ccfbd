"""The catalog: which rows change when an event is written. Pure: it reads no row, and what it needs to know of its session is the head.

The same function serves those who append and those who rebuild the catalog from the log. A module holds the rows of one subject.
"""

from holdfast.core import events as e
from holdfast.core.turns import after
from holdfast.store.heads import Head
from holdfast.store.projection import deliveries, journals, messages, processes, questions, schedules, sessions, spending, titles, turns
from holdfast.store.projection.common import Rows
from holdfast.store.rows import Change, Insert

DERIVED = (
    *("head", "session", "lane", "inbox", "dedup", "forgotten", "outbox", "question", "rule", "process", "schedule"),
    *("blob_use", "spent", "recital", "journal", "titling"),
)
SUBJECTS = (turns, questions, spending, journals, processes, schedules, messages, deliveries, sessions, titles)
# Kinds that are not here change no row but the head's.
ROWS: Rows = {kind: rows for subject in SUBJECTS for kind, rows in subject.ROWS.items()}
# What people would call a sign of life in a conversation; other records do not move it up in the list.
LIVELY = {
    "session.created",
    "session.resumed",
    "session.branched",
    "session.undeleted",
    "message.accepted",
    "message.written",
    "turn.started",
    "turn.ended",
    "turn.interrupted",
    "question.asked",
}
# Outside a turn these are words to and from the gateway itself: a conversation does not live by them.
ASIDE = {"message.written"}
USED = Insert("blob_use", "digest", "session", conflict="DO NOTHING")


def project(head: Head, event: e.Event, at: int, *, in_turn: bool) -> list[Change]:
    """What follows from an event that stands at the head: the head moves on, and these rows change, in this order."""
    if in_turn:
        head.position += 1
        head.state = after(head.state, event)
    if event.stream:
        return []
    rows = ROWS.get(type(event))
    changes = rows(head, event, at, in_turn) if rows is not None else []
    if event.says:
        changes += [(USED, (part.blob, head.session)) for part in e.attached(event)]
    if event.kind in LIVELY and (in_turn or event.kind not in ASIDE):
        head.updated_at = at
    return changes
