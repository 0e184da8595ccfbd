"""Whether a turn starts, over every fact that may keep it from starting, and what it starts from."""

from itertools import product

import msgspec
import pytest

from holdfast.core import events as e
from holdfast.core.limits import Reached
from holdfast.core.plans import Write, causes, start
from holdfast.core.plans.causes import Cause, Recorded
from holdfast.core.plans.ending import Unfinished
from holdfast.core.plans.start import Lane, Verdict
from holdfast.core.turns import TurnState
from tests.core.plans.values import CHAT, STATES, call, kinds, session, waiting, written

FLAGS = (False, True)


def lane(state: TurnState = TurnState.ENDED, **facts: bool) -> Lane:
    usual = {"left": False, "stop_requested": False, "told_to_stop": False, "suspended": False, "current": True, "waits": True}
    flags = {**usual, "another_ends": False, **facts}
    return Lane(session_id="s1", session_key=CHAT, state=state, generation=5, newest=5, epoch=2, rule="R7", why="held", model=None, **flags)


@pytest.mark.parametrize(("state", "left", "stop", "told"), list(product(STATES, FLAGS, FLAGS, FLAGS)))
def test_a_turn_starts_only_where_none_is_open_or_the_open_one_was_left(state: TurnState, left: bool, stop: bool, told: bool) -> None:
    """P2, A23, C28: over every other fact, too."""
    free = state in (TurnState.NONE, TurnState.ENDED)
    aside = state is TurnState.INTERRUPTED and left and not stop
    for suspended, current, another, waits in product(FLAGS, FLAGS, FLAGS, FLAGS):
        facts = {"left": left, "stop_requested": stop, "told_to_stop": told, "suspended": suspended, "current": current}
        found = lane(state, **facts, another_ends=another, waits=waits)
        if told or not (free or aside):
            expected = Verdict.REST
        elif suspended or not current:
            expected = Verdict.TURN_AWAY
        else:
            expected = Verdict.START if waits and not another else Verdict.REST
        assert start.verdict(found) is expected
        assert start.sets_aside(found) == aside


@pytest.mark.parametrize("model", [None, "a:first", "writer"])
def test_a_turn_keeps_what_was_chosen_to_answer_when_it_began(model: str | None) -> None:
    plan = start.plan(msgspec.structs.replace(lane(), model=model), waiting("message")[0], owner=7, turn_id="t2", trial=False)
    [started] = [write.event for write in plan.writes if isinstance(write.event, e.TurnStarted)]
    assert started.model == model


@pytest.mark.parametrize("suspended", FLAGS)
def test_what_waits_where_no_turn_will_start_is_turned_away(suspended: bool) -> None:
    """A20, P6"""
    plan = start.turn_away(lane(suspended=suspended, current=suspended), waiting("message", "timer"))
    why = causes.SUSPENDED_FIRST if suspended else causes.LEFT_FIRST
    assert [write.event for write in plan.writes[:2]] == [
        e.CauseDropped(cause_id="w2", reason=why),
        e.MessageRefused(message_id="w1", reason=why),
    ]
    assert kinds(plan)[2:] == ["message.written"]
    assert start.turn_away(lane(suspended=True), ()).writes == ()


@pytest.mark.parametrize(("what", "trial", "aside"), list(product(("message", "process"), FLAGS, FLAGS)))
def test_a_turn_starts_from_its_cause_and_ends_the_one_that_was_left(what: str, trial: bool, aside: bool) -> None:
    """P6, A13, A23"""
    left = Unfinished(session_key=CHAT, turn_id="t1", said="so far", calls=[call("c1")]) if aside else None
    plan = start.plan(lane(), waiting(what)[0], unfinished=left, owner=7, turn_id="t2", trial=trial)
    assert plan.reply
    said = [write for write in plan.writes if isinstance(write.event, e.MessageWritten) and write.event.role == "user"]
    first = len(plan.writes) - 1 - len(said)
    started = plan.writes[first]
    assert started.event == e.TurnStarted(generation=6, attempt=1, cause=what, causes=("w1",), owner=7, epoch=3, trial=trial)
    assert (started.in_turn, started.starts) == (True, "t2")
    expected = e.MessageWritten(message_id="w1", role="user", content="words 1")
    assert said == ([Write("s1", expected, in_turn=True)] if what == "message" else [])
    assert kinds(plan)[:first] == (["tool.finished", "message.written", "turn.ended"] if aside else [])
    for write in plan.writes[:first]:
        assert write.in_turn and write.starts is None
    if aside:
        ended = plan.writes[2].event
        assert isinstance(ended, e.TurnEnded)
        assert (ended.rule, ended.why, ended.still_pending) == ("R7", "held", True)


@pytest.mark.parametrize("more", FLAGS)
def test_causes_of_an_earlier_turn_are_dropped_on_record_before_the_next_one_is_taken(more: bool) -> None:
    """P6, E3"""
    gone = waiting("process", "watch")
    cause = Cause(cause_id="w3", content="hi") if more else None
    plan = start.plan(lane(), cause, outdated=gone, owner=7, turn_id="t2", trial=False)
    assert plan.reply == more
    assert written(plan)[:2] == [("s1", "cause.dropped", False)] * 2
    assert kinds(plan)[2:] == (["turn.started", "message.written"] if more else [])


@pytest.mark.parametrize(("generation", "newest"), list(product((None, 4, 5, 6), (5,))))
def test_a_cause_is_current_while_the_turn_it_belongs_to_is_the_newest(generation: int | None, newest: int) -> None:
    """E3"""
    assert causes.outdated(Cause(cause_id="w1", content="", generation=generation), newest) == (generation in (4, 6))


@pytest.mark.parametrize(("current", "suspended", "generation"), list(product(FLAGS, FLAGS, (None, 4, 5))))
def test_a_cause_that_will_start_no_turn_is_dropped_where_it_is_recorded(current: bool, suspended: bool, generation: int | None) -> None:
    """P6, E3, E6"""
    cause = e.CauseRecorded(cause_id="w1", what="process", content="It ended.", generation=generation, dedup_key="k")
    plan = causes.record(session(TurnState.ENDED, current=current, suspended=suspended), cause)
    assert plan.writes[0].event is cause
    reasons = [write.event.reason for write in plan.writes[1:] if isinstance(write.event, e.CauseDropped)]
    expected = causes.LEFT_FIRST if not current else causes.SUSPENDED_FIRST if suspended else causes.OUTDATED if generation == 4 else None
    assert reasons == ([] if expected is None else [expected])
    assert plan.reply == Recorded("w1", "s1", duplicate=False, dropped=expected)
    assert not any(write.in_turn for write in plan.writes)


def test_a_cause_is_read_from_its_record_whatever_kind_it_is() -> None:
    """P1: a damaged message still starts its turn; somebody waits for it."""
    said = e.MessageAccepted(message_id="w1", content="hi", sender="ann", anchor="a1", mode="steer")
    assert causes.read("w1", said) == Cause(cause_id="w1", content="hi", sender="ann", anchor="a1", steers=True)
    ended = e.CauseRecorded(cause_id="w2", what="timer", content="It ended.", sender="ann", anchor="a2", generation=5)
    expected = Cause(cause_id="w2", content="It ended.", what="timer", sender="ann", anchor="a2", generation=5)
    assert causes.read("w2", ended) == expected and not expected.steers
    damaged = causes.read("w3", e.Damaged(reason="gone"))
    assert (damaged.content, damaged.what, damaged.steers) == (causes.UNREADABLE, "message", False)


def test_a_cause_that_was_edited_is_read_with_its_newest_words() -> None:
    """P1, P6: also where its first words are damaged; a damaged edit changes nothing. A correction is meant for the turn that runs."""
    said = e.MessageAccepted(message_id="w1", content="old", sender="ann", anchor="a1")
    edited = e.MessageEdited(message_id="w1", content="new", sender="ann", since=1)
    lost = e.Damaged(reason="gone")
    assert causes.read("w1", said, edited) == Cause(cause_id="w1", content="new", sender="ann", anchor="a1")
    assert causes.read("w1", said, lost).content == "old"
    assert (causes.read("w1", lost, edited).content, causes.read("w1", lost, lost).content) == ("new", causes.UNREADABLE)
    correction = e.CauseRecorded(cause_id="w1.edit.2", what="edit", content="It now reads: new", generation=5)
    assert causes.read("w1.edit.2", correction).steers


@pytest.mark.parametrize(("generation", "during"), list(product((4, 5, None), FLAGS)))
def test_no_turn_starts_from_what_belongs_to_another_turn(generation: int | None, during: bool) -> None:
    """E3, P6: to one before the newest, or to the newest alone, because it was open then."""
    found = causes.read("w1", e.CauseRecorded(cause_id="w1", what="watch", content="x", generation=generation, during=during))
    assert causes.startable(found, 5) is (generation != 4 and not during)


@pytest.mark.parametrize(("what", "holds"), [("message", False), ("edit", False), ("process", True), ("timer", True)])
def test_in_safe_mode_only_what_people_said_starts_a_turn(what: str, holds: bool) -> None:
    """B14"""
    assert causes.held(Cause(cause_id="w1", content="x", what=what)) is holds


@pytest.mark.parametrize("tells", FLAGS)
def test_the_end_of_a_process_that_waits_where_no_turn_will_start_is_told_as_a_notice(tells: bool) -> None:
    """E3: whatever becomes of its session. What it printed is dropped without a word."""
    ended = Cause(cause_id="p1.ended", content="It ended.", what="process", anchor="a1")
    turned = causes.turned_away(CHAT, [ended, Cause(cause_id="p1.matched.4", content="x", what="watch")], "why", tells=tells)
    dropped = [(event.cause_id, event.reason) for event in turned if isinstance(event, e.CauseDropped)]
    told = [(event.role, event.message_id, event.text, event.anchor) for event in turned if isinstance(event, e.MessageWritten)]
    assert dropped == [("p1.ended", "why"), ("p1.matched.4", "why")]
    assert told == ([("notice", "p1.ended.told", "It ended.", "a1")] if tells else [])
    assert tells is False or causes.turned_away(CHAT, [ended], "why") == causes.turned_away(CHAT, [ended], "why", tells=True)


@pytest.mark.parametrize(("what", "kind"), [("message", "message.refused"), ("timer", "cause.dropped")])
def test_whoever_may_have_no_more_turns_is_told_and_nothing_starts(what: str, kind: str) -> None:
    """P1, P6"""
    cause = Cause(cause_id="w1", content="words", what=what, sender="ann", anchor="a1")
    plan = start.refuse(lane(), cause, Reached(name="sender_turns", limit=3, spent=3, asks=False))
    assert kinds(plan) == [kind, "message.written"] and written(plan) == [("s1", kind, False), ("s1", "message.written", False)]
    refused, told = (write.event for write in plan.writes)
    assert isinstance(refused, e.MessageRefused | e.CauseDropped) and refused.reason == "its sender has reached limits.sender_turns"
    assert isinstance(told, e.MessageWritten) and (told.role, told.anchor) == ("notice", "a1")
    assert told.delivery_id == told.message_id == "w1.refused"
    assert told.text == "You have used today 3 turns; the limit is 3 turns (limits.sender_turns). Try again tomorrow."


def test_of_a_process_whose_sender_may_have_no_more_turns_the_end_is_told_and_its_lines_are_not() -> None:
    """E3"""
    reached = Reached(name="sender_turns", limit=3, spent=3, asks=False)
    ended = start.refuse(lane(), Cause(cause_id="p1.ended", content="It ended.", what="process", anchor="a1"), reached)
    assert kinds(ended) == ["cause.dropped", "message.written"]
    told = ended.writes[1].event
    assert isinstance(told, e.MessageWritten) and told.text.startswith("It ended.\n\nYou have used today 3 turns;") and told.anchor == "a1"
    assert kinds(start.refuse(lane(), Cause(cause_id="p1.matched.4", content="x", what="watch"), reached)) == ["cause.dropped"]


@pytest.mark.parametrize(("safe", "aside"), list(product(FLAGS, FLAGS)))
def test_only_what_a_person_said_starts_a_turn_in_safe_mode_and_where_one_was_left(safe: bool, aside: bool) -> None:
    """A23, B14"""
    found = lane(TurnState.INTERRUPTED if aside else TurnState.ENDED, left=aside)
    assert start.only_said(found, safe=safe) is (safe or aside)


@pytest.mark.parametrize(("sender", "day"), [("ann", "2025-01-01"), ("ann", None), (None, "2025-01-01")])
def test_a_turn_counts_for_its_sender_where_turns_are_limited(sender: str | None, day: str | None) -> None:
    cause = Cause(cause_id="w1", content="words", sender=sender)
    plan = start.plan(lane(), cause, owner=7, turn_id="t2", trial=False, day=day)
    [started] = [write.event for write in plan.writes if isinstance(write.event, e.TurnStarted)]
    assert (started.sender, started.day) == (("ann", day) if sender and day else (None, None))
