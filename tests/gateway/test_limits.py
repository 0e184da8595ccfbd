"""Limits of tokens and money: held before each request, against sums that outlive the process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.agents.prices import Prices
from holdfast.config.agent import ModelPrice
from holdfast.core.events import Usage
from holdfast.core.limits import CONTINUE, END, SpendingLimits
from tests.fakes.models_scripted import ScriptedModels
from tests.gateway import gateways
from tests.gateway.gateways import Home, Life
from tests.gateway.models import FIRST, agent_of

DAY_S = 24 * 3600
SCRIPT = "one > deed 0 | two > deed 0 | three > deed 0 | done"


@pytest.fixture
def models() -> ScriptedModels:
    found = ScriptedModels()
    found.changes = {"usage": Usage(input=90, output=10)}
    return found


@pytest.fixture
def home(tmp_path: Path, models: ScriptedModels) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        made.agent = agent_of(models, tmp_path, FIRST, prices=Prices({FIRST: ModelPrice(input=10_000, output=10_000)}))
        yield made


def say(life: Life, page: str, text: str = "hello") -> str | None:
    life.post(page, text)
    life.rest(page)
    return life.outcomes(page)[-1]


def ask(life: Life, page: str, text: str = SCRIPT) -> str:
    """Gives the question."""
    life.post(page, text)
    return asked(life, page)


def asked(life: Life, page: str) -> str:
    life.until(lambda: life.session(page).state == "waiting")
    [question] = life.transcript(page).questions
    assert question.choices == (CONTINUE, END)
    return question.text


def test_a_turn_ends_at_its_limit_with_what_to_do(home: Home, models: ScriptedModels) -> None:
    """P3: what it has said and done stays."""
    life = home.start(limits=SpendingLimits(turn_tokens=200, asks=False))
    page = life.open_page()
    assert say(life, page, SCRIPT) == "failed" and len(models.requests) == 2 and len(home.done) == 2
    assert life.turn(page).error == (
        "This turn has used 200 tokens; the limit is 200 tokens (limits.turn_tokens)."
        " Send a smaller request, or raise the limit in [limits]."
    )
    assert say(life, page) == "completed", "the next turn has its own limit"


def test_a_turn_that_reaches_a_limit_asks_and_continues_as_far_again(home: Home, models: ScriptedModels) -> None:
    """R5, A27: the question and its answer outlive the process."""
    life = home.start(limits=SpendingLimits(turn_tokens=200))
    page = life.open_page()
    assert ask(life, page) == (
        "This turn has used 200 tokens; the limit is 200 tokens (limits.turn_tokens). Continue, up to as much again?"
    )
    assert len(models.requests) == 2
    life.die()
    life = home.start(limits=SpendingLimits(turn_tokens=200))
    life.post(page, CONTINUE)
    life.rest(page)
    assert life.outcomes(page) == ["completed"] and len(models.requests) == 4
    assert life.answers(page) == ["done [done done] [done done] [done done]"]
    say(life, page, "and then")
    assert not any("limit" in item.text for item in models.requests[-1].history), "no model is told of it"


def test_whoever_does_not_want_more_ends_the_turn(home: Home, models: ScriptedModels) -> None:
    life = home.start(limits=SpendingLimits(turn_tokens=100))
    page = life.open_page()
    ask(life, page)
    life.post(page, CONTINUE)
    assert "This turn has used 200 tokens; the limit is 200" in asked(life, page)
    life.post(page, END)
    life.rest(page)
    assert life.outcomes(page) == ["failed"] and len(models.requests) == 2 and "limits.turn_tokens" in (life.turn(page).error or "")
    life.post(page, "next")
    life.until(lambda: len(models.requests) == 3)
    assert not any("limit" in item.text for item in models.requests[-1].history)


def test_whoever_does_not_want_more_is_not_asked_again_because_others_have_spent_more_since(home: Home, models: ScriptedModels) -> None:
    life = home.start(limits=SpendingLimits(day_tokens=200))
    first, second = life.open_page(), life.open_page()
    ask(life, first)
    ask(life, second, "hello")
    life.post(second, CONTINUE)
    life.rest(second)
    assert len(models.requests) == 3
    life.post(first, END)
    life.rest(first)
    assert life.outcomes(first) == ["failed"] and life.outcomes(second) == ["completed"] and len(models.requests) == 3


def test_the_sums_of_a_conversation_and_of_a_day_outlive_the_process(home: Home, models: ScriptedModels) -> None:
    """P8"""
    bounds = SpendingLimits(session_cost=2_000_000, day_cost=3_000_000, asks=False)
    life = home.start(limits=bounds)
    first, second = life.open_page(), life.open_page()
    assert [say(life, first), say(life, first)] == ["completed"] * 2
    life.die()
    life = home.start(limits=bounds)
    assert say(life, first) == "failed" and "This conversation has used $2.00" in (life.turn(first).error or "")
    assert [say(life, second), say(life, second)] == ["completed", "failed"]
    assert "All conversations together have used today $3.00; the limit is $3.00" in (life.turn(second).error or "")
    life.die()
    home.later(DAY_S)
    life = home.start(limits=bounds)
    assert [say(life, second), say(life, first)] == ["completed", "failed"] and len(models.requests) == 4


@pytest.mark.parametrize("bound", [{"sender_turns": 2}, {"sender_tokens": 200}, {"sender_cost": 2_000_000}])
def test_a_person_has_so_much_a_day_and_cannot_lift_that(home: Home, models: ScriptedModels, bound: dict[str, Any]) -> None:
    """What others and other conversations use does not count, what the same person uses elsewhere does."""
    life = home.start(limits=SpendingLimits(**bound))
    for number in range(3):
        home.write(f"hello {number}", chat="room" if number else "ann", sender="ann")
        life.pass_s(5)
    assert len(models.requests) == 2
    home.write("hello", chat="bob", sender="bob")
    life.until(lambda: len(models.requests) == 3)
    life.pass_s(5)
    assert any("You have used today" in text for text in [*home.told("room"), *home.told("ann")])


def test_without_a_known_price_only_tokens_are_limited(home: Home, models: ScriptedModels, tmp_path: Path) -> None:
    """And the log says so, once."""
    home.agent = agent_of(models, tmp_path, FIRST)
    life = home.start(limits=SpendingLimits(day_cost=1, day_tokens=300, asks=False))
    page = life.open_page()
    assert [say(life, page) for _ in range(4)] == ["completed"] * 3 + ["failed"]
    assert "limits.day_tokens" in (life.turn(page).error or "")
    assert len(home.logged("no price is known for a model; limits of money do not count it")) == 1


@pytest.mark.parametrize("dies", [False, True])
def test_a_person_has_so_many_turns_a_day_whichever_agent_answers(home: Home, dies: bool) -> None:
    """P1: refused aloud, before any turn; a turn that was resumed is one turn."""
    home.agent = lambda life: gateways.ScriptAgent(home.heard, home.edge)
    bounds = SpendingLimits(sender_turns=2)
    life = home.start(limits=bounds)
    if dies:
        life.cut("hang / say:one")
        life = home.start(limits=bounds)
        life.rest()
    else:
        life.say("say:one")
    life.say("say:two")
    for text in ("say:three", "say:four"):
        life.write(text)
    life.until(lambda: len(home.told("ann")) == 4)
    assert [turn.outcome for turn in life.transcript("ann").turns] == ["completed"] * 2
    assert home.told("ann")[2:] == ["You have used today 2 turns; the limit is 2 turns (limits.sender_turns). Try again tomorrow."] * 2
    life.say("say:five", chat="bob", sender="bob")
    assert life.answers("bob") == ["five"]
    home.later(DAY_S)
    life.die()
    life = home.start(limits=bounds)
    life.say("say:six")
    assert life.answers("ann")[-1] == "six"


def test_whoever_may_have_no_more_turns_holds_up_nobody_else_in_a_group(home: Home) -> None:
    """P8"""
    home.agent = lambda life: gateways.ScriptAgent(home.heard, home.edge)
    life = home.start(limits=SpendingLimits(sender_turns=1))
    life.say("say:one", chat="room", sender="ann")
    for sender in ("ann", "bob"):
        home.write(f"say:{sender}", chat="room", sender=sender)
    life.until(lambda: life.answers("room") == ["one", "bob"])
    assert any("You have used today 1 turn;" in told for told in home.told("room"))


def test_only_an_operator_lifts_a_limit_that_concerns_others(home: Home, models: ScriptedModels) -> None:
    """R5: whoever writes in the chat meanwhile waits, and is told why; the page of the owner may answer, too."""
    life = home.start(limits=SpendingLimits(day_tokens=100))
    home.server.operators.add("boss")
    life.say("hello", chat="room", sender="ann")
    life.write("more", chat="room", sender="ann")
    life.until(lambda: any("Only an administrator can allow that." in told for told in home.told("room")))
    life.write("Continue", chat="room", sender="ann")
    life.until(lambda: "only an administrator can allow more" in home.told("room")[-1])
    assert len(models.requests) == 1 and life.session("room").queued == 1
    life.die()
    life = home.start(limits=SpendingLimits(day_tokens=100))
    life.write("Continue", chat="room", sender="boss")
    life.until(lambda: len(models.requests) == 2)
