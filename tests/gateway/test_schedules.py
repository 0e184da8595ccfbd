"""Schedules over lives of a gateway: each time starts one turn or none, visibly, whatever dies, steps or is paused in between."""

import itertools
import json
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest

from holdfast.core import events as e
from holdfast.core import schedules
from holdfast.core.errors import BadInput
from holdfast.core.policy import Pattern, Rules
from holdfast.core.reminders import When
from holdfast.core.schedules import Policy, Schedule, ScheduleOver
from holdfast.ports.agents import AgentRequest, TurnFace
from holdfast.ports.tools import Tool
from holdfast.process.system import RandomIds
from holdfast.tools.schedule import ScheduleWork
from tests.fakes.agents_sim import Failure
from tests.fakes.loop import Crash
from tests.gateway import gateways
from tests.gateway.gateways import ANN, Home, Life, ScriptAgent
from tests.gateway.test_safe_mode import in_safe_mode, starts_that_died

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
DAY_MS = 86_400_000


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def add(life: Life, text: str, *, chat: str = ANN, missed: str | None = None, **when: str | int) -> Schedule:
    session_id = life.session(chat).session_id
    return life.do(life.gateway.add_schedule(session_id, text, When(**when), by=chat, missed=missed))  # type: ignore[arg-type]


def begun(home: Home, **settings: object) -> Life:
    """A chat in which something was said before."""
    life = home.start(**settings)  # type: ignore[arg-type]
    life.say("say:hello")
    return life


def started(life: Life, name: str = ANN) -> list[str]:
    """What the turns of a conversation were started by."""
    return [turn.cause for turn in life.transcript(name).turns]


def bodies(life: Life, kind: type[e.Event], name: str = ANN) -> list[e.Event]:
    return [item.event for item in life.events(name) if isinstance(item.event, kind)]


def skips(life: Life, name: str = ANN) -> list[str | None]:
    return [event.skipped for event in bodies(life, e.ScheduleDue, name) if isinstance(event, e.ScheduleDue)]


# asked for in a conversation


def test_a_reminder_starts_one_turn_at_its_time_and_no_message_is_invented(home: Home) -> None:
    """P6, E8"""
    life = begun(home)
    life.say("/remind in 2 minutes say:water the plants")
    assert home.told()[-1].startswith("Scheduled once, Friday 15 January 2027, 08:02 (UTC). To remove it: /remind remove c_")
    life.pass_s(2 * MINUTE - 5)
    assert len(home.heard) == 1
    life.until(lambda: home.replies() == ["hello", "water the plants"], within_s=10)
    life.pass_s(4 * MINUTE)
    assert (len(home.heard), started(life), life.do(life.gateway.schedules())) == (2, ["message", "schedule"], [])
    roles = [(message.role, message.text) for message in life.transcript().messages if message.turn_id is not None]
    assert roles[2:] == [("cause", "say:water the plants"), ("assistant", "water the plants")]


def test_a_reminder_is_listed_and_removed_in_its_chat(home: Home) -> None:
    life = begun(home)
    life.say("/remind")
    assert home.told()[-1].startswith("Nothing is scheduled here. Write for example: /remind tomorrow 9:00 water the plants.")
    life.say("/remind every day 8:30 say:morning")
    life.say("/remind every hour say:tick")
    life.say("/remind")
    [morning, tick] = life.do(life.gateway.schedules())
    assert home.told()[-1].splitlines() == [
        f"{morning.schedule_id}: say:morning (every day at 08:30 (UTC), next Friday 15 January 2027, 08:30 (UTC))",
        f"{tick.schedule_id}: say:tick (every hour, next Friday 15 January 2027, 09:00 (UTC))",
        "",
        "/remind remove ID removes one of them.",
    ]
    life.say(f"/remind remove {tick.schedule_id}")
    assert home.told()[-1] == "Removed: say:tick"
    life.say("/remind remove nothing")
    assert home.told()[-1] == "There is no schedule 'nothing' here. /remind lists them."
    life.say("/remind remove c_")
    assert home.told()[-1] == "Removed: say:morning"  # Only one begins so.
    assert life.do(life.gateway.schedules()) == []


def test_words_that_name_no_time_are_answered_with_what_to_write(home: Home) -> None:
    life = begun(home)
    for words in ("/remind someday do it", "/remind in 20 minutes", "/remind every 5 seconds say:x", "/remind tomorrow"):
        life.say(words)
    told = home.told()[1:]
    assert "does not begin with a time" in told[0] and "the text is empty" in told[1]
    assert "too often" in told[2] and "at what time" in told[3]
    assert life.do(life.gateway.schedules()) == []


def test_only_its_author_or_an_operator_removes_a_reminder(home: Home) -> None:
    life = begun(home)
    life.say("/remind every day 9:00 say:hi")
    life.say("/remind remove c_", sender="bob")
    assert home.told()[-1].endswith("can be removed only by the person who made it, or by an administrator.")
    home.server.operators.add("bob")
    life.say("/remind remove c_", sender="bob")
    assert home.told()[-1] == "Removed: say:hi"


def test_a_schedule_too_many_is_refused_in_words(home: Home) -> None:
    """P8"""
    life = begun(home, schedules=Policy(limit=2, least_s=60))
    for number in range(3):
        life.say(f"/remind every day 9:0{number} say:x")
    assert home.told()[-1] == "This conversation already has 2 schedules, which is the limit. Remove one of them first."
    assert len(life.do(life.gateway.schedules())) == 2


def test_the_same_words_delivered_again_make_one_schedule(home: Home) -> None:
    """P1"""
    life = begun(home)
    update = home.write("/remind every day 9:00 say:x")
    home.server.updates.append(update)
    life.until(lambda: len(life.do(life.gateway.schedules())) == 1)
    life.pass_s(5)
    assert len(life.do(life.gateway.schedules())) == 1


# again and again


def test_an_interval_starts_one_turn_each_time(home: Home) -> None:
    """P6"""
    life = begun(home)
    made = add(life, "say:tick", every_s=60)
    life.pass_s(5 * MINUTE + 30)
    assert home.replies()[1:] == ["tick"] * 5
    [schedule] = life.do(life.gateway.schedules())
    assert schedule.due_at - made.due_at == 5 * 60_000


def test_a_turn_that_takes_longer_than_the_interval_has_one_successor_waiting(home: Home) -> None:
    """P2, P8: nothing piles up."""
    life = begun(home, turn_idle_timeout_s=DAY)
    add(life, "sleep:300|say:done", every_s=60)
    life.pass_s(60 + 290)
    assert (life.session().queued, len(home.heard)) == (1, 2)
    assert skips(life) == [None, None, *[schedules.STILL_WAITS] * 3]
    life.pass_s(30)
    assert (home.replies()[1:], len(home.heard)) == (["done"], 3)


def test_a_failed_turn_starts_nothing_more_until_the_next_time(home: Home) -> None:
    """E7"""
    life = begun(home)
    add(life, "fail", every_s=120)
    life.pass_s(125)
    assert (len(home.heard), life.outcomes()[-1]) == (2, "failed")
    life.pass_s(110)
    assert len(home.heard) == 2
    life.pass_s(10)
    assert len(home.heard) == 3


# while nothing can start


@pytest.mark.parametrize("missed", ["run", "skip"])
def test_what_was_missed_while_away_is_told_once_or_skipped(home: Home, missed: str) -> None:
    """P6, E5: however many times it was."""
    life = begun(home)
    add(life, "say:tick", every_s=3600, missed=missed)
    life.stop()
    home.later(5.9 * HOUR)
    life = home.start()
    life.pass_s(60)
    assert home.replies()[1:] == (["tick"] if missed == "run" else [])
    [due] = bodies(life, e.ScheduleDue)
    assert isinstance(due, e.ScheduleDue)
    assert (due.missed, due.skipped) == (4, None if missed == "run" else schedules.TOO_LATE)
    life.pass_s(6 * MINUTE)
    assert home.replies()[1:] == ["tick"] * (2 if missed == "run" else 1)


def test_what_is_due_during_a_restart_is_not_missed(home: Home) -> None:
    life = begun(home)
    add(life, "say:tick", when="in 1 minute", missed="skip")
    life.pass_s(50)
    life.die()
    home.later(60)
    life = home.start()
    life.until(lambda: home.replies()[1:] == ["tick"], within_s=5)


@pytest.mark.parametrize("missed", ["run", "skip"])
def test_a_pause_holds_schedules_and_what_came_in_it_counts_as_missed(home: Home, missed: str) -> None:
    """A26, C21"""
    life = begun(home)
    add(life, "say:tick", when="in 1 minute", missed=missed)
    life.do(life.gateway.pausing.pause("operator", 480))
    life.pass_s(470)
    assert (len(home.heard), life.session().queued) == (1, 0)
    life.pass_s(20)
    assert home.replies()[1:] == (["tick"] if missed == "run" else [])


@pytest.mark.parametrize("missed", ["run", "skip"])
def test_a_paused_schedule_starts_nothing_and_what_came_meanwhile_is_skipped(home: Home, missed: str) -> None:
    """P6: also over a restart."""
    life = begun(home)
    made = add(life, "say:tick", every_s=60, missed=missed)
    life.pass_s(70)
    assert home.replies()[1:] == ["tick"]
    for _ in range(2):  # Repeating it changes nothing.
        assert life.do(life.gateway.pause_schedule(made.schedule_id, by="ann")).paused_at is not None
    life.pass_s(300)
    life.die()
    life = home.start()
    life.pass_s(300)
    assert home.replies()[1:] == ["tick"]
    for _ in range(2):
        continued = life.do(life.gateway.continue_schedule(made.schedule_id, by="ann"))
        assert continued.paused_at is None and 0 < continued.due_at - life.clock.now() <= 60_000
    assert home.replies()[1:] == ["tick"]
    life.pass_s(60)
    assert home.replies()[1:] == ["tick"] * 2
    kinds = [item.kind for item in life.events() if item.kind.startswith("schedule.")]
    assert kinds == ["schedule.added", "schedule.due", "schedule.paused", "schedule.continued", "schedule.due"]


def test_a_paused_schedule_is_shown_as_such_in_its_chat(home: Home) -> None:
    life = begun(home)
    made = add(life, "say:tick", every_s=3600)
    life.do(life.gateway.pause_schedule(made.schedule_id, by="ann"))
    life.say("/remind")
    assert home.told()[-1].startswith(f"{made.schedule_id}: say:tick (every hour, paused)")


def test_one_whose_only_time_passed_while_paused_says_so_and_can_be_removed(home: Home) -> None:
    life = begun(home)
    made = add(life, "say:tick", when="in 1 minute")
    life.do(life.gateway.pause_schedule(made.schedule_id, by="ann"))
    life.pass_s(120)
    with pytest.raises(ScheduleOver):
        life.do(life.gateway.continue_schedule(made.schedule_id, by="ann"))
    assert [each.paused_at is not None for each in life.do(life.gateway.schedules())] == [True]
    life.do(life.gateway.remove_schedule(made.schedule_id, by="ann"))
    assert home.replies()[1:] == []


@pytest.mark.parametrize("moment", ["before", "after"])
def test_over_a_death_at_a_pause_or_a_continuation_no_time_is_told_twice_or_lost(home: Home, moment: str) -> None:
    """P6, E8: each is one commit, and what the client repeats changes nothing."""
    life = begun(home)
    made = add(life, "say:tick", every_s=60)
    for change, steady in (("pause", False), ("go on", True)):
        life.dies = (moment, life.commits + 1)
        for _ in range(2):
            work = life.gateway.continue_schedule if steady else life.gateway.pause_schedule
            try:
                life.do(work(made.schedule_id, by="ann"))
            except Crash:
                life = home.start()
        life.pass_s(65)
        assert home.replies()[1:] == ["tick"] * steady, change
    kinds = [item.kind for item in life.events() if item.kind.startswith("schedule.")]
    assert kinds == ["schedule.added", "schedule.paused", "schedule.continued", "schedule.due"]


def test_a_schedule_that_is_paused_while_its_time_comes_starts_one_turn_or_none(home: Home) -> None:
    """P6: the pause and the time are each one transaction, in either order."""
    life = begun(home)
    made = add(life, "say:tick", when="in 1 minute")
    due = schedules.due(made, now=made.due_at, zone=UTC)
    assert due is not None
    life.do(life.gateway.pause_schedule(made.schedule_id, by="ann"))
    fired = life.do(life.gateway.store.fire_schedule(made, due, when="then", fresh=("s9", "l9"), at=made.due_at))
    assert fired is None and bodies(life, e.ScheduleDue) == []


def test_in_safe_mode_no_schedule_starts_a_turn(home: Home) -> None:
    """B14: it is told once safe mode is over."""
    life = begun(home)
    add(life, "say:tick", when="in 2 minutes")
    life.stop()
    life = in_safe_mode(home, "bob")
    life.pass_s(3 * MINUTE)
    assert life.gateway.safe_mode and home.replies()[1:] == []
    life.resume_all()
    life.until(lambda: home.replies()[1:] == ["tick"])


def test_in_safe_mode_a_time_that_came_before_waits_in_the_inbox(home: Home) -> None:
    """B14, P6: its cause was recorded, and the process died before its turn began."""
    life = begun(home)
    add(life, "say:tick", when="in 2 minutes")
    life.stop()
    starts_that_died(home, 2)
    life = home.start()
    almost(life, life.do(life.gateway.schedules())[0])
    session_id = life.session().session_id
    assert dies(life, "after", 1) and home.records_on_disk(session_id)[-1] == "cause.recorded"
    life = home.start()
    life.pass_s(30)
    assert (life.gateway.safe_mode, life.session().queued, home.replies()[1:]) == (True, 1, [])
    life.resume_all()
    life.until(lambda: home.replies()[1:] == ["tick"])


# crashes, hand-overs, clocks


def test_over_a_death_at_each_commit_a_time_starts_exactly_one_turn(tmp_path: Path) -> None:
    """P6, E8: before the due time is on record, after it, in the turn, and after that."""
    deaths = 0
    for moment in ("before", "after"):
        for number in itertools.count(1):
            place = tmp_path / f"{moment} {number}"
            place.mkdir()
            with gateways.home(place) as home:
                died = dies_around_a_due_time(home, moment, number)
            deaths += died
            if not died:
                break
    assert deaths > 12


def almost(life: Life, schedule: Schedule) -> None:
    """Time passes until just before it is due: from there on nearly every commit is one of its own."""
    life.pass_s((schedule.due_at - life.clock.now()) / 1000 - 0.02)


def dies(life: Life, moment: str, number: int) -> bool:
    """Whether it has come to so many commits within half a second, and died there."""
    life.dies = (moment, life.commits + number)
    try:
        life.pass_s(0.5)
    except Crash:
        return True
    life.dies = None
    return False


def dies_around_a_due_time(home: Home, moment: str, number: int) -> bool:
    life = home.start()
    page = life.open_page()
    made = life.do(life.gateway.add_schedule(page, "say:one|call:deed|say:two", When(when="in 1 minute")))
    almost(life, made)
    died = dies(life, moment, number)
    life = home.start() if died else life
    life.until(lambda: life.outcomes(page) == ["completed"])
    life.pass_s(10)
    transcript = life.transcript(page)
    assert [turn.cause for turn in transcript.turns] == ["schedule"]
    assert [message.role for message in transcript.messages if message.role in ("user", "cause")] == ["cause"]
    assert all("(started by a schedule)" in (row.decision or "") for row in life.cuts(page))
    assert life.do(life.gateway.schedules()) == [] and len(home.done) <= 1
    return died


def test_two_processes_that_both_serve_for_a_moment_start_one_turn(home: Home) -> None:
    """P2, P6: as in a hand-over."""
    old = begun(home)
    add(old, "say:tick", every_s=60)
    new = home.start(beside=old)
    new.pass_s(3 * MINUTE + 5)
    assert home.replies()[1:] == ["tick"] * 3
    assert len(bodies(new, e.ScheduleDue)) == 3


@pytest.mark.parametrize("missed", ["run", "skip"])
def test_a_clock_that_steps_forward_makes_times_missed_not_many(home: Home, missed: str) -> None:
    """P6"""
    life = begun(home, jumps=[(60.0, 5 * 3_600_000 + 3_300_000)])
    add(life, "say:tick", every_s=3600, missed=missed)
    life.pass_s(120)
    assert home.replies()[1:] == (["tick"] if missed == "run" else [])
    life.pass_s(5 * MINUTE)
    assert home.replies()[1:] == ["tick"] * (2 if missed == "run" else 1)


def test_a_clock_that_steps_back_tells_nothing_twice(home: Home) -> None:
    """P6: the time comes by once more, and is known."""
    life = begun(home, jumps=[(120.0, -2 * 3_600_000), (150.0, 2 * 3_600_000), (180.0, DAY_MS - 60_000)])
    add(life, "say:morning", cron="1 8 * * *")
    life.pass_s(100)
    assert home.replies()[1:] == ["morning"]
    life.pass_s(30)  # It is two hours earlier.
    [schedule] = life.do(life.gateway.schedules())
    assert schedule.due_at - life.clock.now() < 2 * 3_600_000
    life.pass_s(40)  # And later again: the same morning.
    assert (home.replies()[1:], skips(life)) == (["morning"], [None, schedules.SET_BACK, schedules.KNOWN])
    life.pass_s(60)  # The next one.
    assert home.replies()[1:] == ["morning"] * 2


def test_a_clock_that_ran_ahead_for_years_does_not_silence_a_schedule(home: Home) -> None:
    """P6: it fired once in that future, which cannot be undone; from then on it is right again."""
    life = begun(home, jumps=[(60.0, 3650 * DAY_MS), (120.0, -3650 * DAY_MS)])
    add(life, "say:morning", cron="3 8 * * *")
    life.pass_s(100)
    assert home.replies()[1:] == ["morning"]
    life.pass_s(120)
    assert home.replies()[1:] == ["morning"] * 2


# its session


def test_a_schedule_goes_on_in_the_new_conversation_of_its_chat(home: Home) -> None:
    life = begun(home)
    life.say("/remind in 1 minute say:later")
    first = life.session().session_id
    life.say("/new")
    life.pass_s(MINUTE + 5)
    assert life.session().session_id != first and home.replies()[1:] == ["later"]
    assert started(life) == ["schedule"]


def test_in_a_suspended_conversation_a_schedule_starts_nothing_and_says_so_once(home: Home) -> None:
    """P8"""
    life = begun(home)
    add(life, "say:tick", every_s=60)
    life.do(life.gateway.suspend(life.session().session_id))
    life.pass_s(3 * MINUTE)
    assert len(home.heard) == 1
    [told] = [words for words in home.told() if words.startswith("This was scheduled for Friday")]
    assert "is suspended, so nothing was started" in told
    life.say("/resume")
    life.pass_s(MINUTE)
    assert home.replies()[1:] == ["tick"]


def test_a_schedule_goes_with_its_deleted_conversation_and_comes_back_with_it(home: Home) -> None:
    """A28"""
    life = home.start()
    page = life.open_page()
    life.do(life.gateway.add_schedule(page, "say:tick", When(when="in 1 minute")))
    life.do(life.gateway.delete_session(page, by="owner"))
    assert life.do(life.gateway.schedules()) == []
    life.pass_s(2 * MINUTE)
    assert len(home.heard) == 0
    life.do(life.gateway.undelete_session(page, by="owner"))
    life.until(lambda: life.answers(page) == ["tick"])


def test_with_its_platform_not_configured_a_schedule_waits_for_it(home: Home) -> None:
    """R8: as an interrupted turn does."""
    life = begun(home)
    add(life, "say:tick", when="in 1 minute")
    life.stop()
    life = home.start(chats=False)
    life.pass_s(2 * MINUTE)
    assert len(home.heard) == 1
    life.stop()
    life = home.start()
    life.until(lambda: home.replies()[1:] == ["tick"])


def test_the_schedule_of_somebody_who_is_no_longer_allowed_starts_nothing(home: Home) -> None:
    """P6: a schedule has the rights of the one who made it."""
    life = begun(home)
    add(life, "say:tick", every_s=60)
    home.server.banned.add(ANN)
    life.pass_s(2 * MINUTE + 5)
    assert (len(home.heard), skips(life)) == (1, [schedules.NOT_ALLOWED] * 2)
    home.server.banned.clear()
    life.pass_s(MINUTE)
    assert home.replies()[1:] == ["tick"]


def test_a_turn_of_a_schedule_works_for_the_one_who_made_it(home: Home) -> None:
    """P6"""
    life = begun(home)
    life.say("/remind in 1 minute say:hi", sender="bob")
    life.until(lambda: len(home.heard) == 2, within_s=70)
    assert [cause.sender for cause in home.heard[-1].causes] == ["fakechat:bob"]


# interrupted


def test_a_turn_of_a_schedule_is_interrupted_and_resumed_like_any_other(home: Home) -> None:
    """E8"""
    life = begun(home)
    add(life, "say:half|hang / say:done", when="in 1 minute")
    life.pass_s(70)
    life.die()
    life = home.start()
    life.until(lambda: home.replies()[1:] == ["done"])
    life.decided("R9", "resumed")
    [row] = life.cuts()
    assert (row.decision or "").endswith("earlier (started by a schedule)")
    assert "user" not in [message.role for message in life.transcript().messages][2:]


def test_a_set_aside_turn_of_a_schedule_is_put_again_by_a_resume_as_what_it_was(home: Home) -> None:
    """E7, E8, R6: nothing of it starts until a human says so."""
    life = begun(home)
    add(life, "say:half|hang / say:half|hang", when="in 1 minute")
    life.pass_s(70)
    life.die()
    home.later(2 * HOUR)
    life = home.start()
    life.until(lambda: life.outcomes()[-1] == "set_aside")
    life.until(lambda: home.told()[-1].startswith("Work started by a schedule was interrupted by a crash"))
    life.pass_s(MINUTE)
    assert len(home.heard) == 2
    life.write("/resume")
    life.until(lambda: len(home.heard) == 3)
    assert started(life) == ["message", "schedule", "schedule"]


def test_the_agent_is_told_that_nobody_writes_this_now_and_how_late_it_is(home: Home) -> None:
    life = begun(home)
    add(life, "say:tick", every_s=3600)
    life.stop()
    home.later(3.5 * HOUR)
    life = home.start()
    life.until(lambda: len(home.heard) == 2)
    [cause] = home.heard[-1].causes
    assert cause.about is not None
    assert cause.about.startswith("[Scheduled for Friday 15 January 2027, 11:00 (UTC): nobody writes this now.")
    assert "30 minutes late" in cause.about and "2 earlier times were missed" in cause.about
    assert cause.text == "say:tick" and home.heard[-1].text == "say:tick"


# the agent's own


class Planner(ScriptAgent):
    """Makes the calls of `schedule` that its message holds as JSON, and then fails if it is told to."""

    async def run(self, request: AgentRequest, turn: TurnFace) -> None:
        if not request.text.startswith("["):
            return await super().run(request, turn)
        for number, arguments in enumerate(json.loads(request.text)):
            await turn.say((await turn.call(f"{request.turn_id}.{number}", "schedule", arguments)).text + "\n")
        raise Failure("as it was told")


def planning(home: Home, **settings: object) -> Life:
    def tools(life: Life) -> list[Tool]:
        return [ScheduleWork(life.store, clock=life.clock, ids=RandomIds(), policy=Policy(limit=2))]

    home.more_tools, home.agent = tools, lambda life: Planner(home.heard, home.edge)
    return begun(home, **settings)


PLANNED: dict[str, object] = {"action": "create", "text": "say:planned", "when": "in 2 minutes"}


def test_an_agent_plans_work_once_it_is_approved_and_that_stands_though_its_turn_fails(home: Home) -> None:
    """E7, P5: it asks by policy."""
    life = planning(home)
    life.write(json.dumps([PLANNED]))
    life.until(lambda: life.session().state == "waiting")
    assert life.do(life.gateway.schedules()) == []
    life.write("/approve")
    life.until(lambda: life.outcomes()[-1] == "failed")
    [schedule] = life.do(life.gateway.schedules())
    assert (schedule.text, schedule.sender, schedule.call_id is not None) == ("say:planned", f"fakechat:{ANN}", True)
    life.pass_s(2 * MINUTE)
    assert (home.replies()[-1], started(life)[1:]) == ("planned", ["message", "schedule"])


def test_an_agent_that_may_plans_lists_and_removes_without_asking(home: Home) -> None:
    life = planning(home, policy=Rules(allow=(Pattern("schedule"),)))
    asked: list[dict[str, object]] = [
        {"action": "list"},
        PLANNED,
        PLANNED | {"cron": "0 9 * * *"},
        {"action": "create", "cron": "0 9 * * *"},
    ]
    life.say(
        json.dumps([*asked, PLANNED | {"when": "every day 9:00"}, PLANNED, {"action": "list"}, {"action": "remove", "schedule_id": "c_x"}])
    )
    lines = life.answers()[-1].splitlines()
    assert lines[0] == "Nothing is scheduled in this conversation."
    assert lines[1].startswith("Scheduled as c_") and lines[1].endswith(": once, Friday 15 January 2027, 08:02 (UTC).")
    assert "exactly one of" in lines[2] and "the text is empty" in lines[3]
    assert lines[4].endswith(": every day at 09:00 (UTC), next Friday 15 January 2027, 09:00 (UTC).")
    assert "already has 2 schedules" in lines[5] and len([line for line in lines if line.startswith("c_")]) == 2
    assert lines[-1] == "There is no schedule 'c_x' in this conversation."
    first = life.do(life.gateway.schedules())[0]
    life.say(json.dumps([{"action": "remove", "schedule_id": first.schedule_id}]))
    assert first not in life.do(life.gateway.schedules())


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_schedule_that_an_agent_made_is_made_once_over_a_death_at_each_commit(tmp_path: Path, moment: str) -> None:
    """P5: the call is repeated under its key."""
    for number in itertools.count(1):
        place = tmp_path / str(number)
        place.mkdir()
        with gateways.home(place) as home:
            life = planning(home, policy=Rules(allow=(Pattern("schedule"),)))
            page = life.open_page()
            life.post(page, json.dumps([PLANNED]))
            died = dies(life, moment, number)
            life = home.start(policy=Rules(allow=(Pattern("schedule"),))) if died else life
            life.until(lambda life=life, page=page: life.outcomes(page) == ["failed"])  # type: ignore[misc]
            assert len(life.do(life.gateway.schedules())) == 1
        if not died:
            assert number > 5
            return


def test_what_is_asked_for_and_no_schedule_is_refused(home: Home) -> None:
    life = begun(home)
    session_id = life.session().session_id
    for when in (When(), When(at="2020-01-01T00:00Z"), When(every_s=5), When(cron="* *"), When(when="tomorrow 9:00", time_zone="Mars/X")):
        with pytest.raises(BadInput):
            life.do(life.gateway.add_schedule(session_id, "x", when))
    with pytest.raises(BadInput):
        life.do(life.gateway.add_schedule(session_id, "  ", When(when="in 1 hour")))
