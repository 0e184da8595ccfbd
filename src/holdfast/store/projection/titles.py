"""The rows of titles that models are asked for."""

import msgspec

from holdfast.core import events as e
from holdfast.core import titles, usage
from holdfast.store.heads import Head
from holdfast.store.projection.common import Rows
from holdfast.store.projection.spending import SPENT
from holdfast.store.rows import Change, Delete, Insert, Update

TITLE_DUE = Insert("titling", "session", "state", "since", conflict="DO NOTHING")
TITLE_GIVEN = Insert("titling", "session", "state", "since", conflict="(session) DO UPDATE SET state = excluded.state")
TITLE_ASKED = Update("titling", "state", "owner", "tries", where="session = ?")
TITLE_DONE = Update("titling", "state", "owner = NULL", where="session = ? AND state IN ('due', 'asked') AND tries = ?")
TITLING_GONE = Delete("titling", where="session = ?")


def due(head: Head, at: int) -> Change:
    """It has its first answer, or had it before."""
    return (TITLE_DUE, (head.session, titles.DUE, at))


def named(head: Head, title: str | None, at: int) -> list[Change]:
    """From now on no model is asked for a title."""
    return [] if title is None else [(TITLE_GIVEN, (head.session, titles.GIVEN, at))]


def _title_asked(head: Head, event: e.TitleAsked, at: int, in_turn: bool) -> list[Change]:
    return [(TITLE_ASKED, (titles.ASKED, event.owner, event.tries, head.session))]


def _title_made(head: Head, event: e.TitleMade, at: int, in_turn: bool) -> list[Change]:
    done: list[Change] = [(TITLE_DONE, (titles.DONE, head.session, event.tries))]
    spent = usage.of_title(event)
    row = (head.session, event.turn_id, event.day or usage.day(at), event.model, event.sender or "")
    return [*done, (SPENT, (*row, *msgspec.structs.astuple(spent)))] if spent.requests else done


ROWS: Rows = {e.TitleAsked: _title_asked, e.TitleMade: _title_made}
