"""A pause: no turn starts for a while, whatever is said is kept, and it ends by itself (C21)."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.errors import NotNow
from holdfast.core.lifecycle import GatewayState as G
from holdfast.core.turns import TurnState
from holdfast.ports.owners import Pause
from tests import words
from tests.gateway import gateways
from tests.gateway.gateways import Home, Life

BOB = "bob"
HOUR_S = 360.0
HOUR_MS = 3_60_000


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def pause(life: Life, for_s: float = HOUR_S, *, holder: str = "ada") -> Pause:
    return life.do(life.gateway.pausing.pause(holder, for_s))


def unpause(life: Life) -> None:
    life.do(life.gateway.pausing.unpause())


def state(life: Life) -> tuple[G, Pause | None]:
    return life.gateway.state, life.gateway.pausing.paused


def hold(life: Life) -> str:
    """A message that waits because of a pause; its session."""
    waiting = life.write("say:held", chat=BOB, sender=BOB)
    life.pass_s(5)
    assert "say:held" not in life.home.texts
    return waiting.session_id


def answered(life: Life) -> bool:
    return "held" in life.home.told(BOB)


def test_while_paused_messages_are_kept_and_after_it_they_are_answered_in_order(home: Home) -> None:
    """C21, P1"""
    life = home.start()
    pause(life)
    assert life.gateway.state is G.PAUSED
    for number in range(3):
        life.write(f"say:{number}")
    life.pass_s(60)
    assert home.heard == [] and life.session().queued == 3
    unpause(life)
    assert state(life) == (G.RUNNING, None)
    life.rest()
    assert home.told() == [words.KEPT, "0", "1", "2"]


def test_turns_that_run_go_on_and_their_replies_go_out(home: Home) -> None:
    """C21"""
    life = home.start()
    life.under_way("sleep:10|say:done")
    pause(life)
    life.until(lambda: home.told())
    assert home.told() == ["done"] and life.turn().attempt == 1 and life.gateway.state is G.PAUSED


def test_a_cut_turn_is_not_resumed_while_paused(home: Home) -> None:
    """C21"""
    life = home.start()
    life.under_way("hang / say:done")
    pause(life)
    life.die()
    life = home.start()
    life.pass_s(30)
    assert len(home.heard) == 1
    unpause(life)
    life.rest()
    life.decided("R9", "resumed")
    assert home.told() == ["done"]


def paused_after_a_crash(home: Home, script: str = "say:half|hang / say:done", **settings: Any) -> Life:
    """A turn ran, an operator paused the work, and the process died; the next one is paused."""
    life = home.start(**settings)
    life.under_way(script)
    pause(life)
    life.die()
    life = home.start(**settings)
    assert life.gateway.state is G.PAUSED
    return life


def test_a_turn_that_a_crash_interrupted_is_shown_as_interrupted_while_paused(home: Home) -> None:
    """A26"""
    life = paused_after_a_crash(home)
    life.until(lambda: life.session().state == "interrupted", within_s=5)
    session = life.session()
    assert (session.resume_pending, session.resume_reason, session.interrupted_restarts) == (True, "crash", 1)
    assert [cut.reason for cut in life.cuts()] == ["crash"]
    assert life.do(life.gateway.counts()).running == 0
    before = session.seq
    life.pass_s(60)
    assert (life.session().seq, len(home.heard)) == (before, 1)  # It is decided once, not every second.


def test_a_stop_ends_an_interrupted_turn_while_paused_and_it_stays_ended(home: Home) -> None:
    """A26, A21, R0"""
    life = paused_after_a_crash(home)
    life.write("/stop")
    life.until(lambda: life.turn().outcome == "cancelled", within_s=5)
    life.decided("R0", "cancelled")
    assert "Stopped." in home.told() and not life.session().resume_pending
    unpause(life)
    life.pass_s(10)
    assert len(home.heard) == 1


def test_a_stop_that_another_process_stored_is_carried_out_while_paused(home: Home) -> None:
    """A26, A21: `holdfast stop KEY` from another process."""
    life = paused_after_a_crash(home)
    life.until(lambda: life.session().state == "interrupted")
    life.do(life.store.request_stop(life.session().session_id, by="operator", dedup_key=None, at=life.clock.now()))
    life.until(lambda: life.turn().outcome == "cancelled", within_s=5)


def test_stale_work_is_set_aside_while_paused(home: Home) -> None:
    """A26, R6"""
    life = home.start()
    life.under_way("say:half|hang")
    pause(life, 24 * 3600.0)
    life.die()
    home.later(2 * 3600)
    life = home.start()
    life.until(lambda: life.turn().outcome == "set_aside", within_s=5)
    life.decided("R6", "set aside")
    assert life.gateway.state is G.PAUSED and len(home.told()) == 2


def test_a_stuck_session_is_suspended_while_paused_and_what_waited_is_refused(home: Home) -> None:
    """A26, R2, A20: in the same transaction."""
    life = home.start()
    for _ in range(3):
        life.say("hello", chat=BOB, sender=BOB)
        if not home.texts.count("hang"):
            life.under_way("hang")
        life.pass_s(5)
        if home.texts.count("hang") == 3:
            life.write("second")
            pause(life)
        life.die()
        life = home.start()
    life.until(lambda: life.session().suspended, within_s=5)
    life.pass_s(5)
    assert (life.gateway.state, life.session().rule, life.session().queued) == (G.PAUSED, "R2", 0)
    assert home.told()[-1].startswith("This message was not answered, because the conversation was suspended first.")


def test_a_suspended_session_is_left_while_paused(home: Home) -> None:
    """A26, R1"""
    life = paused_after_a_crash(home)
    life.until(lambda: life.session().state == "interrupted")
    life.do(life.gateway.suspend(life.session().session_id))
    life.until(lambda: life.session().left, within_s=5)
    life.decided("R1", "left")


def test_what_a_pause_holds_back_is_decided_by_the_table_after_it(home: Home) -> None:
    """A26: neither left nor resumed before."""
    life = paused_after_a_crash(home, auto_resume=False)
    life.pass_s(30)
    assert (life.session().state, life.session().left, home.told()) == ("interrupted", False, [])
    unpause(life)
    life.until(lambda: life.session().left)
    life.decided("R7", "left")


def test_a_message_to_a_turn_that_was_left_waits_while_paused(home: Home) -> None:
    """A26, A23"""
    home.start().cut("say:half|hang")
    life = home.start(auto_resume=False)
    life.rest()
    pause(life)
    life.write("go on")
    life.pass_s(10)
    assert (life.session().queued, life.turn().outcome) == (1, None)
    unpause(life)
    life.rest()
    assert life.outcomes() == ["set_aside", "completed"]


def test_a_pause_that_begins_while_turns_wait_for_their_place_holds_them_back(home: Home) -> None:
    """A26, B13"""
    life = home.start()
    for chat in ("ann", "bob", "cid"):
        life.under_way("hang / sleep:2|say:done", chat=chat, sender=chat)
    life.die()
    home.heard.clear()
    life = home.start(resumes_at_once=1)
    life.until(lambda: len(home.heard) == 1)
    pause(life)
    life.pass_s(60)
    assert len(home.heard) == 1
    unpause(life)
    life.until(lambda: all(home.replies(chat) == ["done"] for chat in ("ann", "bob", "cid")))


def test_who_writes_while_paused_is_told_once_a_pause(home: Home) -> None:
    """C22"""
    life = home.start()
    pause(life)
    for _ in range(3):
        life.write("say:held", chat=BOB, sender=BOB)
    life.until(lambda: home.told(BOB))
    life.pass_s(60)
    assert home.told(BOB) == [words.KEPT] and home.told() == []
    unpause(life)
    life.rest(BOB)
    pause(life)
    life.write("say:again", chat=BOB, sender=BOB)
    life.until(lambda: home.told(BOB).count(words.KEPT) == 2)
    life.pass_s(60)
    assert home.told(BOB).count(words.KEPT) == 2


def test_a_message_that_is_delivered_again_is_not_said_to_wait(home: Home) -> None:
    """C22, P1: it was answered long ago."""
    life = home.start()
    life.write("say:answered", chat=BOB, sender=BOB)
    life.rest(BOB)
    pause(life)
    life.die()
    home.server.confirmed.clear()
    life = home.start()
    life.until(lambda: home.server.updates[0].dedup_key in home.server.confirmed)
    life.pass_s(5)
    assert home.told(BOB) == ["answered"] and len(home.heard) == 1


def test_an_answer_to_a_question_is_kept_and_told_too_while_paused(home: Home) -> None:
    """C22"""
    life = home.start()
    page = life.open_page()
    life.post(page, "ask:name")
    life.until(lambda: life.session(page).state == "waiting")
    [question] = life.transcript(page).questions
    pause(life)
    life.do(life.gateway.answer(question.question_id, "eve"))
    life.pass_s(60)
    assert life.session(page).turn_state is TurnState.ANSWERED and life.notices(page) == [words.KEPT]
    unpause(life)
    life.rest(page)
    assert life.answers(page) == ["told eve"]


def test_a_command_is_answered_also_while_paused_and_is_not_said_to_wait(home: Home) -> None:
    """C21: a stop above all."""
    life = home.start()
    life.under_way()
    pause(life)
    life.write("/stop")
    life.until(lambda: life.turn().outcome == "cancelled")
    life.pass_s(5)
    assert words.KEPT not in home.told()


def test_a_pause_has_a_holder_and_ends_by_itself(home: Home) -> None:
    """C21"""
    life = home.start()
    paused = pause(life, 60.0)
    assert (paused.holder, paused.until - paused.since) == ("ada", 60_000)
    assert life.gateway.pausing.paused == paused == life.do(life.store.pause(now=life.clock.now()))
    hold(life)
    life.pass_s(50)
    assert not answered(life)
    life.pass_s(5)
    life.until(lambda: answered(life), within_s=5)
    assert state(life) == (G.RUNNING, None)
    assert life.do(life.store.pause(now=0)) is None


def test_a_wall_clock_that_steps_back_does_not_make_a_pause_longer(home: Home) -> None:
    """C21: it ends by a clock that does not step."""
    life = home.start(jumps=((10.0, -30 * 24 * HOUR_MS),))
    pause(life, 60.0)
    hold(life)
    life.pass_s(60)
    assert life.gateway.state is G.RUNNING and answered(life)


def test_a_pause_outlives_a_restart_and_still_ends_in_its_time(home: Home) -> None:
    """C21"""
    life = home.start()
    paused = pause(life, 60.0)
    session_id = hold(life)
    life.stop("restart_timeout")
    home.later(10)
    life = home.start()
    assert state(life) == (G.PAUSED, paused)
    life.pass_s(35)
    assert not answered(life) and life.session(session_id).queued == 1
    life.until(lambda: answered(life), within_s=20)


def test_a_pause_whose_time_was_over_before_the_start_holds_nobody_up(home: Home) -> None:
    """C21"""
    life = home.start()
    pause(life, 60.0)
    hold(life)
    life.die()
    home.later(61)
    life = home.start()
    assert life.gateway.state is G.RUNNING
    life.until(lambda: answered(life), within_s=5)


def test_a_wall_clock_that_was_set_back_while_nothing_ran_does_not_make_a_pause_longer_than_it_was_meant(home: Home) -> None:
    """C21"""
    life = home.start()
    pause(life, 60.0)
    hold(life)
    life.die()
    life = home.start(jump_ms=-30 * 24 * HOUR_MS)
    assert life.gateway.state is G.PAUSED
    life.until(lambda: answered(life), within_s=70)


def test_a_pause_while_paused_takes_the_place_of_the_one_before(home: Home) -> None:
    """C21"""
    life = home.start()
    pause(life, 60.0)
    longer = pause(life, 120.0, holder="bea")
    assert life.gateway.pausing.paused == longer == life.do(life.store.pause(now=life.clock.now()))
    hold(life)
    life.pass_s(90)
    assert not answered(life)  # The end of the first one does not end the second.
    shorter = pause(life, 10.0)
    life.until(lambda: answered(life), within_s=20)
    assert shorter.until < longer.until


def test_an_end_that_is_taken_back_by_hand_does_not_end_the_next_pause(home: Home) -> None:
    """C21"""
    life = home.start()
    pause(life, 60.0)
    unpause(life)
    life.pass_s(30)
    pause(life, 60.0)
    hold(life)
    life.pass_s(40)
    assert not answered(life)


def test_what_is_not_paused_can_be_unpaused_and_nothing_happens(home: Home) -> None:
    life = home.start()
    unpause(life)
    assert life.gateway.state is G.RUNNING


def test_a_gateway_that_gives_way_or_ends_cannot_be_paused_and_says_why(home: Home) -> None:
    """C21"""
    life = home.start(drain_timeout_s=60.0)
    life.under_way("hang")

    def refused() -> str:
        with pytest.raises(NotNow) as told:
            pause(life)
        return str(told.value)

    async def begin() -> None:
        life.gateway.hand_over.begin()

    life.do(begin())
    assert "handing_over" in refused()
    life.do(life.gateway.hand_over.take_back())
    stopping = life.loop.create_task(life.gateway.stop(reason="shutdown_timeout"))
    life.pass_s(1)
    assert "draining" in refused()
    life.do(asyncio.wait_for(stopping, 120))
    assert "stopped" in refused()
    assert life.do(life.store.pause(now=0)) is None


def test_a_pause_that_a_stop_overtakes_is_refused_and_holds_up_no_later_life(home: Home) -> None:
    """C21: both are asked for in the same moment."""
    life = home.start()
    page = life.open_page()

    async def both() -> None:
        pausing = asyncio.gather(life.gateway.pausing.pause("ada", HOUR_S), return_exceptions=True)
        await asyncio.sleep(0)  # It is on its way to the store.
        await life.gateway.stop(reason="shutdown_timeout")
        assert isinstance((await pausing)[0], NotNow)

    life.do(both())
    life.die()
    life = home.start()
    life.post(page, "say:hello")
    life.rest(page)
    assert life.answers(page) == ["hello"]


def test_a_paused_gateway_can_be_stopped_and_its_turns_are_cut_as_always(home: Home) -> None:
    """C1, C21"""
    life = home.start()
    session = life.under_way()
    pause(life)
    life.stop()
    assert home.on_disk(session.session_id).resume_reason == "shutdown_timeout"
    assert home.start().gateway.state is G.PAUSED


def test_a_successor_of_a_paused_gateway_is_paused(home: Home) -> None:
    """C21, C24"""
    old = home.start()
    paused = pause(old, 60.0)

    async def begin() -> None:
        old.gateway.hand_over.begin()

    old.do(begin())
    old.do(old.gateway.hand_over.give_way())
    new = home.start(beside=old)
    assert state(new) == (G.PAUSED, paused)
    old.do(old.gateway.hand_over.retire())
    hold(new)
    new.until(lambda: answered(new), within_s=70)
    assert home.told(BOB) == [words.KEPT, "held"]


def test_a_paused_gateway_whose_successor_failed_is_paused_as_before(home: Home) -> None:
    """C21, C25"""
    life = home.start()
    paused = pause(life, 60.0)
    hold(life)

    async def begin() -> None:
        life.gateway.hand_over.begin()

    life.do(begin())
    life.do(life.gateway.hand_over.give_way())
    life.do(life.gateway.hand_over.take_back())
    assert state(life) == (G.PAUSED, paused)
    life.pass_s(30)
    assert not answered(life)
    life.until(lambda: answered(life), within_s=40)
