"""What models used and cost: recorded with each response, and summed up for turns and conversations."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.agents.prices import Prices
from holdfast.api import usage, views
from holdfast.config.agent import ModelPrice
from holdfast.core import events as e
from holdfast.core.events import Usage
from tests.fakes.models_scripted import ScriptedModels
from tests.gateway import gateways
from tests.gateway.gateways import Home, Life
from tests.gateway.models import FIRST, agent_of

USED = Usage(input=1000, output=10, cached=600, stored=100, thought=4)


@pytest.fixture
def models() -> ScriptedModels:
    found = ScriptedModels()
    found.changes = {"usage": USED}
    return found


@pytest.fixture
def home(tmp_path: Path, models: ScriptedModels) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        prices = Prices({FIRST: ModelPrice(input=2, output=10, cached=0.5, window=9000)})
        made.agent = agent_of(models, tmp_path, prices=prices)
        yield made


def view(life: Life, page: str) -> views.SessionView:
    return life.view(page)


def test_each_response_is_recorded_with_its_cost_its_day_and_its_person(home: Home) -> None:
    life = home.start()
    page = life.open_page()
    life.post(page, "look > look a | done")
    life.rest(page)
    responses = [item.event for item in life.events(page) if isinstance(item.event, e.ModelResponded)]
    cost = 400 * 2 + 600 * 0.5 + 10 * 10
    assert [(each.usage, each.cost, each.sender) for each in responses] == [(USED, cost, "owner")] * 2
    assert {each.day for each in responses} == {each.day for each in life.do(life.gateway.store.spent_by_day(since="1970-01-01"))}
    shown = view(life, page)
    [turn] = shown.turns
    assert turn.model == FIRST and turn.usage == shown.usage
    assert shown.usage == views.UsageView(
        requests=2, input=2000, output=20, cached=1200, stored=200, thought=8, cost=2 * int(cost), unpriced=0
    )
    assert isinstance(turn.responses, list)
    assert [(each.step, each.model, each.finish, each.cached, each.cost) for each in turn.responses] == [
        (0, FIRST, "calls", 600, cost),
        (1, FIRST, "end", 600, cost),
    ]


def test_what_has_no_known_price_is_counted_apart(home: Home, models: ScriptedModels, tmp_path: Path) -> None:
    home.agent = agent_of(models, tmp_path)
    life = home.start()
    page = life.open_page()
    assert view(life, page).usage.cost == 0
    life.post(page, "hello")
    life.rest(page)
    shown = view(life, page).usage
    assert (shown.requests, shown.unpriced, shown.cost, shown.input) == (1, 1, None, 1000)


def test_what_was_used_is_reported_by_day_and_by_person(home: Home) -> None:
    """Days are those of the place where the gateway runs."""
    life = home.start(offset_s=3600)
    page = life.open_page()
    life.post(page, "hello")
    life.rest(page)
    home.write("hello", chat="room", sender="ann")
    life.pass_s(5)
    life.die()
    home.later(24 * 3600)
    life = home.start()
    life.post(page, "again")
    life.rest(page)
    found = usage.report(*life.do(life.gateway.spent(days=2)))
    assert [(day.turns, day.usage.requests, day.usage.cached) for day in found.days] == [(2, 2, 1200), (1, 1, 600)]
    assert found.since == found.days[0].day and found.total.requests == 3 and found.total.cost == 3 * 1200
    assert [(each.sender, each.turns) for each in found.senders] == [("owner", 2), ("fakechat:ann", 1)]
    today = usage.report(*life.do(life.gateway.spent(days=1)))
    assert today.days == found.days[1:] and today.since == found.days[1].day
