"""Whether another request is within the limits, as a table of limits and sums, and what is said if it is not."""

from typing import Any

import pytest

from holdfast.core import limits
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.limits import LimitReached, Reached, SpendingLimits
from holdfast.core.messages import ToolCall
from holdfast.core.usage import Account, Spent


def spent(tokens: int = 0, cost: int = 0) -> Spent:
    return Spent(requests=1, input=tokens, cost=cost)


@pytest.mark.parametrize(
    ("limit", "account", "expected"),
    [
        ({}, Account(turn=spent(10**9, 10**9)), None),
        ({"turn_tokens": 100}, Account(turn=spent(99), session=spent(10**6)), None),
        ({"turn_tokens": 100}, Account(turn=spent(100)), ("turn_tokens", 100, 100, True)),
        ({"turn_cost": 5}, Account(turn=spent(10**6, 4)), None),
        ({"turn_cost": 5}, Account(turn=spent(cost=7)), ("turn_cost", 5, 7, True)),
        ({"session_tokens": 5}, Account(turn=spent(4), session=spent(6)), ("session_tokens", 5, 6, True)),
        ({"session_cost": 5, "asks": False}, Account(session=spent(cost=5)), ("session_cost", 5, 5, False)),
        ({"day_tokens": 5}, Account(session=spent(4), day=spent(5)), ("day_tokens", 5, 5, True)),
        ({"day_cost": 5}, Account(day=spent(cost=5), sender=spent(cost=5)), ("day_cost", 5, 5, True)),
        ({"sender_tokens": 5}, Account(sender=spent(5), day=spent(5)), ("sender_tokens", 5, 5, False)),
        ({"sender_cost": 5}, Account(sender=spent(cost=5)), ("sender_cost", 5, 5, False)),
        ({"sender_turns": 2}, Account(sender_turns=1, sender=spent(10**6)), None),
        ({"sender_turns": 2}, Account(sender_turns=2), ("sender_turns", 2, 2, False)),
        ({"turn_tokens": 1, "sender_turns": 1}, Account(turn=spent(1), sender_turns=1), ("sender_turns", 1, 1, False)),
    ],
)
def test_a_limit_is_reached_by_as_much_as_it_says(limit: dict[str, Any], account: Account, expected: tuple[Any, ...] | None) -> None:
    """Those that nobody may lift are looked at first."""
    found = limits.reached(SpendingLimits(**limit), account, {})
    assert (None if found is None else (found.name, found.limit, found.spent, found.asks)) == expected


def test_what_somebody_allowed_counts_from_what_was_spent_then() -> None:
    asked = Reached(name="day_cost", limit=100, spent=130, asks=True)
    call = ToolCall(call_id=limits.call_id("t1", asked), name="ask_user", arguments={}, effect=Effect.PURE, attempt=1)
    other = ToolCall(call_id="t1.0.1", name="ask_user", arguments={}, effect=Effect.PURE, attempt=1, content="Continue")
    bounds = SpendingLimits(day_cost=100)
    assert limits.open_question([other, call]) == "t1.limit.day_cost.130" and limits.allowed(bounds, [call, other]) == {}
    call.outcome, call.content = ToolOutcome.DONE, " continue "
    allowed = limits.allowed(bounds, [call, other])
    assert allowed == {"day_cost": 230} and limits.open_question([other, call]) is None
    assert limits.reached(bounds, Account(day=spent(cost=229)), allowed) is None
    again = limits.reached(bounds, Account(day=spent(cost=230)), allowed)
    assert again == Reached(name="day_cost", limit=230, spent=230, asks=True)
    call.content = limits.END
    assert limits.allowed(bounds, [call]) == {}
    assert limits.reached(SpendingLimits(), Account(day=spent(cost=230)), {"day_cost": 1}) is None, "the limit was taken away since"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            Reached(name="turn_tokens", limit=1000, spent=1234, asks=True),
            "This turn has used 1,234 tokens; the limit is 1,000 tokens (limits.turn_tokens).",
        ),
        (
            Reached(name="day_cost", limit=1_500_000, spent=2_000_000, asks=True),
            "All conversations together have used today $2.00; the limit is $1.50 (limits.day_cost).",
        ),
        (
            Reached(name="sender_turns", limit=3, spent=3, asks=False),
            "You have used today 3 turns; the limit is 3 turns (limits.sender_turns).",
        ),
    ],
)
def test_it_is_said_what_was_used_and_what_to_do(found: Reached, words: str) -> None:
    assert limits.question(found, for_others=False) == f"{words} Continue, up to as much again?"
    said = str(LimitReached(found))
    assert said.startswith(words) and said.endswith(("[limits].", "tomorrow."))


def test_where_nothing_is_limited_nothing_is_looked_up() -> None:
    assert not SpendingLimits().any and not SpendingLimits(asks=False).any and SpendingLimits(sender_turns=1).any


@pytest.mark.parametrize(
    ("name", "operators"),
    [("turn_tokens", False), ("turn_cost", False), ("session_tokens", True), ("day_cost", True), ("day_tokens", True)],
)
def test_what_concerns_more_than_a_turn_is_for_operators_and_says_so_to_others(name: str, operators: bool) -> None:
    found = Reached(name=name, limit=1, spent=2, asks=True)
    assert limits.for_operators(limits.call_id("t", found)) is operators
    assert limits.question(found, for_others=True).endswith("Only an administrator can allow that.") is operators
    assert not limits.for_operators("t.0.1") and not limits.for_operators("t.day_cost")


@pytest.mark.parametrize(
    ("bounds", "account", "name"),
    [
        ({"sender_turns": 2}, {"sender_turns": 2}, "sender_turns"),
        ({"sender_turns": 2}, {"sender_turns": 1}, None),
        ({"sender_tokens": 10}, {"sender": Spent(input=9, output=1)}, "sender_tokens"),
        ({"sender_cost": 10}, {"sender": Spent(cost=10)}, "sender_cost"),
        ({"day_cost": 10, "session_cost": 10}, {"day": Spent(cost=10), "session": Spent(cost=10)}, None),
    ],
)
def test_only_the_limits_of_a_person_keep_a_turn_from_starting(bounds: dict[str, Any], account: dict[str, Any], name: str | None) -> None:
    limited = SpendingLimits(**bounds)
    found = limits.reached_by_sender(limited, Account(**account))
    assert (found.name if found else None) == name and (found is None or not found.asks)
    assert limited.bounds_senders is any(each.startswith("sender") for each in bounds)
