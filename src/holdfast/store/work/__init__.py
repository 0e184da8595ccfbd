"""The writes of a store, each a function of (tx, arguments) that runs inside one transaction: it loads a snapshot, asks a plan of the core
what to do, and appends what the plan says. It decides nothing and words nothing.

An operation may run twice: when another one of its batch fails half-way the whole batch is run again. So: check first, write after.
"""

from typing import TypeVar

from holdfast.core.events import SessionCreated
from holdfast.core.plans import Plan
from holdfast.store.heads import Head
from holdfast.store.log import number
from holdfast.store.tx import Tx

R = TypeVar("R")


def run(tx: Tx, plan: Plan[R], at: int, loaded: dict[str, Head] | None = None) -> R:
    """Appends what a plan says, in its order. `loaded`: heads that the caller has already, by their sessions' ids."""
    heads = {} if loaded is None else loaded
    for write in plan.writes:
        head = heads.get(write.session_id)
        if head is None:
            created = isinstance(write.event, SessionCreated)
            head = heads[write.session_id] = _new_head(tx) if created else tx.head(number(tx, write.session_id))
        if write.starts is not None:
            head.turn = write.starts
        tx.append(head, write.event, at if write.at is None else write.at, in_turn=write.in_turn)
    return plan.reply


def _new_head(tx: Tx) -> Head:
    return Head(tx.new_session())
