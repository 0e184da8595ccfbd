"""What a process counts for those who look at it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.platform import NAME
from tests.gateway import gateways
from tests.gateway.gateways import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def test_what_came_from_a_platform_and_what_arrived_there_is_counted(home: Home) -> None:
    """Once each: a message that is delivered again is no other one."""
    life = home.start()
    life.say("say:hello")
    home.server.updates.append(home.server.updates[-1])
    life.pass_s(30)
    tally = life.gateway.tally
    assert tally.traffic(NAME) == (1, 1) and tally.traffic("elsewhere") == (0, 0)
    life.say("/status")
    life.until(lambda: tally.traffic(NAME) == (2, 2))


def test_how_long_people_waited_for_a_turn_and_its_first_words_is_measured(home: Home) -> None:
    life = home.start()
    page = life.open_page()
    life.post(page, "sleep:3|say:one")
    life.post(page, "say:two")
    life.until(lambda: len(life.answers(page)) == 2)
    life.rest(page)
    first, second = life.gateway.tally.waited_ms
    assert first < 1000 and 2900 < second < 5000
    slow, quick = life.gateway.tally.first_text_ms
    assert 2900 < slow < 5000 and quick < 1000
