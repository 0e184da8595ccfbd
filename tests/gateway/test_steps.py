"""An agent that works in steps: what is on record when, what runs in parallel, what waits, and that no death makes it repeat anything."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.core import events as e
from holdfast.core.blame import Interruption
from holdfast.core.busy import Mode
from holdfast.core.errors import QuestionClosed
from holdfast.core.history import Result, Step, User
from holdfast.core.plans.answer import Answer
from holdfast.core.plans.start import StartedTurn
from holdfast.core.sessions import Lease, Session
from holdfast.core.transcript import Transcript
from holdfast.core.turns import TurnState
from holdfast.ports.agents import AgentRequest, Response, TurnFace
from holdfast.store import SqliteStore
from tests.fakes.agents_steps import whole_answer
from tests.fakes.platform import NAME
from tests.gateway import gateways
from tests.gateway.gateways import ANN, Home, Life, Story


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def kinds(life: Life, name: str) -> list[str]:
    """The records of a conversation that say what its turns did, in order."""
    shown = ("model.responded", "tool.started", "tool.finished", "question.asked", "question.answered", "turn.waiting", "cause.taken")
    return [item.kind for item in life.events(name) if item.kind in shown]


def results(life: Life, name: str) -> dict[str, tuple[str | None, str]]:
    return {call.call_id: (call.outcome, call.result or "") for message in life.transcript(name).messages for call in message.tool_calls}


def test_a_step_is_on_record_before_any_of_its_calls_starts(home: Home) -> None:
    """P5"""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: look > look a > deed 0 | done")
    life.rest(page)
    found = kinds(life, page)
    assert found[0] == "model.responded" and found[-1] == "model.responded"
    assert sorted(found[1:-1]) == ["tool.finished", "tool.finished", "tool.started", "tool.started"]
    responded = [item.event for item in life.events(page) if item.kind == "model.responded"]
    assert [step.step for step in responded if isinstance(step, e.ModelResponded)] == [0, 1]
    assert life.answers(page) == ["done [done saw a] [done done]"]


def test_pure_calls_run_at_the_same_time_and_ahead_of_the_others_which_keep_their_order(home: Home) -> None:
    """P5"""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > deed 5 > look a > deed 1 > look b | done")
    life.until(lambda: {"look a begins", "look b begins"} <= set(home.edge.seen))
    turn = life.turn(page).id
    assert home.done == []
    life.rest(page)
    assert home.done == [f"{turn}.0.1", f"{turn}.0.3"]
    assert life.answers(page) == ["done [done done] [done saw a] [done done] [done saw b]"]


def test_what_stands_behind_a_question_waits_with_it_and_what_may_run_ends_first(home: Home) -> None:
    """A27, R5: asking ends the attempt once the other calls are done, and the turn has neither a task nor a lease then."""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > deed 3 > ask colour > deed 0 > look a | done")
    life.until(lambda: life.session(page).state == "waiting")
    turn = life.turn(page).id
    assert home.done == [f"{turn}.0.1"] and home.edge.count("look a begins") == 1
    assert (life.session(page).owner, life.gateway.runner.running) == (None, 0)
    assert home.edge.count("interrupted: waiting") == 1
    found = kinds(life, page)
    assert found[:3] == ["model.responded", "tool.started", "question.asked"] and found[-1] == "turn.waiting"
    life.post(page, "blue")
    life.rest(page)
    assert home.done == [f"{turn}.0.1", f"{turn}.0.3"] and life.turn(page).attempt == 2
    assert life.answers(page) == ["done [done done] [done blue] [done done] [done saw a]"]


def test_a_turn_with_two_questions_continues_after_the_last_answer(home: Home) -> None:
    """A27, P5: a plain message answers the oldest one first."""
    life = home.start()
    life.write("steps: go > ask colour > deed 0 > ask size | done")
    life.until(lambda: home.told() == ["colour", "size"])
    life.until(lambda: life.session().state == "waiting")
    life.write("blue")
    life.pass_s(5)
    assert life.session().state == "waiting" and home.done == [] and len(life.transcript().questions) == 1
    life.say("large")
    assert home.replies() == ["done [done blue] [done done] [done large]"]
    assert life.turn().attempt == 2 and len(home.done) == 1


def test_a_reply_to_a_question_answers_that_one_and_not_the_oldest(home: Home) -> None:
    """A27"""
    life = home.start()
    life.write("steps: go > ask colour > ask size | done")
    life.until(lambda: home.told() == ["colour", "size"])
    life.until(lambda: life.session().state == "waiting" and not life.do(life.store.counts()).outbox)
    home.server.write(ANN, ANN, "large", reply_to=f"{NAME}-2")
    life.until(lambda: [question.text for question in life.transcript().questions] == ["colour"])
    life.say("blue")
    assert home.replies() == ["done [done blue] [done large]"]


def test_an_answer_that_comes_while_the_other_calls_still_run_ends_no_attempt(home: Home) -> None:
    """A27, P2: nothing is open any more, so the turn never waits."""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > deed 5 > ask colour > deed 0 | done")
    life.until(lambda: life.transcript(page).questions)
    life.post(page, "blue")
    life.rest(page)
    assert life.answers(page) == ["done [done done] [done blue] [done done]"]
    assert life.turn(page).attempt == 1 and "turn.waiting" not in kinds(life, page)


def test_an_answer_of_which_nobody_told_the_attempt_is_heard_before_its_turn_waits_for_another(home: Home) -> None:
    """A27: another process may have stored it. What stands behind it runs first."""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > deed 5 > ask colour > deed 0 > ask size | done")
    life.until(lambda: len(life.transcript(page).questions) == 2)
    colour = life.transcript(page).questions[0]
    life.do(life.store.answer(colour.question_id, Answer(content="blue", by="ann"), at=life.clock.now()))
    life.until(lambda: life.session(page).state == "waiting")
    turn = life.turn(page).id
    assert home.done == [f"{turn}.0.1", f"{turn}.0.3"] and life.turn(page).attempt == 1
    life.post(page, "large")
    life.rest(page)
    assert life.answers(page) == ["done [done done] [done blue] [done done] [done large]"]


def test_an_answer_that_came_before_a_stop_is_not_taken_for_missing(home: Home) -> None:
    """A21, A27: the attempt hears of both by the same way, in their order."""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > look slow > ask colour > ask size | done")
    life.until(lambda: home.edge.count("look slow begins") and len(life.transcript(page).questions) == 2)
    turn = life.turn(page).id
    life.post(page, "blue")
    life.do(life.gateway.stop_turn(page, by="owner", client_id=None))
    life.rest(page)
    ended = [item.event.call_id for item in life.events(page) if isinstance(item.event, e.ToolFinished)]
    assert sorted(ended) == [f"{turn}.0.1", f"{turn}.0.3"] and results(life, page)[f"{turn}.0.2"] == ("done", "blue")


def test_a_turn_reads_the_log_for_answers_only_when_something_came(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that waits costs no read, and an answer one."""
    life = home.start()
    page = life.open_page()
    records, reads = life.store.records, []

    async def counted(session_id: str, *, after: int, limit: int) -> e.Page:
        reads.append(after)
        return await records(session_id, after=after, limit=limit)

    monkeypatch.setattr(life.store, "records", counted)
    life.post(page, "steps: go > deed 1 > ask colour | more > deed 5 > ask size | done")
    life.until(lambda: life.session(page).state == "waiting")
    assert reads == []
    life.post(page, "blue")
    life.until(lambda: [question.text for question in life.transcript(page).questions] == ["size"])
    assert reads == []
    life.post(page, "large")
    life.rest(page)
    assert life.answers(page) == ["done [done done] [done blue] [done done] [done large]"] and len(reads) == 1


def test_a_result_that_takes_long_to_store_is_not_followed_by_another_when_a_stop_comes(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P5, A21: what was done and is being recorded is not unknown."""
    life = home.start()
    page = life.open_page()
    append = life.store.append_turn

    async def slowly(lease: Lease, *, events: Sequence[Any], **given: Any) -> int:
        if any(isinstance(event, e.ToolFinished) and event.outcome == "done" for event in events):
            home.edge.saw("result on its way")
            await asyncio.sleep(30)
        return await append(lease, events=events, **given)

    monkeypatch.setattr(life.store, "append_turn", slowly)
    life.post(page, "steps: go > deed 0 | done")
    life.until(lambda: home.edge.count("result on its way"))
    life.do(life.gateway.stop_turn(page, by="owner", client_id=None))
    life.rest(page)
    finished = [item.event.outcome for item in life.events(page) if isinstance(item.event, e.ToolFinished)]
    assert finished == ["done"] and life.outcomes(page) == ["cancelled"]


def test_the_first_question_that_expires_ends_the_turn_and_closes_the_others(home: Home) -> None:
    """R5: nothing of it is unfinished work."""
    life = home.start()
    life.write("steps: go > ask colour > ask size | done")
    life.until(lambda: life.session().state == "waiting")
    life.stop()
    home.later(25 * 3600)
    life = home.start()
    life.until(lambda: life.outcomes() == ["failed"])
    assert life.transcript().questions == []
    life.say("hello")
    assert life.outcomes() == ["failed", "completed"] and home.note is None


def test_a_turn_that_died_with_a_question_open_and_is_set_aside_says_that_no_answer_came(home: Home) -> None:
    """R6, P5: only of the call that ran nobody knows what it did."""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > deed 5000 > ask colour | done")
    life.until(lambda: life.transcript(page).questions)
    life.until(lambda: "tool.started" in kinds(life, page))
    turn = life.turn(page).id
    life.die()
    home.later(2 * 3600)
    life = home.start()
    life.until(lambda: life.outcomes(page) == ["set_aside"])
    found = results(life, page)
    assert found[f"{turn}.0.2"] == ("failed", "The turn ended before an answer came.")
    assert found[f"{turn}.0.1"][0] == "unknown"
    assert life.transcript(page).questions == []


@pytest.mark.parametrize("before", [Interruption, e.TurnEnded])
def test_an_answer_that_comes_while_its_turn_is_being_set_aside_continues_it(
    home: Home, monkeypatch: pytest.MonkeyPatch, before: type
) -> None:
    """R6, P1: what was decided without it is decided again, whether it comes before the interruption is recorded or before the end is."""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > look slow > ask colour | done")
    life.until(lambda: home.edge.count("look slow begins") and life.transcript(page).questions)
    life.die()
    home.later(2 * 3600)
    take, answered = SqliteStore.take_turn, False

    async def take_turn(store: SqliteStore, session_id: str, **given: Any) -> StartedTurn:
        nonlocal answered
        if not answered and any(isinstance(event, before) for event in given["events"]):
            answered = True
            await life.gateway.post(page, "blue", client_id=None)
        return await take(store, session_id, **given)

    monkeypatch.setattr(SqliteStore, "take_turn", take_turn)
    life = home.start()
    life.rest(page)
    assert answered
    assert life.answers(page) == ["done [done saw slow] [done blue]"] and life.outcomes(page) == ["completed"]


def test_work_resumed_at_the_moment_at_which_it_is_left_for_a_suspension_continues(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """R1, A24: the suspension is lifted before the decision is recorded, so it is decided again."""
    life = home.start()
    page = life.open_page()
    take, resumed = life.store.take_turn, False

    async def take_turn(session_id: str, **given: Any) -> StartedTurn:
        nonlocal resumed
        if not resumed and any(isinstance(event, e.TurnLeft) for event in given["events"]):
            resumed = True
            await life.gateway.resume_session(page, by="owner", client_id=None)
        return await take(session_id, **given)

    monkeypatch.setattr(life.store, "take_turn", take_turn)
    life.post(page, "steps: go > look slow | done")
    life.until(lambda: home.edge.count("look slow begins"))
    life.do(life.gateway.suspend(page))
    life.rest(page)
    assert resumed and life.answers(page) == ["done [done saw slow]"]
    assert not any(isinstance(item.event, e.TurnLeft) for item in life.events(page))


def test_a_stop_while_a_question_is_open_and_another_call_runs_ends_the_turn(home: Home) -> None:
    """A21"""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > ask colour > look slow | done")
    life.until(lambda: home.edge.count("look slow begins"))
    life.do(life.gateway.stop_turn(page, by="owner", client_id=None))
    life.rest(page)
    assert life.outcomes(page) == ["cancelled"] and life.transcript(page).questions == []


def test_a_message_that_comes_after_a_stop_answers_no_question_of_the_turn_that_is_stopped(home: Home) -> None:
    """A21, P1: the turn has not ended yet, and what it asked is over all the same."""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > stubborn 0 > ask colour | done")
    life.until(lambda: life.transcript(page).questions)
    [question] = life.transcript(page).questions
    life.do(life.gateway.stop_turn(page, by="owner", client_id=None))
    assert life.session(page).state == "running"
    with pytest.raises(QuestionClosed):
        life.do(life.store.answer(question.question_id, Answer(content="blue", by="ann"), at=life.clock.now()))
    life.post(page, "feed the cat")
    life.steer(page, "and the dog")
    life.rest(page)
    assert life.outcomes(page) == ["cancelled", "completed", "completed"]
    assert life.answers(page) == ["go", "re: feed the cat", "re: and the dog"]
    assert kinds(life, page).count("question.answered") == 0


def test_a_message_that_answers_a_turn_which_was_left_continues_it(home: Home) -> None:
    """A23, R7, P1: a person has spoken to it."""
    life = home.start(auto_resume=False)
    page = life.open_page()
    life.post(page, "steps: go > look slow > ask colour | done")
    life.until(lambda: home.edge.count("look slow begins") and life.transcript(page).questions)
    life.die()
    life = home.start(auto_resume=False)
    life.rest(page)
    life.decided("R7", "left", page)
    life.post(page, "blue")
    life.rest(page)
    assert life.answers(page) == ["done [done saw slow] [done blue]"] and life.outcomes(page) == ["completed"]


def test_an_agent_sees_what_was_said_and_done_with_one_result_for_each_call(home: Home) -> None:
    """P5: also for calls that a stop kept from running."""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > look slow > deed 0 > deed 0 | done")
    life.until(lambda: home.edge.count("look slow begins") and home.done)
    life.do(life.gateway.stop_turn(page, by="owner", client_id=None))
    life.rest(page)
    life.post(page, "steps: again")
    life.rest(page)
    history = list(home.heard[-1].history)
    assert [type(item) for item in history] == [User, Step, Result, Result, Result, User]
    step = history[1]
    assert isinstance(step, Step)
    assert [item.call_id for item in history[2:5] if isinstance(item, Result)] == [call.call_id for call in step.calls]


# steering


def test_a_steering_message_is_taken_between_two_steps_and_starts_no_turn_of_its_own(home: Home) -> None:
    """P6: recorded before the agent sees it."""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > deed 3 | more > deed 0 | done")
    life.until(lambda: life.session(page).state == "running")
    life.steer(page, "faster")
    life.rest(page)
    assert life.answers(page) == ["done [done done] [done done] <faster>"]
    assert life.outcomes(page) == ["completed"] and kinds(life, page).count("cause.taken") == 1


def test_a_steering_message_that_comes_too_late_is_the_next_turn(home: Home) -> None:
    """P1"""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > deed 3")
    life.until(lambda: life.session(page).state == "running")
    life.steer(page, "late")
    life.rest(page)
    assert life.outcomes(page) == ["completed", "completed"] and life.answers(page)[-1] == "re: late"


def test_a_steering_message_that_was_not_taken_goes_to_the_resumed_attempt(home: Home) -> None:
    """P1, P6"""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > look slow | done")
    life.until(lambda: home.edge.count("look slow begins"))
    life.steer(page, "faster")
    life.die()
    life = home.start()
    life.rest(page)
    assert life.answers(page) == ["done [done saw slow] <faster>"] and life.outcomes(page) == ["completed"]


def test_a_steering_message_without_a_running_turn_is_a_message(home: Home) -> None:
    """P1"""
    life = home.start()
    page = life.open_page()
    life.steer(page, "hello")
    life.rest(page)
    assert life.answers(page) == ["re: hello"]


def test_a_steering_message_to_a_turn_that_waits_answers_nothing_and_is_taken_when_it_continues(home: Home) -> None:
    """R5, P6"""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > ask colour | done")
    life.until(lambda: life.session(page).state == "waiting")
    life.steer(page, "faster")
    life.pass_s(5)
    assert life.session(page).state == "waiting" and len(life.transcript(page).questions) == 1
    life.post(page, "blue")
    life.rest(page)
    assert life.answers(page) == ["done [done blue] <faster>"] and life.outcomes(page) == ["completed"]


def test_a_steering_message_that_comes_while_its_turn_is_made_ready_is_taken(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """P6: the turn is on record, and its conversation is still being read."""
    life = home.start()
    page = life.open_page()
    read, steered = life.store.transcript, False

    async def transcript(session: Session, known: Transcript | None = None, whole: bool = True) -> Transcript:
        nonlocal steered
        found = await read(session, known=known, whole=whole)
        if session.turn_state is TurnState.RUNNING and not steered:
            steered = True
            await life.gateway.post(page, "faster", client_id=None, mode=Mode.STEER)
        return found

    monkeypatch.setattr(life.store, "transcript", transcript)
    life.post(page, "steps: go > deed 3 | done")
    life.rest(page)
    assert steered
    assert life.answers(page) == ["done [done done] <faster>"] and life.outcomes(page) == ["completed"]


def test_steering_through_the_successor_reaches_a_turn_in_the_retiring_process(home: Home) -> None:
    """C24: within a second or so."""
    old = home.start()
    page = old.open_page()
    old.post(page, "steps: go > deed 9 | done")
    old.until(lambda: old.session(page).state == "running")
    old.gateway.hand_over.begin()
    old.do(old.gateway.hand_over.give_way())
    new = home.start(beside=old)
    retiring = old.loop.create_task(old.gateway.hand_over.retire())
    new.steer(page, "faster")
    new.until(retiring.done)
    new.rest(page)
    assert new.answers(page) == ["done [done done] <faster>"] and new.turn(page).attempt == 1


# deaths

SCRIPT = "look > look a > deed 0.001 > look b | act > ask colour > deed 0.001 > ask size > look c | done"


def test_a_death_at_any_write_repeats_nothing_asks_nothing_twice_and_loses_no_answer(tmp_path: Path) -> None:
    """P5, R5, A27: with parallel calls, two questions and a steering message."""
    gateways.with_a_death_after_each_commit(tmp_path, _tell, at_least=20)


def _tell(story: Story, home: Home) -> None:
    story.life.post(story.page, f"steps: {SCRIPT}")
    story.until(lambda: len(story.life.transcript(story.page).questions) == 2)
    if not any(item.event.mode == "steer" for item in story.life.events(story.page) if isinstance(item.event, e.MessageAccepted)):
        story.life.steer(story.page, "faster")
    story.until(lambda: story.life.session(story.page).state == "waiting")
    for answer in ("blue", "large"):
        story.life.post(story.page, answer)
    story.until(lambda: story.life.outcomes(story.page)[0] is not None)
    story.life.rest(story.page)
    _check(home, story.life, story.page)


def _check(home: Home, life: Life, page: str) -> None:
    turn = life.turn(page)
    assert turn.outcome == "completed"
    found, events = results(life, page), life.events(page)
    asked = [item.event.call_id for item in events if isinstance(item.event, e.QuestionAsked)]
    assert sorted(asked) == [f"{turn.id}.1.1", f"{turn.id}.1.3"], "a question was asked twice"
    unsafe = [call_id for call_id in home.done if call_id.startswith(turn.id)]
    assert len(unsafe) == len(set(unsafe)), f"an unsafe call ran twice: {unsafe}"
    steps = [item.event.step for item in events if isinstance(item.event, e.ModelResponded)]
    assert steps == sorted(set(steps)), f"a step was recorded twice: {steps}"
    taken = [message.text for message in life.transcript(page).messages if message.text == "faster"]
    assert life.answers(page)[0] == whole_answer(turn.id, SCRIPT, found, taken if len(life.outcomes(page)) == 1 else [])  # type: ignore[arg-type]


class Half:
    """Ends one step, is interrupted in the next one, and says nothing more."""

    name = "half"

    async def aclose(self) -> None:
        pass

    async def run(self, request: AgentRequest, turn: TurnFace) -> None:
        if request.attempt == 1:
            await turn.responded(Response(text="Let me look."))
            await turn.say("The fi")
        await asyncio.Event().wait()


def test_what_an_interrupted_step_had_said_stays_if_its_turn_is_stopped_before_it_says_more(home: Home) -> None:
    """P7, R0"""
    home.agent = lambda life: Half()
    life = home.start()
    page = life.open_page()
    life.post(page, "look")
    life.until(lambda: life.transcript(page).answer_text == "The fi")
    life.die()
    life = home.start()
    life.until(lambda: life.turn(page).attempt == 2 and life.gateway.runner.running)
    life.post(page, "/stop")
    life.rest(page)
    assert (life.outcomes(page), life.answers(page)) == (["cancelled"], ["The fi"])


@pytest.mark.parametrize(("script", "offset"), [("say:half|hang / say:all of it", 0), ("count 30", 7)])
def test_an_interruption_stands_where_it_was_seen_once_the_pieces_are_gone(home: Home, script: str, offset: int) -> None:
    """P7: before an answer that was begun again, and behind what was kept of one that was continued."""
    life = home.start()
    page = life.open_page()
    life.post(page, script)
    life.until(lambda: life.transcript(page).answer_text in ("half", "1 2 3 4"))
    life.die()
    life = home.start()
    life.rest(page)
    grown = Transcript().extend(life.events(page))
    assert [cut.offset for cut in life.cuts(page)] == [offset] == [row.offset for row in grown.messages if row.role == "interruption"]
