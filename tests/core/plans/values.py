"""Snapshots to plan with."""

from typing import Any

from holdfast.core import events as e
from holdfast.core.effects import Effect
from holdfast.core.messages import ToolCall
from holdfast.core.plans import Plan
from holdfast.core.plans.causes import Cause
from holdfast.core.plans.ending import Unfinished
from holdfast.core.plans.leave import Fresh
from holdfast.core.sessions import Session
from holdfast.core.turns import OPEN, TurnState

PAGE, CHAT = "agent:main:web:dm:1", "agent:main:telegram:dm:1"
FRESH = Fresh(session_id="s2", log="l2", left=3, conversations=4)
AT = 1_000_000


def session(state: TurnState = TurnState.NONE, **facts: Any) -> Session:
    """The session `s1` of a chat; its turn, if it ever had one, is `t1`."""
    turn = {} if state is TurnState.NONE else {"turn_id": "t1", "attempt": 1, "generation": 5}
    owner = {"owner": 7, "epoch": 2} if state is TurnState.RUNNING else {"epoch": 2}
    defaults = {"session_id": "s1", "session_key": CHAT, "log": "l1", "seq": 20, "created_at": 1, "updated_at": 2, "title": "A title"}
    return Session(**{"turn_state": state, **defaults, **turn, **owner, **facts})


def unattended(found: Session) -> Unfinished | None:
    """What a store loads of the turn, if it is one that no process runs."""
    if found.turn_state not in (TurnState.WAITING, TurnState.ANSWERED):
        return None
    asking = ("c1",) if found.turn_state is TurnState.WAITING else ()
    return Unfinished(session_key=found.session_key, turn_id=found.turn_id or "", said="so far", anchor="m1", asking=asking)


def waiting(*kinds: str) -> tuple[Cause, ...]:
    """A cause of each kind, `w1` the oldest."""
    return tuple(Cause(cause_id=f"w{n}", content=f"words {n}", what=what) for n, what in enumerate(kinds, 1))


def call(call_id: str) -> ToolCall:
    return ToolCall(call_id=call_id, name="terminal", arguments={}, effect=Effect.UNSAFE, attempt=1)


def written(plan: Plan[Any]) -> list[tuple[str, str, bool]]:
    """(session, kind, in the turn) of each write."""
    return [(write.session_id, write.event.kind, write.in_turn) for write in plan.writes]


def events(plan: Plan[Any], kind: type[e.Event]) -> list[Any]:
    return [write.event for write in plan.writes if isinstance(write.event, kind)]


def kinds(plan: Plan[Any]) -> list[str]:
    return [write.event.kind for write in plan.writes]


STATES = tuple(TurnState)
CLOSED = tuple(state for state in TurnState if state not in OPEN)
