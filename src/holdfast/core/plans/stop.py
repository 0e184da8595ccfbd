"""Stopping a turn: which one a stop is for, and what it ends at once."""

import msgspec

from holdfast.core import stops
from holdfast.core.events import StopRequested
from holdfast.core.plans import Plan, Write, ending, to_turn
from holdfast.core.plans.ending import Unfinished
from holdfast.core.plans.repeats import NOTHING, STOP, Known, noted
from holdfast.core.sessions import Session
from holdfast.core.stops import LastStop
from holdfast.core.turns import TurnState

# Turns that belong to no process: a stop ends one at once.
UNATTENDED = (TurnState.WAITING, TurnState.ANSWERED)


class Stopped(msgspec.Struct, frozen=True):
    """`turn_id`: None where nothing was there to stop. `ended`: the turn had no process, so it ended in the same transaction."""

    turn_id: str | None
    queued: int
    ended: bool


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """`unfinished`: the open turn, if it is one of `UNATTENDED`."""

    session: Session
    last: LastStop | None = None
    unfinished: Unfinished | None = None


def plan(found: Snapshot, *, by: str, turn_id: str | None, saw: str | None, dedup_key: str | None, at: int) -> Plan[Stopped]:
    session = found.session
    named = stops.named(session, turn_id=turn_id, saw=saw, last=found.last, now=at)
    if named is None or not stops.stops(session, named):
        return Plan(noted(session.session_id, STOP, dedup_key), Stopped(None, session.queued, ended=True))
    writes = stopping(session, found.unfinished, named, by, dedup_key=dedup_key)
    return Plan(tuple(writes), Stopped(named, session.queued, ended=found.unfinished is not None))


def again(known: Known, session: Session) -> Stopped:
    still = session.turn_id == known.ref and session.open_turn
    return Stopped(None if known.ref == NOTHING else known.ref, session.queued, ended=not still)


def stopping(
    session: Session,
    unfinished: Unfinished | None,
    turn_id: str,
    by: str,
    *,
    reply: str | None = None,
    why: str | None = None,
    dedup_key: str | None = None,
) -> list[Write]:
    """The record names the turn, also one that has ended since. A waiting or answered turn belongs to no process, so it ends here; an
    interrupted one is ended by the process that decides about it (R0).
    """
    writes = [Write(session.session_id, StopRequested(turn_id=turn_id, by=by, reply=reply, why=why, dedup_key=dedup_key))]
    if unfinished is not None and unfinished.turn_id == turn_id:
        writes += to_turn(session.session_id, ending.stopped(unfinished))
    return writes
