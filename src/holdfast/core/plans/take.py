"""Steering: which of the waiting messages a running turn takes. They start no turn of their own then (P6)."""

from collections.abc import Sequence

from holdfast.core.events import CauseTaken
from holdfast.core.plans import Plan, Write
from holdfast.core.plans.causes import Cause


def plan(session_id: str, waiting: Sequence[Cause], *, stop_requested: bool, step: int, offset: int) -> Plan[tuple[Cause, ...]]:
    """`waiting`: what waits in the inbox, oldest first. `step` and `offset`: where in the answer it is taken. Everything that is not meant
    to steer waits for a turn of its own, and so does everything once the turn is being stopped (A21).
    """
    taken = () if stop_requested else tuple(cause for cause in waiting if cause.steers)
    writes = (Write(session_id, CauseTaken(cause_id=cause.cause_id, step=step, offset=offset), in_turn=True) for cause in taken)
    return Plan(tuple(writes), taken)
