"""The facts behind a decision, in words: for every combination of facts, up to the rule that decides."""

from msgspec.structs import replace

from holdfast.core import grounds, resume
from holdfast.core.resume import RULES
from tests.core.test_resume import EVERY_FACT, PLAIN


def test_every_decision_says_what_was_looked_at_and_ends_with_the_rule_that_applies() -> None:
    """R0 to R9."""
    for facts in EVERY_FACT:
        found = grounds.considered(facts)
        assert [each.rule for each in found] == [rule.label for rule in RULES[: len(found)]]
        assert [each.applies for each in found] == [False] * (len(found) - 1) + [True]
        assert found[-1].rule == resume.decide(facts).label
        assert all(each.fact.endswith(".") for each in found)


def test_a_fact_has_one_name_for_those_who_word_it_themselves() -> None:
    """Two facts that say different things have different names; figures come as numbers."""
    named: dict[str, set[str]] = {}
    for facts in EVERY_FACT:
        for each in grounds.considered(facts):
            named.setdefault(each.known_as, set()).add(each.fact)
    assert "" not in named and all(len(words) == 1 for words in named.values())
    numbers = {each.known_as: each.numbers for each in grounds.considered(replace(PLAIN, restarts=1, deaths=2, aged_ms=192_000))}
    assert numbers["restarts"] == (1, 2) and numbers["fresh"] == (192_000,)


def test_facts_come_with_their_figures() -> None:
    facts = [each.fact for each in grounds.considered(replace(PLAIN, restarts=1, deaths=2, aged_ms=192_000))]
    assert "Restarts in a row that interrupted it: 1. Crashes of this turn: 2." in facts
    assert "Its last sign of life was 3 min 12 s ago." in facts
    assert facts[-1] == "No other rule applies."
    stale = grounds.considered(replace(PLAIN, fresh=False, aged_ms=2 * 3600_000))[-1]
    assert (stale.rule, stale.fact) == ("R6", "Its last sign of life was 2 h ago, which is too long.")
    unknown = grounds.considered(replace(PLAIN, fresh=False))[-1]
    assert (unknown.rule, unknown.fact) == ("R6", "The time of its last sign of life is not known.")


def test_what_a_person_asked_for_is_said_where_it_counts() -> None:
    """B14: who asks overrides age and safe mode."""
    found = {each.rule: each.fact for each in grounds.considered(replace(PLAIN, asked=True, fresh=False, held=True))}
    assert found["R6"] == found["R7"] == "A person asked to continue it."
