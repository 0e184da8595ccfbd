"""What becomes of a turn that was cut, rule by rule, through the whole gateway over several lives of its process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core.effects import ToolOutcome
from holdfast.core.history import Result, User
from holdfast.core.turns import TurnState
from tests import words
from tests.gateway import gateways
from tests.gateway.gateways import ANN, Home, Life

WINDOW_S = 3600
DAY_S = 24 * 3600


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def nothing_more(home: Home) -> None:
    """Two more starts change nothing: no turn, no word, no record."""
    asked, told = len(home.heard), len(home.server.sent)
    for _ in range(2):
        life = home.start()
        before = life.session().seq
        life.pass_s(5)
        assert (len(home.heard), len(home.server.sent), life.session().seq) == (asked, told, before)
        life.stop()


# R0


def test_a_turn_whose_stop_is_on_record_is_cancelled_and_never_resumed(home: Home) -> None:
    """R0, A21"""
    life = home.start()
    session = life.under_way("call:deed 1000")
    life.do(life.gateway.stop_turn(session.session_id, by="owner", client_id=None))
    life.die()
    life = home.start()
    session = life.rest()
    life.decided("R0", "cancelled")
    assert life.turn().outcome == "cancelled" and not session.resume_pending
    assert [call.outcome for message in life.transcript().messages for call in message.tool_calls] == [ToolOutcome.UNKNOWN]
    assert len(home.heard) == 1
    life.stop()
    nothing_more(home)


# R1


def test_a_suspended_session_with_a_cut_turn_is_left_until_it_is_resumed(home: Home) -> None:
    """R1, A15"""
    life = home.start()
    session = life.under_way("hang / say:done")
    life.do(life.gateway.suspend(session.session_id))
    session = life.rest()
    assert (session.suspended, session.left, session.resume_pending) == (True, True, False)
    life.decided("R1", "left")
    life.stop()
    nothing_more(home)
    assert (len(home.heard), home.told()) == (1, [])
    life = home.start()
    assert life.do(life.gateway.resume_session(session.session_id, by="owner", client_id=None)).continues
    life.rest()
    life.decided("R9", "resumed")
    assert (home.told(), life.session().suspended) == (["done"], False)
    assert home.note == words.note_to_continue("suspended")


def test_a_process_that_died_with_a_suspended_turn_leaves_it_to_the_next(home: Home) -> None:
    """R1"""
    life = home.start()
    session = life.under_way("hang / say:done")
    life.do(life.gateway.suspend(session.session_id))
    life.die()
    life = home.start()
    life.rest()
    life.decided("R1", "left")
    assert len(home.heard) == 1


# R2


def cut_again(home: Home, times: int, script: str = "hang") -> None:
    """Each life completes another turn, so that it is the session and not the gateway that is in trouble."""
    for number in range(times):
        life = home.start()
        life.say("hello", chat="bob")
        if number == 0:
            life.under_way(script)
        life.pass_s(2)
        assert max(request.attempt for request in home.heard) == number + 1
        life.die()


def test_three_deaths_in_a_row_suspend_the_session_and_its_user_is_told_once(home: Home) -> None:
    """R2, A17, P8"""
    cut_again(home, 3)
    life = home.start()
    session = life.rest()
    life.decided("R2", "set aside")
    assert (session.suspended, session.resume_pending, session.interrupted_restarts) == (True, False, 3)
    assert life.turn().outcome == "set_aside"
    assert home.told() == [words.STUCK]
    assert home.sent()[0].anchor == next(update.anchor for update in home.server.updates if update.text == "hang")
    assert [entry["session"] for entry in home.logs if entry["event"] == "session suspended"] == [session.session_id]
    life.stop()
    nothing_more(home)
    life = home.start()
    fresh = life.say("again")
    assert (fresh.was_auto_reset, fresh.auto_reset_reason, home.note) == (True, "suspended", None)


@pytest.mark.parametrize("by", ["/resume", "/resume in the new conversation", "the page"])
def test_a_suspended_conversation_continues_in_one_step(home: Home, by: str) -> None:
    """R2, A14, B1, B11: its last request is put again, to an agent that is told of it, and answered where it was asked."""
    script = "say:half|sleep:30|say:, done"
    cut_again(home, 3, script)
    life = home.start()
    stuck = life.rest().session_id
    if by == "/resume in the new conversation":
        assert life.say("hello").session_id != stuck
    if by == "the page":
        moved = life.do(life.gateway.resume_session(stuck, by="owner", client_id="c1"))
        assert moved == life.do(life.gateway.resume_session(stuck, by="owner", client_id="c1"))
        assert moved.changed and moved.continues
    else:
        life.write("/resume")
    session = life.rest()
    assert (session.session_id, session.suspended, session.resume_pending, session.interrupted_restarts) == (stuck, False, False, 0)
    assert home.note == words.note_with_message("crash") and home.texts[-1] == script
    assert life.outcomes() == ["set_aside", "completed"]
    asked = next(update.anchor for update in home.server.updates if update.text == script)
    assert (home.sent()[-1].text, home.sent()[-1].anchor) == ("half, done", asked)
    if by != "the page":
        assert "Back in the conversation “say:half|sleep:30|say:, done”. The interrupted work continues." in home.told()
    life.say("/resume")
    assert home.texts.count(script) == 4, "once per step that asked for it"


def test_a_conversation_that_takes_the_place_of_a_suspended_one_has_a_title_of_its_own(home: Home) -> None:
    """A14"""
    life = home.start()
    titles = [life.say("tidy up").title]
    for _ in range(2):
        life.do(life.gateway.suspend(life.session().session_id))
        titles.append(life.say("go on").title)
    assert titles == ["tidy up", "tidy up (2)", "tidy up (3)"]


def test_what_waited_behind_a_stuck_turn_is_refused_aloud(home: Home) -> None:
    """R2, A20"""
    cut_again(home, 2)
    life = home.start()
    life.say("hello", chat="bob")
    life.write("second")
    life.die()
    life = home.start()
    life.rest()
    assert home.told() == [words.STUCK, words.REFUSED_SECOND]
    assert "second" not in home.texts


def test_a_process_that_dies_before_it_has_decided_does_not_count_the_cut_again(home: Home) -> None:
    """A17"""
    life = home.start()
    life.say("hello", chat="bob")
    life.cut("hang / say:done")
    for _ in range(2):
        life = home.start()
        while life.session().turn_state is TurnState.RUNNING:
            life.pass_s(0.0001)
        assert (life.session().turn_state, life.session().interrupted_restarts, len(home.heard)) == (TurnState.INTERRUPTED, 1, 2)
        life.die()
    life = home.start()
    life.rest()
    life.decided("R9", "resumed")
    assert (home.told(), len(life.cuts())) == (["done"], 1)


def test_a_session_that_was_stuck_goes_on_from_zero_when_it_is_resumed(home: Home) -> None:
    """A17"""
    cut_again(home, 3)
    life = home.start()
    assert life.rest().suspended
    life.write("/resume")
    session = life.session()
    assert (session.suspended, session.interrupted_restarts) == (False, 0)


def test_what_it_recorded_before_it_died_does_not_save_a_session(home: Home) -> None:
    """A17, P8: a result before each kill."""
    cut_again(home, 3, "call:deed|hang / say:more|call:deed|hang / say:even more|call:deed|hang / hang")
    life = home.start()
    assert life.rest().suspended
    life.decided("R2", "set aside")
    assert len(home.heard) == 6 and not life.gateway.safe_mode


def test_calls_that_were_closed_for_it_are_no_progress(home: Home) -> None:
    """A17"""
    cut_again(home, 3, "call:deed 1000 / hang")
    life = home.start()
    assert life.rest().suspended
    life.decided("R2", "set aside")


def test_stops_of_the_gateway_count_where_nothing_was_shown(home: Home) -> None:
    """A17, C1"""
    life = home.start()
    life.under_way("hang")
    for reason in ("shutdown_timeout", "restart_timeout", "shutdown_timeout"):
        life.stop(reason)
        life = home.start()
        life.pass_s(1)
    life.decided("R2", "set aside")
    assert life.session().interrupted_restarts == 3


def test_a_completed_turn_takes_flag_and_count_away(home: Home) -> None:
    """A17, A18"""
    home.start().cut("hang / say:done")
    life = home.start()
    session = life.rest()
    assert (session.resume_pending, session.resume_reason, session.last_resume_marked_at, session.interrupted_restarts) == (
        False,
        None,
        None,
        0,
    )


# R3


def test_a_mark_with_nothing_cut_is_cleared_and_no_turn_starts(home: Home) -> None:
    """R3"""
    life = home.start()
    session = life.say("hello")
    life.do(life.store.mark_pending(session.session_key, at=life.clock.now()))
    life.die()
    life = home.start()
    life.until(lambda: not life.session().resume_pending)
    session = life.session()
    assert (session.resume_reason, session.last_resume_marked_at) == (None, None)
    assert home.rules(session.session_id) == ["R3"]
    assert life.gateway.tally.rules == {"R3": 1}
    assert (len(home.heard), home.told()) == (1, ["re: hello"])
    life.stop()
    nothing_more(home)


def test_an_answer_that_was_owed_is_delivered_and_no_new_turn_starts(home: Home) -> None:
    """R3, P4, E5"""
    home.server.moods = lambda: "refused"
    life = home.start()
    life.write("hello")
    life.until(lambda: life.session().state == "idle")
    life.do(life.store.mark_pending(life.session().session_key, at=life.clock.now()))
    life.die()
    assert home.told() == []
    home.server.moods = lambda: ""
    life = home.start()
    assert not life.rest().resume_pending
    assert home.rules(life.session().session_id) == ["R3"]
    assert (home.told(), len(home.heard)) == (["re: hello"], 1)
    life.stop()
    nothing_more(home)


@pytest.mark.parametrize("mood", ("refused", "lost", "cut"))
def test_a_turn_that_ended_before_its_answer_was_delivered_owes_the_delivery_and_no_turn(home: Home, mood: str) -> None:
    """R3, P4: it was interrupted, resumed and completed; its process died with the answer on record and on its way."""
    home.start().cut("say:half|hang / say:done")
    home.server.moods = lambda: mood
    life = home.start()
    life.until(lambda: life.session().state == "idle")
    life.die()
    home.server.moods = lambda: ""
    life = home.start()
    life.rest()
    assert (home.told(), len(home.heard), life.outcomes()) == (["done"], 2, ["completed"])
    life.stop()
    nothing_more(home)
    assert home.told() == ["done"]


# R4


@pytest.mark.parametrize(
    ("second", "error"), [("fail", "Failure: as it was told"), ("nothing", "Resumed after an interruption, but produced no answer.")]
)
def test_a_recovery_that_comes_to_nothing_is_shown_once_and_not_repeated(home: Home, second: str, error: str) -> None:
    """R4, B9"""
    home.start().cut(f"hang / {second}")
    life = home.start()
    session = life.rest()
    assert (session.rule, session.resume_pending) == ("R4", False)
    turn = life.turn()
    assert (turn.outcome, turn.rule, turn.error, turn.attempt) == ("failed", "R4", error, 2)
    assert life.gateway.tally.rules == {"R9": 1, "R4": 1}
    assert home.told() == [f"This did not work: {error}"]
    life.stop()
    nothing_more(home)
    life = home.start()
    life.say("next")
    assert home.note is None


def test_a_recovery_in_which_nothing_happens_for_too_long_is_not_repeated(home: Home) -> None:
    """R4, P3"""
    home.start().cut("hang")
    life = home.start(turn_idle_timeout_s=10)
    life.pass_s(15)
    turn = life.turn()
    assert (turn.outcome, turn.rule, life.session().resume_pending) == ("failed", "R4", False)
    assert [sent.anchor for sent in home.sent()] == [home.server.updates[0].anchor]
    life.stop()
    nothing_more(home)


def test_an_attempt_that_was_cut_again_was_not_tried(home: Home) -> None:
    """R4, R2"""
    home.start().cut("hang / hang / say:done")
    for attempt in (2, 3):
        life = home.start()
        life.pass_s(1)
        life.decided("R9", "resumed")
        assert life.turn().attempt == attempt
        life.die()
    assert home.told() == ["done"]


# R5


def test_a_waiting_turn_stays_waiting_over_two_starts_and_is_answered_later(home: Home) -> None:
    """R5, C22"""
    life = home.start()
    assert life.say("ask:your name").state == "waiting"
    life.die()
    life = home.start()
    life.pass_s(5)
    life.decided("R5", None)
    life.die()
    life = home.start()
    life.pass_s(5)
    session = life.session()
    assert (session.state, session.resume_pending, session.rule) == ("waiting", False, "R5")
    assert home.rules(session.session_id) == ["R5"]
    life.die()
    life = home.start()
    life.say("Bob")
    assert (home.told(), len(life.transcript().turns)) == (["your name", "told Bob"], 1)


def test_a_question_that_expired_while_nobody_was_there_is_no_unfinished_work(home: Home) -> None:
    """R5"""
    life = home.start()
    life.say("ask:your name")
    life.die()
    home.later(DAY_S + 60)
    life = home.start()
    life.until(lambda: life.turn().outcome == "failed")
    life.rest()
    assert home.told() == ["your name", words.EXPIRED]
    assert (len(home.heard), life.session().resume_pending) == (1, False)
    life.stop()
    nothing_more(home)
    life = home.start()
    life.say("hello")
    assert (home.told()[-1], home.note) == ("re: hello", None)


# R6


def test_stale_work_is_set_aside_and_its_user_told_once_where_the_answer_would_have_gone(home: Home) -> None:
    """R6"""
    home.start().cut("call:deed 1000")
    home.later(2 * WINDOW_S)
    life = home.start()
    session = life.rest()
    life.decided("R6", "set aside")
    assert (life.turn().outcome, session.resume_pending, session.suspended) == ("set_aside", False, False)
    told = (
        "Your last request was interrupted by a crash 2 h ago, too long ago to continue without asking. "
        "Nothing is lost: send /resume to continue it, or a new message to continue from there."
    )
    assert [(sent.text, sent.anchor) for sent in home.sent()] == [(told, home.server.updates[0].anchor)]
    assert len(home.heard) == 1
    life.stop()
    nothing_more(home)
    life = home.start()
    life.say("go on")
    assert [item.text for item in home.heard[-1].history if isinstance(item, User)] == ["call:deed 1000", "go on"]


def test_stale_work_continues_in_one_step(home: Home) -> None:
    """R6: its last request is put again."""
    home.start().cut("sleep:30|say:done")
    home.later(2 * WINDOW_S)
    life = home.start()
    life.rest()
    life.say("/resume")
    assert (life.answers(), life.outcomes(), home.note) == (["done"], ["set_aside", "completed"], words.note_with_message("crash"))
    assert home.told()[-2:] == ["Back in the conversation “sleep:30|say:done”. The interrupted work continues.", "done"]


def test_with_a_window_of_0_nothing_is_called_too_old(home: Home) -> None:
    """R6: it says that continuing by itself is off, on the notice, on the row and wherever the decision is shown."""
    home.start().cut("hang")
    life = home.start(resume_window_s=0)
    session = life.rest()
    assert home.told() == [
        "Your last request was interrupted by a crash 1 s ago, and Holdfast is set to continue nothing by itself. "
        "Nothing is lost: send /resume to continue it, or a new message to continue from there."
    ]
    assert session.why == "interrupted by a crash 1 s earlier, and Holdfast is set to continue nothing by itself"
    assert life.cuts()[0].decision == f"set aside: rule R6, {session.why}"
    assert life.cuts()[0].text == "Interrupted by a crash before anything was written."


def test_a_turn_that_had_only_used_a_tool_is_not_said_to_have_done_nothing(home: Home) -> None:
    """F1"""
    home.start().cut("call:deed 1000")
    life = home.start(auto_resume=False)
    life.rest()
    assert [row.text for row in life.cuts()] == ["Interrupted by a crash. The work so far is kept."]
    assert life.cuts()[0].state == "recovered"


def test_a_tool_that_is_silent_for_longer_than_the_window_is_no_stale_work_while_its_process_lives(home: Home) -> None:
    """R6: the heartbeat is the sign of life."""
    life = home.start(chats=False, resume_window_s=300, turn_idle_timeout_s=10_000)
    page = life.open_page()
    life.post(page, "call:deed 5000 / say:done")
    life.pass_s(900)
    life.die()
    home.later(200)
    life = home.start(chats=False, resume_window_s=300)
    life.rest(page)
    life.decided("R9", "resumed", page)
    assert life.answers(page) == ["done"]


@pytest.mark.parametrize(("quiet_s", "rule"), [(WINDOW_S - 60, "R9"), (WINDOW_S + 60, "R6")])
def test_the_window_begins_at_the_last_sign_of_life(home: Home, quiet_s: float, rule: str) -> None:
    """R6"""
    home.start().cut("hang / say:done")
    home.later(quiet_s)
    life = home.start()
    assert life.rest().rule == rule


@pytest.mark.parametrize(("window_s", "quiet_s", "rule"), [(0, 0, "R6"), (-1, 30 * DAY_S, "R9")])
def test_a_window_of_nothing_never_resumes_and_a_negative_one_always(home: Home, window_s: float, quiet_s: float, rule: str) -> None:
    """R6"""
    home.start().cut("hang / say:done")
    home.later(quiet_s)
    life = home.start(resume_window_s=window_s)
    assert life.rest().rule == rule
    assert len(home.heard) == (2 if rule == "R9" else 1)


@pytest.mark.parametrize(("back_s", "rule"), [(240, "R9"), (600, "R6")])
def test_a_sign_of_life_from_the_future_is_not_fresh(home: Home, back_s: int, rule: str) -> None:
    """R6: the wall clock was set back while nobody ran."""
    home.start().cut("hang / say:done")
    life = home.start(jump_ms=-1000 * back_s)
    assert life.rest().rule == rule
    assert "-" not in (life.session().why or "")


def test_restarts_that_add_nothing_do_not_keep_work_fresh(home: Home) -> None:
    """R6"""
    home.start().cut("hang")
    home.later(WINDOW_S * 0.6)
    life = home.start()
    life.pass_s(2)
    life.die()
    home.later(WINDOW_S * 0.6)
    life = home.start()
    life.rest()
    life.decided("R6", "set aside")
    assert [request.attempt for request in home.heard] == [1, 2]


# R7


def held(home: Home, script: str = "hang / say:done") -> Life:
    """A turn was cut, and the process that follows resumes nothing by itself."""
    home.start().cut(script)
    life = home.start(auto_resume=False)
    life.rest()
    return life


def test_held_work_is_left_and_its_user_told_once_whatever_number_of_starts(home: Home) -> None:
    """R7"""
    life = held(home)
    life.decided("R7", "left")
    session = life.session()
    assert (session.state, session.resume_pending, session.left) == ("interrupted", True, True)
    for _ in range(3):
        life.stop()
        life = home.start(auto_resume=False)
        life.pass_s(5)
    assert [(sent.text, sent.anchor) for sent in home.sent()] == [(words.HELD, home.server.updates[0].anchor)]
    assert (len(home.heard), life.session().rule) == (1, "R7")


def test_a_message_goes_on_from_held_work_in_a_turn_of_its_own(home: Home) -> None:
    """R7, A23, B1"""
    life = held(home, "call:deed|call:deed 1000")
    life.say("go on")
    assert life.outcomes() == ["set_aside", "completed"]
    assert home.note == words.note_with_message("crash")
    calls = [item for item in home.heard[-1].history if isinstance(item, Result)]
    assert [call.outcome for call in calls] == [ToolOutcome.DONE, ToolOutcome.UNKNOWN]
    assert calls[0].text == "done"
    turn = life.transcript().turns[0]
    assert (turn.rule, life.cuts()[0].rule) == ("R7", "R7")
    session = life.session()
    assert (session.state, session.resume_pending, session.interrupted_restarts) == ("idle", False, 0)
    life.stop()
    nothing_more(home)


def test_the_old_turn_ends_in_the_transaction_that_starts_the_new_one(home: Home) -> None:
    """A23: whatever moment the process dies in, never both are open and never none is."""
    life = held(home)
    life.write("hang")
    life.until(lambda: home.texts[-1] == "hang")
    events = life.events()
    ended = next(place for place, item in enumerate(events) if item.kind == "turn.ended")
    assert [item.kind for item in events[ended : ended + 2]] == ["turn.ended", "turn.started"]
    assert events[ended].at == events[ended + 1].at and events[ended].seq + 1 == events[ended + 1].seq
    assert life.session().resume_pending


def test_resume_continues_held_work_as_it_was(home: Home) -> None:
    """R7, R9"""
    life = held(home)
    life.say("/resume")
    life.decided("R9", "resumed")
    assert (home.heard[-1].turn_id, home.heard[-1].attempt) == (home.heard[0].turn_id, 2)
    assert home.note == words.note_to_continue("crash")
    assert home.told()[-1] == "done"
    assert life.outcomes() == ["completed"]


def test_held_work_is_resumed_by_the_next_start_that_may(home: Home) -> None:
    """R7, R9"""
    held(home).stop()
    life = home.start()
    life.until(lambda: len(home.heard) == 2)
    life.rest()
    life.decided("R9", "resumed")
    assert home.told() == [words.HELD, "done"]


# R8


def test_work_whose_platform_is_not_configured_waits_for_it(home: Home) -> None:
    """R8"""
    session = home.start().cut("hang / say:done")
    life = home.start(chats=False)
    life.rest(session.session_id)
    life.decided("R8", "left", session.session_id)
    assert life.session(session.session_id).resume_pending
    life.stop()
    assert (len(home.heard), home.told()) == (1, [])
    life = home.start()
    life.until(lambda: len(home.heard) == 2)
    life.rest()
    life.decided("R9", "resumed")
    assert home.told() == ["done"]


def test_a_message_goes_on_from_work_whose_platform_is_not_configured(home: Home) -> None:
    """R8, A23: written on the page, and answered where the conversation lives once that can be reached again."""
    session = home.start().cut("hang / say:done").session_id
    life = home.start(chats=False)
    life.rest(session)
    life.post(session, "go on")
    life.rest(session)
    assert (life.outcomes(session), home.note) == (["set_aside", "completed"], words.note_with_message("crash"))
    life.stop()
    assert home.told() == []
    life = home.start()
    life.until(lambda: home.told() == ["re: go on"])
    assert len(home.heard) == 2


def test_work_that_is_left_for_another_reason_and_held_again_is_told_of_once(home: Home) -> None:
    """R7, R8"""
    held(home).stop()
    life = home.start(chats=False)
    life.until(lambda: life.session().rule == "R8")
    life.stop()
    life = home.start(auto_resume=False)
    life.until(lambda: life.session().rule == "R7")
    life.pass_s(5)
    assert (home.told(), len(home.heard)) == ([words.HELD], 1)


def test_work_of_a_user_who_is_no_longer_allowed_is_set_aside(home: Home) -> None:
    """R8"""
    home.start().cut("hang / say:done")
    home.server.banned.add(ANN)
    life = home.start()
    session = life.rest()
    life.decided("R8", "set aside")
    assert (life.turn().outcome, session.resume_pending) == ("set_aside", False)
    home.server.banned.clear()
    life.stop()
    nothing_more(home)
    assert (len(home.heard), home.told()) == (1, [])


# R9


def test_cut_work_is_resumed_and_its_answer_delivered_once(home: Home) -> None:
    """R9, P4"""
    home.start().cut("say:half|hang / say:the whole")
    home.later(30)
    life = home.start()
    life.rest()
    life.decided("R9", "resumed")
    assert (home.told(), life.answers(), life.outcomes()) == (["the whole"], ["the whole"], ["completed"])
    row = life.cuts()[0]
    assert (row.attempt, row.decision) == (2, "resumed: rule R9, interrupted by a crash 31 s earlier")
    life.stop()
    nothing_more(home)


# what holds for all of them


def test_a_message_between_death_and_recovery_is_answered_after_the_resumed_turn(home: Home) -> None:
    """B8, P2"""
    home.start().cut("hang / sleep:5|say:done")
    home.write("second")
    home.write("third")
    life = home.start()
    life.until(lambda: life.session().queued == 2)
    life.rest()
    assert home.told() == ["done", "re: second", "re: third"]
    assert [request.generation for request in home.heard] == [1, 1, 2, 3]
    moves = [item.kind for item in life.events() if item.kind in ("turn.started", "turn.resumed", "turn.ended")]
    assert moves == ["turn.started", "turn.resumed", "turn.ended", *["turn.started", "turn.ended"] * 2]


def test_a_message_already_in_the_inbox_at_the_death_waits_its_turn(home: Home) -> None:
    """B8, C4"""
    life = home.start()
    life.under_way("hang / say:done")
    life.write("second")
    life.die()
    life = home.start()
    life.rest()
    assert home.told() == ["done", "re: second"]


def test_finished_calls_are_not_run_again(home: Home) -> None:
    """B10, P5"""
    home.start().cut("call:deed|hang / call:deed|say:done")
    life = home.start()
    life.rest()
    assert (len(home.done), home.told()) == (1, ["done"])
    assert [(call.outcome, call.result) for call in home.heard[-1].calls] == [(ToolOutcome.DONE, "done")]


def test_an_unsafe_call_that_was_under_way_is_not_run_again(home: Home) -> None:
    """B10, P5"""
    home.start().cut("call:deed 1000 / call:deed 1000|say:done")
    life = home.start()
    life.rest()
    assert (home.done, home.told()) == ([], ["done"])
    assert [call.outcome for call in home.heard[-1].calls] == [ToolOutcome.UNKNOWN]


def test_the_resumed_answer_goes_where_the_first_would_have_gone(home: Home) -> None:
    """B11"""
    first = home.write("hang / say:done")
    life = home.start()
    life.until(lambda: home.heard)
    life.die()
    second = home.write("second")
    home.start().rest()
    home.lives[-1].until(lambda: len(home.sent()) == 2)
    assert [(sent.text, sent.anchor) for sent in home.sent()] == [("done", first.anchor), ("re: second", second.anchor)]


def test_a_stop_during_a_resumed_turn_ends_it_for_good(home: Home) -> None:
    """B12, A21"""
    home.start().cut("hang")
    life = home.start()
    life.until(lambda: len(home.heard) == 2)
    session = life.say("/stop")
    assert (life.turn().outcome, session.resume_pending, session.suspended) == ("cancelled", False, False)
    assert home.told() == [words.STOPPED]
    life.stop()
    nothing_more(home)


def many_cut(home: Home, count: int, script: str) -> list[str]:
    """So many chats with a cut turn, named in the order of their messages; their sessions are older the other way round."""
    names = [f"c{number:02}" for number in range(count)]
    life = home.start()
    for name in reversed(names):
        home.write("hello", chat=name, sender=name)
    life.until(lambda: len(home.server.sent) == count)
    for name in names:
        home.write(script, chat=name, sender=name)
    life.until(lambda: len(home.heard) == 2 * count)
    life.die()
    home.heard.clear()
    return names


def chat_of(key: str) -> str:
    return key.rpartition(":")[2]


def test_many_cut_sessions_are_resumed_a_few_at_a_time_the_oldest_message_first(home: Home) -> None:
    """B13"""
    names = many_cut(home, 30, "hang / sleep:5|say:done")
    life = home.start(resumes_at_once=2)
    at_once = 0
    while len(home.heard) < 30:
        life.pass_s(0.5)
        at_once = max(at_once, life.gateway.runner.running)
    assert at_once == 2
    assert [chat_of(request.session_key) for request in home.heard] == names
    life.pass_s(10)
    assert all(home.told(name) == ["re: hello", "done"] for name in names)


def test_long_turns_that_speak_do_not_hold_up_the_rest(home: Home) -> None:
    """B13: a place is kept until the first sign of life."""
    names = many_cut(home, 30, "hang / sleep:1|say:more|sleep:900|say:done")
    life = home.start(resumes_at_once=2)
    silent = []
    while len(home.heard) < 30:
        life.pass_s(0.25)
        heard = len(home.heard)  # First: looking takes time, in which more of them begin.
        spoken = sum(life.session(name).turn_state is TurnState.RUNNING and life.answers(name)[-1] == "more" for name in names)
        silent.append(heard - spoken)
    assert max(silent) <= 2 and life.gateway.runner.running == 30
    assert [chat_of(request.session_key) for request in home.heard] == names
    assert life.loop.time() < 60


def test_a_turn_that_has_nothing_to_show_gives_its_place_up_with_its_first_heartbeat(home: Home) -> None:
    """B13, R6: which is a sign of life."""
    many_cut(home, 6, "hang")
    life = home.start(resumes_at_once=2)
    life.pass_s(15)
    assert len(home.heard) == 2
    life.pass_s(10)
    assert len(home.heard) == 4
    life.pass_s(25)
    assert len(home.heard) == 6


def test_whoever_writes_comes_first_and_others_are_not_held_up(home: Home) -> None:
    """B13, B8"""
    names = many_cut(home, 30, "hang / sleep:5|say:done")
    life = home.start(resumes_at_once=2)
    life.pass_s(7)
    assert [chat_of(request.session_key) for request in home.heard] == names[:4]
    life.write("are you there", chat="c25", sender="c25")
    began = life.loop.time()
    life.say("hello", chat="new", sender="new")
    assert life.loop.time() - began < 2
    life.until(lambda: len(home.heard) >= 7)
    assert [chat_of(request.session_key) for request in home.heard][4:7] == ["new", "c25", "c04"]
    life.until(lambda: len(home.told("c25")) == 3)
    assert home.told("c25") == ["re: hello", "done", "re: are you there"]


def test_work_that_waits_for_its_place_is_not_cut_a_second_time_by_a_stop(home: Home) -> None:
    """B13, A17, C3"""
    names = many_cut(home, 3, "hang / sleep:5|say:done")
    life = home.start(resumes_at_once=1)
    life.pass_s(1)
    life.stop("restart_timeout")
    life = home.start()
    life.pass_s(20)
    assert [[cut.reason for cut in life.cuts(name)] for name in names] == [["crash", "restart_timeout"], ["crash"], ["crash"]]
    assert all(home.told(name)[-1] == "done" for name in names)
    assert sorted(request.note or "" for request in home.heard[1:]) == sorted(
        words.note_to_continue(reason) for reason in ("restart_timeout", "crash", "crash")
    )


def test_work_that_was_cut_in_two_conversations_of_a_chat_goes_on_in_the_current_one(home: Home) -> None:
    """R1, R9, B11"""
    old = home.start().cut("hang / say:first").session_id
    life = home.start(auto_resume=False)
    life.rest()
    life.do(life.gateway.suspend(old))
    life.pass_s(1)
    life.cut("hang / say:second")
    life = home.start()
    life.until(lambda: home.told()[-1] == "second")
    assert (life.session(old).rule, life.session().rule) == ("R1", "R9")
    life.write("/resume 1")
    life.until(lambda: home.told()[-1] == "first")
    assert life.session().session_id == old


def test_work_that_is_cut_while_it_waits_for_its_place_can_be_stopped(home: Home) -> None:
    """B13, R0"""
    names = many_cut(home, 4, "hang / sleep:5|say:done")
    life = home.start(resumes_at_once=1)
    life.pass_s(1)
    life.write("/stop", chat=names[-1], sender=names[-1])
    life.until(lambda: life.session(names[-1]).rule == "R0", within_s=2)
    assert life.outcomes(names[-1]) == ["completed", "cancelled"]
    life.pass_s(30)
    assert [chat_of(request.session_key) for request in home.heard] == names[:-1]
