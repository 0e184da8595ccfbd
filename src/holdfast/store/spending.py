"""What models used and cost, read from the catalog."""

from typing import Any

from holdfast.core.usage import Account, DaySpent, ModelSpent, SessionSpent, Spent
from holdfast.store import queries as q
from holdfast.store.projection.spending import SUMS
from holdfast.store.tx import Tx


def account(tx: Tx, session_id: str, turn_id: str, day: str, sender: str) -> Account:
    rows = tx.query(q.ACCOUNT, session_id, turn_id, session_id, day, turn_id, day, sender)
    sums = {scope: _spent(values) for scope, _, *values in rows}
    return Account(**sums, sender_turns=next(int(turns or 0) for scope, turns, *_ in rows if scope == "sender"))


def by_day(tx: Tx, since: str) -> list[DaySpent]:
    rows = tx.query(q.SPENT_BY_DAY, since)
    return [DaySpent(day=day, spent=_spent(sums), turns=turns, sender=sender or None) for day, sender, turns, *sums in rows]


def by_model(tx: Tx, since: str) -> list[ModelSpent]:
    rows = tx.query(q.SPENT_BY_MODEL, since)
    return [ModelSpent(day=day, model=model or None, spent=_spent(sums), turns=turns) for day, model, turns, *sums in rows]


def by_session(tx: Tx, since: str, limit: int) -> list[SessionSpent]:
    rows = tx.query(q.SPENT_BY_SESSION, since, limit)
    return [SessionSpent(session_id=session_id, title=title, spent=_spent(sums), turns=turns) for session_id, title, turns, *sums in rows]


def of_session(tx: Tx, session: int) -> tuple[DaySpent, ...]:
    """Day by day, without whom it was for."""
    return tuple(DaySpent(day=day, spent=_spent(sums)) for day, *sums in tx.query(q.SPENT_OF_SESSION, session))


def _spent(sums: list[Any]) -> Spent:
    return Spent(**{name: int(value or 0) for name, value in zip(SUMS, sums, strict=True)})
