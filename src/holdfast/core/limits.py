"""How much may be spent on models: whether the next request is still within the limits, and what is said if it is not."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from holdfast.core.errors import Refused
from holdfast.core.usage import Account

if TYPE_CHECKING:
    from holdfast.core.messages import ToolCall

# The answers to a question about a limit.
CONTINUE, END = "Continue", "End here"
_ASKED = ".limit."
# The limits that concern more than the turn that reaches them.
_OF_OPERATORS = ("session_", "day_")
_ONLY_OPERATORS = "Only an administrator can allow that."
DOLLAR = 1_000_000


class SpendingLimits(msgspec.Struct, frozen=True, kw_only=True):
    """0 is no limit. Costs are in millionths of a US dollar. Those of a sender are for a day. `asks`: a turn that reaches one asks whether
    to continue, instead of ending; that of a sender always ends it, because it is not for the sender to lift it.
    """

    turn_tokens: int = 0
    turn_cost: int = 0
    session_tokens: int = 0
    session_cost: int = 0
    day_tokens: int = 0
    day_cost: int = 0
    sender_turns: int = 0
    sender_tokens: int = 0
    sender_cost: int = 0
    asks: bool = True

    @property
    def any(self) -> bool:
        return any(getattr(self, name) for name in _LIMITS)

    @property
    def bounds_senders(self) -> bool:
        return any(getattr(self, name) for name in _OF_SENDERS)


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What a person may use on the day on which a turn starts, whichever agent answers."""

    limits: SpendingLimits
    day: str


class Reached(msgspec.Struct, frozen=True, kw_only=True):
    """`name`: of the limit. `asks`: somebody may allow more."""

    name: str
    limit: int
    spent: int
    asks: bool


class LimitReached(Refused):
    code = "limit_reached"

    def __init__(self, reached: Reached) -> None:
        super().__init__(f"{_told(reached)} {_THEN[reached.name.partition('_')[0]]}")


_OF_SENDERS = ("sender_turns", "sender_tokens", "sender_cost")
# In the order in which they are looked at: those that nobody may lift first.
_LIMITS = (
    *_OF_SENDERS,
    *("turn_tokens", "turn_cost", "session_tokens", "session_cost", "day_tokens", "day_cost"),
)
_WHO = {
    "turn": "This turn has used",
    "session": "This conversation has used",
    "day": "All conversations together have used today",
    "sender": "You have used today",
}
_THEN = {
    "turn": "Send a smaller request, or raise the limit in [limits].",
    "session": "Start a new conversation, or raise the limit in [limits].",
    "day": "Try again tomorrow, or raise the limit in [limits].",
    "sender": "Try again tomorrow.",
}


def reached(limits: SpendingLimits, account: Account, allowed: Mapping[str, int]) -> Reached | None:
    """The first limit that forbids another request. `allowed`: by limit, up to how much somebody has allowed since."""
    return _first(_LIMITS, limits, account, allowed)


def reached_by_sender(limits: SpendingLimits, account: Account) -> Reached | None:
    """The first limit that forbids a person another turn."""
    return _first(_OF_SENDERS, limits, account, {})


def _first(names: Iterable[str], limits: SpendingLimits, account: Account, allowed: Mapping[str, int]) -> Reached | None:
    for name in names:
        limit = max(getattr(limits, name), allowed.get(name, 0)) if getattr(limits, name) else 0
        spent = _spent(account, name)
        if limit and spent >= limit:
            return Reached(name=name, limit=limit, spent=spent, asks=limits.asks and not name.startswith("sender"))
    return None


def _spent(account: Account, name: str) -> int:
    scope, _, what = name.partition("_")
    if what == "turns":
        return account.sender_turns
    return int(getattr(getattr(account, scope), what))


def question(found: Reached, *, for_others: bool) -> str:
    """`for_others`: people read it who may not answer it."""
    who = f" {_ONLY_OPERATORS}" if for_others and found.name.startswith(_OF_OPERATORS) else ""
    return f"{_told(found)} Continue, up to as much again?{who}"


def _told(found: Reached) -> str:
    scope, _, what = found.name.partition("_")
    return f"{_WHO[scope]} {amount(found.spent, what)}; the limit is {amount(found.limit, what)} (limits.{found.name})."


def forbids(found: Reached) -> str:
    """Why a turn does not start, for the record."""
    return f"its sender has reached limits.{found.name}"


def amount(value: int, what: str) -> str:
    return f"${value / DOLLAR:,.2f}" if what == "cost" else f"{value:,} {what.removesuffix('s') if value == 1 else what}"


# A question about a limit is a call of the turn. Its id says which limit, and what was spent when it was asked.


def call_id(turn_id: str, found: Reached) -> str:
    return f"{turn_id}{_ASKED}{found.name}.{found.spent}"


def for_operators(call_id: str) -> bool:
    """Whether only an operator may answer: others would lift a limit that is for more than their own turn."""
    return call_id.partition(_ASKED)[2].startswith(_OF_OPERATORS)


def is_question(call_id: str) -> bool:
    """Whether a call is ours, and nothing that an agent did."""
    return _ASKED in call_id


def open_question(calls: "Iterable[ToolCall]") -> str | None:
    """The one that was asked and is not answered on record, by its call."""
    return next((call.call_id for call in calls if is_question(call.call_id) and call.outcome is None), None)


def allowed(limits: SpendingLimits, calls: "Iterable[ToolCall]") -> dict[str, int]:
    """What people have allowed this turn: as much again as the limit, from what was spent when they were asked."""
    found: dict[str, int] = {}
    for call in calls:
        if is_question(call.call_id) and continues(call.result):
            name, _, spent = call.call_id.partition(_ASKED)[2].partition(".")
            found[name] = int(spent) + int(getattr(limits, name, 0))
    return found


def declined(calls: "Iterable[ToolCall]") -> bool:
    """Whether somebody wanted no more. Others may have spent more since, so that the same question would have another id."""
    return any(is_question(call.call_id) and call.outcome is not None and not continues(call.result) for call in calls)


def continues(answer: str | None) -> bool:
    return answer is not None and answer.strip().casefold() in (CONTINUE.casefold(), "yes", "y", "ok")
