"""A conversation that begins with what another one said: the same words, and nothing of it happens once more."""

import msgspec
import pytest
from hypothesis import given, settings

from holdfast.core import events as e
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.errors import NotFound
from holdfast.core.plans import Plan, branch
from holdfast.core.plans.branch import Names, NotOverYet, Origin, TooMuchToCopy
from holdfast.core.recitals import Recital
from holdfast.core.sessions import Session
from holdfast.core.transcript import Transcript
from holdfast.core.turns import Outcome, TurnState
from tests.core.logs import STEPS, Log, begun, fold, simple, story, text

SESSION = Session(
    session_id="s1", session_key="agent:main:telegram:dm:7", log="l1", generation=1, seq=9, created_at=1, updated_at=1, folder="/work"
)


def branched(log: Log, message_id: str) -> Plan[str]:
    turns = branch.turns_up_to(fold(log), message_id)
    records = [item for item in log.records() if branch.concerns(item, turns)]
    names = Names(session_id="s2", session_key="agent:main:web:page:s2", log="l2", turns={turn: f"new.{turn}" for turn in turns})
    origin = Origin(session=SESSION, message_id=message_id, turns=turns, records=tuple(records))
    return branch.plan(origin, names, by="owner")


def written(plan: Plan[str]) -> Transcript:
    """The conversation that the plan makes."""
    log = Log()
    for write in plan.writes:
        if write.starts is not None:
            log.turn = write.starts
        (log.in_turn if write.in_turn else log.free)(write.event)
    return fold(log)


def said(transcript: Transcript, turns: tuple[str, ...]) -> list[tuple[str, str]]:
    found = [message for message in transcript.messages if message.turn_id in turns]
    return [(message.role, message.text) for message in found if message.role in ("user", "assistant")]


def events(plan: Plan[str], kind: type[e.Event]) -> list[e.Event]:
    return [write.event for write in plan.writes if isinstance(write.event, kind)]


def test_a_branch_from_an_answer_has_everything_up_to_it_and_says_where_it_is_from() -> None:
    log = simple().said("m2", "more").started("t2", "m2", "more", 2).in_turn(text("three", 0)).ended("three")
    plan = branched(log, "t1.answer")
    made = written(plan)
    assert [(message.role, message.text) for message in made.messages[:-1]] == [("user", "hi"), ("assistant", "one two")]
    assert made.messages[-1].role == "notice" and "is copied from there" in made.messages[-1].text
    (origin,) = events(plan, e.SessionBranched)
    assert isinstance(origin, e.SessionBranched) and (origin.origin, origin.message_id) == ("s1", "t1.answer")
    assert [message.text for message in written(branched(log, "t2.answer")).messages][:4] == ["hi", "one two", "more", "three"]


def test_a_branch_works_in_the_folder_of_its_conversation() -> None:
    (created,) = events(branched(simple(), "t1.answer"), e.SessionCreated)
    assert isinstance(created, e.SessionCreated) and created.folder == "/work"


def test_a_branch_from_a_request_has_what_was_said_before_it() -> None:
    log = simple().said("m2", "more").started("t2", "m2", "more", 2)
    assert [message.text for message in written(branched(log, "m2")).messages[:-1]] == ["hi", "one two"]
    assert written(branched(log, "m1")).turns == []


def test_an_answer_that_is_being_written_and_a_message_that_is_not_there_are_refused() -> None:
    with pytest.raises(NotOverYet):
        branched(begun().in_turn(text("one", 0)), "t1.answer")
    with pytest.raises(NotFound):
        branched(simple(), "m9")


def test_nothing_is_sent_asked_or_counted_once_more() -> None:
    """P4, P5, P6: no delivery, no key, no question, no process; what models used was counted where it was used."""
    log = Log().free(e.MessageAccepted(message_id="m1", content="hi", dedup_key="k", anchor="a")).started("t1", "m1", "hi")
    log.in_turn(e.ModelResponded(step=0, text="Wait.", usage=e.Usage(input=9), cost=5))
    log.in_turn(e.ToolStarted(call_id="t1.0.1", name="ask", arguments={}, effect=Effect.PURE, approval="q0"))
    log.in_turn(e.QuestionAsked(question_id="q1", call_id="t1.0.1", content="Which?", expires_at=9, ends_attempt=False))
    log.in_turn(e.QuestionAnswered(question_id="q1", call_id="t1.0.1", content="That one."))
    log.in_turn(e.MessageWritten(message_id="t1.answer", role="assistant", content="Done.", delivery_id="d1", anchor="a"))
    log.in_turn(e.TurnEnded(outcome=Outcome.COMPLETED))
    plan = branched(log, "t1.answer")
    assert not events(plan, e.QuestionAsked) and not events(plan, e.QuestionAnswered)
    for write in plan.writes:
        assert not getattr(write.event, "delivery_id", None) and not getattr(write.event, "dedup_key", None)
        assert not getattr(write.event, "anchor", None) and not getattr(write.event, "approval", None)
    made = written(plan)
    assert made.spent.requests == 0
    (call,) = made.messages[1].tool_calls
    assert (call.call_id, call.result) == ("new.t1.0.1", "That one.")


@settings(max_examples=100, derandomize=True, database=None, deadline=None)
@given(steps=STEPS)
def test_a_branch_of_any_conversation_says_the_same(steps: list[str]) -> None:
    log = story(steps)
    whole = fold(log)
    over = [turn.id for turn in whole.turns if turn.state is TurnState.ENDED]
    answered = {message.turn_id for message in whole.messages if message.role == "assistant" and message.status == "complete"}
    for turn_id in [turn for turn in over if turn in answered][-1:]:
        made = written(branched(log, f"{turn_id}.answer"))
        turns = branch.turns_up_to(whole, f"{turn_id}.answer")
        copied = said(made, tuple(f"new.{turn}" for turn in turns))
        answers = [text for role, text in said(whole, turns) if role == "assistant" and text]
        assert [text for role, text in copied if role == "assistant" and text] == answers
        assert all(turn.state is TurnState.ENDED for turn in made.turns)


def test_of_a_long_conversation_the_newest_turns_are_copied() -> None:
    """P8: one transaction writes only so much."""
    log = Log()
    for number in range(1, 401):
        log.said(f"m{number}", "hi").started(f"t{number}", f"m{number}", "hi", number).in_turn(text("x", 0)).ended("x")
    turns = branch.turns_up_to(fold(log), "t400.answer")
    kept, left = branch.trimmed([item for item in log.records() if branch.concerns(item, turns)], turns)
    fit = branch.fitting(kept, turns)
    assert left == fit
    assert len(turns) == 400 and 200 <= len(fit) < 400 and fit[-1] == "t400"
    assert len([item for item in kept if item.turn_id is not None]) <= branch.MOST_EVENTS


@pytest.mark.parametrize("page", [1, 7, 100, 10_000])
def test_a_turn_that_is_too_large_is_dropped_whole_however_it_is_read(page: int) -> None:
    """Half of it would be a turn without a beginning."""
    log = simple().said("m2", "large").started("t2", "m2", "large", 2)
    for number in range(14):
        log.in_turn(e.ToolFinished(call_id=f"t2.{number}", outcome=ToolOutcome.DONE, content="x" * 100_000))
    log.ended("large").said("m3", "more").started("t3", "m3", "more", 3).in_turn(text("three", 0)).ended("three")
    assert copied(log, "t3.answer", page) == ("t3",)
    assert copied(log, "t2.answer", page) == ()
    assert copied(log, "t1.answer", page) == ("t1",)


def copied(log: Log, message_id: str, page: int) -> tuple[str, ...]:
    """The turns that are copied if so many records are read at once; each with its beginning."""
    turns = branch.turns_up_to(fold(log), message_id)
    records, found, left = list(log.records()), list[e.Logged](), turns
    for at in range(0, len(records), page):
        found, left = branch.trimmed([*found, *(item for item in records[at : at + page] if branch.concerns(item, left))], left)
    begun = {item.turn_id for item in found if isinstance(item.event, e.TurnStarted)}
    assert begun == {item.turn_id for item in found if item.turn_id is not None}
    return branch.fitting(found, turns)


RECITAL = Recital(digest="d", instructions="be brief")
USED = {"usage": e.Usage(input=9), "cost": 5, "model": "big", "day": "2026-01-01", "sender": "ann"}


def eventful() -> Log:
    """A turn with everything that can be recorded in one, and a second one."""
    log = Log().free(
        e.MessageAccepted(message_id="m1", content="hi", mode="steer", sender="ann", anchor="a", dedup_key="k1", recital=RECITAL),
        e.CauseRecorded(cause_id="c1", what="process", content="It ended.", sender="ann", anchor="a", dedup_key="k2"),
        e.MessageAccepted(message_id="m9", content="never answered"),
        e.CauseRecorded(cause_id="c9", what="process", content="never told"),
        e.StopRequested(turn_id="t0", by="ann"),
    )
    log.turn = "t1"
    started = e.TurnStarted(generation=4, attempt=2, cause="message", causes=("m1",), owner=3, epoch=7, trial=True, model="big")
    log.in_turn(
        msgspec.structs.replace(started, sender="ann", day="2026-01-01"),
        e.MessageWritten(message_id="m1", role="user", content="hi", delivery_id="d0", anchor="a", dedup_key="k3", recital=RECITAL),
        e.CauseTaken(cause_id="c1", step=0, offset=2),
        e.ModelResponded(step=0, text="Wait.", **USED),  # type: ignore[arg-type]
        e.ContextCompacted(through=1, summary="short", recall=7, **USED),  # type: ignore[arg-type]
        e.ToolStarted(call_id="t1.0.1", name="terminal", arguments={"a": 1}, effect=Effect.UNSAFE, key="k", approval="q", place="here"),
        e.ToolFinished(call_id="t1.0.1", outcome=ToolOutcome.FAILED, content="no", used=e.Used(model="ear")),
        e.ToolStarted(call_id="t10.1", name="reported", arguments={}, effect=Effect.REPORTED),
        e.QuestionAnswered(question_id="q1", call_id="t10.1", content="That one."),
        e.QuestionAnswered(question_id="q2", call_id="t1.0.3", content="yes", verdict="approve"),
        e.MessageWritten(message_id="t1.note", role="notice", content="For you alone."),
        e.TurnInterrupted(reason="crash", restarts=1),
        e.MessageWritten(
            message_id="t1.answer", role="assistant", content="Done.", delivery_id="d1", anchor="a", buttons=(e.Button("x", "y"),), begun=2
        ),
        e.TurnEnded(outcome=Outcome.FAILED, error="no network", rule="R4", why="tried", unread_results=True),
    )
    return log.said("m2", "more").started("t2", "m2", "more", 5).ended("three")


def test_each_record_is_copied_as_what_it_says_and_nothing_else_is() -> None:
    """P4, P5, P6"""
    log = eventful()
    at = {id(item): item.at for item in log.items}
    names = Names(session_id="s2", session_key="agent:main:web:page:s2", log="l2", turns={"t1": "n1", "t2": "n2"})
    origin = Origin(
        session=msgspec.structs.replace(SESSION, title="Trip", model="big"),
        message_id="t2.answer",
        turns=("t1", "t2"),
        records=tuple(log.records()),
        left_out=3,
    )
    plan = branch.plan(origin, names, by="bob", dedup_key="k9")
    assert plan.reply == "s2" and {write.session_id for write in plan.writes} == {"s2"}
    expected: list[e.Event] = [
        e.SessionCreated(session_id="s2", session_key="agent:main:web:page:s2", log="l2", title="Trip (2)", folder="/work", dedup_key="k9"),
        e.SessionChanged(model="big"),
        e.MessageAccepted(message_id="m1", content="hi", sender="ann"),
        e.CauseRecorded(cause_id="c1", what="process", content="It ended.", sender="ann"),
        e.TurnStarted(generation=4, attempt=1, cause="message", causes=("m1",), owner=0, epoch=1, model="big"),
        e.MessageWritten(message_id="m1", role="user", content="hi"),
        e.CauseTaken(cause_id="c1", step=0, offset=2),
        e.ModelResponded(step=0, text="Wait.", copied=True, **USED),  # type: ignore[arg-type]
        e.ContextCompacted(through=1, summary="short", copied=True, **USED),  # type: ignore[arg-type]
        e.ToolStarted(call_id="n1.0.1", name="terminal", arguments={"a": 1}, effect=Effect.UNSAFE),
        e.ToolFinished(call_id="n1.0.1", outcome=ToolOutcome.FAILED, content="no"),
        e.ToolStarted(call_id="t10.1", name="reported", arguments={}, effect=Effect.REPORTED),
        e.ToolFinished(call_id="t10.1", outcome=ToolOutcome.DONE, content="That one."),
        e.MessageWritten(message_id="n1.answer", role="assistant", content="Done."),
        e.TurnEnded(outcome=Outcome.FAILED, error="no network"),
        e.MessageAccepted(message_id="m2", content="more"),
        e.TurnStarted(generation=5, attempt=1, cause="message", causes=("m2",), owner=0, epoch=2),
        e.MessageWritten(message_id="m2", role="user", content="more"),
        e.MessageWritten(message_id="n2.answer", role="assistant", content="three"),
        e.TurnEnded(outcome=Outcome.COMPLETED),
        e.SessionBranched(origin="s1", message_id="t2.answer", by="bob", title="Trip", left_out=3),
    ]
    assert [write.event for write in plan.writes] == expected
    copies = plan.writes[2:-1]
    assert [write.starts for write in copies if write.starts] == ["n1", "n2"]
    assert all(write.in_turn == (not isinstance(write.event, e.MessageAccepted | e.CauseRecorded)) for write in copies)
    assert all(isinstance(write.event, e.TurnStarted) == (write.starts is not None) for write in copies)
    times = [write.at for write in copies]
    assert times == sorted(times, key=lambda time: time or 0) and set(times) <= set(at.values()) and len(set(times)) == len(times)


def test_only_the_turns_that_are_wanted_and_their_causes_are_copied() -> None:
    log = eventful()
    names = Names(session_id="s2", session_key="agent:main:web:page:s2", log="l2", turns={"t2": "n2"})
    plan = branch.plan(Origin(session=SESSION, message_id="x", turns=("t2",), records=tuple(log.records())), names, by="bob")
    assert [write.event.kind for write in plan.writes] == [
        *("session.created", "message.accepted", "turn.started", "message.written", "message.written", "turn.ended", "session.branched")
    ]
    (made,), (from_,) = events(plan, e.SessionCreated), events(plan, e.SessionBranched)
    assert isinstance(made, e.SessionCreated) and isinstance(from_, e.SessionBranched) and (made.dedup_key, from_.left_out) == (None, 0)


def test_what_concerns_a_branch_are_records_of_its_turns_and_what_may_have_started_them() -> None:
    found = [item.event.kind for item in eventful().records() if branch.concerns(item, ("t2",))]
    assert found == [
        *("message.accepted", "cause.recorded", "message.accepted", "cause.recorded", "message.accepted"),
        *("turn.started", "message.written", "message.written", "turn.ended"),
    ]
    assert not branch.concerns(Log().free(e.StopRequested(turn_id="t1", by="ann")).items[0], ("t1",))


def test_a_message_without_a_turn_has_the_turns_before_it_that_are_over() -> None:
    log = Log().said("m0", "first").said("m1", "hi").started("t1", "m1", "hi").in_turn(text("one", 0)).ended("one").said("m2", "again")
    log.started("t2", "m2", "again", 2).said("m3", "waits")
    assert branch.turns_up_to(fold(log), "m3") == ("t1",)
    log.free(e.MessageRefused(message_id="m0", reason="no"))
    assert branch.turns_up_to(fold(log), "m0") == ()
    started = next(item for item in log.items if item.kind == "turn.started")
    said = next(item for item in log.items if item.event == e.MessageAccepted(message_id="m3", content="waits"))
    same = [msgspec.structs.replace(item, at=started.at) if item is said else item for item in log.items]
    assert branch.turns_up_to(fold(same), "m3") == ("t1",)


def test_what_no_person_and_no_agent_said_is_no_place_to_branch_from() -> None:
    log = simple().in_turn(e.MessageWritten(message_id="n1", role="notice", content="Careful."))
    with pytest.raises(NotFound, match="There is no message 'n1' here"):
        branch.turns_up_to(fold(log), "n1")


@pytest.mark.parametrize(("events", "octets", "fits"), [(1000, 1, True), (1001, 1, False), (1, 1024**2, True), (1, 1024**2 + 1, False)])
def test_one_transaction_holds_so_many_records_and_so_many_bytes(events: int, octets: int, fits: bool) -> None:
    """P8"""
    records = [e.Logged("s", seq, "t1", 1, seq, "text", 0, b"x" * octets) for seq in range(1, events + 1)]
    assert branch.fitting(records, ("t0", "t1")) == (("t1",) if fits else ())
    half = [msgspec.structs.replace(item, turn_id="t2") for item in records]
    assert branch.fitting([*records, *half], ("t1", "t2")) == (("t2",) if fits else ())


def test_what_was_said_shortly_before_the_first_turn_that_fits_is_kept() -> None:
    free = [e.Logged("s", seq, None, 0, 0, "message.accepted", 0, b"{}") for seq in (1, 100, 101, 250)]
    large = [e.Logged("s", 251, "t1", 1, 0, "text", 0, b"x" * (branch.MOST_BYTES + 1))]
    small = [e.Logged("s", seq, "t2", 1, seq, "text", 0, b"x") for seq in (301, 600)]
    kept, left = branch.trimmed([*free, *large, *small], ("t0", "t1", "t2"))
    assert ([item.seq for item in kept], left) == ([101, 250, 301, 600], ("t2",))
    assert branch.trimmed([*free, *large, *small], ("t1", "t2"))[1] == ("t2",)
    kept, left = branch.trimmed([*free, *small], ("t0", "t2"))
    assert ([item.seq for item in kept], left) == ([101, 250, 301, 600], ("t0", "t2"))


def test_why_there_is_no_branch_is_said_to_programs_and_to_people() -> None:
    assert (NotOverYet.code, TooMuchToCopy.code) == ("not_over", "too_much_to_copy")
    assert str(NotOverYet("m1")) == "The answer to the message 'm1' is not finished. Branch from it once it is."
    assert "'m1' is too large to copy" in str(TooMuchToCopy("m1")) and "1000 records, or more than 1 MiB" in str(TooMuchToCopy("m1"))
