"""What the holder of a turn may record, by what only the transaction knows: the count before an interruption, a stop on record, and
whether this process was told to stop.
"""

from collections.abc import Sequence
from typing import TypeGuard

from holdfast.core import blame, resume
from holdfast.core.blame import Interruption, Standing
from holdfast.core.errors import StaleEpoch, ToldToStop
from holdfast.core.events import Event, TurnEnded, TurnResumed
from holdfast.core.sessions import Lease
from holdfast.core.turns import Outcome, TurnState

# Turns that a process may hold, and those that another one may take over.
HELD = (TurnState.RUNNING, TurnState.INTERRUPTED)
TAKEABLE = (TurnState.RUNNING, TurnState.ANSWERED, TurnState.INTERRUPTED)


def resumes(events: Sequence[Event | Interruption]) -> bool:
    return any(isinstance(event, TurnResumed) for event in events)


def counts(events: Sequence[Event | Interruption]) -> bool:
    """Whether an interruption among them must be counted on from what the session has."""
    return any(isinstance(event, Interruption) for event in events)


def plan(
    events: Sequence[Event | Interruption],
    *,
    lease: Lease,
    state: TurnState,
    stop_requested: bool,
    standing: Standing | None,
    told_to_stop: bool,
) -> list[Event]:
    """The events as they are to be written. `standing`: of the session, where the events `count`. Raises `ToldToStop` for a process that
    is to take up nothing more, `StaleEpoch` for what was decided without the stop: it has to be decided again (R0).
    """
    written: list[Event] = []
    for event in events:
        if not isinstance(event, Interruption):
            written.append(event)
        elif standing is not None:
            written.append(blame.recorded(event, standing))
    again = resumes(written)
    if again and told_to_stop:
        raise ToldToStop(lease.session_id)
    if not stop_requested:
        return written
    if again or (state is TurnState.INTERRUPTED and any(_ends_otherwise(event) for event in written)):
        raise StaleEpoch(lease.session_id, lease.epoch)
    return [_stopped(event) for event in written]  # People were told: whatever comes too late ends as the stop says.


def _ends_otherwise(event: Event) -> TypeGuard[TurnEnded]:
    return isinstance(event, TurnEnded) and event.outcome is not Outcome.CANCELLED


def _stopped(event: Event) -> Event:
    """The end of a turn for which a stop was recorded earlier: whatever rule was about to decide, the stop did."""
    if _ends_otherwise(event):
        return TurnEnded(outcome=Outcome.CANCELLED, rule=resume.stopped().label if event.rule else None)
    return event
