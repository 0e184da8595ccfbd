"""What the rules looked at when a turn was decided: the facts behind "why", in words, and as names and numbers for other languages."""

from collections.abc import Callable
from typing import NamedTuple

from holdfast.core import notices
from holdfast.core.events import Considered
from holdfast.core.resume import RULES, Facts
from holdfast.core.turns import TurnState


class Fact(NamedTuple):
    known_as: str
    words: str
    numbers: tuple[int, ...] = ()


def considered(facts: Facts) -> tuple[Considered, ...]:
    """Every rule in its order, up to the one that decides."""
    found: list[Considered] = []
    for rule in RULES:
        applies, fact = rule.matches(facts), _FACTS[rule.name](facts)
        found.append(Considered(rule.label, fact.words, applies, fact.known_as, fact.numbers))
        if applies:
            break
    return tuple(found)


_ASKED = Fact("asked", "A person asked to continue it.")


def _stuck(facts: Facts) -> Fact:
    words = f"Restarts in a row that interrupted it: {facts.restarts}. Crashes of this turn: {facts.deaths}."
    return Fact("restarts", words, (facts.restarts, facts.deaths))


def _age(facts: Facts) -> Fact:
    if facts.asked:
        return _ASKED
    if facts.aged_ms is None:
        return Fact("age_unknown", "The time of its last sign of life is not known.")
    words = f"Its last sign of life was {notices.span(facts.aged_ms)} ago{'' if facts.fresh else ', which is too long'}."
    return Fact("fresh" if facts.fresh else "stale", words, (facts.aged_ms,))


def _held(facts: Facts) -> Fact:
    if facts.held and facts.asked:
        return _ASKED
    if facts.held:
        return Fact("held", "Interrupted work is not continued automatically now.")
    return Fact("automatic", "Interrupted work is continued automatically.")


def _either(applies: Callable[[Facts], bool], yes: Fact, no: Fact) -> Callable[[Facts], Fact]:
    return lambda facts: yes if applies(facts) else no


_OVER = (TurnState.NONE, TurnState.ENDED)
_FACTS: dict[str, Callable[[Facts], Fact]] = {
    "stopped": _either(lambda facts: facts.stop_requested, Fact("stop", "A stop is on record."), Fact("no_stop", "No stop is on record.")),
    "suspended": _either(
        lambda facts: facts.suspended,
        Fact("suspended", "The conversation is suspended."),
        Fact("not_suspended", "The conversation is not suspended."),
    ),
    "stuck": _stuck,
    "nothing cut": _either(
        lambda facts: facts.turn in _OVER, Fact("no_turn", "No turn is open."), Fact("open_turn", "Its turn has not ended.")
    ),
    "tried": _either(
        lambda facts: facts.tried,
        Fact("tried", "An attempt to recover it has failed."),
        Fact("not_tried", "No attempt to recover it has failed."),
    ),
    "waiting": _either(
        lambda facts: facts.turn is TurnState.WAITING,
        Fact("waits", "It waits for an answer."),
        Fact("does_not_wait", "It does not wait for an answer."),
    ),
    "stale": _age,
    "held": _held,
    "nowhere": _either(
        lambda facts: facts.reachable,
        Fact("reachable", "Its chat can be reached."),
        Fact("unreachable", "Its chat is not configured here."),
    ),
    "not allowed": _either(
        lambda facts: facts.allowed,
        Fact("allowed", "Its user may use the agent."),
        Fact("not_allowed", "Its user may no longer use the agent."),
    ),
    "resume": lambda facts: Fact("otherwise", "No other rule applies."),
}
