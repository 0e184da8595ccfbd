"""Titles from models, over lives of a gateway: one for each conversation, on record, counted, in nobody's way, and never over a name that
a person gave.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.agents.prices import Prices
from holdfast.agents.titles import Asked, ModelTitles
from holdfast.config.agent import ModelPrice
from holdfast.core import events as e
from holdfast.core import titles
from holdfast.core.limits import SpendingLimits
from holdfast.ports.models import Busy, ModelSettings
from tests.fakes.loop import Crash
from tests.fakes.models_scripted import Given, ScriptedModels
from tests.gateway import gateways
from tests.gateway.gateways import Home, Life
from tests.gateway.models import FIRST, SECOND, agent_of

PRICES = Prices({FIRST: ModelPrice(input=2, output=10), SECOND: ModelPrice(input=1, output=1)})
TITLE = "Watering the plants"


@pytest.fixture
def models() -> ScriptedModels:
    return ScriptedModels()


def titled(place: Path, models: ScriptedModels, home: Home) -> Home:
    home.agent = agent_of(models, place, prices=PRICES)

    async def no_blob(digest: str) -> bytes:
        raise AssertionError(digest)

    def asked(chosen: str | None) -> Asked | None:
        if chosen == "nobody":
            return None
        return Asked(
            model=SECOND if chosen == SECOND else FIRST, client=models.client, settings=lambda model: ModelSettings(), prices=PRICES
        )

    home.titler = ModelTitles(asked, read=no_blob)
    return home


@pytest.fixture
def home(tmp_path: Path, models: ScriptedModels) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield titled(tmp_path, models, made)


def answered(life: Life, text: str = "water?") -> str:
    page = life.open_page()
    life.post(page, text)
    life.rest(page)
    return page


def requests(models: ScriptedModels) -> list[Given]:
    return [given for given in models.requests if given.request.system == titles.INSTRUCTIONS]


def made(life: Life, page: str) -> list[e.TitleMade]:
    return [item.event for item in life.events(page) if isinstance(item.event, e.TitleMade)]


def test_after_its_first_answer_a_conversation_has_a_title_of_words_made_once(home: Home, models: ScriptedModels) -> None:
    life = home.start()
    page = answered(life, "**water** the plants?")
    assert life.session(page).title == "water the plants?"
    life.until(lambda: life.session(page).title == TITLE)
    life.post(page, "and the trees?")
    life.rest(page)
    life.pass_s(120)
    [asked] = requests(models)
    assert asked.model == FIRST and "**water** the plants?" in str(asked.history[0]) and not asked.request.tools
    [record] = made(life, page)
    assert (record.title, record.problem, record.tries, record.sender) == (TITLE, None, 1, "owner")
    kinds = [item.kind for item in life.events(page)]
    assert kinds.index("turn.ended") < kinds.index("title.asked") < kinds.index("title.made") < kinds.index("session.changed")
    assert [message.role for message in life.transcript(page).messages] == ["user", "assistant"] * 2  # It speaks nowhere else.


def test_the_model_of_the_conversation_is_asked(home: Home, models: ScriptedModels) -> None:
    life = home.start(models=(FIRST, SECOND))
    page = life.open_page()
    life.do(life.gateway.change_session(page, e.SessionChanged(model=SECOND)))
    life.post(page, "water?")
    life.until(lambda: life.session(page).title == TITLE)
    assert [given.model for given in requests(models)] == [SECOND]


def test_what_it_used_counts_for_the_conversation_its_day_and_its_sender(home: Home, models: ScriptedModels) -> None:
    life = home.start()
    page = answered(life)
    before = life.transcript(page).spent
    life.until(lambda: life.session(page).title == TITLE)
    spent = life.transcript(page).spent
    assert (spent.requests, spent.input - before.input, spent.output - before.output) == (2, 50, 4)
    assert spent.cost - before.cost == 50 * 2 + 4 * 10
    assert life.turn(page).spent == before  # The answer did not cost more.
    _, days = life.do(life.gateway.spent(days=1))
    assert [(each.sender, each.turns, each.spent) for each in days] == [("owner", 1, spent)]
    [record] = made(life, page)
    account = life.do(life.gateway.store.account(page, turn_id="t", day=record.day or "", sender="owner"))
    assert account.session == account.day == account.sender == spent and account.sender_turns == 1


@pytest.mark.parametrize("when", ["before", "while it is made"])
def test_a_name_that_a_person_gave_stays(home: Home, models: ScriptedModels, when: str) -> None:
    life = home.start()
    page = life.open_page()
    life.post(page, "water?")
    if when == "before":
        life.do(life.gateway.change_session(page, e.SessionChanged(title="Mine")))
        life.rest(page)
    else:
        life.rest(page)
        models.silent_s = 5.0
        life.until(lambda: len(requests(models)) == 1)
        life.do(life.gateway.change_session(page, e.SessionChanged(title="Mine")))
    life.pass_s(60)
    assert life.session(page).title == "Mine" and len(requests(models)) == (when != "before")
    assert [(record.title, record.problem) for record in made(life, page)] == [(None, titles.NAMED_FIRST)] * (when != "before")
    assert life.transcript(page).spent.requests == 1 + (when != "before")


def test_a_conversation_that_was_made_with_a_name_keeps_it(home: Home, models: ScriptedModels) -> None:
    life = home.start()
    page = life.do(life.gateway.create_session("Mine")).session_id
    life.post(page, "water?")
    life.pass_s(30)
    assert life.session(page).title == "Mine" and not requests(models)


@pytest.mark.parametrize("wrong", ["error", "hang", "nothing"])
def test_where_it_fails_nobody_is_told_and_the_first_words_stay(home: Home, models: ScriptedModels, wrong: str) -> None:
    life = home.start()
    page = answered(life)
    models.title = "***" if wrong == "nothing" else models.title
    models.wrong[FIRST] = {"error": [Busy("It is busy.")], "hang": ["hang"], "nothing": []}[wrong]  # type: ignore[assignment]
    life.until(lambda: bool(made(life, page)))
    life.pass_s(120)
    [record] = made(life, page)
    assert record.title is None and record.problem in ("It is busy.", titles.TOO_SLOW, titles.NO_WORDS)
    assert (life.session(page).title, len(requests(models)), life.notices(page)) == ("water?", 1, [])
    assert life.outcomes(page) == ["completed"]


def test_an_answer_waits_for_no_title(home: Home, models: ScriptedModels) -> None:
    life = home.start()
    page = answered(life)
    models.wrong[FIRST] = ["hang"]
    life.until(lambda: len(requests(models)) == 1)
    life.post(page, "again")
    life.rest(page)
    assert life.answers(page) == ["water?", "again"] and not made(life, page)


def test_limits_hold_for_titles_and_nobody_is_asked_to_lift_them(home: Home, models: ScriptedModels) -> None:
    life = home.start(limits=SpendingLimits(session_tokens=1))
    page = answered(life)
    life.until(lambda: bool(made(life, page)))
    life.pass_s(30)
    assert [record.problem for record in made(life, page)] == [titles.LIMITED]
    assert not requests(models) and life.session(page).state == "idle" and life.session(page).title == "water?"


def test_a_conversation_that_no_model_answers_keeps_its_title(home: Home, models: ScriptedModels) -> None:
    life = home.start(models=(FIRST, "nobody"))
    page = life.open_page()
    life.do(life.gateway.change_session(page, e.SessionChanged(model="nobody")))
    home.agents["nobody"] = life.gateway.agent
    life.stop()
    life = home.start(models=(FIRST, "nobody"))
    life.post(page, "water?")
    life.until(lambda: bool(made(life, page)))
    assert [record.problem for record in made(life, page)] == [titles.NO_MODEL] and not requests(models)


def test_without_a_titler_nothing_is_asked_and_later_only_for_fresh_conversations(home: Home, models: ScriptedModels) -> None:
    titler, home.titler = home.titler, None
    life = home.start()
    old = answered(life)
    life.stop()
    home.later(3700)
    life = home.start()
    fresh = answered(life, "fresh?")
    life.stop()
    home.titler = titler
    life = home.start()
    life.until(lambda: life.session(fresh).title == TITLE)
    life.pass_s(30)
    assert life.session(old).title == "water?" and len(requests(models)) == 1


def test_nothing_is_asked_for_a_deleted_conversation(home: Home, models: ScriptedModels) -> None:
    life = home.start()
    page = answered(life)
    life.do(life.gateway.delete_session(page, by="owner"))
    life.pass_s(60)
    assert not requests(models)
    life.do(life.gateway.undelete_session(page, by="owner"))
    life.until(lambda: life.session(page).title == TITLE)


def test_a_pause_holds_titles(home: Home, models: ScriptedModels) -> None:
    """C21"""
    life = home.start()
    page = answered(life)
    life.do(life.gateway.pausing.pause("operator", 30))
    life.pass_s(25)
    assert not requests(models)
    life.until(lambda: life.session(page).title == TITLE)


def test_over_a_death_at_each_commit_there_is_one_title_and_at_most_one_more_request(tmp_path: Path) -> None:
    """P5: before it is on record that a model is asked, while it is, and before and after what came of it is on record."""
    deaths, asked = 0, set()
    for moment in ("before", "after"):
        for number in itertools.count(1):
            place, models = tmp_path / f"{moment} {number}", ScriptedModels()
            place.mkdir()
            with gateways.home(place) as home:
                died = dies_around_a_title(titled(place, models, home), models, moment, number)
            deaths += died
            asked.add(len(requests(models)))
            if not died:
                break
    assert deaths >= 4 and asked == {1, 2}


def dies_around_a_title(home: Home, models: ScriptedModels, moment: str, number: int) -> bool:
    life = home.start()
    page = answered(life)
    life.dies = (moment, life.commits + number)
    try:
        life.pass_s(4)
        died, life.dies = False, None
    except Crash:
        died, life = True, home.start()
    life.until(lambda: life.session(page).title == TITLE)
    life.pass_s(6)
    records = made(life, page)
    assert [record.title for record in records] == [TITLE]
    assert [item.event.title for item in life.events(page) if isinstance(item.event, e.SessionChanged)] == [TITLE]
    assert life.transcript(page).spent.requests == 2
    return died


def test_after_two_deaths_while_a_model_is_asked_nobody_asks_again(home: Home, models: ScriptedModels) -> None:
    models.wrong[FIRST] = [None, "hang", "hang"]
    life = home.start()
    page = answered(life)
    for number in (1, 2):
        life.until(lambda number=number: len(requests(models)) == number)  # type: ignore[misc]
        life.die()
        life = home.start()
    life.until(lambda: bool(made(life, page)))
    life.pass_s(60)
    assert [(record.problem, record.tries) for record in made(life, page)] == [(titles.INTERRUPTED, 2)]
    assert len(requests(models)) == 2 and life.session(page).title == "water?"


def test_of_two_processes_that_serve_for_a_moment_one_asks(home: Home, models: ScriptedModels) -> None:
    """P2: as in a hand-over; and what the old one has asked for it waits for itself."""
    old = home.start()
    page = answered(old)
    models.silent_s = 3.0
    old.until(lambda: len(requests(models)) == 1)
    new = home.start(beside=old)
    new.until(lambda: new.session(page).title == TITLE)
    new.pass_s(30)
    assert len(requests(models)) == 1 and len(made(new, page)) == 1


def test_a_store_that_is_away_holds_the_outcome_and_nothing_is_asked_twice(home: Home, models: ScriptedModels) -> None:
    life = home.start()
    page = answered(life)
    models.silent_s = 2.0
    life.until(lambda: len(requests(models)) == 1)
    life.lock_database(20)
    life.pass_s(40)
    assert life.session(page).title == TITLE and len(requests(models)) == 1 and len(made(life, page)) == 1
