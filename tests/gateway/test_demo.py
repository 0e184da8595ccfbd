"""The demo agent: what people say to a count while it runs, and what is said of a command."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.agents.demo import DemoAgent
from holdfast.core.events import Text
from holdfast.core.policy import parse_all
from holdfast.core.redaction import Secrets
from tests.gateway import gateways
from tests.gateway.gateways import Home, Life
from tests.gateway.test_processes import machine


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def numbers(last: int) -> str:
    return " ".join(map(str, range(1, last + 1)))


def counting(life: Life, text: str, *, to: int) -> str:
    """A page whose turn has counted so far."""
    page = life.open_page()
    life.post(page, text)
    life.until(lambda: any(answer.startswith(numbers(to)) for answer in life.answers(page)))
    return page


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (["12"], numbers(12)),
        (["30"], numbers(30)),
        (["30", "12"], numbers(12)),
        (["faster", "12"], f"{numbers(12)}\n\nYou also said: faster"),
        (["0", "100001", "-3", "1.5"], numbers(20) + "".join(f"\n\nYou also said: {text}" for text in ("0", "100001", "-3", "1.5"))),
    ],
)
def test_a_number_said_to_a_count_is_where_it_ends_and_other_words_are_said_back(home: Home, said: list[str], answer: str) -> None:
    """P6: taken by the turn that runs, which stays one turn."""
    life = home.start()
    page = counting(life, "count 20 0.5", to=5)
    for text in said:
        life.steer(page, text)
    life.rest(page)
    assert life.answers(page) == [answer] and life.outcomes(page) == ["completed"]


def test_a_count_that_has_passed_the_number_ends_where_it_is(home: Home) -> None:
    life = home.start()
    page = counting(life, "count 20 0.5", to=5)
    life.steer(page, "3")
    life.rest(page)
    [answer] = life.answers(page)
    assert answer in (numbers(5), numbers(6)) and life.outcomes(page) == ["completed"]


def test_a_count_that_was_interrupted_within_a_number_continues_with_that_number(home: Home) -> None:
    """P5, P7: what may begin a secret is held back, so a number may be cut off anywhere; what was counted is not counted again."""
    home.secrets = Secrets({"key": "2esame-open-sesame"})
    life = home.start()
    page = life.open_page()
    life.post(page, "count 20 0.5")
    life.until(lambda: life.answers(page) == [f"{numbers(11)} 1"])
    life.die()
    life = home.start()
    life.rest(page)
    assert life.answers(page) == [numbers(20)]
    again = [item.event for item in life.events(page) if isinstance(item.event, Text) and item.attempt == 2]
    assert again and min(piece.offset for piece in again) == len(numbers(11))


def test_a_count_that_was_steered_and_interrupted_ends_where_it_was_told_to(home: Home) -> None:
    """P6, P3: what was taken is on record, and counts for the next attempt."""
    life = home.start()
    page = counting(life, "count 20 0.5", to=5)
    life.steer(page, "9")
    life.steer(page, "well done")
    life.until(lambda: sum(item.kind == "cause.taken" for item in life.events(page)) == 2)
    life.die()
    life = home.start()
    life.rest(page)
    assert life.answers(page) == [f"{numbers(9)}\n\nYou also said: well done"] and life.outcomes(page) == ["completed"]


@pytest.mark.parametrize(("command", "said"), [("ahoy", "Done."), ("fail", "The command failed.")])
def test_what_a_command_printed_is_shown_with_its_call_and_not_again_in_the_answer(home: Home, command: str, said: str) -> None:
    life = home.start()
    page = life.open_page()
    life.post(page, f"run {command}")
    life.rest(page)
    assert life.answers(page) == [said]
    [call] = life.transcript(page).messages[-1].tool_calls
    assert call.result == f"{command}\n"


def test_of_a_command_that_was_interrupted_it_is_said_that_nobody_knows(home: Home) -> None:
    """P5, B10: in words for people, without what is told to a model."""
    life = home.start()
    page = life.open_page()
    life.post(page, "run hang")
    life.until(lambda: any(item.kind == "tool.output" for item in life.events(page)))
    life.die()
    life = home.start()
    life.rest(page)
    [answer] = life.answers(page)
    assert "It is not known whether it finished" in answer and "Its output" not in answer and "the user" not in answer


def test_a_command_in_the_background_is_started_and_its_end_is_told(home: Home) -> None:
    """E3: in a turn of its own, or in a count that runs."""
    home.machine, home.agent = machine(), lambda life: DemoAgent()
    life = home.start(policy=parse_all(allow=["processes"], ask=[], deny=[]))
    page = life.open_page()
    life.post(page, "background")
    life.rest(page)
    assert life.answers(page)[-1].startswith("`background COMMAND` runs a shell command in the background")
    life.post(page, "background lasts 5; at 1 print x")
    life.until(lambda: [turn.cause for turn in life.transcript(page).turns] == ["message", "message", "process"])
    life.rest(page)
    started, told = life.answers(page)[-2:]
    assert started.startswith("Started as p_") and told.endswith("ended after 5 s with exit code 0.")
    life.post(page, "background lasts 5")
    life.post(page, "count 20 0.5")
    life.until(lambda: len(life.answers(page)) == 5)
    life.rest(page)
    assert life.answers(page)[-1].startswith(f"{numbers(20)}\n\nThe background process `lasts 5`")
