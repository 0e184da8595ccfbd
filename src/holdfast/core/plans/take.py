"""Steering: which of the waiting messages a running turn takes. They start no turn of their own then (P6)."""

from collections.abc import Sequence

from holdfast.core.events import CauseDropped, CauseTaken
from holdfast.core.plans import Plan, Write, causes
from holdfast.core.plans.causes import OUTDATED, Cause


def plan(
    session_id: str, waiting: Sequence[Cause], *, generation: int, stop_requested: bool, step: int, offset: int
) -> Plan[tuple[Cause, ...]]:
    """`waiting`: what waits in the inbox, oldest first. `generation`: of the turn. `step` and `offset`: where in the answer it is taken.
    Everything that is not meant to steer waits for a turn of its own, and so does everything once the turn is being stopped (A21). What was
    meant for an earlier turn is dropped (P6).
    """
    writes, taken = [], []
    for cause in waiting:
        if stop_requested or not cause.steers:
            continue
        if causes.outdated(cause, generation):
            writes.append(Write(session_id, CauseDropped(cause_id=cause.cause_id, reason=OUTDATED)))
        else:
            writes.append(Write(session_id, CauseTaken(cause_id=cause.cause_id, step=step, offset=offset), in_turn=True))
            taken.append(cause)
    return Plan(tuple(writes), tuple(taken))
