"""What the rules looked at when a turn was decided, in words: the facts behind "why"."""

from collections.abc import Callable

from holdfast.core import notices
from holdfast.core.events import Considered
from holdfast.core.resume import RULES, Facts
from holdfast.core.turns import TurnState


def considered(facts: Facts) -> tuple[Considered, ...]:
    """Every rule in its order, up to the one that decides."""
    found: list[Considered] = []
    for rule in RULES:
        applies = rule.matches(facts)
        found.append(Considered(rule.label, _WORDS[rule.name](facts), applies))
        if applies:
            break
    return tuple(found)


def _said(applies: bool, yes: str, no: str) -> str:
    return yes if applies else no


def _age(facts: Facts) -> str:
    if facts.asked:
        return "A person asked to continue it."
    if facts.aged_ms is None:
        return "The time of its last sign of life is not known."
    return f"Its last sign of life was {notices.span(facts.aged_ms)} ago{'' if facts.fresh else ', which is too long'}."


def _held(facts: Facts) -> str:
    if facts.held and facts.asked:
        return "A person asked to continue it."
    return _said(facts.held, "Interrupted work is not continued automatically now.", "Interrupted work is continued automatically.")


_OPEN = (TurnState.NONE, TurnState.ENDED)
_WORDS: dict[str, Callable[[Facts], str]] = {
    "stopped": lambda facts: _said(facts.stop_requested, "A stop is on record.", "No stop is on record."),
    "suspended": lambda facts: _said(facts.suspended, "The conversation is suspended.", "The conversation is not suspended."),
    "stuck": lambda facts: f"Restarts in a row that interrupted it: {facts.restarts}. Crashes of this turn: {facts.deaths}.",
    "nothing cut": lambda facts: _said(facts.turn in _OPEN, "No turn is open.", "Its turn has not ended."),
    "tried": lambda facts: _said(facts.tried, "An attempt to recover it has failed.", "No attempt to recover it has failed."),
    "waiting": lambda facts: _said(facts.turn is TurnState.WAITING, "It waits for an answer.", "It does not wait for an answer."),
    "stale": _age,
    "held": _held,
    "nowhere": lambda facts: _said(facts.reachable, "Its chat can be reached.", "Its chat is not configured here."),
    "not allowed": lambda facts: _said(facts.allowed, "Its user may use the agent.", "Its user may no longer use the agent."),
    "resume": lambda facts: "No other rule applies.",
}
