"""What an agent is shown of a conversation: every way a step, a call and a cause may stand in it."""

from typing import Any

import pytest

from holdfast.core import events as e
from holdfast.core import history, limits, notes
from holdfast.core.content import AudioPart, Content, ImagePart, TextPart
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.history import SUMMARY, Call, History, Item, Result, Step, User
from holdfast.core.limits import Reached
from holdfast.core.output import left_out
from holdfast.core.processes import ENDED, MATCHED
from holdfast.core.turns import Outcome
from tests.core.logs import Log, begun, fold, text

ASKED, MORE = User(id="m1", content="hi", sender="owner", generation=1), User(id="m9", content="more", sender="owner", generation=2)


def started(call_id: str, step: int = 0, name: str = "terminal") -> e.ToolStarted:
    return e.ToolStarted(call_id=call_id, name=name, arguments={"of": call_id}, effect=Effect.UNSAFE, step=step)


def done(call_id: str, result: str = "r", outcome: ToolOutcome = ToolOutcome.DONE) -> e.ToolFinished:
    return e.ToolFinished(call_id=call_id, outcome=outcome, content=result)


def response(step: int, said: str = "", *names: str, problem: str | None = None) -> e.ModelResponded:
    calls = tuple(e.ProposedCall(name=name, arguments={"in": step}, problem=problem) for name in names)
    return e.ModelResponded(step=step, text=said, calls=calls)


def items(log: Log) -> list[Item]:
    return list(History(fold(log)))


def next_turn(log: Log) -> Log:
    return log.said("m9", "more").started("t9", "m9", "more", generation=2)


def test_an_agent_reads_a_conversation_as_a_sequence() -> None:
    found = History(fold(next_turn(begun().in_turn(text("One.", 0)).ended("One."))))
    said = Step(turn_id="t1", number=0, text="One.", generation=1)
    assert list(found) == [ASKED, said, MORE] and len(found) == 3
    assert (found[1], found[-1], found[:2]) == (said, MORE, [ASKED, said])
    assert list(History(fold(Log()))) == []


def test_a_cause_says_who_it_is_from_and_what_it_is() -> None:
    log = Log().free(e.MessageAccepted(message_id="m1", content="hi", sender="ann")).started("t1", "m1", "hi").ended("One.")
    log.free(e.CauseRecorded(cause_id="k1", what="process", content="It ended.", sender="bob"))
    log.turn = "t2"
    log.in_turn(e.TurnStarted(generation=2, attempt=1, cause="process", causes=("k1",), owner=1, epoch=2))
    said, _, ended = items(log)
    assert said == User(id="m1", content="hi", sender="ann", what="message", generation=1)
    assert ended == User(id="k1", content="It ended.", sender="bob", what="process", generation=2, about=notes.PROCESS)
    assert isinstance(said, User) and said.text == "hi"


@pytest.mark.parametrize(
    ("late_ms", "missed", "told"),
    [
        (0, 0, ""),
        (5 * 60_000, 0, ""),
        (5 * 60_000 + 1, 0, " It could not start then and starts 5 minutes late."),
        (0, 1, " One earlier time was missed."),
        (90 * 60_000, 7, " It could not start then and starts 90 minutes late. 7 earlier times were missed."),
    ],
)
def test_a_model_is_told_of_scheduled_work_that_nobody_writes_it_now(late_ms: int, missed: int, told: str) -> None:
    """E8: in a field of its own; the words stay those of the schedule."""
    due = e.DueTime(schedule_id="c1", due_at=1001 - late_ms, when="Friday", missed=missed)  # It is recorded at 1001.
    log = Log().free(e.CauseRecorded(cause_id="c1.5", what="schedule", content="water the plants", sender="ann", schedule=due))
    log.turn = "t1"
    log.in_turn(e.TurnStarted(generation=1, attempt=1, cause="schedule", causes=("c1.5",), owner=1, epoch=1))
    [user] = history.causes(fold(log))
    assert (user.text, user.sender, user.what) == ("water the plants", "ann", "schedule")
    assert user.about == f"[Scheduled for Friday: nobody writes this now. Do what it says and tell the result.{told}]"


def test_a_cause_that_could_not_be_read_is_left_out() -> None:
    """The rest of the conversation reads on."""
    log = next_turn(begun().in_turn(text("One.", 0)).ended("One."))
    lost = log.without(1, 3)  # The message, as it was accepted and as it was written.
    assert next(iter(History(fold(lost)))) == Step(turn_id="t1", number=0, text="One.", generation=1)
    assert history.causes(fold(begun().without(1, 3))) == ()
    taken = begun().in_turn(e.CauseTaken(cause_id="gone"))
    assert history.causes(fold(taken)) == (ASKED,) and items(taken) == [ASKED]


def test_a_step_of_an_earlier_turn_has_one_result_for_each_of_its_calls() -> None:
    """P5: what has no result when its turn is over never ran, and the model is told so."""
    log = begun().in_turn(response(0, "Look.", "read", "write", "read")).in_turn(started("t1.0.1"), done("t1.0.1", "one"))
    log.in_turn(started("t1.0.3"), done("t1.0.3", "three", ToolOutcome.FAILED)).ended("Done.")
    _, step, *results = items(next_turn(log))[:5]
    assert isinstance(results[0], Result) and results[0].text == "one"
    calls = tuple(Call(call_id=f"t1.0.{n}", name=name, arguments={"in": 0}, step=0) for n, name in enumerate(("read", "write", "read"), 1))
    recorded = response(0, "Look.", "read", "write", "read")
    assert step == Step(turn_id="t1", number=0, text="Look.", calls=calls, response=recorded, generation=1)
    assert results == [
        Result(call_id="t1.0.1", name="read", outcome=ToolOutcome.DONE, content="one"),
        Result(call_id="t1.0.2", name="write", outcome=ToolOutcome.FAILED, content="It was not run: the turn ended first."),
        Result(call_id="t1.0.3", name="read", outcome=ToolOutcome.FAILED, content="three"),
    ]


def test_a_call_of_the_newest_turn_without_a_result_has_none_yet() -> None:
    """It may still run: an attempt continues it."""
    log = begun().in_turn(response(1, "", "read", "write", problem="no JSON"), started("t1.1.1", step=1), done("t1.1.1"))
    log.in_turn(started("t1.1.2", step=1), text("And", 0, 2))
    found = items(log)
    assert [type(item) for item in found] == [User, Step, Result]
    step = found[1]
    assert isinstance(step, Step) and [(call.step, call.problem) for call in step.calls] == [(1, "no JSON")] * 2
    assert [call.call_id for call in history.unfinished(fold(log))] == ["t1.1.1", "t1.1.2"]


@pytest.mark.parametrize("finished", [(), ("t1.0.1",), ("t1.0.1", "t1.0.2")])
def test_the_last_step_is_unfinished_while_one_of_its_calls_has_no_result(finished: tuple[str, ...]) -> None:
    """P5: of earlier steps every call has its result."""
    log = begun().in_turn(response(0, "", "read", "write"))
    log.in_turn(*(started(call_id) for call_id in ("t1.0.1", "t1.0.2")), *(done(call_id) for call_id in finished))
    assert [call.call_id for call in history.unfinished(fold(log))] == ([] if len(finished) == 2 else ["t1.0.1", "t1.0.2"])
    log.in_turn(response(1, "Done."))
    assert history.unfinished(fold(log)) == ()


def test_an_agent_without_a_model_has_no_unfinished_step_and_calls_within_its_only_one() -> None:
    assert Call(call_id="c1", name="terminal", arguments={}).step == 0
    assert history.unfinished(fold(begun().in_turn(started("c1")))) == ()


def test_what_an_agent_without_a_model_said_is_shown_once_its_turn_is_over() -> None:
    """What its own turn has said so far is given to it apart from the history."""
    log = begun().in_turn(text("Half", 0), started("c1"))
    assert items(log) == [ASKED]
    log.in_turn(done("c1", "")).ended("Half")
    call = Call(call_id="c1", name="terminal", arguments={"of": "c1"}, step=0)
    assert items(next_turn(log))[1:3] == [
        Step(turn_id="t1", number=0, text="Half", calls=(call,), generation=1),
        Result(call_id="c1", name="terminal", outcome=ToolOutcome.DONE, content=""),
    ]


def test_what_asked_whether_a_limit_may_be_passed_is_no_call_of_the_agent() -> None:
    """An agent without a model has not asked it; a model's step names its own calls."""
    asked = limits.call_id("t1", Reached(name="turn_tokens", limit=5, spent=6, asks=True))
    log = begun().in_turn(text("Half", 0), started("c1"), done("c1"), started(asked), done(asked)).ended("Half")
    shown = [item.call_id for item in items(next_turn(log)) if isinstance(item, Result)]
    step = next(item for item in items(next_turn(log)) if isinstance(item, Step))
    assert (shown, [call.call_id for call in step.calls]) == (["c1"], ["c1"])


def test_a_call_asks_for_no_more_care_than_is_configured_unless_its_agent_says_so() -> None:
    assert Call(call_id="c1", name="terminal", arguments={}).careful is False


def test_a_step_that_said_and_did_nothing_is_not_shown_unless_a_model_recorded_it() -> None:
    silent = begun().in_turn(text("x", 0)).ended("").said("m9", "more").started("t9", "m9", "more", generation=2)
    assert [type(item) for item in items(silent)] == [User, User]
    recorded = next_turn(begun().in_turn(response(0), e.TurnEnded(outcome=Outcome.COMPLETED)))
    assert [type(item) for item in items(recorded)] == [User, Step, User]
    only_calls = next_turn(begun().in_turn(started("c1", step=2), done("c1")).in_turn(e.TurnEnded(outcome=Outcome.COMPLETED)))
    step = items(only_calls)[1]
    assert isinstance(step, Step) and (step.number, step.calls[0].step) == (2, 2)


def test_a_message_that_a_turn_took_stands_before_the_step_it_was_taken_in_and_is_a_cause_of_the_turn() -> None:
    """P6"""
    log = begun().said("m2", "also that").in_turn(text("One.", 0), response(0, "One."), e.CauseTaken(cause_id="m2"))
    log.in_turn(response(1, "Two."))
    found = items(log)
    assert [item.id if isinstance(item, User) else item.number for item in found if isinstance(item, User | Step)] == ["m1", "m2", 0, 1]
    assert [cause.id for cause in history.causes(fold(log))] == ["m1", "m2"]
    assert [cause.id for cause in history.causes(fold(next_turn(log.ended("Two."))))] == ["m9"]


# what a summary stands for


def compacted(through: int, summary: str = "It was so.", **more: Any) -> e.ContextCompacted:
    return e.ContextCompacted(through=through, summary=summary, **more)


def three_turns(*first: e.Event) -> Log:
    """The third one begins with these."""
    log = Log()
    for number in (1, 2, 3):
        log.said(f"m{number}", f"say {number}").started(f"t{number}", f"m{number}", f"say {number}", generation=number)
        if number < 3:
            log.in_turn(response(0, f"Said {number}.")).ended(f"Said {number}.")
    return log.in_turn(*first)


def texts(log: Log) -> list[str]:
    return [item.text for item in items(log)]


def test_a_summary_stands_for_the_turns_it_covers_and_the_conversation_stays_readable() -> None:
    log = three_turns(compacted(1))
    found = items(log)
    assert isinstance(found[0], User) and (found[0].what, found[0].generation, found[0].sender) == (SUMMARY, 3, None)
    assert found[0].id == "t3.summary" and found[0].text.endswith("It was so.") and texts(log)[1:] == ["say 2", "Said 2.", "say 3"]
    assert texts(log.in_turn(compacted(2, "Later.")))[1:] == ["say 3"] and texts(log)[0].endswith("Later.")
    roles = [(message.role, message.text) for message in fold(log).messages]
    assert [text for role, text in roles if role != "notice"] == ["say 1", "Said 1.", "say 2", "Said 2.", "say 3"]
    assert [role for role, _ in roles].index("notice") == 5 and "summary of the earlier messages" in roles[5][1]
    assert fold(log).turns[-1].spent.requests == 0


def test_a_later_summary_covers_the_former_whatever_order_they_reach_the_log_in() -> None:
    log = three_turns(compacted(2, "All."), compacted(1, "Less."))
    assert texts(log)[0].endswith("All.") and len(texts(log)) == 2


def test_turns_that_no_summary_could_be_made_of_are_left_out_and_both_sides_are_told() -> None:
    log = three_turns(compacted(2, "", problem="the model wrote none."))
    told = "[The earlier part of this conversation is left out here, because it was too long. Ask the user about what you miss.]"
    assert texts(log) == [told, "say 3"]
    assert [m.text for m in fold(log).messages if m.role == "notice"] == [
        "The conversation has become too long for the model. It no longer sees the earlier messages: the model wrote none."
    ]


def test_results_that_made_their_turn_too_long_are_given_shortened_and_shown_whole() -> None:
    long = "a" * 5000 + "z" * 5000
    log = begun().in_turn(response(0, "", "read", "read"), started("t1.0.1"), done("t1.0.1", long), started("t1.0.2"), done("t1.0.2", long))
    log.in_turn(compacted(0, "", trimmed=("t1.0.1",)))
    _, _, first, second = texts(log)
    assert second == long and len(first) < 2200 and first.startswith("aaa") and first.endswith("zzz") and "characters left out" in first
    assert [call.result for call in fold(log).calls] == [long, long]
    assert "the beginning and the end of a long result" in fold(log).messages[-2].text


def test_a_summary_is_named_to_agents_as_they_know_it_and_what_no_turn_is_known_of_has_no_generation() -> None:
    assert SUMMARY == "summary"
    assert (User(id="m1", content="hi").generation, Step(turn_id="t1", number=0, text="").generation) == (0, 0)


def test_a_turn_is_given_to_its_own_agent_whatever_a_summary_covers() -> None:
    assert texts(three_turns(compacted(3)))[1:] == ["say 3"]


LONG = "a" * history.SHORTER_HEAD + "b" * 5000 + "z" * history.SHORTER_TAIL
IMAGE = ImagePart(blob="i", size=3, media_type="image/png", name="i.png")


def result(given: Content) -> Result:
    return Result(call_id="c1", name="read", outcome=ToolOutcome.DONE, content=given)


def test_a_result_that_is_given_shorter_keeps_its_beginning_its_end_and_its_attachments() -> None:
    words = history.shorter(result(LONG)).content
    assert isinstance(words, str) and words == "a" * 1024 + left_out(5000) + "z" * 1024
    assert history.shorter(result((TextPart(LONG), IMAGE))) == result((TextPart(words), IMAGE))
    assert history.shorter(result((TextPart("short"), IMAGE))) == result((TextPart("short"), IMAGE))
    assert history.shorter(result("short")) == result("short")


# recordings

VOICE = AudioPart(blob="v", size=3, media_type="audio/ogg", name="v.ogg")
NOISE = AudioPart(blob="n", size=3, media_type="audio/ogg", name="n.ogg")


def heard(call_id: str, blob: str, result: str | None = "Hi.", outcome: ToolOutcome = ToolOutcome.DONE, step: int = 0) -> list[e.Event]:
    arguments = {"name": f"{blob}.ogg", "blob": blob}
    started = e.ToolStarted(call_id=call_id, name=history.TRANSCRIBE, arguments=arguments, effect=Effect.PURE, step=step)
    return [started] if result is None else [started, done(call_id, result, outcome)]


def recorded(*events: e.Event) -> Log:
    log = Log().free(e.MessageAccepted(message_id="m1", content=(TextPart("listen"), VOICE, IMAGE), sender="ann"))
    log.turn = "t1"
    return log.in_turn(e.TurnStarted(generation=1, attempt=1, cause="message", causes=("m1",), owner=1, epoch=1), *events)


FAILED = heard("t1.h", "v", "Busy.", ToolOutcome.FAILED)


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([], None),
        (heard("t1.h", "v", None), None),
        (heard("t1.h", "v"), "[Transcript of v.ogg:] Hi."),
        (heard("t1.h", "n"), None),
        (FAILED, "[There is no transcript of v.ogg. Busy.]"),
        (heard("t1.h", "v", "It was not run.", ToolOutcome.UNKNOWN), "[There is no transcript of v.ogg. It was not run.]"),
        ([*FAILED, *heard("t1.h2", "v")], "[Transcript of v.ogg:] Hi."),
        ([*heard("t1.h", "v"), *heard("t1.h2", "v", "Busy.", ToolOutcome.FAILED)], "[Transcript of v.ogg:] Hi."),
        ([*heard("t1.h", "v"), response(0, "Yes.")], "[Transcript of v.ogg:] Hi."),
    ],
)
def test_the_words_of_a_recording_stand_behind_it(events: list[e.Event], said: str | None) -> None:
    """P5: in the turn itself, for whoever continues it, and in later turns."""
    words = () if said is None else (TextPart(said),)
    wanted = User(id="m1", content=(TextPart("listen"), VOICE, *words, IMAGE), sender="ann", generation=1, heard=("v",) if said else ())
    log = recorded(*events)
    assert items(log)[0] == wanted and history.causes(fold(log)) == (wanted,)
    later = items(next_turn(log.in_turn(e.TurnEnded(outcome=Outcome.COMPLETED))))
    assert later[0] == wanted and later[-1] == MORE
    assert not [item for item in later if isinstance(item, Result) or (isinstance(item, Step) and item.calls)]


def test_a_transcript_counts_for_the_same_bytes_everywhere_and_a_failure_only_in_its_turn() -> None:
    """So that another turn tries again."""
    log = recorded(*FAILED).in_turn(e.TurnEnded(outcome=Outcome.COMPLETED))
    log.free(e.MessageAccepted(message_id="m2", content=(VOICE, NOISE), sender="ann"))
    log.turn = "t2"
    log.in_turn(e.TurnStarted(generation=2, attempt=1, cause="message", causes=("m2",), owner=1, epoch=2))
    first, again = (item for item in items(log) if isinstance(item, User))
    assert (first.heard, again.heard) == (("v",), ()) and "Busy." in first.text
    log.in_turn(*heard("t2.h", "v"), *heard("t2.h2", "n", "Grr.", ToolOutcome.FAILED))
    first, again = (item for item in items(log) if isinstance(item, User))
    assert first.text == "listen\n\n[Transcript of v.ogg:] Hi."
    assert again.text == "[Transcript of v.ogg:] Hi.\n\n[There is no transcript of n.ogg. Grr.]" and again.heard == ("n", "v")


def test_what_is_heard_already_is_not_said_twice() -> None:
    user = User(id="m1", content=(VOICE, VOICE))
    once = history.hear(user, {"v": "Hi.", "x": "Nobody."})
    assert once.content == (VOICE, TextPart("Hi."), VOICE, TextPart("Hi.")) and once.heard == ("v",)
    assert history.hear(once, {"v": "Ho."}) is once and history.hear(ASKED, {"v": "Hi."}) is ASKED


def test_a_recording_that_is_heard_later_is_said_once_and_nothing_else_is_heard() -> None:
    user = User(id="m1", content=(VOICE, NOISE, IMAGE))
    assert history.hear(user, {"i": "A picture."}) is user
    first = history.hear(user, {"v": "Hi."})
    both = history.hear(first, {"v": "Ho.", "n": "Grr."})
    assert both.content == (VOICE, TextPart("Hi."), NOISE, TextPart("Grr."), IMAGE) and both.heard == ("v", "n")


def test_only_what_transcribes_gives_words_of_recordings() -> None:
    """P5: under the name that is on record."""
    assert history.TRANSCRIBE == "transcribe"
    other = e.ToolStarted(call_id="t1.h", name="listen", arguments={"name": "v.ogg", "blob": "v"}, effect=Effect.PURE)
    (user,) = history.causes(fold(recorded(other, done("t1.h", "Hi."))))
    assert user.heard == ()


def test_models_are_told_alike_of_processes_that_ended_and_that_matched() -> None:
    assert history.about_cause(ENDED) == history.about_cause(MATCHED) == notes.PROCESS
