"""What becomes of a turn that was cut: one ordered table of labelled rules over facts. The first that matches decides.

The label is recorded with the decision and answers "why did it resume?" for ever.
"""

from collections.abc import Callable
from enum import StrEnum

import msgspec

from holdfast.core.turns import TurnState

STUCK_AFTER = 3


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a rule may look at, read from the log."""

    turn: TurnState
    stop_requested: bool
    restarts: int


class Decision(StrEnum):
    CANCEL = "cancel"
    SUSPEND = "suspend"
    CLEAR = "clear"
    WAIT = "wait"
    RESUME = "resume"


class Rule(msgspec.Struct, frozen=True):
    label: str
    name: str
    sentence: str
    matches: Callable[[Facts], bool]
    decision: Decision


RULES: tuple[Rule, ...] = (
    Rule(
        "R0",
        "stopped",
        "A stop was recorded for this turn: it ends as cancelled and no start revives it.",
        lambda facts: facts.stop_requested and facts.turn not in (TurnState.NONE, TurnState.ENDED),
        Decision.CANCEL,
    ),
    Rule(
        "R2",
        "stuck",
        f"{STUCK_AFTER} restarts in a row cut this session: it is suspended and the turn set aside.",
        lambda facts: facts.restarts >= STUCK_AFTER and facts.turn in (TurnState.INTERRUPTED, TurnState.RUNNING),
        Decision.SUSPEND,
    ),
    Rule(
        "R3",
        "nothing cut",
        "There is no turn, or the last one has ended: the flag is cleared and nothing runs.",
        lambda facts: facts.turn in (TurnState.NONE, TurnState.ENDED),
        Decision.CLEAR,
    ),
    Rule(
        "R5",
        "waiting",
        "The turn waits for its user: it is left waiting.",
        lambda facts: facts.turn is TurnState.WAITING,
        Decision.WAIT,
    ),
    Rule("R9", "resume", "Otherwise the turn is resumed now.", lambda facts: True, Decision.RESUME),
)


def decide(facts: Facts) -> Rule:
    """The rule that decides; there is always exactly one."""
    return next(rule for rule in RULES if rule.matches(facts))
