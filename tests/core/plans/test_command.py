"""Words to the gateway itself: what is done, and what is said about it."""

from typing import Any

import msgspec
import pytest

from holdfast.core import events as e
from holdfast.core import model_choice, notices, reminders
from holdfast.core.errors import NotYours
from holdfast.core.plans import Plan, command, resume
from holdfast.core.plans.answer import Answer, Snapshot
from holdfast.core.plans.command import ALL, Aside, Choose, Forget, Judge, Remind, Resume, Say
from holdfast.core.plans.leave import Underway
from holdfast.core.recitals import Recital
from holdfast.core.schedules import Schedule, Timing, TooManySchedules
from holdfast.core.turns import OPEN, TurnState
from tests.core.plans.values import AT, CHAT, STATES, events, kinds, session, unattended

ASIDE = Aside(
    message_id="m9", content="/resume 1", sender="ann", dedup_key="k9", anchor="a9", recital=Recital(digest="d", instructions="i")
)


def test_a_command_is_recorded_as_said_and_answered_by_a_notice() -> None:
    """P1: under its dedup key, and as a reply to it."""
    plan = command.say(session(), ASIDE, Say("Fine."))
    said, told = events(plan, e.MessageWritten)
    assert (said.role, said.text, said.message_id, said.dedup_key) == ("user", "/resume 1", "m9", "k9")
    assert said.recital == ASIDE.recital
    assert (told.role, told.text, told.message_id, told.anchor) == ("notice", "Fine.", "m9.reply", "a9")
    assert (plan.reply.message_id, plan.reply.session_id) == ("m9", "s1")


@pytest.mark.parametrize("state", STATES)
def test_resuming_another_conversation_says_whether_it_stopped_something(state: TurnState) -> None:
    """A22: only what was under way in the conversation that is left."""
    current = session(state, session_id="s2", current=True)
    found = resume.Snapshot(
        session=session(TurnState.ENDED, current=False), other=Underway(session=current, unfinished=unattended(current))
    )
    plan = command.resumed(found, current, ASIDE, Resume("s1", "ann"))
    told = [event.text for event in events(plan, e.MessageWritten) if event.message_id == "m9.reply"]
    assert ["was stopped" in text for text in told] == [state in OPEN]


@pytest.mark.parametrize(("state", "waits"), [(state, waits) for state in STATES for waits in (False, True)])
def test_a_resume_says_whether_the_interrupted_work_waits_for_that_of_another_conversation(state: TurnState, waits: bool) -> None:
    """A22: a turn whose question was answered waits for nobody."""
    found = resume.Snapshot(session=session(state, current=False))
    plan = command.resumed(found, session(session_id="s2"), ASIDE, Resume("s1", "ann", waits=waits))
    assert (notices.ONE_AT_A_TIME in reply(plan)) == (waits and state is TurnState.INTERRUPTED)


def test_work_that_a_resume_by_command_continues_need_not_wait_unless_that_is_said() -> None:
    assert Resume("s1", "ann") == Resume("s1", "ann", waits=False)


def reply(plan: Plan[Any]) -> str:
    (told,) = [event.text for event in events(plan, e.MessageWritten) if event.message_id == "m9.reply"]
    return str(told)


def test_a_model_that_is_chosen_is_the_sessions_and_the_reply_names_it() -> None:
    plan = command.choose(session(), ASIDE, Choose("claude:large"))
    assert [event.model for event in events(plan, e.SessionChanged)] == ["claude:large"]
    assert reply(plan) == model_choice.chose("claude:large")
    assert kinds(plan) == ["session.changed", "message.written", "message.written"]


def asks(*ids: str, others: int | None = None, **facts: Any) -> list[Snapshot]:
    return [
        Snapshot(
            session=session(TurnState.WAITING), question_id=id_, call_id=f"{id_}.call", state="open", expires_at=AT + 1,
            others=len(ids) - 1 if others is None else others, form="approval", asked_by="ann", **facts,
        )
        for id_ in ids
    ]  # fmt: skip


def judged(found: list[Snapshot], which: str, verdict: str = "approve", **facts: Any) -> Plan[Any]:
    return command.judge(session(), found, ASIDE, Judge(answer=Answer(by="ann", verdict=verdict, **facts), which=which), at=AT)


@pytest.mark.parametrize("verdict", ["approve", "deny"])
@pytest.mark.parametrize("which", ["", "q", "qa1", ALL])
def test_the_only_call_that_waits_need_not_be_named(which: str, verdict: str) -> None:
    """A27"""
    plan = judged(asks("qa1"), which, verdict)
    assert [(event.question_id, event.verdict, event.last) for event in events(plan, e.QuestionAnswered)] == [("qa1", verdict, True)]
    assert reply(plan) == ("The call is approved." if verdict == "approve" else "The call is denied.")
    assert kinds(plan)[-2:] == ["message.written"] * 2


@pytest.mark.parametrize(
    ("which", "answered", "told"),
    [
        ("", [], notices.approve_which(["qa1", "qa2", "qb1"])),
        ("qa", [], notices.approve_which(["qa1", "qa2"])),
        ("qb", [("qb1", False)], "The call is approved."),
        ("qa2", [("qa2", False)], "The call is approved."),
        ("qc", [], notices.nothing_to_approve("qc")),
        ("all", [("qa1", False), ("qa2", False), ("qb1", True)], "3 calls are approved."),
    ],
)
def test_of_several_calls_that_wait_those_are_judged_that_are_named(which: str, answered: list[tuple[str, bool]], told: str) -> None:
    """A27: the turn continues after the last one."""
    plan = judged(asks("qa1", "qa2", "qb1"), which)
    assert [(event.question_id, event.last) for event in events(plan, e.QuestionAnswered)] == answered
    assert reply(plan) == told


@pytest.mark.parametrize(("which", "answered"), [("", ["qa1"]), (ALL, ["qa1"]), ("qb", ["qb1"])])
def test_a_call_whose_question_has_not_arrived_is_judged_only_by_its_name(which: str, answered: list[str]) -> None:
    """A27: another call may have been asked about since the words were written."""
    plan = judged([*asks("qa1"), *asks("qb1", seen=False)], which)
    assert [event.question_id for event in events(plan, e.QuestionAnswered)] == answered
    unseen = judged(asks("qb1", seen=False), ALL)
    assert (kinds(unseen), reply(unseen)) == (["message.written"] * 2, notices.nothing_to_approve(""))


def test_a_turn_that_also_asks_something_else_waits_for_that_when_all_calls_are_judged() -> None:
    plan = judged(asks("qa1", "qa2", others=2), ALL)
    assert [event.last for event in events(plan, e.QuestionAnswered)] == [False, False]


@pytest.mark.parametrize("which", ["", "q9", ALL])
def test_where_nothing_waits_nothing_is_judged(which: str) -> None:
    plan = judged([], which)
    assert (kinds(plan), reply(plan)) == (["message.written"] * 2, notices.nothing_to_approve(""))


def test_what_is_refused_for_one_call_is_done_for_none() -> None:
    """A27: whoever did not ask for the work and is no operator judges nothing of it."""
    found = [msgspec.structs.replace(each, asked_by=by) for each, by in zip(asks("qa1", "qa2"), ("ann", "bob"), strict=True)]
    plan = judged(found, ALL, operator=False)
    assert (kinds(plan), reply(plan)) == (["message.written"] * 2, str(NotYours("qa2")))


def test_a_judgement_that_names_nothing_means_the_only_one() -> None:
    assert Judge(answer=Answer(by="ann", verdict="deny")).which == ""


# what is planned

ADDED = e.ScheduleAdded(schedule_id="c1", content="water the plants", due_at=AT + 5, sender="ann")


@pytest.mark.parametrize(("here", "limit"), [(0, 1), (2, 2), (3, 2)])
def test_a_reminder_is_added_and_confirmed_or_refused_with_the_reason(here: int, limit: int) -> None:
    """P1: the words are on record either way."""
    plan = command.remind(session(), ASIDE, Remind(ADDED, limit, "I will."), here=here)
    added = [ADDED] if here < limit else []
    assert events(plan, e.ScheduleAdded) == added
    assert reply(plan) == ("I will." if added else str(TooManySchedules(limit)))
    assert (plan.reply.message_id, plan.reply.session_id) == ("m9", "s1")


def planned(name: str, sender: str = "ann") -> Schedule:
    return Schedule(
        schedule_id=name,
        session_id="s0",
        session_key=CHAT,
        text=f"text of {name}",
        timing=Timing(once_at=9),
        missed="run",
        sender=sender,
        call_id=None,
        created_at=1,
        due_at=9,
        noted_at=1,
    )


@pytest.mark.parametrize(
    ("which", "by", "operator", "removed", "told"),
    [
        ("c1", "ann", False, "c1", "Removed: text of c1"),
        ("c1", "bob", False, None, reminders.not_yours("c1")),
        ("c1", "bob", True, "c1", "Removed: text of c1"),
        ("c1", "ann", True, "c1", "Removed: text of c1"),
        ("c2", "ann", False, None, reminders.no_such("c2", 2)),
        ("c9", "ann", True, None, reminders.no_such("c9", 0)),
        ("", "ann", True, None, reminders.no_such("", 0)),
    ],
)
def test_a_reminder_is_removed_by_whoever_made_it_or_an_administrator(
    which: str, by: str, operator: bool, removed: str | None, told: str
) -> None:
    """By as much of its id as tells it from the others, where it was made."""
    found = [planned("c1"), planned("c21"), planned("c22")]
    plan = command.forget(session(), found, ASIDE, Forget(which, by, operator))
    gone = [(write.session_id, write.event) for write in plan.writes if isinstance(write.event, e.ScheduleRemoved)]
    assert gone == ([("s0", e.ScheduleRemoved(schedule_id=removed, by=by))] if removed else [])
    assert reply(plan) == told


def test_a_reminder_is_removed_only_by_words_that_name_it() -> None:
    """The only one that there is, is not meant by saying nothing."""
    plan = command.forget(session(), [planned("c1")], ASIDE, Forget("", "ann", True))
    assert events(plan, e.ScheduleRemoved) == [] and reply(plan) == reminders.no_such("", 0)
