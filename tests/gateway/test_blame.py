"""Who is to blame when the gateway dies: how restarts are counted, how suspects are tried one at a time, who is suspended (A17, A25)."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from holdfast.core import events as e
from holdfast.core.turns import TurnState
from tests.fakes.platform import session_key
from tests.gateway import gateways
from tests.gateway.gateways import Home, Life

INNOCENT = ("bea", "cid", "dot", "eve", "fay")
BOSS = "boss"
STUCK = (
    "3 restarts in a row interrupted this conversation, so it is suspended. "
    "Send /resume to continue it, or a message to start a new conversation."
)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def begin(life: Life, chats: Sequence[str], script: str) -> None:
    """Each of these chats has a turn under way, begun in this order."""
    for chat in chats:
        life.under_way(script, chat=chat, sender=chat)


def begun(home: Home, since: int = 0) -> list[str]:
    """The chats whose attempts began, in order."""
    return [request.session_key.rpartition(":")[2] for request in home.heard[since:]]


def suspects(home: Home, chats: Sequence[str], script: str, *, lives_s: float = 1.0) -> None:
    """Chats that two unclean deaths interrupted, each attempt begun in this order; what they do from their third attempt on."""
    life = home.start()
    begin(life, chats, f"say:once|hang / say:twice|hang / {script}")
    life.pass_s(lives_s)
    life.die()
    life = home.start(resumes_at_once=1)
    life.until(lambda: len(home.heard) == 2 * len(chats))
    assert begun(home, len(chats)) == list(chats)
    life.pass_s(lives_s)
    life.die()
    home.heard.clear()


def count(life: Life, chat: str) -> int:
    return life.session(chat).interrupted_restarts


def counts(life: Life, chats: Sequence[str]) -> list[int]:
    return [count(life, chat) for chat in chats]


# who is suspended


def kill_with(home: Home, killer: str, *, after_s: float = 1.0) -> int:
    """Life after life, in each of which the process dies soon after that chat's turn began; how many died before it was not begun again."""
    for deaths in range(20):
        life = home.start()
        began = len(home.heard)
        life.pass_s(0.5)
        while killer not in begun(home, began):
            life.pass_s(0.5)
            if life.session(killer).suspended:
                life.pass_s(200)
                return deaths
        life.pass_s(after_s)
        life.die()
    raise AssertionError("it was never suspended")


@pytest.mark.parametrize("place", ("first", "last"))
@pytest.mark.parametrize("script", ("hang", "call:deed|hang", "say:text|call:deed|sleep:1|hang"))
def test_only_the_session_that_kills_is_suspended_and_all_others_complete(home: Home, place: str, script: str) -> None:
    """A17, A25, P8: five run beside it at each death, and no life completes a turn before it dies."""
    life = home.start()
    beside = "say:working|sleep:20|say: done"
    if place == "first":
        begin(life, ["ann"], script)
    begin(life, INNOCENT, beside)
    if place == "last":
        begin(life, ["ann"], script)
    life.die()
    kill_with(home, "ann")
    life = home.lives[-1]
    assert life.session("ann").suspended and life.turn("ann").rule == "R2" and home.told("ann")[-1] == STUCK
    for chat in INNOCENT:
        assert home.replies(chat) == ["working done"] and not life.session(chat).suspended
    assert not life.gateway.safe_mode


def test_a_session_that_kills_by_a_new_turn_each_time_is_suspended_too(home: Home) -> None:
    """A25: nothing is resumed by itself here, and each message kills; the third one does so on trial."""
    for number in range(3):
        life = home.start(auto_resume=False)
        life.pass_s(2)
        life.under_way(f"say:{number}|hang", chat="ann", sender="ann")
        assert life.session("ann").on_trial == (number == 2)
        life.die()
    life = home.start()
    life.until(lambda: life.session("ann").suspended)
    life.decided("R2", "set aside", "ann")


def test_the_user_and_the_operators_are_told_once(home: Home) -> None:
    """A17, R2: home channels, the log."""
    homes = (session_key(BOSS),)
    suspects(home, ["ann"], "hang")
    life = home.start(home_channels=homes)
    life.until(lambda: begun(home) == ["ann"])
    life.die()
    for _ in range(2):
        life = home.start(home_channels=homes)
        life.pass_s(5)
        life.stop()
    session = home.on_disk(home.lives[-1].id_of("ann"))
    assert session.suspended and home.told("ann") == ["twice", STUCK]
    assert home.told(BOSS)[0] == (
        f"The conversation “say:once|hang / say:twice|hang / hang” ({session.session_key}) is suspended: "
        "Holdfast was interrupted repeatedly while working on it. "
        f"See the log. To continue it: `holdfast resume {session.session_id}`"
    )
    assert sum("is suspended" in text for text in home.told(BOSS)) == 1
    assert [entry["session"] for entry in home.logged("session suspended")] == [session.session_id]


def test_the_count_that_suspends_can_be_raised(home: Home) -> None:
    """A17: `stuck_after`."""
    suspects(home, ["ann"], "hang")
    for attempt in (1, 2):
        life = home.start(stuck_after=4)
        life.say("hello", chat="bob", sender="bob")
        life.until(lambda attempt=attempt: begun(home).count("ann") == attempt)  # type: ignore[misc]
        life.die()
    life = home.start(stuck_after=4)
    life.until(lambda: life.session("ann").suspended)
    assert count(life, "ann") == 4


# how trials go


def test_suspects_run_on_trial_one_at_a_time_the_one_that_started_last_first(home: Home) -> None:
    """A25"""
    suspects(home, INNOCENT, "say:one|sleep:8|say: two")
    life = home.start()
    at_once = []
    while any(len(home.replies(chat)) == 0 for chat in INNOCENT):
        life.pass_s(0.25)
        at_once.append(life.gateway.runner.running)
    assert max(at_once) == 1
    assert begun(home) == list(reversed(INNOCENT))
    assert counts(life, INNOCENT) == [0] * 5


def test_others_are_resumed_and_answered_while_suspects_wait(home: Home) -> None:
    """A25, B13"""
    suspects(home, ["ann", "bob"], "hang")
    life = home.start()
    life.until(lambda: len(home.heard) == 1)
    life.under_way("say:half|hang / say:done", chat="cid", sender="cid")
    life.die()
    home.heard.clear()
    life = home.start()
    life.until(lambda: home.replies("cid") == ["done"], within_s=5)
    life.say("hello", chat="dot", sender="dot")
    assert home.replies("dot") == ["re: hello"]


def test_the_least_recently_tried_comes_first(home: Home) -> None:
    """A25: a trial that a stop ended without a verdict."""
    suspects(home, ["ann", "bob", "cid"], "say:more|hang")
    life = home.start()
    life.until(lambda: begun(home) == ["cid"])
    life.pass_s(1)
    life.stop()
    home.heard.clear()
    life = home.start()
    life.pass_s(100)
    assert begun(home) == ["bob", "ann", "cid"]


def test_a_new_turn_of_a_suspect_waits_for_its_trial_and_no_other_message_does(home: Home) -> None:
    """A25: new ones too."""
    suspects(home, ["ann", "bob"], "hang")
    life = home.start(auto_resume=False)
    life.pass_s(2)
    for chat in ("ann", "bob"):
        life.write("say:one|sleep:10|say: two", chat=chat, sender=chat)
    life.say("hello", chat="new", sender="new")
    assert (begun(home), life.session("ann").on_trial) == (["ann", "new"], True)
    assert life.session("bob").queued == 1
    life.until(lambda: home.replies("bob") == ["twice", "one two"])
    assert begun(home) == ["ann", "new", "bob"] and counts(life, ["ann", "bob"]) == [0, 0]


def test_a_turn_whose_answer_came_while_it_was_a_suspect_goes_on_on_trial(home: Home) -> None:
    """A25, R5"""
    suspects(home, ["bob", "ann"], "ask:name|hang")
    life = home.start()
    life.until(lambda: life.session("bob").state == "waiting")
    assert begun(home) == ["ann", "bob"] and counts(life, ["ann", "bob"]) == [2, 2]
    life.until(lambda: home.told("bob"))
    life.write("eve", chat="bob", sender="bob")
    life.until(lambda: begun(home) == ["ann", "bob", "bob"])
    assert life.session("bob").on_trial and not life.session("ann").on_trial


@pytest.mark.parametrize("ends", ("say:all|sleep:2", "sleep:2|fail", "stopped", "sleep:2|nothing"))
def test_a_trial_is_passed_by_any_end_that_its_process_survives(home: Home, ends: str) -> None:
    """A25: completed, failed, cancelled, or without an answer (R4)."""
    suspects(home, ["ann", "bob"], "hang" if ends == "stopped" else ends)
    life = home.start()
    life.until(lambda: begun(home) == ["bob"])
    if ends == "stopped":
        life.write("/stop", chat="bob", sender="bob")
    life.until(lambda: life.session("bob").turn_state is TurnState.ENDED, within_s=10)
    assert count(life, "bob") == 0 and not life.session("bob").on_trial
    life.until(lambda: begun(home) == ["bob", "ann"], within_s=5)


def test_a_trial_is_passed_by_living_on_and_the_next_begins_then(home: Home) -> None:
    """A25: at least thirty seconds; the turn goes on."""
    suspects(home, ["ann", "bob"], "hang")
    life = home.start()
    life.pass_s(28)
    assert (begun(home), counts(life, ["ann", "bob"])) == (["bob"], [2, 2])
    life.pass_s(4)
    assert (begun(home), counts(life, ["ann", "bob"])) == (["bob", "ann"], [2, 0])
    assert life.gateway.runner.running == 2 and not life.session("bob").on_trial
    assert [item.kind for item in life.events("bob") if item.kind.startswith("trial")] == ["trial.passed"]


def test_a_trial_lasts_twice_as_long_as_the_attempt_that_died(home: Home) -> None:
    """A25"""
    suspects(home, ["ann", "bob"], "hang", lives_s=100.0)
    life = home.start()
    life.pass_s(150)
    assert (begun(home), count(life, "bob")) == (["bob"], 2)
    life.pass_s(80)
    assert (begun(home), count(life, "bob")) == (["bob", "ann"], 0)


def test_who_was_on_trial_is_on_record_when_the_process_dies(home: Home) -> None:
    """A25: only its count grows."""
    suspects(home, INNOCENT, "say:third|hang")
    life = home.start()
    life.until(lambda: len(home.heard) == 1)
    assert begun(home) == ["fay"] and home.on_disk(life.id_of("fay")).on_trial
    life.die()
    life = home.start()
    life.pass_s(5)
    assert counts(life, INNOCENT) == [2, 2, 2, 2, 3]
    assert [chat for chat in INNOCENT if life.session(chat).suspended] == ["fay"]
    assert begun(home) == ["fay", "eve"]


def test_after_ten_minutes_without_a_death_the_others_follow_and_no_death_counts_against_them(home: Home) -> None:
    """A25, B13"""
    names = [f"c{number:02}" for number in range(30)]
    suspects(home, names, "say:one|hang")
    life = home.start(turn_idle_timeout_s=10_000)
    life.pass_s(590)
    assert len(home.heard) in (19, 20)  # One every thirty seconds.
    life.pass_s(20)
    assert len(home.heard) == 30 and sum(life.session(name).on_trial for name in names) <= 1
    waited = [name for name in names if count(life, name) == 2]
    assert len(waited) >= 9
    life.die()
    life = home.start()
    life.pass_s(0.5)
    assert {count(life, name) for name in waited[1:]} == {2}
    assert not [name for name in names if life.session(name).suspended]


def test_a_human_who_resumes_a_suspect_ends_the_suspicion(home: Home) -> None:
    """A17"""
    suspects(home, ["ann", "bob"], "hang")
    life = home.start()
    life.until(lambda: begun(home) == ["bob"])
    life.write("/resume", chat="ann", sender="ann")
    life.until(lambda: begun(home) == ["bob", "ann"], within_s=5)
    assert count(life, "ann") == 0 and not life.session("ann").on_trial


def test_whoever_asks_is_told_why_a_suspect_waits(home: Home) -> None:
    """A25, A26: what is shown is true, and says what it waits for."""
    suspects(home, ["ann", "bob"], "hang")
    life = home.start()
    life.until(lambda: begun(home) == ["bob"])
    life.write("/status", chat="ann", sender="ann")
    life.until(lambda: home.told("ann"))
    assert home.told("ann")[0].splitlines()[:3] == [
        "This conversation is interrupted.",
        "Its last work was interrupted by a crash.",
        "2 restarts in a row interrupted it. Holdfast continues such conversations one at a time, so its work may wait for some minutes.",
    ]


def test_a_stop_while_it_waits_for_its_trial_ends_it_at_once(home: Home) -> None:
    """A21, R0"""
    suspects(home, ["ann", "bob"], "hang")
    life = home.start()
    life.until(lambda: begun(home) == ["bob"])
    life.write("/stop", chat="ann", sender="ann")
    life.until(lambda: life.turn("ann").outcome == "cancelled", within_s=5)
    life.decided("R0", "cancelled", "ann")


# what does not count, or only without progress


@pytest.mark.parametrize(("script", "counted"), [("say:text|hang", 0), ("call:deed|hang", 0), ("hang", 1)])
def test_a_planned_end_counts_only_where_nothing_was_shown(home: Home, script: str, counted: int) -> None:
    """A17: text and results are progress."""
    life = home.start()
    life.under_way(script)
    life.stop("restart_timeout")
    assert home.on_disk(life.id_of("ann")).interrupted_restarts == counted


def test_a_planned_end_after_ten_silent_minutes_does_not_count(home: Home) -> None:
    """A17"""
    life = home.start()
    life.under_way("hang")
    life.pass_s(610)
    life.stop()
    assert home.on_disk(life.id_of("ann")).interrupted_restarts == 0


def test_a_planned_end_with_progress_leaves_the_count_as_it_is(home: Home) -> None:
    """A17: it does not forgive either."""
    suspects(home, ["ann"], "say:more|hang")
    life = home.start()
    life.until(lambda: begun(home) == ["ann"])
    life.pass_s(1)
    life.stop()
    assert home.on_disk(life.id_of("ann")).interrupted_restarts == 2


@pytest.mark.parametrize(("script", "counted"), [("say:text|hang", 0), ("hang", 1)])
def test_a_death_in_a_recorded_drain_is_a_planned_end(home: Home, script: str, counted: int) -> None:
    """A17, C27"""
    life = home.start(drain_timeout_s=60.0)
    life.under_way(script)
    life.loop.create_task(life.gateway.stop(reason="restart_timeout"))
    life.pass_s(5)
    life.die()
    life = home.start()
    life.pass_s(1)
    assert (count(life, "ann"), life.cuts()[-1].reason, life.session().deaths) == (counted, "restart_timeout", 0)


@pytest.mark.parametrize(("script", "counted"), [("say:text|hang", 0), ("hang", 1)])
def test_a_death_with_the_whole_machine_is_a_planned_end(home: Home, script: str, counted: int) -> None:
    """A17"""
    life = home.start(boot="monday")
    life.under_way(script)
    life.die()
    life = home.start(boot="tuesday")
    life.pass_s(1)
    assert (count(life, "ann"), life.cuts()[-1].reason, life.session().deaths) == (counted, "crash", 0)


def test_an_unclean_death_counts_whatever_was_shown(home: Home) -> None:
    """A17"""
    home.start().cut("say:text|call:deed|hang")
    life = home.start()
    life.pass_s(1)
    assert (count(life, "ann"), life.session().deaths) == (1, 1)


def test_a_hand_over_interrupts_nothing_and_counts_nothing(home: Home) -> None:
    """A17, A25: a suspect on trial ends its trial where it runs."""
    suspects(home, ["ann"], "say:one|sleep:20|say: two")
    old = home.start()
    old.until(lambda: begun(home) == ["ann"])
    new = take_over(home, old)
    new.until(lambda: home.replies("ann") == ["one two"])
    assert count(new, "ann") == 0 and len(new.cuts("ann")) == 2


def take_over(home: Home, old: Life) -> Life:
    async def begin_hand_over() -> None:
        old.gateway.hand_over.begin()

    old.do(begin_hand_over())
    old.do(old.gateway.hand_over.give_way())
    new = home.start(beside=old)
    old.loop.create_task(old.gateway.hand_over.retire())
    return new


def test_a_suspect_that_waited_is_tried_by_the_successor_while_its_predecessor_still_retires(home: Home) -> None:
    """A25, C24: each process tries one, and nothing that only waited is stranded in the old one."""
    suspects(home, ["ann", "bob"], "say:one|sleep:25|say: two")
    old = home.start()
    old.until(lambda: begun(home) == ["bob"])
    new = take_over(home, old)
    new.until(lambda: begun(home) == ["bob", "ann"], within_s=5)
    assert new.session("ann").on_trial and new.session("bob").on_trial
    new.until(lambda: home.replies("ann") and home.replies("bob"))


# age


def test_waiting_for_a_trial_does_not_age_a_turn(home: Home) -> None:
    """A25, R6: not in the process that waits, and not for the next one."""
    suspects(home, INNOCENT, "hang")
    life = home.start(resume_window_s=100)
    life.pass_s(128)  # Four trials of thirty seconds.
    assert begun(home) == ["fay", "eve", "dot", "cid", "bea"]
    life.die()
    home.heard.clear()
    suspects_again = home.start(resume_window_s=100)
    suspects_again.pass_s(1)
    assert suspects_again.session("bea").rule == "R2"  # It was on trial when its process died.


def test_a_turn_that_waited_long_and_whose_process_died_is_still_fresh(home: Home) -> None:
    """A25, R6"""
    suspects(home, INNOCENT, "hang")
    life = home.start(resume_window_s=100)
    life.pass_s(115)
    assert begun(home) == ["fay", "eve", "dot", "cid"]
    life.die()
    life = home.start(resume_window_s=100)
    life.until(lambda: "bea" in begun(home, 4))
    assert life.session("bea").rule == "R9" and life.session("cid").rule == "R2"


def test_time_in_which_nothing_runs_ages_a_turn_that_waited(home: Home) -> None:
    """R6"""
    suspects(home, INNOCENT, "hang")
    life = home.start(resume_window_s=100)
    life.pass_s(95)
    life.die()
    home.later(200)
    life = home.start(resume_window_s=100)
    life.pass_s(1)
    assert life.session("bea").rule == "R6"


# safe mode


def test_a_death_for_which_a_session_is_suspended_is_no_part_of_a_crash_loop(home: Home) -> None:
    """B14, R2"""
    suspects(home, ["ann"], "hang")
    life = home.start()
    life.until(lambda: begun(home) == ["ann"])
    life.die()
    life = home.start()
    assert not life.gateway.safe_mode and life.session("ann").suspended
    life.die()
    assert home.start().gateway.safe_mode  # Three that nobody explains: the first two, and this one.


def test_the_count_of_an_old_record_without_the_new_fields_still_counts(home: Home) -> None:
    """A3, A17"""
    interrupted = e.decode("turn.interrupted", b'{"reason":"crash","restarts":2}')
    assert interrupted == e.TurnInterrupted(reason="crash", restarts=2)
    assert e.decode(
        "turn.started", b'{"generation":1,"attempt":1,"cause":"message","message_ids":["m"],"owner":1,"epoch":1}'
    ) == e.TurnStarted(generation=1, attempt=1, cause="message", causes=("m",), owner=1, epoch=1, trial=False)
