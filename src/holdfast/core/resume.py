"""What happens to an interrupted turn: one ordered table of labelled rules over facts. The first match decides.

The label is recorded with the decision, so "why did it resume?" can always be answered.
"""

from collections.abc import Callable
from enum import StrEnum

import msgspec

from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState

FRESH_FOR_S = 3600.0
AHEAD_MS = 5 * 60 * 1000
ASKED_AGAIN = ("R2", "R6")

_NOBODY_RUNS = (TurnState.NONE, TurnState.ENDED)
# An answered turn does not count as interrupted: its user has just spoken, and it continues.
_INTERRUPTED = (TurnState.RUNNING, TurnState.INTERRUPTED)


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a rule may look at. `stuck`: `core.blame` says that restarts interrupted it too often. `tried`: the attempt was a recovery
    and ended by itself without an answer. `asked`: a person has asked to continue since the interruption, or answered a question of it.
    `fresh`: its last sign of life is recent enough. `held`: nothing is resumed automatically now. `reachable`: its platform is configured.
    `allowed`: its user may still use it.

    The rest is told to people and decides nothing: restarts in a row, crashes of the turn, and the age of its last sign of life, None if
    that is not known.
    """

    turn: TurnState
    stop_requested: bool
    suspended: bool
    stuck: bool
    tried: bool
    asked: bool
    fresh: bool
    held: bool
    reachable: bool
    allowed: bool
    restarts: int = 0
    deaths: int = 0
    aged_ms: int | None = None


class Decision(StrEnum):
    """LEAVE: the turn stays as it is until a person or another start acts on it."""

    CANCEL = "cancel"
    LEAVE = "leave"
    SUSPEND = "suspend"
    CLEAR = "clear"
    FAIL = "fail"
    SET_ASIDE = "set_aside"
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
        lambda facts: facts.stop_requested and facts.turn not in _NOBODY_RUNS,
        Decision.CANCEL,
    ),
    Rule(
        "R1",
        "suspended",
        "The session is suspended: it stays as it is, and the next message starts a new session.",
        lambda facts: facts.suspended,
        Decision.LEAVE,
    ),
    Rule(
        "R2",
        "stuck",
        "Restarts interrupted it too often (`stuck_after` in a row, or ten crashes of one turn): it is suspended, the turn set aside.",
        lambda facts: facts.stuck and facts.turn in _INTERRUPTED,
        Decision.SUSPEND,
    ),
    Rule(
        "R3",
        "nothing cut",
        "There is no turn, or the last one has ended: the flag is cleared and nothing runs.",
        lambda facts: facts.turn in _NOBODY_RUNS,
        Decision.CLEAR,
    ),
    Rule(
        "R4",
        "tried",
        "A recovery ended by itself with an error or without an answer: the turn ends as failed and is not tried again.",
        lambda facts: facts.tried and facts.turn in _INTERRUPTED,
        Decision.FAIL,
    ),
    Rule(
        "R5",
        "waiting",
        "The turn waits for its user: it is left waiting.",
        lambda facts: facts.turn is TurnState.WAITING,
        Decision.LEAVE,
    ),
    Rule(
        "R6",
        "stale",
        "The turn's last sign of life is older than the freshness window: it is set aside, and its user is told how to continue.",
        lambda facts: not facts.fresh and not facts.asked and facts.turn in _INTERRUPTED,
        Decision.SET_ASIDE,
    ),
    Rule(
        "R7",
        "held",
        "Safe mode, or automatic resume is off: the turn is left until a person continues it.",
        lambda facts: facts.held and not facts.asked and facts.turn in _INTERRUPTED,
        Decision.LEAVE,
    ),
    Rule(
        "R8",
        "nowhere",
        "Its platform is not configured: the turn is left, and decided again when it is.",
        lambda facts: not facts.reachable and facts.turn in _INTERRUPTED,
        Decision.LEAVE,
    ),
    Rule(
        "R8",
        "not allowed",
        "Its user is no longer allowed to use the agent: the turn is set aside.",
        lambda facts: not facts.allowed and facts.turn in _INTERRUPTED,
        Decision.SET_ASIDE,
    ),
    Rule("R9", "resume", "Otherwise the turn is resumed now.", lambda facts: True, Decision.RESUME),
)


def decide(facts: Facts) -> Rule:
    """The rule that decides; there is always one."""
    return next(rule for rule in RULES if rule.matches(facts))


def stopped() -> Rule:
    """The rule for a turn whose stop was recorded."""
    return next(rule for rule in RULES if rule.decision is Decision.CANCEL)


def after_recovery(*, failed: bool, answered: bool) -> Rule | None:
    """The rule for a recovery that ended by itself, decided in the transaction that ends the attempt. None if it produced an answer."""
    rule = decide(
        Facts(
            turn=TurnState.RUNNING,
            stop_requested=False,
            suspended=False,
            stuck=False,
            tried=failed or not answered,
            asked=False,
            fresh=True,
            held=False,
            reachable=True,
            allowed=True,
        )
    )
    return rule if rule.decision is Decision.FAIL else None


def waits_in_a_pause(rule: Rule) -> bool:
    """A pause holds back starts and resumes; turns are still ended and set aside (A26)."""
    return rule.label in ("R7", "R8", "R9")


def asks_again(session: Session) -> bool:
    """Whether resuming this session repeats its last request: a rule set it aside through no fault of the user, and nothing came since."""
    return session.turn_state is TurnState.ENDED and session.rule in ASKED_AGAIN and not session.queued


def is_fresh(signed_at: int | None, *, now: int, window_s: float) -> bool:
    """Whether a last sign of life is recent enough to continue by itself."""
    return staleness(signed_at, now=now, window_s=window_s) is None


class Staleness(StrEnum):
    """Why a turn is not fresh. OFF: nothing ever is, by the setting. UNKNOWN: the time of its last sign of life cannot be right."""

    OFF = "off"
    UNKNOWN = "unknown"
    OLD = "old"


def staleness(signed_at: int | None, *, now: int, window_s: float) -> Staleness | None:
    """Why a last sign of life is not recent enough to continue by itself, or None if it is. A window of 0 is never, a negative one
    always.
    """
    if window_s < 0:
        return None
    if window_s == 0:
        return Staleness.OFF
    if signed_at is None or signed_at > now + AHEAD_MS:
        return Staleness.UNKNOWN
    return None if now - signed_at <= window_s * 1000 else Staleness.OLD
