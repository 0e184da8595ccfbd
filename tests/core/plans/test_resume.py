"""Resuming over every state of the session, of the one it takes the place of, and of its last request."""

from itertools import product

import pytest

from holdfast.core import events as e
from holdfast.core.plans import command, resume
from holdfast.core.plans.command import Aside
from holdfast.core.plans.leave import RESUMED_FIRST, Moved, Underway
from holdfast.core.plans.repeats import CONTINUES, NOTHING, RESUME, Known
from holdfast.core.plans.resume import Request, Snapshot
from holdfast.core.sessions import Session
from holdfast.core.turns import OPEN, TurnState
from tests.core.plans.values import STATES, events, kinds, session, unattended, waiting

WORDS = Aside(message_id="m9", content="/resume", sender="ann", dedup_key="k9", anchor="a9")
ASKED = Request(e.MessageAccepted(message_id="m1", content="do it", sender="ann", anchor="a1", sender_name="Ann"), "crash")


def other(state: TurnState) -> Underway:
    of = session(state, session_id="s0", turn_id="t0", queued=1)
    return Underway(session=of, unfinished=unattended(of), waiting=waiting("message"))


def resumable(state: TurnState, *, rule: str | None = None, **facts: object) -> Session:
    return session(state, rule=rule, **facts)


CASES = list(product(STATES, (None, "R2", "R6", "R7"), (False, True), (False, True), (False, True)))


@pytest.mark.parametrize(("state", "rule", "suspended", "current", "readable"), CASES)
def test_a_resume_continues_what_was_interrupted_and_puts_again_what_was_set_aside(
    state: TurnState, rule: str | None, suspended: bool, current: bool, readable: bool
) -> None:
    """B1, R2, R6"""
    of = resumable(state, rule=rule, suspended=suspended, current=current)
    found = Snapshot(session=of, other=None if current else other(TurnState.RUNNING), request=ASKED if readable else None)
    plan = resume.plan(found, by="ann", dedup_key="k")
    set_aside = state is TurnState.ENDED and rule in ("R2", "R6")
    if current and not suspended and not set_aside and state is not TurnState.INTERRUPTED:
        assert plan.reply == Moved("s1", changed=False)
        assert [write.event for write in plan.writes] == [e.RequestNoted(what="resume", dedup_key="k")]
        return
    again = set_aside and readable
    continues = again or state in (TurnState.INTERRUPTED, TurnState.ANSWERED)
    assert plan.reply == Moved("s1", changed=True, continues=continues)
    assert events(plan, e.SessionResumed) == [e.SessionResumed(by="ann", goes_on=continues, dedup_key="k")]
    put = events(plan, e.MessageAccepted)
    assert len(put) == again
    for message in put:
        assert (message.message_id, message.text, message.anchor) == ("t1.again.20", "do it", "a1")
        assert (message.sender, message.sender_name) == ("ann", "Ann")
        assert events(plan, e.SessionChanged) == [e.SessionChanged(resume_pending=True, resume_reason="crash")]
    left = [write for write in plan.writes if write.session_id == "s0"]
    assert bool(left) == (not current)


def test_what_another_cause_started_is_put_again_as_what_it_was() -> None:
    """E8: no message is invented, and the time of a schedule is still named; its own key is used up."""
    due = e.DueTime(schedule_id="c1", due_at=5, when="then")
    cause = e.CauseRecorded(
        cause_id="c1.5", what="schedule", content="do it", sender="ann", generation=4, during=True, schedule=due, dedup_key="k"
    )
    of = session(TurnState.ENDED, rule="R6")
    plan = resume.plan(Snapshot(session=of, request=Request(cause, "crash")), by="bob")
    assert (plan.reply, kinds(plan)) == (
        Moved("s1", changed=True, continues=True),
        ["session.resumed", "session.changed", "cause.recorded"],
    )
    assert events(plan, e.CauseRecorded) == [
        e.CauseRecorded(cause_id="t1.again.20", what="schedule", content="do it", sender="ann", schedule=due)
    ]


@pytest.mark.parametrize("state", STATES)
def test_the_session_it_takes_the_place_of_is_left_first(state: TurnState) -> None:
    """A20, A22"""
    of = resumable(TurnState.ENDED, current=False)
    plan = resume.plan(Snapshot(session=of, other=other(state)), by="ann")
    where = [write.session_id for write in plan.writes]
    assert where == sorted(where) and where[-1] == "s1"
    assert [event.turn_id for event in events(plan, e.StopRequested)] == (["t0"] if state in OPEN else [])
    assert [event.reason for event in events(plan, e.MessageRefused)] == [RESUMED_FIRST]


@pytest.mark.parametrize("ref", [CONTINUES, "", NOTHING])
def test_a_repeated_resume_gives_the_first_reply(ref: str) -> None:
    """A22"""
    assert resume.again(Known(RESUME, "s1", ref)) == Moved("s1", changed=ref != NOTHING, continues=ref == CONTINUES)


@pytest.mark.parametrize(("state", "rule", "suspended", "queued"), list(product(STATES, (None, "R2", "R6"), (False, True), (0, 1))))
def test_a_resume_that_names_nothing_means_what_stopped_here_or_the_conversation_before(
    state: TurnState, rule: str | None, suspended: bool, queued: int
) -> None:
    of = resumable(state, rule=rule, suspended=suspended, queued=queued)
    set_aside = state is TurnState.ENDED and rule is not None and not queued
    here = suspended or state is TurnState.INTERRUPTED or set_aside
    assert resume.wanted(of, previous="s0") == ("s1" if here else None if state in OPEN else "s0")
    assert resume.looks_back(of) == (not here and state not in OPEN)


@pytest.mark.parametrize(("state", "named", "elsewhere"), list(product(STATES, (None, "s1"), (False, True))))
def test_a_resume_by_command_says_what_it_did(state: TurnState, named: str | None, elsewhere: bool) -> None:
    """`elsewhere`: it was said in another conversation, which is left."""
    of = resumable(state, current=not elsewhere)
    running = other(TurnState.RUNNING)
    found = Snapshot(session=of, other=running if elsewhere else None)
    plan = command.resumed(found, running.session if elsewhere else of, WORDS, command.Resume(named, "ann"))
    assert plan.reply.session_id == "s1" and kinds(plan)[-2:] == ["message.written"] * 2
    told = plan.writes[-1].event
    assert isinstance(told, e.MessageWritten)
    if elsewhere or state is TurnState.INTERRUPTED:
        assert told.text.startswith("Back in the conversation “A title”.")
        assert ("interrupted work continues" in told.text) == (state in (TurnState.INTERRUPTED, TurnState.ANSWERED))
        assert ("was stopped" in told.text) == elsewhere
    elif state in OPEN:
        assert ("waiting for your answer" in told.text) == (state is TurnState.WAITING)
    else:
        assert ("already in that conversation" in told.text) == (named is not None)


@pytest.mark.parametrize("state", STATES)
def test_nothing_to_resume_is_said(state: TurnState) -> None:
    plan = command.nothing_to_resume(session(state), WORDS)
    told = plan.writes[-1].event
    assert isinstance(told, e.MessageWritten) and "nothing to resume" in told.text
    assert ("this conversation" in told.text) == (state in OPEN)


def test_words_that_ask_for_nothing_are_recorded_and_replied_to() -> None:
    plan = command.say(session(TurnState.RUNNING), WORDS, command.Say("Hello."))
    assert kinds(plan) == ["message.written"] * 2 and not any(write.in_turn for write in plan.writes)
