"""Starts that died one after the other: safe mode, how it is entered, what happens in it, how it is left; and the crash policy."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import words
from tests.gateway import gateways
from tests.gateway.gateways import Home, Life

TEN_MINUTES_S = 601.0


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def starts_that_died(home: Home, count: int) -> None:
    for _ in range(count):
        life = home.start()
        life.pass_s(1)
        life.die()


def three_that_died(home: Home, *chats: str, script: str = "hang / say:done") -> None:
    """The last of them with a turn under way in each of these chats."""
    starts_that_died(home, 2)
    life = home.start()
    for chat in chats:
        life.under_way(script, chat=chat, sender=chat)
    life.die()


def in_safe_mode(home: Home, *chats: str, script: str = "hang / say:done") -> Life:
    three_that_died(home, *chats, script=script)
    life = home.start()
    life.pass_s(5)
    assert life.gateway.safe_mode
    return life


# how a crash loop is braked


@pytest.mark.parametrize(("deaths", "wait_s"), [(2, 0), (3, 2), (4, 4), (9, 30)])
def test_after_crashes_resumes_wait_and_messages_do_not(home: Home, deaths: int, wait_s: int) -> None:
    """C26: each life completed a turn, so that this is no safe mode."""
    for number in range(deaths):
        life = home.start()
        life.say(f"hello {number}", chat="bob", sender="bob")
        if number == deaths - 1:
            life.under_way("say:half|hang / say:done")
        life.die()
    life = home.start()
    began = life.loop.time()
    life.say("at once", chat="bob", sender="bob")
    assert not life.gateway.safe_mode and life.loop.time() - began < 1.9
    life.until(lambda: home.replies() == ["done"])
    assert wait_s <= life.loop.time() - began < wait_s + 3
    assert [entry["wait_s"] for entry in home.logged("starts died one after the other: resumes wait")][-1:] == ([wait_s] if wait_s else [])


def test_what_needs_no_resume_is_decided_while_resumes_wait(home: Home) -> None:
    """C26, A21: a stop ends its turn at once."""
    for number in range(9):
        life = home.start()
        life.say(f"hello {number}", chat="bob", sender="bob")
        if number == 8:
            session = life.under_way("say:half|hang")
        life.die()
    life = home.start()
    life.pass_s(1)
    life.do(life.gateway.stop_turn(session.session_id, by="ann", client_id=None))
    life.until(lambda: life.outcomes() == ["cancelled"], within_s=5)


def test_deaths_of_an_earlier_hour_and_stops_do_not_slow_a_start_down(home: Home) -> None:
    """C26"""
    starts_that_died(home, 3)
    home.later(700)
    for _ in range(3):
        life = home.start(drain_timeout_s=60.0)
        life.under_way()
        stopping = life.loop.create_task(life.gateway.stop(reason="shutdown_timeout"))
        life.pass_s(1)
        assert not stopping.done()
        life.die()  # In the middle of a drain that was asked for: no crash (C27).
    home.start()
    assert not home.logged("starts died one after the other: resumes wait")


# how it is entered


def test_the_fourth_start_after_three_that_died_is_in_safe_mode(home: Home) -> None:
    """B14, P8"""
    for _ in range(3):
        life = home.start()
        life.pass_s(1)
        assert not life.gateway.safe_mode
        life.die()
    assert home.start().gateway.safe_mode
    assert [entry["starts_that_died"] for entry in home.logs if entry["event"].startswith("safe mode:")] == [3]


def test_a_start_that_completed_a_turn_did_not_die_in_vain(home: Home) -> None:
    """B14"""
    starts_that_died(home, 1)
    life = home.start()
    life.say("hello")
    life.die()
    starts_that_died(home, 2)
    assert not home.start().gateway.safe_mode


def test_a_turn_that_failed_proves_nothing(home: Home) -> None:
    """B14"""
    starts_that_died(home, 2)
    life = home.start()
    life.say("fail")
    life.die()
    assert home.start().gateway.safe_mode


def test_a_start_that_ended_on_purpose_breaks_the_row(home: Home) -> None:
    """B14"""
    starts_that_died(home, 2)
    home.start().stop()
    starts_that_died(home, 2)
    assert not home.start().gateway.safe_mode


def test_a_start_that_was_healthy_for_ten_minutes_breaks_the_row(home: Home) -> None:
    """B14"""
    starts_that_died(home, 2)
    life = home.start(chats=False)
    life.pass_s(TEN_MINUTES_S)
    life.die()
    assert not home.start().gateway.safe_mode


def test_a_start_that_was_healthy_for_nine_minutes_does_not(home: Home) -> None:
    """B14"""
    starts_that_died(home, 2)
    life = home.start(chats=False)
    life.pass_s(540)
    life.die()
    assert home.start().gateway.safe_mode


# what happens in it


def test_in_safe_mode_nothing_is_resumed_and_the_user_is_told_once(home: Home) -> None:
    """B14, R7"""
    life = in_safe_mode(home, "ann")
    life.decided("R7", "left")
    assert (len(home.heard), life.session().resume_pending) == (1, True)
    assert home.told() == [words.HELD_IN_SAFE_MODE]
    life.die()
    life = home.start()
    life.pass_s(5)
    assert life.gateway.safe_mode
    assert (len(home.heard), len(home.told())) == (1, 1)


def test_in_safe_mode_messages_are_answered_and_it_is_shown(home: Home) -> None:
    """B14"""
    life = in_safe_mode(home, "ann")
    life.say("hello", chat="bob")
    assert home.told("bob") == ["re: hello"]
    assert life.gateway.safe_mode
    life.say("/status", chat="bob")
    assert "safe mode" in home.told("bob")[-1]


def test_what_waits_in_the_inbox_is_answered_in_safe_mode(home: Home) -> None:
    """B14, P1"""
    starts_that_died(home, 3)
    home.write("hello")
    life = home.start()
    life.until(lambda: home.told() == ["re: hello"])
    assert life.gateway.safe_mode


def happens(life: Life, chat: str, text: str, cause_id: str) -> None:
    """Something other than a message that a turn may start from."""
    session_id, now = life.session(chat).session_id, life.clock.now()
    life.do(life.store.record_cause(session_id, cause_id=cause_id, what="process", content=text, dedup_key=cause_id, at=now))


def test_in_safe_mode_no_recorded_cause_starts_a_turn_and_messages_pass_it(home: Home) -> None:
    """B14, P6: recorded before the crashes or since, it waits for the end of safe mode."""
    life = home.start()
    life.say("hello")
    life.stop()
    starts_that_died(home, 2)
    life = home.start()
    life.do(life.gateway.pausing.pause("operator", 600))
    happens(life, "ann", "say:before", "c1")
    life.die()
    life = home.start()
    assert life.gateway.safe_mode
    life.do(life.gateway.pausing.unpause())
    happens(life, "ann", "say:since", "c2")
    life.write("say:a person")
    life.until(lambda: home.replies()[1:] == ["a person"])
    life.pass_s(30)
    assert (home.replies()[1:], life.session().queued) == (["a person"], 2)
    life.resume_all()
    life.until(lambda: home.replies()[2:] == ["before", "since"])


def test_in_safe_mode_a_cause_does_not_set_a_turn_aside_that_was_left(home: Home) -> None:
    """B14, R7: only a person continues from it."""
    life = in_safe_mode(home, "ann")
    happens(life, "ann", "say:not now", "c1")
    life.pass_s(5)
    assert (len(home.heard), life.session().left) == (1, True)
    life.say("go on")
    assert home.replies() == ["re: go on", "not now"]


# how it is left


def test_a_completed_turn_of_a_session_that_was_pending_ends_it(home: Home) -> None:
    """B14, A23"""
    life = in_safe_mode(home, "ann", "bob")
    life.say("go on")
    assert home.heard[2].note == words.note_with_message("crash")
    assert not life.gateway.safe_mode
    life.until(lambda: home.told("bob")[-1] == "done")
    life.decided("R9", "resumed", "bob")
    assert home.told() == [words.HELD_IN_SAFE_MODE, "re: go on"]


def test_a_resume_that_a_human_asked_for_ends_it_once_it_completed(home: Home) -> None:
    """B14"""
    life = in_safe_mode(home, "ann", script="hang / sleep:5|say:done")
    life.write("/resume")
    life.pass_s(1)
    assert life.gateway.safe_mode
    life.rest()
    assert not life.gateway.safe_mode
    assert home.told()[-1] == "done"


def test_who_resumes_a_second_conversation_is_told_that_it_waits_for_the_first(home: Home) -> None:
    """B14, B13"""
    life = in_safe_mode(home, "ann", "bob", script="hang / sleep:300|say:done")
    life.write("/resume", chat="ann", sender="ann")
    life.write("/resume", chat="bob", sender="bob")
    life.write("/status", chat="bob", sender="bob")
    life.until(lambda: len(home.told("bob")) == 3)
    [resumed] = [told for told in home.told("ann") if told.startswith("Back in the conversation")]
    assert resumed.endswith("The interrupted work continues.")
    waiting, status = home.told("bob")[-2:]
    assert waiting.endswith(f"The interrupted work waits: {words.ONE_AT_A_TIME}")
    assert f"Its work waits: {words.ONE_AT_A_TIME}" in status
    life.until(lambda: home.told("bob")[-1] == "done", within_s=1000)


def test_a_turn_that_failed_does_not_end_it(home: Home) -> None:
    """B14"""
    life = in_safe_mode(home, "ann")
    life.say("fail")
    assert life.gateway.safe_mode


def test_a_turn_that_was_stopped_before_its_answer_came_does_not_end_it(home: Home) -> None:
    """B14, A21: its end on record is cancelled, whatever its agent believes."""
    life = in_safe_mode(home, "ann")
    session = life.write("sleep:0.4|say:too late")
    life.until(lambda: home.texts[-1] == "sleep:0.4|say:too late")
    life.do(life.store.request_stop(session.session_id, by="operator", dedup_key=None, at=life.clock.now()))
    life.until(lambda: life.turn().outcome is not None, within_s=5)
    life.pass_s(2)
    assert (life.turn().outcome, life.gateway.safe_mode) == ("cancelled", True)


def test_ten_healthy_minutes_end_it(home: Home) -> None:
    """B14"""
    life = in_safe_mode(home, "ann")
    life.pass_s(540)
    assert life.gateway.safe_mode and len(home.heard) == 1
    life.pass_s(60)
    assert not life.gateway.safe_mode
    life.rest()
    life.decided("R9", "resumed")
    assert home.told()[-1] == "done"
    life.die()
    assert not home.start().gateway.safe_mode


@pytest.mark.parametrize("script", ("hang / sleep:3|say:done", "hang / say:do|sleep:3|call:deed|sleep:3|say:ne"), ids=("silent", "speaks"))
def test_an_operators_word_ends_it_and_what_is_pending_is_resumed_one_at_a_time(home: Home, script: str) -> None:
    """B14, B13, P8: also where the agents speak at once."""
    chats = ("ann", "bob", "carl", "dora")
    life = in_safe_mode(home, *chats, script=script)
    life.resume_all()
    assert not life.gateway.safe_mode
    at_once = []
    while len(home.heard) < 8:
        life.pass_s(0.25)
        at_once.append(life.gateway.runner.running)
    assert max(at_once) == 1
    assert [request.session_key.rpartition(":")[2] for request in home.heard[4:]] == list(chats)
    life.until(lambda: all(home.told(chat)[-1] == "done" for chat in chats))


def test_work_that_is_about_to_be_left_when_it_ends_is_decided_again(tmp_path: Path) -> None:
    """B14: whatever the moment at which the operator says so, from the start to the record that the turn is left."""
    moment, left = 0, False
    while not left:
        folder = tmp_path / str(moment)
        folder.mkdir()
        with gateways.home(folder) as home:
            three_that_died(home, "ann")
            life = home.start()
            assert life.gateway.safe_mode
            life.pass_s(0.0004 * moment)
            left = home.on_disk(life.session().session_id).left
            life.resume_all()
            life.until(lambda home=home: home.replies() == ["done"])  # type: ignore[misc]
        moment += 1
    assert moment > 3


@pytest.mark.parametrize("way", ("ten healthy minutes", "a turn that completed"))
def test_however_it_ended_what_is_pending_is_resumed_one_at_a_time(home: Home, way: str) -> None:
    """B14, B13"""
    life = in_safe_mode(home, "ann", "bob", "carl", "dora", script="hang / say:do|sleep:3|say:ne")
    if way == "ten healthy minutes":
        life.pass_s(600)
    else:
        life.write("say:hi", chat="ann", sender="ann")
    at_once = []
    waiting = ["bob", "carl", "dora"]
    while any("done" not in home.told(chat) for chat in waiting):
        life.pass_s(0.25)
        at_once.append(life.gateway.runner.running)
    assert max(at_once) == 1 and not life.gateway.safe_mode


def test_a_turn_resumed_after_safe_mode_keeps_its_place_for_ten_minutes_and_no_longer(home: Home) -> None:
    """B13"""
    life = in_safe_mode(home, "ann", "bob", script="hang / say:more|hang")
    life.resume_all()
    life.pass_s(590)
    assert len(home.heard) == 3
    life.pass_s(15)
    assert len(home.heard) == 4 and life.gateway.runner.running == 2


def test_what_became_stale_in_safe_mode_is_decided_anew_when_it_ends(home: Home) -> None:
    """B14, R6"""
    three_that_died(home, "ann")
    life = home.start(resume_window_s=60)
    life.pass_s(5)
    life.decided("R7", "left")
    life.pass_s(60)
    life.resume_all()
    life.rest()
    life.until(lambda: life.session().rule == "R6")
    life.decided("R6", "set aside")
    assert len(home.heard) == 1


def test_an_operators_word_outside_safe_mode_changes_nothing(home: Home) -> None:
    """B14"""
    home.start().cut("hang / say:done")
    life = home.start(auto_resume=False)
    life.rest()
    life.resume_all()
    life.pass_s(5)
    assert (len(home.heard), life.session().rule) == (1, "R7")


# the crash policy


def four_chats(home: Home) -> None:
    """One that rests for long, one whose turn was cut before and left pending, one that has just been answered, one that runs."""
    life = home.start()
    life.say("hello", chat="resting")
    life.pass_s(200)
    life.cut("hang / say:done", chat="pending")
    life = home.start(auto_resume=False)
    life.rest("pending")
    life.say("hello", chat="answered")
    life.cut("hang / say:done", chat="running")


def test_the_crash_policy_suspend_suspends_what_was_active_and_leaves_the_rest(home: Home) -> None:
    """A16, R1"""
    four_chats(home)
    life = home.start(auto_resume=False, crash_policy="suspend")
    life.pass_s(5)
    states = {chat: life.session(chat) for chat in ("pending", "resting", "answered", "running")}
    assert {chat for chat, session in states.items() if session.suspended} == {"answered", "running"}
    assert {chat for chat, session in states.items() if session.resume_pending} == {"pending"}
    assert [entry["count"] for entry in home.logs if entry["event"] == "sessions suspended after a crash"] == [2]
    life.decided("R1", "left", "running")
    assert life.session("running").left
    fresh = life.say("again", chat="running")
    assert (fresh.auto_reset_reason, fresh.session_id) == ("suspended", life.session("running").session_id)
    assert home.told("running") == [words.BEGUN["suspended"], "re: again"]


def test_the_window_of_the_crash_policy_can_be_chosen(home: Home) -> None:
    """A16"""
    four_chats(home)
    life = home.start(auto_resume=False, crash_policy="suspend", crash_window_s=400)
    assert life.session("resting").suspended


def test_the_crash_policy_resume_touches_only_what_was_running(home: Home) -> None:
    """A16"""
    four_chats(home)
    life = home.start()
    life.until(lambda: home.told("running"))
    assert not [chat for chat in ("pending", "resting", "answered", "running") if life.session(chat).suspended]
    assert home.told("running") == ["done"]
    assert life.cuts("running")[0].reason == "crash"
    assert life.cuts("resting") == life.cuts("answered") == []


def test_the_crash_policy_says_nothing_after_an_end_on_purpose(home: Home) -> None:
    """A16"""
    life = home.start()
    life.say("hello", chat="bob")
    life.under_way("hang / say:done")
    life.stop()
    life = home.start(crash_policy="suspend")
    life.until(lambda: home.replies() == ["done"])
    assert not life.session().suspended and not life.session("bob").suspended


def test_a_message_that_waited_in_a_session_suspended_by_a_crash_is_refused_aloud(home: Home) -> None:
    """A16, A20"""
    life = home.start()
    life.under_way("hang")
    life.write("second")
    life.die()
    life = home.start(crash_policy="suspend")
    life.pass_s(5)
    assert home.told() == [words.REFUSED_SECOND]
    assert home.texts == ["hang"]
