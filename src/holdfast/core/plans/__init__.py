"""Decisions over what is stored, one noun each: a snapshot goes in, events and a reply come out. The store runs plans; it decides nothing
and words nothing.
"""

from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec

from holdfast.core.events import Event

R = TypeVar("R")


class Write(msgspec.Struct, frozen=True):
    """An event to append to the log of a session. `in_turn`: it takes the next position of the session's newest turn. `starts`: the turn
    that begins with it. `at`: when it happened, where that was earlier.
    """

    session_id: str
    event: Event
    in_turn: bool = False
    starts: str | None = None
    at: int | None = None


class Plan(msgspec.Struct, Generic[R], frozen=True):
    """What to write, in this order and in one transaction, and what to reply once it is durable."""

    writes: tuple[Write, ...]
    reply: R


def to_session(session_id: str, events: Iterable[Event]) -> list[Write]:
    """For what anyone may add at any time; no turn's position moves."""
    return [Write(session_id, event) for event in events]


def to_turn(session_id: str, events: Iterable[Event]) -> list[Write]:
    return [Write(session_id, event, in_turn=True) for event in events]
