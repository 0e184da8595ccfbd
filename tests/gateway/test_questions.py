"""A question in a chat counts as asked once its chat has it; until then nothing that is written there is taken for its answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core.events import Text
from holdfast.core.redaction import Secrets
from tests.gateway import gateways
from tests.gateway.gateways import Home, Life

QUESTION = "your name"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def asked(life: Life) -> None:
    """The agent has asked, and the question is on record."""
    life.write(f"ask:{QUESTION}")
    life.until(lambda: life.session().state == "waiting")


def test_a_message_written_before_the_question_arrived_is_no_answer_but_a_turn_of_its_own(home: Home) -> None:
    """A27, P1"""
    life = home.start()
    home.server.moods = lambda: "refused"
    asked(life)
    life.write("and feed the cat")
    assert (life.session().state, life.session().queued, home.told()) == ("waiting", 1, [])
    home.server.moods = lambda: ""
    life.until(lambda: home.told() == [QUESTION])
    life.say("Bob")
    assert life.answers() == ["told Bob", "re: and feed the cat"]
    assert home.texts == [f"ask:{QUESTION}", f"ask:{QUESTION}", "and feed the cat"]
    assert life.outcomes() == ["completed", "completed"]


def test_a_question_that_was_never_delivered_is_delivered_after_a_restart_and_takes_its_answer_then(home: Home) -> None:
    """R5, A27, P4"""
    life = home.start()
    home.server.moods = lambda: "refused"
    asked(life)
    life.die()
    life = home.start()
    life.write("too early")
    assert (life.session().state, life.session().queued, life.session().rule) == ("waiting", 1, "R5")
    home.server.moods = lambda: ""
    life.until(lambda: home.told() == [QUESTION])
    life.say("Bob")
    assert life.answers() == ["told Bob", "re: too early"]
    assert home.told() == [QUESTION, "told Bob", "re: too early"]


def test_a_question_whose_sending_was_cut_off_counts_once_the_platform_says_that_it_is_there(home: Home) -> None:
    """A27, P4: nobody knows whether it arrived until the platform was asked."""
    life = home.start()
    home.server.moods = lambda: "late"
    asked(life)
    life.until(lambda: home.told() == [QUESTION])
    life.write("too early")
    assert (life.session().state, life.session().queued) == ("waiting", 1)
    life.die()
    home.server.moods = lambda: ""
    life = home.start()
    life.until(lambda: life.do(life.store.counts()).outbox == 0)
    life.say("Bob")
    assert life.answers() == ["told Bob", "re: too early"]
    assert home.told()[:1] == [QUESTION] and home.told().count(QUESTION) == 1


@pytest.mark.parametrize("news", ["a message", "a restart"])
def test_a_question_whose_delivery_was_given_up_is_asked_again(home: Home, news: str) -> None:
    """R5, A27: nobody would ever answer it otherwise, and whatever its user writes would wait until it expires."""
    life = home.start()
    home.server.moods = lambda: "never"
    asked(life)
    life.until(lambda: life.do(life.store.counts()).outbox == 0)
    home.server.moods = lambda: ""
    if news == "a message":
        life.write("hello?")
    else:
        life.die()
        life = home.start()
    life.until(lambda: home.told() == [QUESTION])
    life.say("Bob")
    assert life.answers() == ["told Bob", *(["re: hello?"] if news == "a message" else [])]
    assert home.told().count(QUESTION) == 1


def test_a_message_written_on_the_page_answers_what_the_page_shows(home: Home) -> None:
    """A27: there the question is seen as soon as it is stored, also that of a chat which is out of reach."""
    life = home.start()
    home.server.moods = lambda: "refused"
    asked(life)
    life.post(life.session().session_id, "Bob")
    home.server.moods = lambda: ""
    life.rest()
    assert life.answers() == ["told Bob"]


def test_a_question_on_a_page_is_asked_when_it_is_stored(home: Home) -> None:
    """A27"""
    life = home.start()
    page = life.open_page()
    life.post(page, f"ask:{QUESTION}")
    life.until(lambda: life.session(page).state == "waiting")
    life.post(page, "Bob")
    life.rest(page)
    assert life.answers(page) == ["told Bob"]


def test_a_stop_ends_a_turn_whose_question_nobody_has_seen(home: Home) -> None:
    """A21, A27: what waits behind the question is answered next."""
    life = home.start()
    home.server.moods = lambda: "refused"
    asked(life)
    life.write("next")
    life.write("/stop")
    home.server.moods = lambda: ""
    life.rest()
    assert life.outcomes() == ["cancelled", "completed"]
    assert (home.replies(), home.note) == (["re: next"], None)


def test_no_word_before_a_question_is_lost_that_might_have_begun_a_secret(home: Home) -> None:
    """P2, P7: the attempt ends with the question, and what was held back until then is on record before it."""
    secrets = Secrets()
    secrets.know({"key": "5esame-open-sesame"})
    home.secrets = secrets
    life = home.start()
    life.write("say:4 5|ask:your name")
    life.until(lambda: life.session().state == "waiting")
    assert "".join(item.event.text for item in life.events() if isinstance(item.event, Text)) == "4 5"
