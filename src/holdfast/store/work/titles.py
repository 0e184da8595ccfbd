"""Titles that models are asked for: which are open, and the records before and after a request."""

from holdfast.core import events as e
from holdfast.core import titles
from holdfast.core.plans import titles as plans
from holdfast.core.titles import Titling
from holdfast.store import queries as q
from holdfast.store import reads
from holdfast.store.log import number, read
from holdfast.store.tx import Tx
from holdfast.store.work import run


def opened(tx: Tx, since: int, limit: int) -> list[Titling]:
    rows = tx.query(q.TITLES_OPEN, since, limit)
    return [Titling(session_id=name, state=state, since=at, owner=owner, tries=tries) for name, state, at, owner, tries in rows]


def ask_title(tx: Tx, session_id: str, expected: Titling, turn_id: str, owner: int, at: int) -> bool:
    reads.living(tx, session_id)
    return run(tx, plans.ask(_found(tx, session_id), named=_named(tx, session_id), expected=expected, turn_id=turn_id, owner=owner), at)


def keep_title(tx: Tx, session_id: str, made: e.TitleMade, at: int) -> bool:
    return run(tx, plans.made(_found(tx, session_id), made, named=_named(tx, session_id)), at)


def _found(tx: Tx, session_id: str) -> Titling:
    rows = tx.query(q.TITLING, number(tx, session_id))
    state, since, owner, tries = rows[0] if rows else (titles.GIVEN, 0, None, 0)
    return Titling(session_id=session_id, state=state, since=since, owner=owner, tries=tries)


def _named(tx: Tx, session_id: str) -> bool:
    """A process of an older version writes the record of a name and no row of `titling`."""
    session = number(tx, session_id)
    items = read(tx, tx.query(q.NAMINGS, session), {session: session_id}, [])
    return any(isinstance(item.event, e.SessionCreated | e.SessionChanged) and isinstance(item.event.title, str) for item in items)
