"""How a gateway stops: what it waits for, what it cuts and in which order, what it leaves; and how it gives way to a successor."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from holdfast.core.delivery import DeliveryState
from holdfast.core.lifecycle import GatewayState as G
from holdfast.core.turns import TurnState
from tests import words
from tests.gateway import gateways
from tests.gateway.gateways import ANN, Home, Life

BOB = "bob"
WORDS = {"shutdown_timeout": "interrupted: gateway shutting down", "restart_timeout": "interrupted: gateway restarting"}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def begin_stop(life: Life, reason: str = "shutdown_timeout") -> "asyncio.Task[None]":
    """The stop is under way; time passes as the story says."""
    stopping = life.loop.create_task(life.gateway.stop(reason=reason))
    life.pass_s(0.1)
    return stopping


def end_stop(life: Life, stopping: "asyncio.Task[None]") -> None:
    life.do(asyncio.wait_for(stopping, 120))
    life.die()


# what is cut, and how


@pytest.mark.parametrize("reason", WORDS)
def test_a_turn_that_is_cut_is_marked_before_its_agent_is_interrupted_and_is_told_why(home: Home, reason: str) -> None:
    """C1, C6, A6"""
    life = home.start()
    session = life.under_way()
    found = []
    home.edge.looks = lambda place: found.append((place, home.on_disk(session.session_id))) if place in WORDS.values() else None
    life.stop(reason)
    ((place, as_it_was),) = found
    assert place == WORDS[reason]
    assert (as_it_was.turn_state, as_it_was.resume_pending, as_it_was.resume_reason) == (TurnState.INTERRUPTED, True, reason)


def test_every_running_turn_is_marked_before_any_agent_is_interrupted(home: Home) -> None:
    """C1"""
    life = home.start()
    sessions = [life.under_way(chat=chat, sender=chat).session_id for chat in ("a", "b", "c")]
    pending: list[list[bool]] = []

    def look(place: str) -> None:
        if place.startswith("interrupted"):
            pending.append([home.on_disk(session_id).resume_pending for session_id in sessions])

    home.edge.looks = look
    life.stop()
    assert pending == [[True] * 3] * 3


def test_without_a_window_a_turn_is_cut_at_once(home: Home) -> None:
    """C5"""
    life = home.start()
    life.under_way("sleep:5|say:done")
    began = life.loop.time()
    life.stop()
    assert life.loop.time() - began < 1.0
    assert home.edge.count(WORDS["shutdown_timeout"]) == 1 and home.replies() == []


def test_a_turn_that_ends_inside_the_window_is_not_cut_and_its_reply_goes_out_before_the_chat_is_left(home: Home) -> None:
    """C2, C5"""
    life = home.start(drain_timeout_s=30.0)
    session = life.under_way("sleep:10|say:done")
    life.stop()
    found = home.on_disk(session.session_id)
    assert (found.turn_state, found.resume_pending) == (TurnState.ENDED, False)
    assert home.replies() == ["done"]
    assert home.edge.seen.index("sent done") < home.edge.seen.index("platform closed")
    assert not [place for place in home.edge.seen if place.startswith("interrupted")]


def test_replies_have_the_whole_window_too(home: Home) -> None:
    """C2, P4: a slow platform, two chats, each with a notice and a reply; the chats are left only after each was tried."""
    life = home.start(drain_timeout_s=120.0)
    life.under_way("sleep:5|say:first")
    life.under_way("sleep:5|say:second", chat=BOB, sender=BOB)
    home.server.takes_s = 25.0
    began = life.loop.time()
    life.stop()
    assert (home.replies(), home.replies(BOB)) == (["first"], ["second"])
    assert max(home.edge.seen.index(f"sent {text}") for text in ("first", "second")) < home.edge.seen.index("platform closed")
    assert life.loop.time() - began < 70 and not home.logged("a send had no answer in time")


def test_a_reply_that_takes_longer_than_the_window_does_not_make_it_longer(home: Home) -> None:
    """C2, C23, P4: one deadline. What became of it is found out by the next life, and it is not sent twice."""
    life = home.start(drain_timeout_s=30.0)
    life.under_way("sleep:5|say:done")
    home.server.takes_s = 50.0
    began = life.loop.time()
    life.stop()
    assert 30 <= life.loop.time() - began < 45
    home.server.takes_s = 0.0
    life = home.start()
    life.rest()
    assert home.replies() == ["done"]


def test_a_reply_that_is_refused_in_the_drain_was_tried_and_is_not_waited_for(home: Home) -> None:
    """C2: tried once; the next life tries again."""
    life = home.start(drain_timeout_s=300.0)
    life.under_way("sleep:5|say:done")
    moods = iter(["", "refused"])  # The notice goes out, the answer does not.
    home.server.moods = lambda: next(moods, "")
    began = life.loop.time()
    life.stop()
    assert home.replies() == [] and life.loop.time() - began < 20
    life = home.start()
    life.rest()
    assert home.replies() == ["done"]


def test_the_window_is_a_limit_and_not_a_wait(home: Home) -> None:
    """C2"""
    life = home.start(drain_timeout_s=300.0)
    life.say("hello")
    began = life.loop.time()
    life.stop()
    assert life.loop.time() - began < 3.0


def test_who_finished_inside_the_window_is_not_marked_when_another_one_did_not(home: Home) -> None:
    """C3, A18"""
    life = home.start(drain_timeout_s=20.0)
    quick = life.under_way("sleep:5|say:done")
    slow = life.under_way("hang", chat=BOB, sender=BOB)
    life.stop("restart_timeout")
    ended, cut = home.on_disk(quick.session_id), home.on_disk(slow.session_id)
    assert (ended.turn_state, ended.resume_pending, ended.interrupted_restarts) == (TurnState.ENDED, False, 0)
    assert (cut.turn_state, cut.resume_pending, cut.resume_reason) == (TurnState.INTERRUPTED, True, "restart_timeout")
    assert home.replies() == ["done"]


def just_starting(life: Life, text: str) -> str:
    """A turn that is on record, and whose agent does not run yet; its session."""
    session_id = life.open_page()
    life.post(session_id, text)
    while life.home.on_disk(session_id).turn_state is TurnState.NONE:
        life.pass_s(0.0001)
    assert not life.home.heard
    return session_id


def test_a_turn_that_is_only_just_starting_has_the_window_too(home: Home) -> None:
    """C5: between its record and its agent it counts as running."""
    life = home.start(drain_timeout_s=30.0, chats=False)
    session_id = just_starting(life, "sleep:5|say:done")
    life.stop()
    found = home.on_disk(session_id)
    assert (found.turn_state, found.resume_pending) == (TurnState.ENDED, False)


def test_a_turn_that_is_only_just_starting_is_marked_like_any_other_without_a_window(home: Home) -> None:
    """C1"""
    life = home.start(chats=False)
    session_id = just_starting(life, "sleep:5|say:done")
    life.stop()
    found = home.on_disk(session_id)
    assert (found.turn_state, found.resume_reason) == (TurnState.INTERRUPTED, "shutdown_timeout")
    life = home.start(chats=False)
    life.rest(session_id)
    assert life.answers(session_id) == ["done"]


def test_a_message_whose_turn_has_not_started_is_neither_marked_nor_lost(home: Home) -> None:
    """C4"""
    life = home.start()
    session = life.under_way("say:half|hang / say:first")
    life.write("say:second")
    life.stop()
    found = home.on_disk(session.session_id)
    assert (found.queued, found.generation) == (1, 1)
    life = home.start()
    life.rest()
    assert home.replies() == ["first", "second"]
    assert life.outcomes() == ["completed", "completed"]


@pytest.mark.parametrize("reason", WORDS)
def test_a_turn_whose_process_dies_in_the_middle_of_a_stop_resumes_with_the_reason_of_the_stop(home: Home, reason: str) -> None:
    """C27: as its user was told, not as after a crash."""
    life = home.start(drain_timeout_s=60.0)
    session = life.under_way("say:half|hang / say:whole")
    stopping = begin_stop(life, reason)
    assert life.gateway.state is G.DRAINING and not stopping.done()
    life.die()
    life = home.start()
    life.rest()
    assert [cut.reason for cut in life.cuts()] == [reason] and home.replies() == ["whole"]
    assert home.heard[-1].attempt == 2 and life.session().session_id == session.session_id


def test_a_stop_is_on_record_before_anybody_is_told_of_it(home: Home) -> None:
    """C27: whoever reads the notice can rely on the reason."""
    life = home.start(drain_timeout_s=5.0)
    life.under_way()
    found: list[str | None] = []
    home.edge.looks = lambda place: found.append(home.drain_on_disk(life.name)) if place == "sending" else None
    life.stop("restart_timeout")
    assert found == ["restart_timeout"]


def test_a_death_without_a_stop_is_a_crash_also_beside_one_that_was_stopping(home: Home) -> None:
    """C27: the record is each process's own."""
    old = home.start()
    old.under_way("say:half|hang / say:old")
    new, _ = hand_over(home, old)
    new.under_way("say:half|hang / say:new", chat=BOB, sender=BOB)
    stopping = new.loop.create_task(old.gateway.stop(reason="shutdown_timeout"))
    new.until(stopping.done)
    old.die()
    new.die()
    last = home.start()
    last.rest()
    last.rest(BOB)
    assert [[cut.reason for cut in last.cuts(chat)] for chat in (ANN, BOB)] == [["shutdown_timeout"], ["crash"]]


# what is still done while draining


def test_a_stop_of_a_turn_that_waits_to_be_resumed_is_carried_out_while_draining(home: Home) -> None:
    """A21, A26: within five seconds, and the next start finds it ended."""
    life = home.start()
    for chat in (ANN, BOB):
        life.under_way("say:half|hang / sleep:15|say:done", chat=chat, sender=chat)
    life.die()
    life = home.start(resumes_at_once=1, drain_timeout_s=60.0)
    life.until(lambda: len(home.heard) == 3)
    stopping = begin_stop(life)
    life.write("/stop", chat=BOB, sender=BOB)
    life.until(lambda: life.turn(BOB).outcome == "cancelled", within_s=5)
    assert life.gateway.state is G.DRAINING and not stopping.done()
    end_stop(life, stopping)
    assert home.replies(ANN) == ["done"]


# the end


def test_after_a_stop_nothing_runs_and_everything_is_in_the_store(home: Home) -> None:
    """C7, R5"""
    life = home.start()
    life.under_way()
    asking = life.say("ask:name", chat=BOB, sender=BOB)
    life.write("say:later")
    life.do(life.gateway.stop(reason="shutdown_timeout"))
    assert (life.gateway.state, life.gateway.runner.running, life.gateway.lifecycle.stopped.is_set()) == (G.STOPPED, 0, True)
    assert home.server.disconnected == 1
    sent = [number for number, place in enumerate(home.edge.seen) if place.startswith("sent")]
    assert max(sent) < home.edge.seen.index("platform closed")
    seen, untaken = len(home.edge.seen), home.write("say:after")
    life.pass_s(100)
    assert len(home.edge.seen) == seen and untaken.dedup_key not in home.server.confirmed  # Its intake is gone.
    life.die()
    assert home.on_disk(asking.session_id).turn_state is TurnState.WAITING
    life = home.start()
    life.say("ada", chat=BOB, sender=BOB)
    assert life.answers(BOB) == ["told ada"]


@pytest.mark.parametrize("window_s", [0.0, 60.0])
def test_after_a_stop_no_task_of_it_is_left_whatever_was_in_flight(home: Home, window_s: float) -> None:
    """C7: a turn with its tool, a send without an answer, the intakes, whoever watches and sweeps; and no timer that would wake one."""
    life = home.start(drain_timeout_s=window_s)
    life.under_way("call:deed 1000")
    home.edge.hangs.add("sending")
    life.write("say:done", chat=BOB, sender=BOB)
    life.until(lambda: home.edge.count("sending"))
    assert len(asyncio.all_tasks(life.loop)) > 10
    life.do(life.gateway.stop(reason="shutdown_timeout"))
    assert {task.get_name() for task in asyncio.all_tasks(life.loop)} == set()
    seen = len(home.edge.seen)
    life.pass_s(3600)
    assert len(home.edge.seen) == seen and home.done == []


def test_a_message_that_is_being_taken_in_when_it_stops_is_confirmed_and_kept_or_neither(home: Home) -> None:
    """C7, P1: wherever the stop meets it, its platform has it or the store does."""
    life, confirmed = home.start(), set()
    for number in range(40):
        update = home.write(f"say:{number}")
        life.pass_s(0.007 * number)
        life.stop()
        confirmed.add(update.dedup_key in home.server.confirmed)
        life = home.start()
        life.until(partial(home.server.confirmed.__contains__, update.dedup_key))
        life.rest()
    assert home.replies() == [str(number) for number in range(40)] and confirmed == {True, False}


def test_whoever_waits_for_the_end_is_released_at_the_end_and_not_before(home: Home) -> None:
    """C7"""
    life = home.start(drain_timeout_s=10.0)
    life.under_way("hang")
    waiting = life.loop.create_task(life.gateway.lifecycle.stopped.wait())
    stopping = begin_stop(life)
    life.pass_s(5)
    assert not waiting.done()
    end_stop(life, stopping)
    assert waiting.done() and life.gateway.state is G.STOPPED


def test_the_agent_is_closed_once_after_its_last_run(home: Home) -> None:
    """C8"""
    life = home.start()
    life.under_way()
    life.stop()
    assert home.edge.count("agent closed") == 1
    assert home.edge.seen.index(WORDS["shutdown_timeout"]) < home.edge.seen.index("agent closed")


def test_a_process_that_handed_over_closes_its_agent_once_after_the_last_turn_that_runs_in_it(home: Home) -> None:
    """C8, C24: its successor's agent stays open."""
    old = home.start()
    old.under_way("say:half|sleep:60|say:, whole")
    new, retiring = hand_over(home, old)
    new.pass_s(30)
    assert home.edge.count("agent closed") == 0
    new.until(retiring.done)
    new.do(old.gateway.stop(reason="shutdown_timeout"))
    assert home.edge.count("agent closed") == 1
    old.die()
    new.say("hello", chat=BOB, sender=BOB)
    assert home.told(BOB) == ["re: hello"]
    new.stop()
    assert home.edge.count("agent closed") == 2


@pytest.mark.parametrize("place", ["agent closed", "platform closed"])
@pytest.mark.parametrize("fault", ["hangs", "fails"])
def test_one_that_does_not_close_is_named_and_does_not_hold_up_the_rest(home: Home, place: str, fault: str) -> None:
    """C8, C23"""
    life = home.start()
    session = life.under_way()
    getattr(home.edge, fault).add(place)
    began = life.loop.time()
    life.stop()
    assert life.loop.time() - began < 10.0
    assert life.gateway.state is G.STOPPED
    assert {"agent closed", "platform closed"} <= set(home.edge.seen)
    (named,) = home.logged("does not close")
    assert named["what"] == ("script" if place == "agent closed" else "fakechat")
    life = home.start()
    assert life.session().session_id == session.session_id  # And the end is on record: the next start is none after a crash.
    assert life.do(life.store.last_end(apart_from=2))


# what it tells while it stops


def test_the_state_is_told_at_the_start_when_the_number_of_turns_changes_and_at_the_end(home: Home) -> None:
    """C14"""
    life = home.start(drain_timeout_s=60.0)
    for seconds, chat in ((5, "a"), (10, "b"), (1000, "c")):
        life.under_way(f"sleep:{seconds}|say:done", chat=chat, sender=chat)
    life.states.clear()
    life.stop()
    assert life.states == [(G.DRAINING, 3), (G.DRAINING, 2), (G.DRAINING, 1), (G.STOPPING, 1), (G.STOPPED, 0)]


def test_with_nothing_running_little_is_told(home: Home) -> None:
    """C14"""
    life = home.start(drain_timeout_s=60.0)
    life.say("hello")
    life.states.clear()
    life.stop()
    assert life.states == [(G.DRAINING, 0), (G.STOPPING, 0), (G.STOPPED, 0)]


def test_news_that_do_not_change_the_number_of_turns_are_not_told(home: Home) -> None:
    """C14"""
    life = home.start(drain_timeout_s=60.0)
    life.under_way("sleep:1|say:a|sleep:1|say:b|sleep:20|say:c")
    life.states.clear()
    stopping = begin_stop(life)
    for number in range(5):
        life.write(f"say:{number}")
    end_stop(life, stopping)
    assert [state for state, _ in life.states] == [G.DRAINING, G.STOPPING, G.STOPPED]


# commands of tools


def test_on_the_clean_path_commands_are_killed_exactly_once_at_the_end(home: Home) -> None:
    """C16"""
    life = home.start(drain_timeout_s=60.0)
    life.under_way("call:deed 5")
    life.stop()
    assert home.edge.count("deed reaped") == 1
    assert home.edge.seen.index("platform closed") < home.edge.seen.index("deed reaped")
    assert len(home.done) == 1


@pytest.mark.parametrize("window_s", [0.0, 5.0])
def test_when_the_time_is_up_commands_are_killed_before_the_chat_is_left_and_once_more_at_the_end(home: Home, window_s: float) -> None:
    """C15"""
    life = home.start(drain_timeout_s=window_s)
    life.under_way("call:deed 1000")
    life.stop()
    left = home.edge.seen.index("platform closed")
    reaped = [number for number, place in enumerate(home.edge.seen) if place == "deed reaped"]
    assert len(reaped) == 2 and reaped[0] < left < reaped[1]
    assert home.done == []


# what people say meanwhile


def test_who_writes_during_the_drain_is_told_once_and_answered_by_the_next_life(home: Home) -> None:
    """C22, P1"""
    life = home.start(drain_timeout_s=60.0)
    life.under_way("sleep:20|say:done")
    stopping = begin_stop(life)
    for text in ("say:one", "say:two"):
        life.write(text, chat=BOB, sender=BOB)
    life.until(lambda: home.told(BOB))
    end_stop(life, stopping)
    assert home.told(BOB) == [words.KEPT] and home.replies() == ["done"]
    assert home.sent(BOB)[0].anchor is not None  # A reply to the message it speaks of.
    life = home.start()
    life.rest(BOB)
    assert home.told(BOB) == [words.KEPT, "one", "two"]
    assert life.notices(BOB) == [words.KEPT]


def test_an_answer_to_a_question_counts_as_a_message_during_the_drain(home: Home) -> None:
    """C22"""
    life = home.start(drain_timeout_s=60.0)
    asking = life.say("ask:name", chat=BOB, sender=BOB).session_id
    page = life.open_page()
    life.post(page, "ask:name")
    life.until(lambda: life.session(page).state == "waiting")
    [question] = life.transcript(page).questions
    life.under_way("sleep:20|say:done")
    stopping = begin_stop(life)
    life.write("ada", chat=BOB, sender=BOB)
    life.do(life.gateway.answer(question.question_id, "eve"))
    end_stop(life, stopping)
    assert [home.on_disk(session).turn_state for session in (asking, page)] == [TurnState.ANSWERED] * 2
    life = home.start()
    for name, said in ((BOB, "told ada"), (page, "told eve")):
        life.rest(name)
        assert life.answers(name) == [said]
        assert life.notices(name).count(words.KEPT) == 1


# what hangs


def test_a_tool_that_does_not_let_go_does_not_hold_up_the_stop_and_is_named(home: Home) -> None:
    """C23"""
    life = home.start()
    session = life.under_way("call:stubborn")
    turn = life.turn().id
    began = life.loop.time()
    life.stop()
    assert life.loop.time() - began < 25.0
    assert [entry["turn"] for entry in home.logged("agent does not let go of its turn")] == [turn]
    assert any(turn in name for entry in home.logged("tasks did not end") for name in entry["tasks"])
    assert home.on_disk(session.session_id).resume_reason == "shutdown_timeout"
    assert home.server.disconnected == 1


def test_a_turn_that_a_suspension_is_ending_when_the_stop_marks_it_is_interrupted_once(home: Home) -> None:
    """P3: whichever comes first stands; the other one has nothing left to write."""
    life = home.start()
    session = life.under_way("call:stubborn")
    life.do(life.gateway.suspend(session.session_id))
    life.pass_s(0.5)
    life.stop()
    assert home.logged("task failed") == []
    interruptions = [message for message in home.start().transcript().messages if message.role == "interruption"]
    assert len(interruptions) == 1


def test_a_send_that_hangs_does_not_hold_up_the_stop_and_is_sent_once_in_the_end(home: Home) -> None:
    """C23, P4"""
    life = home.start()
    home.edge.hangs.add("sending")
    life.write("say:done")
    life.until(lambda: home.edge.count("sending"))
    began = life.loop.time()
    life.stop()
    assert life.loop.time() - began < 25.0
    assert home.logged("a send had no answer in time")
    home.edge.hangs.clear()
    life = home.start()
    life.rest()
    assert home.replies() == ["done"]


def test_every_step_of_a_stop_is_named_as_it_begins(home: Home) -> None:
    """C23: whoever watches can say which one hangs."""
    life = home.start()
    life.under_way()
    life.stop()
    steps = life.steps
    assert steps == [
        "record",
        "announce",
        "drain",
        "interrupt turns",
        "kill commands",
        "end agents",
        "disconnect",
        "kill commands",
        "close",
    ]
    assert [entry["step"] for entry in home.logged("stop")] == steps


# after it


def test_after_a_clean_stop_and_a_start_whoever_was_idle_hears_nothing(home: Home) -> None:
    """E5, C2"""
    life = home.start(drain_timeout_s=5.0)
    for chat in (ANN, BOB):
        life.say("hello", chat=chat, sender=chat)
    life.stop()
    told, asked = len(home.server.sent), len(home.heard)
    life = home.start()
    life.pass_s(120)
    assert (len(home.server.sent), len(home.heard)) == (told, asked)
    assert life.session().interrupted_restarts == 0 and not life.gateway.safe_mode


# giving way to a successor


def give_way(life: Life) -> None:
    life.do(begin(life))
    life.do(life.gateway.hand_over.give_way())


async def begin(life: Life) -> None:
    life.gateway.hand_over.begin()


def hand_over(home: Home, old: Life) -> tuple[Life, "asyncio.Task[None]"]:
    """The successor serves; the task is over when the last turn of the old one is."""
    give_way(old)
    new = home.start(beside=old)
    retiring = old.loop.create_task(old.gateway.hand_over.retire())
    old.pass_s(0.1)
    return new, retiring


def test_a_hand_over_cuts_no_turn_and_its_reply_is_sent_once_by_the_successor(home: Home) -> None:
    """C24, A17, P4"""
    old = home.start()
    session = old.under_way("say:half|sleep:60|say:, whole")
    new, retiring = hand_over(home, old)
    assert (old.gateway.state, new.gateway.state) == (G.RETIRING, G.RUNNING)
    new.say("hello", chat=BOB, sender=BOB)
    assert not retiring.done() and home.told(BOB) == ["re: hello"]
    new.until(retiring.done)
    new.rest()
    assert home.replies() == ["half, whole"]
    turn = new.turn()
    assert (turn.attempt, turn.outcome, new.session().interrupted_restarts, new.cuts()) == (1, "completed", 0, [])
    old.stop()
    assert (old.gateway.state, new.gateway.state) == (G.STOPPED, G.RUNNING)
    new.pass_s(60)
    assert (home.replies(), new.session().session_id, new.gateway.safe_mode) == (["half, whole"], session.session_id, False)


def test_hand_overs_may_overlap(home: Home) -> None:
    """C24"""
    first = home.start()
    first.under_way("sleep:40|say:a")
    second, first_retires = hand_over(home, first)
    second.under_way("sleep:20|say:b", chat=BOB, sender=BOB)
    third, second_retires = hand_over(home, second)
    running = third.do(third.store.running_by_owner())
    assert running == {1: 1, 2: 1}
    third.until(lambda: first_retires.done() and second_retires.done())
    third.until(lambda: home.replies() and home.told(BOB))
    assert (home.replies(), home.told(BOB)) == (["a"], ["b"])
    assert third.do(third.store.running_by_owner()) == {}


def test_a_stop_that_the_successor_records_reaches_the_turn_in_the_retiring_process_within_a_second(home: Home) -> None:
    """C24, A21"""
    old = home.start()
    session = old.under_way()
    new, retiring = hand_over(home, old)
    began = new.loop.time()
    new.do(new.gateway.stop_turn(session.session_id, by="owner", client_id=None))
    new.until(retiring.done, within_s=2.0)
    assert new.loop.time() - began < 2.0
    assert new.turn().outcome == "cancelled" and home.edge.count("interrupted: stop") == 1


def test_an_answer_to_the_successor_continues_a_turn_that_asked_in_the_retiring_process(home: Home) -> None:
    """C24, P2"""
    old = home.start()
    old.under_way("sleep:10|ask:name")
    new, retiring = hand_over(home, old)
    new.until(lambda: home.told() == ["name"])
    new.say("ada")
    assert retiring.done() and new.answers() == ["told ada"] and new.turn().attempt == 2


def test_a_message_for_a_chat_whose_turn_runs_in_the_retiring_process_waits_for_its_end(home: Home) -> None:
    """C24, P2"""
    old = home.start()
    old.under_way("sleep:30|say:first")
    new, _ = hand_over(home, old)
    new.write("say:second")
    new.pass_s(10)
    assert home.texts == ["sleep:30|say:first"]
    new.until(lambda: len(home.replies()) == 2)
    assert home.replies() == ["first", "second"] and new.outcomes() == ["completed", "completed"]


def test_what_is_being_sent_has_its_outcome_before_a_successor_may_begin(home: Home) -> None:
    """C24, P4"""
    old = home.start()
    home.server.moods = iter(["late", *[""] * 100]).__next__
    old.write("say:done")
    old.until(home.replies)
    give_way(old)
    (owed,) = old.do(old.store.deliveries(states=tuple(DeliveryState), now=2**60, limit=9))
    assert owed.state == "unknown"
    new = home.start(beside=old)
    new.rest()
    assert home.replies() == ["done"]


@pytest.mark.parametrize("dies", [True, False])
def test_only_the_death_of_its_sender_makes_a_reply_that_is_being_sent_unknown(home: Home, dies: bool) -> None:
    """P4: a second process leaves it alone, and the replies behind it; once its sender is dead it finds out whether it arrived."""
    old = home.start()
    home.server.takes_s = 20.0
    if dies:
        home.edge.hangs.add("sending")
    old.write("say:first")
    old.until(lambda: home.edge.count("sending") == 1)
    home.server.takes_s = 0.0
    home.edge.hangs.clear()
    new = home.start(beside=old)
    new.write("say:second")
    new.pass_s(5)
    states = {owed.state: owed.owner for owed in new.do(new.store.deliveries(states=tuple(DeliveryState), now=2**60, limit=9))}
    assert states == {"sending": 1, "pending": None} and home.edge.count("sending") == 1
    if dies:
        home.alive.discard(old.name)
    new.until(lambda: len(home.replies()) == 2)
    assert home.replies() == ["first", "second"]


def test_a_retiring_process_that_is_told_to_stop_cuts_its_turns_and_the_successor_resumes_them(home: Home) -> None:
    """C24, C1"""
    old = home.start()
    old.under_way("say:half|hang / say:whole")
    new, _ = hand_over(home, old)
    old.stop("shutdown_timeout")
    new.rest()
    new.decided("R9", "resumed")
    assert home.replies() == ["whole"]


def test_a_gateway_whose_successor_failed_goes_on_with_everything(home: Home) -> None:
    """C25"""
    life = home.start()
    life.under_way("sleep:20|say:first")
    give_way(life)
    home.write("say:new", chat=BOB, sender=BOB)
    life.pass_s(30)  # Nothing starts and nothing is sent while a successor may be at it.
    assert home.server.sent == [] and home.texts == ["sleep:20|say:first"]
    life.do(life.gateway.hand_over.take_back())
    assert life.gateway.state is G.RUNNING
    life.until(lambda: home.replies() and home.told(BOB))
    assert (home.replies(), home.told(BOB)) == (["first"], ["new"])
    life.die()  # It had given way, and took that back: its death is one.
    life = home.start()
    assert not life.do(life.store.last_end(apart_from=2))


def test_a_successor_that_was_never_ready_leaves_one_intake(home: Home) -> None:
    """C25, P1: nothing was taken away, so nothing is begun a second time."""
    life = home.start()
    for _ in range(3):
        life.gateway.hand_over.begin()
        life.do(life.gateway.hand_over.take_back())
    life.say("hello")
    assert home.edge.count("took hello") == 1


def test_after_a_failed_hand_over_the_next_one_succeeds(home: Home) -> None:
    """C25"""
    old = home.start()
    old.under_way("sleep:60|say:done")
    give_way(old)
    old.do(old.gateway.hand_over.take_back())
    new, retiring = hand_over(home, old)
    new.until(retiring.done)
    new.rest()
    assert home.replies() == ["done"] and new.cuts() == []


def test_a_stop_may_come_while_a_successor_is_being_started(home: Home) -> None:
    """C23"""
    life = home.start()
    life.under_way()
    give_way(life)
    life.do(life.gateway.stop(reason="shutdown_timeout"))
    life.do(life.gateway.hand_over.take_back())  # The news that nobody took over come late.
    assert life.gateway.state is G.STOPPED
    assert home.edge.count("platform closed") == 1
