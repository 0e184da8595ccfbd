"""When a conversation is left for a new one, what becomes of what waited in it, and what people are told."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.history import User
from holdfast.core.plans.leave import Moved
from holdfast.core.resets import Policy
from tests import words
from tests.fakes.platform import NAME
from tests.gateway import gateways
from tests.gateway.gateways import Home, Life

HOUR_S = 3600
NEVER, AFTER_AN_HOUR = Policy(), Policy(idle_min=60)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def after(home: Home, life: Life, seconds: float, **settings: Any) -> Life:
    """The gateway is stopped, time goes by, and it is started again."""
    life.stop()
    home.later(seconds)
    return home.start(**settings)


def refused(life: Life, name: str) -> list[str]:
    return [message.text for message in life.transcript(name).messages if message.status == "refused"]


# policies


def test_by_default_no_conversation_is_ever_left(home: Home) -> None:
    """A19"""
    life = home.start()
    before = life.say("hello")
    life = after(home, life, 100 * 24 * HOUR_S)
    assert life.say("again").session_id == before.session_id


def test_a_conversation_that_rested_too_long_is_left_and_the_user_told_once(home: Home) -> None:
    """A19"""
    resets = {"default": AFTER_AN_HOUR}
    life = home.start(resets=resets)
    before = life.say("hello")
    life = after(home, life, HOUR_S + 60, resets=resets)
    fresh = life.say("again")
    assert (fresh.was_auto_reset, fresh.auto_reset_reason) == (True, "idle")
    assert fresh.session_id != before.session_id
    assert [item.text for item in home.heard[-1].history] == ["again"]
    assert life.say("and again").session_id == fresh.session_id
    assert home.told() == ["re: hello", words.BEGUN["idle"], "re: again", "re: and again"]
    life.say("/resume 1")
    back = life.say("as I said")
    assert back.session_id == before.session_id
    assert [item.text for item in home.heard[-1].history if isinstance(item, User)] == ["hello", "as I said"]


def test_a_conversation_that_did_not_rest_long_enough_stays(home: Home) -> None:
    """A19"""
    resets = {"default": AFTER_AN_HOUR}
    life = home.start(resets=resets)
    before = life.say("hello")
    life = after(home, life, HOUR_S - 60, resets=resets)
    assert life.say("again").session_id == before.session_id
    assert home.told() == ["re: hello", "re: again"]


@pytest.mark.parametrize(("offset_s", "left"), [(0, True), (6 * HOUR_S, False)])
def test_a_new_day_begins_at_its_hour_of_local_time(home: Home, offset_s: int, left: bool) -> None:
    """A19: simulated time begins at eight in the morning, UTC."""
    resets = {"default": Policy(daily_hour=9)}
    life = home.start(resets=resets, offset_s=offset_s)
    life.say("hello")
    life = after(home, life, 2 * HOUR_S, resets=resets, offset_s=offset_s)
    fresh = life.say("again")
    assert (fresh.auto_reset_reason == "daily") is left
    assert home.told() == ["re: hello", *([words.BEGUN["daily"]] if left else []), "re: again"]


def test_of_both_policies_whichever_is_due_counts(home: Home) -> None:
    """A19"""
    resets = {"default": Policy(idle_min=60 * 24 * 7, daily_hour=9)}
    life = home.start(resets=resets)
    life.say("hello")
    life = after(home, life, 2 * HOUR_S, resets=resets)
    assert life.say("again").auto_reset_reason == "daily"
    life = after(home, life, 8 * 24 * HOUR_S, resets=resets)
    assert life.say("again").auto_reset_reason == "idle"


@pytest.mark.parametrize(
    ("resets", "chat_left", "page_left"),
    [
        ({"default": AFTER_AN_HOUR}, True, True),
        ({"default": AFTER_AN_HOUR, NAME: NEVER}, False, True),
        ({"default": AFTER_AN_HOUR, "web": NEVER}, True, False),
        ({NAME: AFTER_AN_HOUR}, True, False),
        ({NAME: AFTER_AN_HOUR, f"{NAME}.dm": NEVER}, False, False),
        ({NAME: NEVER, f"{NAME}.dm": AFTER_AN_HOUR}, True, False),
        ({f"{NAME}.group": AFTER_AN_HOUR}, False, False),
    ],
)
def test_the_most_exact_policy_counts(home: Home, resets: dict[str, Policy], chat_left: bool, page_left: bool) -> None:
    """A19"""
    life = home.start(resets=resets)
    life.say("hello")
    page = life.open_page()
    life.post(page, "hello")
    life.rest(page)
    life = after(home, life, 2 * HOUR_S, resets=resets)
    assert life.say("again").was_auto_reset is chat_left
    assert (life.post(page, "again") != page) is page_left


def test_a_page_shows_why_its_conversation_is_new(home: Home) -> None:
    """A19"""
    resets = {"default": AFTER_AN_HOUR}
    life = home.start(resets=resets)
    page = life.open_page()
    life.post(page, "hello")
    life.rest(page)
    life = after(home, life, 2 * HOUR_S, resets=resets)
    fresh = life.post(page, "again")
    life.rest(fresh)
    assert life.notices(fresh) == [words.BEGUN["idle"]]
    assert life.session(fresh).current and not life.session(page).current


def test_a_pending_conversation_is_never_left(home: Home) -> None:
    """A24"""
    resets = {"default": AFTER_AN_HOUR}
    session = home.start().cut("hang")
    home.later(2 * HOUR_S)
    life = home.start(auto_resume=False, resume_window_s=-1, resets=resets)
    life.rest()
    assert life.session().resume_pending
    assert life.say("go on").session_id == session.session_id


def test_a_conversation_that_is_only_marked_is_never_left(home: Home) -> None:
    """A24"""
    life = home.start(resets={"default": Policy(idle_min=1)})
    session = life.say("hello")
    life.do(life.store.mark_pending(session.session_key, at=life.clock.now()))
    life.pass_s(90)
    assert life.say("again").session_id == session.session_id
    life.pass_s(90)
    assert life.say("once more").session_id != session.session_id


def test_a_waiting_conversation_is_never_left(home: Home) -> None:
    """A24"""
    resets = {"default": AFTER_AN_HOUR}
    life = home.start(resets=resets)
    session = life.say("ask:your name")
    life = after(home, life, 2 * HOUR_S, resets=resets)
    assert life.say("Bob").session_id == session.session_id
    assert home.told() == ["your name", "told Bob"]


def test_a_conversation_with_words_in_its_queue_is_never_left(home: Home) -> None:
    """A24"""
    resets = {"default": AFTER_AN_HOUR}
    life = home.start(resets=resets)
    session = life.under_way("hang / say:done")
    life.write("second")
    life.die()
    home.later(2 * HOUR_S)
    home.write("third")
    life = home.start(resets=resets)
    life.until(lambda: home.texts[-1] == "third")
    assert life.rest().session_id == session.session_id


# what waited


def busy(life: Life) -> str:
    """A turn runs, two messages wait."""
    session = life.under_way("hang")
    life.write("second")
    life.write("third")
    assert life.session().queued == 2
    return session.session_id


def test_what_waited_when_a_new_conversation_was_begun_is_refused_aloud_and_once(home: Home) -> None:
    """A20, A22"""
    life = home.start()
    old = busy(life)
    fresh = life.say("/new")
    life.until(lambda: not life.session(old).open_turn)
    life.pass_s(10)
    assert fresh.session_id != old and life.outcomes(old) == ["cancelled"]
    told = words.REFUSED_BOTH.format(why="a new conversation was started first")
    assert sorted(home.told()) == sorted([told, words.BEGUN["asked"]])
    assert "> second\n> third" in told and "Send them again" in told
    assert (refused(life, old), home.texts) == (["second", "third"], ["hang"])
    life.stop()
    life = home.start()
    life.pass_s(5)
    assert (len(home.told()), home.texts) == (2, ["hang"])


def test_what_waited_in_a_conversation_that_is_suspended_is_refused_aloud(home: Home) -> None:
    """A20, A14"""
    life = home.start()
    old = busy(life)
    life.do(life.gateway.suspend(old))
    life.pass_s(10)
    assert home.told() == [words.REFUSED_BOTH.format(why="the conversation was suspended first")]
    assert (refused(life, old), home.texts) == (["second", "third"], ["hang"])
    fresh = life.say("again")
    assert (fresh.was_auto_reset, fresh.auto_reset_reason) == (True, "suspended")
    assert home.told()[1:] == [words.BEGUN["suspended"], "re: again"]


def test_what_waited_in_a_conversation_that_was_switched_away_from_is_refused_aloud(home: Home) -> None:
    """A20"""
    life = home.start()
    life.say("hello")
    life.say("/new")
    second = busy(life)
    told = len(home.told())
    life.say("/resume 1")
    life.pass_s(10)
    assert life.outcomes(second) == ["cancelled"]
    why = "another conversation was resumed first"
    assert sorted(home.told()[told:]) == sorted(
        [words.REFUSED_BOTH.format(why=why), "Back in the conversation “hello”. What was running in the other conversation was stopped."]
    )
    assert home.texts == ["hello", "hang"]


def test_a_new_conversation_begins_once_the_old_turn_has_ended(home: Home) -> None:
    """A22, P8: also where its tool does not end; never two agents at work in one chat."""
    life = home.start()
    old = life.under_way("call:stubborn").session_id
    life.say("/new")
    life.say("hello")
    assert home.told()[-1] == "re: hello"
    assert life.outcomes(old) == ["cancelled"]


def test_an_empty_conversation_is_not_begun_anew(home: Home) -> None:
    """A22"""
    life = home.start()
    life.say("hello")
    fresh = life.say("/new")
    assert life.say("/new").session_id == fresh.session_id
    assert home.told()[1:] == [words.BEGUN["asked"], words.ALREADY_NEW]


def test_a_repeated_request_is_one_reset(home: Home) -> None:
    """A22"""
    life = home.start()
    page = life.open_page()
    life.post(page, "hello")
    life.rest(page)
    first = life.do(life.gateway.reset(page, by="owner", client_id="r1"))
    life.post(first.session_id, "more")
    life.rest(first.session_id)
    again = life.do(life.gateway.reset(page, by="owner", client_id="r1"))
    assert again == first == Moved(first.session_id, changed=True)
    assert len(life.do(life.store.conversations(life.session(page).session_key, limit=10))) == 2


def test_a_repeated_request_is_one_stop(home: Home) -> None:
    """A22"""
    life = home.start()
    page = life.open_page()
    life.post(page, "hang")
    life.pass_s(1)
    first = life.do(life.gateway.stop_turn(page, by="owner", client_id="s1"))
    life.rest(page)
    life.post(page, "hang")
    life.pass_s(1)
    again = life.do(life.gateway.stop_turn(page, by="owner", client_id="s1"))
    life.pass_s(5)
    assert (again.turn_id, again.ended) == (first.turn_id, True)
    assert life.session(page).state == "running"


def test_a_repeated_request_is_one_resume(home: Home) -> None:
    """A22"""
    life = home.start()
    page = life.open_page()
    life.post(page, "hello")
    life.rest(page)
    first = life.do(life.gateway.resume_session(page, by="owner", client_id="x"))
    fresh = life.do(life.gateway.reset(page, by="owner", client_id=None)).session_id
    second = life.do(life.gateway.resume_session(page, by="owner", client_id="y"))
    newest = life.do(life.gateway.reset(page, by="owner", client_id=None)).session_id
    again = life.do(life.gateway.resume_session(page, by="owner", client_id="y"))
    assert not first.changed and again == second == Moved(page, changed=True)
    assert fresh != newest and life.session(newest).current
