"""Heads: where a session's log stands, and who may write its turn. How one is read from its row and written back."""

from typing import Any

import msgspec

from holdfast.core.turns import TurnState
from holdfast.store import queries as q


class Head(msgspec.Struct):
    """Where a session's log stands, while an operation writes to it. `indexed` is what the database has of the columns with an index."""

    session: int
    seq: int = 0
    state: TurnState = TurnState.NONE
    epoch: int = 0
    owner: int | None = None
    turn: str | None = None
    attempt: int = 0
    position: int = 0
    turn_seq: int = 0
    stop: int = 0
    archived: int = 0
    updated_at: int = 0
    left: int = 0
    asked_seq: int = 0
    deleted: int = 0
    indexed: tuple[str, int, int, int] = ("", 0, 0, 0)


def of(row: tuple[Any, ...]) -> Head:
    """The head that a row of `queries.HEAD` stands for."""
    head = Head(row[0], row[1], TurnState(row[2]), *row[3:])
    head.indexed = (row[2], head.archived, head.updated_at, head.deleted)
    return head


def changes(head: Head) -> list[tuple[str, tuple[Any, ...]]]:
    """The statements, with their values, that write a head back. Afterwards the database has all of it."""
    made: list[tuple[str, tuple[Any, ...]]] = [
        (
            q.HEAD_MOVED,
            (
                *(head.seq, head.epoch, head.owner, head.turn, head.attempt, head.position, head.turn_seq),
                *(head.stop, head.left, head.asked_seq, head.session),
            ),
        )
    ]
    state, archived, updated_at, deleted = head.indexed
    if head.state != state:
        made.append((q.HEAD_STATE, (str(head.state), head.session)))
    if (head.archived, head.updated_at, head.deleted) != (archived, updated_at, deleted):
        made.append((q.HEAD_LISTED, (head.archived, head.updated_at, head.deleted, head.session)))
    head.indexed = (str(head.state), head.archived, head.updated_at, head.deleted)
    return made
