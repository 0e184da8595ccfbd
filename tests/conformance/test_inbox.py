"""What anyone may add at any time: messages, stops, answers. Accepted means kept, once (P1)."""

import pytest

from holdfast.core import events as e
from holdfast.core.delivery import DeliveryState
from holdfast.core.effects import ToolOutcome
from holdfast.core.errors import BadInput, DuplicateOtherContent, LaneFull, NotFound, QuestionClosed, StaleEpoch
from holdfast.core.plans.accept import Accepted
from holdfast.core.plans.answer import Answer
from holdfast.core.plans.leave import Moved
from holdfast.core.plans.stop import Stopped
from holdfast.core.turns import Outcome, TurnState
from holdfast.ports.store import Store
from tests.conformance.backends import Backend
from tests.conformance.steps import (
    CHAT,
    ENDED,
    NOW,
    append,
    bodies,
    kinds,
    new_owner,
    new_session,
    owed,
    question,
    running,
    say,
    so_far,
    start,
    text,
    whole_log,
)

pytestmark = pytest.mark.anyio


async def ask(store: Store, question_id: str = "q1", *, session_id: str = "s1", expires_at: int = NOW + 1000) -> None:
    turn = await running(store, session_id, f"{session_id}.t")
    call = e.ToolStarted(call_id="c1", name="ask", arguments={}, effect="pure")  # type: ignore[arg-type]
    await append(store, turn, call, question(question_id, expires_at))


def answered(text: str) -> Answer:
    return Answer(content=text, by="owner")


async def test_a_second_delivery_of_a_message_is_a_no_op_that_gives_the_first_answer(backend: Backend, store: Store) -> None:
    """P1: also after a restart, also once its turn has ended."""
    await new_session(store)
    first = await say(store, key="k1", message_id="m1")
    assert first == Accepted("m1", "s1")
    assert await say(store, key="k1", message_id="m2") == Accepted("m1", "s1", duplicate=True)
    turn = await start(store, "s1", "t1", owner=await new_owner(store))
    await append(store, turn, ENDED)
    async with backend.opened() as again:
        assert await say(again, key="k1", message_id="m3") == Accepted("m1", "s1", duplicate=True)
    assert kinds(await whole_log(store)).count("message.accepted") == 1
    assert (await store.session("s1")).queued == 0


async def test_the_same_key_with_other_text_is_refused(store: Store) -> None:
    await new_session(store)
    await say(store, text="one", key="k1")
    with pytest.raises(DuplicateOtherContent):
        await say(store, text="two", key="k1")
    assert (await store.session("s1")).queued == 1


async def test_a_key_belongs_to_one_kind_of_request(store: Store) -> None:
    await running(store)
    await say(store, key="k1")
    with pytest.raises(DuplicateOtherContent):
        await store.request_stop("s1", by="owner", dedup_key="k1", at=NOW)
    await store.request_stop("s1", by="owner", dedup_key="k2", at=NOW)
    with pytest.raises(DuplicateOtherContent):
        await say(store, key="k2")


async def test_equal_texts_without_a_key_are_two_messages(store: Store) -> None:
    """F8: text is never what makes two messages one."""
    await new_session(store)
    await say(store)
    await say(store)
    assert (await store.session("s1")).queued == 2


async def test_a_full_lane_refuses_aloud_and_stores_nothing(store: Store) -> None:
    await new_session(store)
    for _ in range(3):
        await say(store, max_waiting=3)
    with pytest.raises(LaneFull):
        await say(store, max_waiting=3, key="k1")
    assert (await store.session("s1")).queued == 3
    assert not (await say(store, max_waiting=4, key="k1")).duplicate


async def test_a_message_for_nobody_is_refused(store: Store) -> None:
    before = await so_far(store)
    with pytest.raises(NotFound):
        await say(store, "nowhere")
    assert await so_far(store) == before


async def test_messages_wait_and_are_answered_in_their_order(store: Store) -> None:
    owner = await new_owner(store)
    await new_session(store)
    texts = [f"message {n}" for n in range(5)]
    for message in texts:
        await say(store, text=message)
    for number in range(5):
        await append(store, await start(store, "s1", f"t{number}", owner=owner), ENDED)
    assert [event.text for event in await bodies(store) if isinstance(event, e.MessageWritten)] == texts


async def test_a_message_to_a_waiting_turn_is_its_answer(store: Store) -> None:
    await ask(store)
    accepted = await say(store, text="the blue one", key="k1", message_id="m9")
    assert accepted == Accepted("m9", "s1", answered="q1")
    session = await store.session("s1")
    assert (session.turn_state, session.queued, session.state) == (TurnState.ANSWERED, 0, "running")
    assert (await bodies(store))[-1] == e.QuestionAnswered(
        question_id="q1", call_id="c1", content="the blue one", message_id="m9", by="owner"
    )
    again = await say(store, text="the blue one", key="k1")
    assert again == Accepted("m9", "s1", duplicate=True, answered="q1")
    await say(store, text="and quickly")
    assert (await store.session("s1")).queued == 1
    with pytest.raises(QuestionClosed) as late:
        await store.answer("q1", answered("the red one"), at=NOW)
    assert late.value.code == "question_answered"


@pytest.mark.parametrize("state", [state for state in DeliveryState if state is not DeliveryState.SENT])
async def test_a_message_in_a_chat_answers_a_question_only_once_it_was_delivered_there(store: Store, state: DeliveryState) -> None:
    """A27: until then it waits behind the question, and so it does while somebody answers on the page."""
    turn = await running(store, key=CHAT)
    told = e.MessageWritten(message_id="q1.asked", role="notice", content="Which one?", delivery_id="q1.asked")
    await append(store, turn, told, question())
    await store.record_delivery("s1", e.DeliveryChanged(delivery_id="q1.asked", state=state), expect=DeliveryState.PENDING, at=NOW)
    await say(store, text="something else")
    session = await store.session("s1")
    assert (session.turn_state, session.queued) == (TurnState.WAITING, 1)
    again = ["q1.asked.2"] if state is DeliveryState.DEAD else []
    assert [delivery.delivery_id for delivery in await owed(store) if delivery.delivery_id != "q1.asked"] == again
    if state is DeliveryState.PENDING:
        await say(store, text="the blue one", on_page=True)
    else:
        name = again[0] if again else "q1.asked"
        expect = DeliveryState.PENDING if again else state
        await store.record_delivery("s1", e.DeliveryChanged(delivery_id=name, state="sent"), expect=expect, at=NOW)
        await say(store, text="the blue one")
    session = await store.session("s1")
    assert (session.turn_state, session.queued) == (TurnState.ANSWERED, 1)


@pytest.mark.parametrize("why", ["suspended", "expired"])
async def test_a_lost_question_that_takes_no_answer_any_more_is_not_asked_again(store: Store, why: str) -> None:
    """A27, A14"""
    turn = await running(store, key=CHAT)
    told = e.MessageWritten(message_id="q1.asked", role="notice", content="Which one?", delivery_id="q1.asked")
    await append(store, turn, told, question(expires_at=NOW + 5))
    dead = e.DeliveryChanged(delivery_id="q1.asked", state=DeliveryState.DEAD)
    await store.record_delivery("s1", dead, expect=DeliveryState.PENDING, at=NOW)
    if why == "suspended":
        await store.change_session("s1", e.SessionChanged(suspended=True), at=NOW)
        assert (await say(store, fresh=("s2", "l2"))).session_id == "s2"
    else:
        assert (await say(store, at=NOW + 5)).session_id == "s1"
    assert "q1.asked.2" not in [delivery.delivery_id for delivery in await owed(store)]


async def test_an_answer_is_recorded_once(store: Store) -> None:
    await ask(store)
    assert await store.answer("q1", answered("yes"), at=NOW) == "s1"
    with pytest.raises(QuestionClosed):
        await store.answer("q1", answered("yes"), at=NOW)
    with pytest.raises(NotFound):
        await store.answer("q2", answered("yes"), at=NOW)
    assert kinds(await whole_log(store)).count("question.answered") == 1


async def test_a_question_that_nobody_answers_in_time_ends_its_turn_visibly(store: Store) -> None:
    """P3; a late answer says so."""
    await ask(store, "q1", session_id="s1", expires_at=NOW + 10)
    await ask(store, "q2", session_id="s2", expires_at=NOW + 20)
    assert await store.expire_questions(now=NOW + 9) == []
    assert await store.expire_questions(now=NOW + 10) == ["s1"]
    assert await store.expire_questions(now=NOW + 10) == []
    finished, ended = (await bodies(store))[-2:]
    assert isinstance(finished, e.ToolFinished) and (finished.call_id, finished.outcome) == ("c1", ToolOutcome.FAILED)
    assert isinstance(ended, e.TurnEnded) and ended.outcome is Outcome.FAILED and ended.error
    assert (await store.session("s1")).state == "idle"
    assert (await store.session("s2")).state == "waiting"
    with pytest.raises(QuestionClosed) as late:
        await store.answer("q1", answered("yes"), at=NOW)
    assert late.value.code == "question_expired"
    await say(store, "s1")
    assert (await store.session("s1")).queued == 1


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.COMPLETED, Outcome.SET_ASIDE])
async def test_a_question_whose_turn_ended_in_its_time_is_not_called_expired(store: Store, outcome: Outcome) -> None:
    """R5: a late answer is told what happened."""
    turn = await running(store)
    asked = e.QuestionAsked(question_id="q1", call_id="c1", content="?", expires_at=NOW + 10, ends_attempt=False)
    await append(store, turn, asked, e.TurnEnded(outcome=outcome))
    with pytest.raises(QuestionClosed) as late:
        await store.answer("q1", answered("yes"), at=NOW + 1)
    assert late.value.code == "question_ended"


async def test_a_message_that_comes_too_late_to_be_the_answer_is_the_next_message(store: Store) -> None:
    """R5: an expired question is no unfinished work, though nobody has looked at it since."""
    await ask(store, expires_at=NOW + 10)
    with pytest.raises(QuestionClosed) as late:
        await store.answer("q1", answered("yes"), at=NOW + 10)
    assert late.value.code == "question_expired"
    assert (await store.session("s1")).turn_state is TurnState.WAITING
    await say(store, text="anything else", at=NOW + 10)
    session = await store.session("s1")
    assert (session.turn_state, session.queued) == (TurnState.ENDED, 1)
    ended = [event for event in await bodies(store) if isinstance(event, e.TurnEnded)]
    assert [event.outcome for event in ended] == [Outcome.FAILED]
    assert await store.expire_questions(now=NOW + 10) == []
    await start(store, "s1", "t2", owner=await new_owner(store))


async def test_any_number_of_questions_expire_in_one_look(store: Store) -> None:
    owner = await new_owner(store)
    for number in range(230):
        turn = await running(store, f"s{number}", f"t{number}", owner=owner)
        await append(store, turn, question(f"q{number}", NOW + number))
    assert await store.expire_questions(now=NOW + 228) == [f"s{number}" for number in range(229)]


async def test_a_stop_is_a_record_that_names_the_turn(store: Store) -> None:
    """A21: committed before it is acknowledged; queued messages stay and are counted."""
    turn = await running(store)
    await say(store)
    await say(store)
    stopped = await store.request_stop("s1", by="owner", dedup_key="k1", at=NOW)
    assert (stopped.turn_id, stopped.queued, stopped.ended) == ("t1", 2, False)
    assert (await bodies(store))[-1] == e.StopRequested(turn_id="t1", by="owner", dedup_key="k1")
    assert (await store.session("s1")).stop_requested
    await append(store, turn, text("the last words"), e.TurnEnded(outcome=Outcome.CANCELLED))
    assert not (await store.session("s1")).stop_requested
    again = await store.request_stop("s1", by="owner", dedup_key="k1", at=NOW)
    assert (again.turn_id, again.ended) == ("t1", True)
    await start(store, "s1", "t2", owner=turn.lease.owner)
    assert (await store.request_stop("s1", by="owner", dedup_key="k1", at=NOW)).turn_id == "t1"
    assert not (await store.session("s1")).stop_requested


async def test_there_is_nothing_to_stop_where_no_turn_is_open(store: Store) -> None:
    await new_session(store)
    await say(store)
    nothing = Stopped(None, queued=1, ended=True)
    assert await store.request_stop("s1", by="owner", dedup_key=None, at=NOW) == nothing
    assert [item.kind for item in await whole_log(store)][-1] == "message.accepted"
    with pytest.raises(NotFound):
        await store.request_stop("nowhere", by="owner", dedup_key=None, at=NOW)


async def test_a_request_that_found_nothing_to_do_does_nothing_when_it_is_repeated(store: Store) -> None:
    """A22: what it finds later was not meant."""
    await new_session(store)

    async def ask_all() -> tuple[Stopped, Moved, Moved]:
        return (
            await store.request_stop("s1", by="owner", dedup_key="stop|1", at=NOW),
            await store.reset("s1", fresh=("s2", "l2"), by="owner", dedup_key="reset|1", at=NOW),
            await store.resume_session("s1", by="owner", dedup_key="resume|1", at=NOW),
        )

    first = await ask_all()
    await say(store)
    turn = await start(store, "s1", "t1", owner=await new_owner(store))
    again = await ask_all()
    assert (first[0].turn_id, again[0].turn_id) == (None, None)
    assert first[1:] == again[1:] == (Moved("s1", changed=False), Moved("s1", changed=False))
    session = await store.session("s1")
    assert (session.turn_id, session.turn_state, session.stop_requested) == (turn.turn_id, TurnState.RUNNING, False)


async def test_a_turn_that_ends_after_its_stop_was_recorded_ends_as_cancelled(store: Store) -> None:
    """A21: people were told that it is stopped."""
    turn = await running(store)
    await store.request_stop("s1", by="owner", dedup_key=None, at=NOW)
    await append(store, turn, e.TurnEnded(outcome=Outcome.COMPLETED))
    assert (await bodies(store))[-1] == e.TurnEnded(outcome=Outcome.CANCELLED)


async def test_a_stopped_turn_is_not_taken_up_again(store: Store) -> None:
    """R0: not even by a decision that was made in the moment before."""
    turn = await running(store)
    turn = await append(store, turn, e.TurnInterrupted(reason="crash", restarts=1))
    await store.request_stop("s1", by="owner", dedup_key=None, at=NOW)
    with pytest.raises(StaleEpoch):
        await append(store, turn, e.TurnResumed(attempt=2, rule="R9", reason="crash"))


async def test_a_new_conversation_waits_until_the_turn_of_the_one_before_has_ended(store: Store) -> None:
    """A22: one chat has one agent at a time."""
    turn = await running(store)
    await store.reset("s1", fresh=("s2", "l2"), by="owner", dedup_key=None, at=NOW)
    await say(store, "s2")
    assert await store.start_turn("s2", owner=turn.lease.owner, turn_id="t2", at=NOW) is None
    await append(store, turn, e.TurnEnded(outcome=Outcome.CANCELLED))
    assert await store.start_turn("s2", owner=turn.lease.owner, turn_id="t2", at=NOW) is not None


async def test_a_stop_for_a_turn_that_has_ended_stops_nothing(backend: Backend, store: Store) -> None:
    """A21: it names the turn it was accepted for, and is repeated as such."""
    turn = await running(store)
    await append(store, turn, e.TurnEnded(outcome=Outcome.COMPLETED))
    await say(store)
    await start(store, "s1", "t2", owner=turn.lease.owner)
    for _ in range(2):
        stopped = await store.request_stop("s1", by="owner", dedup_key="k1", turn_id="t1", at=NOW)
        assert stopped.turn_id is None
        assert not (await store.session("s1")).stop_requested
    assert "stop.requested" not in kinds(await whole_log(store))
    assert (await store.request_stop("s1", by="owner", dedup_key=None, turn_id="t2", at=NOW)).turn_id == "t2"
    assert (await store.session("s1")).stop_requested


@pytest.mark.parametrize(
    ("waited", "after_ms", "named", "stopped"),
    [(True, 3000, None, None), (True, 3001, None, "t2"), (True, 0, "t2", "t2"), (False, 0, None, "t2")],
    ids=["at once", "later", "by name", "written after the stop"],
)
async def test_stops_at_once_are_for_one_turn(store: Store, waited: bool, after_ms: int, named: str | None, stopped: str | None) -> None:
    """A21: though the next turn runs when the second one comes, which answers what had been waiting when the first came."""
    turn = await running(store)
    if waited:
        await say(store)
    await store.request_stop("s1", by="owner", dedup_key=None, at=NOW)
    await append(store, turn, e.TurnEnded(outcome=Outcome.CANCELLED))
    if not waited:
        await say(store)
    await start(store, "s1", "t2", owner=turn.lease.owner)
    found = await store.request_stop("s1", by="owner", dedup_key=None, turn_id=named, saw="t2", at=NOW + after_ms)
    assert (found.turn_id, (await store.session("s1")).stop_requested) == (stopped, stopped is not None)


async def test_a_question_of_a_suspended_session_takes_no_answer(store: Store) -> None:
    """R1: it is left as it is, until somebody resumes it."""
    await ask(store)
    await store.change_session("s1", e.SessionChanged(suspended=True), at=NOW)
    with pytest.raises(QuestionClosed):
        await store.answer("q1", answered("too late"), at=NOW)


async def test_a_stopped_turn_that_waits_ends_at_once_with_nothing_left_open(store: Store) -> None:
    """R0 needs no process; the question takes no more answers."""
    await ask(store)
    stopped = await store.request_stop("s1", by="owner", dedup_key=None, at=NOW)
    assert (stopped.turn_id, stopped.ended) == ("s1.t", True)
    finished, ended = (await bodies(store))[-2:]
    assert isinstance(finished, e.ToolFinished) and finished.call_id == "c1"
    assert isinstance(ended, e.TurnEnded) and ended.outcome is Outcome.CANCELLED
    with pytest.raises(QuestionClosed) as late:
        await store.answer("q1", answered("yes"), at=NOW)
    assert late.value.code == "question_cancelled"


async def test_a_stopped_turn_that_was_answered_ends_at_once(store: Store) -> None:
    await ask(store)
    await store.answer("q1", answered("yes"), at=NOW)
    assert (await store.request_stop("s1", by="owner", dedup_key=None, at=NOW)).ended
    assert (await store.session("s1")).state == "idle"


@pytest.mark.parametrize("how", ["stopped", "expired"])
async def test_what_a_turn_had_said_before_its_question_is_a_record_when_nobody_runs_it_to_its_end(store: Store, how: str) -> None:
    """P7: it would otherwise be gone with the pieces."""
    turn = await running(store)
    turn = await append(store, turn, text("One "), text("moment.", 4))
    await append(store, turn, question())
    if how == "stopped":
        await store.request_stop("s1", by="owner", dedup_key=None, at=NOW)
    else:
        await store.expire_questions(now=NOW + 10**6)
    written = [event for event in await bodies(store) if isinstance(event, e.MessageWritten) and event.role == "assistant"]
    assert [(event.message_id, event.text) for event in written] == [("t1.answer", "One moment.")]
    assert (await store.session("s1")).turn_state is TurnState.ENDED


async def test_what_waited_in_a_session_that_was_suspended_starts_no_turn_and_is_refused_once(store: Store) -> None:
    """A20, P1: exactly one visible refusal."""
    owner = await new_owner(store)
    await new_session(store)
    waiting = [(await say(store)).message_id for _ in range(3)]
    await store.change_session("s1", e.SessionChanged(suspended=True), at=NOW)
    assert await store.start_turn("s1", owner=owner, turn_id="t1", at=NOW) is None
    assert await store.start_turn("s1", owner=owner, turn_id="t1", at=NOW) is None
    refused = [event.message_id for event in await bodies(store) if isinstance(event, e.MessageRefused)]
    assert refused == waiting
    assert (await store.session("s1")).queued == 0
    assert await store.waiting_lanes(limit=10) == []


async def test_a_stopped_turn_that_was_cut_waits_for_whoever_decides_upon_it(store: Store) -> None:
    """R0: its open calls have to be closed as well, which only the record of the turn tells."""
    turn = await running(store)
    await append(store, turn, e.TurnInterrupted(reason="crash", restarts=1))
    assert not (await store.request_stop("s1", by="owner", dedup_key=None, at=NOW)).ended
    [session] = await store.open_turns(apart_from=0)
    assert session.stop_requested


@pytest.mark.parametrize(("rule", "recorded"), [("R4", "R0"), (None, None)])
async def test_a_stop_on_record_wins_over_an_end_that_comes_later(store: Store, rule: str | None, recorded: str | None) -> None:
    """R0: and the record names the rule that decided."""
    turn = await running(store)
    await store.request_stop("s1", by="owner", dedup_key=None, at=NOW)
    await append(store, turn, e.TurnEnded(outcome=Outcome.FAILED, rule=rule, why="w"))
    assert (await bodies(store))[-1] == e.TurnEnded(outcome=Outcome.CANCELLED, rule=recorded)


async def test_what_was_decided_before_a_stop_is_decided_again(store: Store) -> None:
    """R0, A21: otherwise the session would be suspended, and what waits in it refused, though people only stopped its turn."""
    turn = await append(store, await running(store), e.TurnInterrupted(reason="crash", restarts=3))
    await say(store)
    await store.request_stop("s1", by="owner", dedup_key=None, at=NOW)
    before = await so_far(store)
    with pytest.raises(StaleEpoch):
        await append(store, turn, e.SessionChanged(suspended=True), e.TurnEnded(outcome=Outcome.SET_ASIDE, rule="R2", why="w"))
    assert await so_far(store) == before
    await append(store, turn, e.TurnEnded(outcome=Outcome.CANCELLED, rule="R0"))
    session = await store.session("s1")
    assert (session.suspended, session.queued, session.rule) == (False, 1, "R0")


async def test_a_stop_of_one_turn_does_not_stop_the_next(store: Store) -> None:
    turn = await running(store)
    await say(store)
    await store.request_stop("s1", by="owner", dedup_key=None, at=NOW)
    await append(store, turn, e.TurnEnded(outcome=Outcome.CANCELLED))
    await start(store, "s1", "t2", owner=turn.lease.owner)
    assert not (await store.session("s1")).stop_requested


async def test_what_anyone_adds_does_not_move_a_turns_position(store: Store) -> None:
    turn = await running(store)
    await say(store)
    await store.request_stop("s1", by="owner", dedup_key=None, at=NOW)
    await store.change_session("s1", e.SessionChanged(title="new"), at=NOW)
    after = await append(store, turn, text("x"))
    assert after.position == turn.position + 1
    assert [item.position for item in await whole_log(store) if item.turn_id == "t1"] == [0, 1, 2]


async def test_text_that_is_no_text_is_refused_and_the_next_message_is_not(store: Store) -> None:
    await new_session(store)
    for broken in ("\ud800", "half \udfff of it", "\udc80"):
        with pytest.raises(BadInput):
            await say(store, text=broken)
        with pytest.raises(BadInput):
            await say(store, key=broken)
        with pytest.raises(BadInput):
            await say(store, message_id=broken)
    assert (await store.session("s1")).queued == 0
    await say(store)
