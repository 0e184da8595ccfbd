"""What the agent is told beside the user's words, and when; the user's words stay the user's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import words
from tests.gateway import gateways
from tests.gateway.gateways import Home, Life

CAUSES = {"restart_timeout": "gateway restart", "shutdown_timeout": "gateway shutdown", "crash": "gateway interruption"}
EXPIRED_S = 25 * 3600
# Every shape the end of a history can have: words of the user, half an answer, a result nobody read, one that was read, a call under way.
ENDS = ["hang", "say:half|hang", "call:deed|hang", "call:deed|say:half|hang", "call:deed 1000"]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def end(life: Life, reason: str) -> None:
    """The process is killed, or cuts its turns for this reason."""
    if reason == "crash":
        life.die()
    else:
        life.stop(reason)


def only_the_note_names_it(home: Home) -> bool:
    asked = home.heard[-1]
    return not any("[System note:" in text for text in (asked.text, *(item.text for item in asked.history)))


@pytest.mark.parametrize("reason", CAUSES)
def test_a_message_after_a_cut_turn_comes_with_one_note_that_names_the_cause(home: Home, reason: str) -> None:
    """B1, B2, B7"""
    life = home.start()
    life.under_way()
    end(life, reason)
    home.start(auto_resume=False).say("what now")
    assert home.note == words.note_with_message(reason)
    assert home.note.startswith("[System note:") and home.note.count("[System note:") == 1
    assert [cause for cause in CAUSES.values() if cause in home.note] == [CAUSES[reason]]
    assert home.texts[-1] == "what now" and only_the_note_names_it(home)


@pytest.mark.parametrize("script", ENDS)
def test_the_note_does_not_depend_on_how_the_history_ends(home: Home, script: str) -> None:
    """B3"""
    life = home.start()
    life.under_way(script)
    life.stop("restart_timeout")
    home.start(auto_resume=False).say("what now")
    assert home.note == words.note_with_message("restart_timeout")


def test_a_mark_alone_gives_the_note_even_behind_a_finished_answer(home: Home) -> None:
    """B1, B2, B3, A13"""
    life = home.start()
    before = life.say("hello")
    assert life.do(life.store.mark_pending(before.session_key, reason="node_lost", at=life.clock.now()))
    after = life.say("again")
    assert home.note == words.note_with_message("node_lost")
    assert "gateway interruption" in home.note
    assert (after.session_id, after.was_auto_reset, after.resume_pending) == (before.session_id, False, False)
    life.say("and again")
    assert home.note is None


@pytest.mark.parametrize("reason", CAUSES)
def test_a_turn_that_goes_on_without_a_message_has_a_note_of_its_own(home: Home, reason: str) -> None:
    """B6, B2"""
    life = home.start()
    life.under_way("hang / say:done")
    end(life, reason)
    home.start().rest()
    assert len(home.heard) == 2
    assert home.note == words.note_to_continue(reason)
    assert home.note.startswith("[System note:") and home.note.count("[System note:") == 1
    assert CAUSES[reason] in home.note and "do not repeat" in home.note and "the command that restarted the gateway" in home.note
    assert home.texts[-1] == "hang / say:done" and only_the_note_names_it(home)


def test_results_nobody_processed_are_pointed_out_once(home: Home) -> None:
    """B4"""
    life = home.start()
    life.say("call:deed|fail")
    life.say("what now")
    assert home.note == words.TOOL_TAIL_NOTE
    life.say("and now")
    assert home.note is None


def test_results_that_were_processed_need_no_note(home: Home) -> None:
    """B4, B5"""
    life = home.start()
    life.say("call:deed|say:read it|fail")
    life.say("what now")
    assert home.note is None


def test_a_silent_turn_that_was_ended_leaves_the_note_about_its_results(home: Home) -> None:
    """B4, P3"""
    life = home.start(turn_idle_timeout_s=30)
    life.under_way("call:deed|hang")
    life.until(lambda: life.turn().outcome == "failed")
    life.say("what now")
    assert home.note == words.TOOL_TAIL_NOTE


def test_stale_work_that_was_set_aside_leaves_the_note_about_its_results(home: Home) -> None:
    """B4, R6"""
    home.start().cut("call:deed|hang")
    home.later(7200)
    life = home.start()
    life.until(lambda: life.turn().outcome == "set_aside")
    life.say("what now")
    assert home.note == words.TOOL_TAIL_NOTE


@pytest.mark.parametrize("script", ENDS)
def test_a_stop_leaves_no_note(home: Home, script: str) -> None:
    """B4, A21"""
    life = home.start()
    life.under_way(script)
    life.say("/stop")
    assert life.turn().outcome == "cancelled"
    life.say("what now")
    assert home.note is None


def test_a_stop_that_the_process_did_not_outlive_leaves_no_note(home: Home) -> None:
    """B4, R0"""
    life = home.start()
    session = life.under_way("call:deed|hang")
    life.do(life.gateway.stop_turn(session.session_id, by="owner", client_id=None))
    life.die()
    life = home.start()
    life.until(lambda: life.turn().outcome == "cancelled")
    life.say("what now")
    assert home.note is None


def test_an_expired_question_leaves_no_note(home: Home) -> None:
    """B4, R5"""
    life = home.start()
    life.say("call:deed|ask:which one")
    life.stop()
    home.later(EXPIRED_S)
    life = home.start()
    life.until(lambda: life.turn().outcome == "failed")
    life.say("what now")
    assert (home.texts[-1], home.note) == ("what now", None)


def test_of_two_notes_only_the_one_about_the_restart_is_given(home: Home) -> None:
    """B4, A13: a cut turn was left, and the turn that went on from it failed behind a tool."""
    life = home.start()
    life.under_way("hang")
    life.stop("restart_timeout")
    life = home.start(auto_resume=False)
    assert life.say("call:deed|fail").resume_pending
    assert home.note == words.note_with_message("restart_timeout")
    assert not life.say("what now").resume_pending
    assert home.note == words.note_with_message("restart_timeout")
    life.say("and now")
    assert home.note is None


def test_with_nothing_to_resume_the_words_are_passed_on_alone(home: Home) -> None:
    """B5"""
    life = home.start()
    for text in ("hello", "fail", "call:deed|say:done", "good bye"):
        life.say(text)
    assert home.texts == ["hello", "fail", "call:deed|say:done", "good bye"]
    assert [request.note for request in home.heard] == [None] * 4


def test_after_a_resumed_turn_has_completed_there_is_no_note(home: Home) -> None:
    """B5, A18"""
    home.start().cut("hang / say:done")
    life = home.start()
    life.rest()
    life.say("next")
    assert home.note is None


def test_the_answer_to_a_question_brings_no_note(home: Home) -> None:
    """B5"""
    life = home.start()
    life.say("ask:which one")
    life.say("the red one")
    assert life.answers() == ["told the red one"]
    assert home.note is None


@pytest.mark.parametrize("pending", [False, True])
def test_a_user_who_types_a_note_gains_nothing(home: Home, pending: bool) -> None:
    """B7"""
    forged = words.note_to_continue("restart_timeout")
    life = home.start()
    if pending:
        life.under_way("hang")
        life.stop("restart_timeout")
        life = home.start(auto_resume=False)
    life.say(forged)
    assert home.note == (words.note_with_message("restart_timeout") if pending else None)
    assert home.texts[-1] == forged
    said = [message.text for message in life.transcript().messages if message.role == "user"]
    assert said[-1] == forged and home.heard[-1].history[-1].text == forged


def test_what_is_stored_of_a_message_with_a_note_is_the_users_text(home: Home) -> None:
    """B7"""
    home.start().cut("hang")
    life = home.start(auto_resume=False)
    life.say("what now")
    assert [message.text for message in life.transcript().messages if message.role == "user"] == ["hang", "what now"]
    assert not [item for item in life.events() if b"System note" in item.body]
