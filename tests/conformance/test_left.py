"""Turns that were cut and left: what goes on from them, and what a start finds to decide upon (A23, B8, B13, R5, R7)."""

import msgspec
import pytest

from holdfast.api import operations
from holdfast.core import events as e
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.errors import StaleEpoch
from holdfast.core.sessions import Session
from holdfast.core.transcript import Transcript
from holdfast.core.turns import Outcome, TurnState
from holdfast.ports.store import Store
from tests.conformance.steps import (
    CHAT,
    CUT,
    ENDED,
    LEFT,
    NOW,
    append,
    bodies,
    kinds,
    left,
    new_owner,
    new_session,
    owed,
    question,
    running,
    say,
    start,
    text,
    whole_log,
)

pytestmark = pytest.mark.anyio


def names(sessions: list[Session]) -> list[str]:
    return [session.session_id for session in sessions]


def call(call_id: str) -> e.ToolStarted:
    return e.ToolStarted(call_id=call_id, name="terminal", arguments={}, effect=Effect.PURE)


# --- leaving


async def test_a_turn_that_is_left_holds_no_lease_and_says_why(store: Store) -> None:
    """R7, P2: whoever left it can write it no more."""
    turn = await left(store)
    session = await store.session("s1")
    assert (session.turn_state, session.left, session.owner, session.rule, session.why) == (
        TurnState.INTERRUPTED, True, None, "R7", "interrupted by a crash 5 s earlier",
    )  # fmt: skip
    assert (session.resume_pending, session.resume_reason) == (True, "crash")
    for events in ([text("x")], [ENDED], [e.TurnResumed(attempt=2, rule="R9", reason="crash")]):
        with pytest.raises(StaleEpoch):
            await append(store, turn, *events)
    await store.forget_owner(turn.lease.owner)
    assert await store.owners() == []


async def test_a_turn_that_was_left_can_be_taken_up_and_goes_on(store: Store) -> None:
    """R9: a later start, or a human, decided otherwise."""
    await left(store)
    other = await new_owner(store, "other")
    session = await store.session("s1")
    resumed = e.TurnResumed(attempt=2, rule="R9", reason="crash", why="interrupted by a crash 1 h earlier")
    taken = await store.take_turn("s1", owner=other, turn_id="t1", epoch=session.epoch, events=[resumed], at=NOW)
    session = await store.session("s1")
    assert (session.turn_state, session.left, session.rule, session.why, session.attempt) == (
        TurnState.RUNNING, False, "R9", "interrupted by a crash 1 h earlier", 2,
    )  # fmt: skip
    await append(store, taken, ENDED)
    assert (await store.session("s1")).rule == "R9"  # Still the last decision over it.


async def test_a_new_turn_has_no_decision_yet(store: Store) -> None:
    turn = await append(store, await running(store), CUT, e.TurnResumed(attempt=2, rule="R9", reason="crash", why="w"))
    await append(store, turn, ENDED)
    await say(store)
    await start(store, "s1", "t2", owner=turn.lease.owner)
    session = await store.session("s1")
    assert (session.rule, session.why) == (None, None)


async def test_a_waiting_turn_is_left_waiting(store: Store) -> None:
    """R5"""
    await append(store, await running(store), question())
    assert await store.leave_turn("s1", turn_id="t1", left=e.TurnLeft(rule="R5"), at=NOW)
    session = await store.session("s1")
    assert (session.turn_state, session.left, session.rule) == (TurnState.WAITING, True, "R5")
    await say(store, text="the answer")
    session = await store.session("s1")
    assert (session.turn_state, session.left) == (TurnState.ANSWERED, False)
    assert names(await store.open_turns(apart_from=0)) == ["s1"]


async def test_what_was_left_can_be_left_again_for_another_reason(store: Store) -> None:
    """R8: decided again at each start."""
    await left(store)
    assert await store.leave_turn("s1", turn_id="t1", left=e.TurnLeft(rule="R8", why="w"), at=NOW)
    assert ((await store.session("s1")).rule, (await store.session("s1")).why) == ("R8", "w")


async def test_only_a_turn_that_no_process_holds_is_left(store: Store) -> None:
    turn = await running(store)
    before = (await store.session("s1")).seq

    async def leave(turn_id: str = "t1") -> bool:
        return await store.leave_turn("s1", turn_id=turn_id, left=LEFT, at=NOW)

    assert not await leave()
    turn = await append(store, turn, CUT)
    assert not await leave()  # Cut, and still in the hands of whoever found it.
    await append(store, turn, LEFT)
    assert not await leave("t0")
    assert (await store.session("s1")).seq == before + 2
    session = await store.session("s1")
    await store.take_turn("s1", owner=1, turn_id="t1", epoch=session.epoch, events=[e.TurnEnded(outcome=Outcome.FAILED)], at=NOW)
    assert not await leave()
    await new_session(store, "s2")
    assert not await store.leave_turn("s2", turn_id="t1", left=LEFT, at=NOW)


async def test_an_answered_turn_is_not_left(store: Store) -> None:
    """Its user has just spoken."""
    await append(store, await running(store), question())
    await say(store)
    assert not await store.leave_turn("s1", turn_id="t1", left=e.TurnLeft(rule="R5"), at=NOW)


# --- a message goes on from it


async def test_a_message_for_a_turn_that_was_left_sets_it_aside_and_starts_its_own_in_one_transaction(store: Store) -> None:
    """A13, A23, P5: finished calls keep their results, open ones are closed as unknown, what was written becomes a record."""
    done = e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="r1")
    await left(store, "s1", "t1", text("Half of "), text("it", 8), call("c1"), done, call("c2"), e.ToolOutput(call_id="c2", text="so far"))
    await say(store, text="go on")
    heard: list[int] = []
    leave = store.subscribe(lambda: heard.append(1))
    other = await new_owner(store, "other")
    heard.clear()
    turn = await start(store, "s1", "t2", owner=other)
    leave()
    assert len(heard) == 1
    assert kinds(await whole_log(store))[-5:] == ["tool.finished", "message.written", "turn.ended", "turn.started", "message.written"]
    shown = Transcript().extend(await store.records("s1", after=0, limit=100))
    first, second = shown.turns
    assert (first.state, first.outcome, first.rule) == (TurnState.ENDED, Outcome.SET_ASIDE, "R7")
    assert (second.generation, second.attempt, second.state) == (2, 1, TurnState.RUNNING)
    answer = next(message for message in shown.messages if message.id == "t1.answer")
    assert answer.text == "Half of it"
    assert [(each.call_id, each.outcome) for each in answer.tool_calls] == [("c1", ToolOutcome.DONE), ("c2", ToolOutcome.UNKNOWN)]
    assert answer.tool_calls[0].result == "r1" and "so far" in (answer.tool_calls[1].result or "")
    row = next(message for message in shown.messages if message.role == "interruption")
    assert row.decision == "set aside: rule R7, interrupted by a crash 5 s earlier"
    session = await store.session("s1")
    assert (session.resume_pending, session.resume_reason, session.interrupted_restarts) == (True, "crash", 1)
    assert (session.turn_id, session.left, session.queued, session.owner) == ("t2", False, 0, other)
    await append(store, turn, ENDED)
    session = await store.session("s1")
    assert (session.resume_pending, session.interrupted_restarts) == (False, 0)


async def test_a_turn_that_is_cut_again_after_another_was_set_aside_counts_on(store: Store) -> None:
    """A17: setting aside is no progress."""
    await left(store)
    await say(store)
    turn = await start(store, "s1", "t2", owner=1)
    await append(store, turn, e.TurnInterrupted(reason="crash", restarts=2), LEFT)
    session = await store.session("s1")
    assert (session.interrupted_restarts, session.left) == (2, True)


async def test_a_turn_that_was_cut_and_not_left_is_decided_upon_before_a_message_starts_another(store: Store) -> None:
    """B8"""
    await append(store, await running(store), CUT)
    await say(store)
    assert await store.start_turn("s1", owner=1, turn_id="t2", at=NOW) is None
    assert (await store.session("s1")).turn_state is TurnState.INTERRUPTED


async def test_a_turn_that_was_left_without_a_message_stays(store: Store) -> None:
    await left(store)
    before = await store.session("s1")
    assert await store.start_turn("s1", owner=1, turn_id="t2", at=NOW) is None
    assert await store.session("s1") == before


async def test_a_turn_that_was_left_in_a_suspended_session_is_not_set_aside_by_a_message_it_refuses(store: Store) -> None:
    """R1, A20"""
    await left(store)
    await say(store)
    await store.change_session("s1", e.SessionChanged(suspended=True), at=NOW)
    assert await store.start_turn("s1", owner=1, turn_id="t2", at=NOW) is None
    session = await store.session("s1")
    assert (session.turn_state, session.left, session.queued) == (TurnState.INTERRUPTED, True, 0)


# --- what there is to decide


async def test_a_turn_that_was_left_is_looked_after_only_when_there_is_news(store: Store) -> None:
    """R7, A23: a message, a stop, a human who resumes it."""
    for name in ("quiet", "message", "stop", "resume"):
        await left(store, name, f"{name}.t")
    assert await store.open_turns(apart_from=0) == []
    await say(store, "message")
    await store.request_stop("stop", by="ann", dedup_key=None, at=NOW)
    await store.resume_session("resume", by="ann", dedup_key=None, at=NOW)
    assert names(await store.open_turns(apart_from=0)) == ["message", "stop", "resume"]


async def test_open_turns_come_by_the_age_of_the_message_they_answer(store: Store) -> None:
    """B13: whatever the order in which sessions were made and turns started."""
    owner = await new_owner(store)
    for name in ("a", "b", "c", "d"):
        await new_session(store, name)
    await say(store, "d")
    await append(store, await start(store, "d", "d0", owner=owner), ENDED)
    for later, name in enumerate(("c", "a", "d", "b")):
        await say(store, name, at=NOW + later)
    await say(store, "c", at=NOW + 9)  # Waits behind the one that is answered.
    for name in ("b", "d", "a", "c"):
        turn = await start(store, name, f"{name}1", owner=owner)
        if name in "ad":
            await append(store, turn, CUT)
    assert names(await store.open_turns(apart_from=0)) == ["c", "a", "d", "b"]
    assert names(await store.open_turns(apart_from=owner)) == ["a", "d"]


async def test_unsettled_is_what_a_start_decides_upon_beside_open_turns(store: Store) -> None:
    """R3, R5, R7, R8: what was left, what waits undecided, and what a mark alone speaks of; nothing else."""
    owner = await new_owner(store)
    listed = ["left", "waits", "marked", "marked and unused"]
    others = ["idle", "unused", "runs", "cut", "answered", "waits, decided"]
    for name in [*reversed(listed), *others]:
        await new_session(store, name)
    for later, name in enumerate(("left", "waits", "idle", "marked", "runs", "cut", "answered", "waits, decided")):
        await say(store, name, at=NOW + later)
    for name in ("runs", "answered", "waits, decided", "waits", "left", "cut", "marked", "idle"):
        turn = await start(store, name, f"{name}.t", owner=owner)
        if name in ("left", "cut"):
            await append(store, turn, CUT, *([LEFT] if name == "left" else []))
        elif name in ("idle", "marked"):
            await append(store, turn, ENDED)
        elif name != "runs":
            await append(store, turn, question(f"{name}.q"))
    await say(store, "answered")
    await store.leave_turn("waits, decided", turn_id="waits, decided.t", left=e.TurnLeft(rule="R5"), at=NOW)
    for name in ("marked", "marked and unused"):
        await store.change_session(name, e.SessionChanged(resume_pending=True), at=NOW)
    found = names(await store.undecided())
    assert sorted(found) == sorted(listed)
    assert [name for name in found if name != "marked and unused"] == ["left", "waits", "marked"]  # The oldest message first.


async def test_what_is_settled_is_unsettled_no_more(store: Store) -> None:
    await left(store, "s1", "t1")
    await append(store, await running(store, "s2", "t2"), question())
    await new_session(store, "s3")
    await store.mark_pending("agent:main:web:page:s3", at=NOW)
    assert len(await store.undecided()) == 3
    await store.resume_session("s1", by="ann", dedup_key=None, at=NOW)
    await store.leave_turn("s2", turn_id="t2", left=e.TurnLeft(rule="R5"), at=NOW)
    await store.clear_pending("agent:main:web:page:s3", at=NOW)
    assert await store.undecided() == []


# --- what is owed for it


async def test_a_reply_hangs_on_the_message_it_answers(store: Store) -> None:
    """B11: the anchor is kept with the message and with what is owed."""
    await new_session(store, key=CHAT)
    await say(store, anchor="upd-7")
    turn = await start(store, "s1", "t1", owner=await new_owner(store))
    shown = Transcript().extend(await whole_log(store))
    assert shown.anchor == "upd-7"
    answer = e.MessageWritten(message_id="a", role="assistant", content="x", delivery_id="a", anchor=shown.anchor)
    plain = e.MessageWritten(message_id="b", role="notice", content="y", delivery_id="b")
    await append(store, turn, answer, plain, ENDED)
    assert [(delivery.delivery_id, delivery.anchor) for delivery in await owed(store)] == [("a", "upd-7"), ("b", None)]


async def test_what_a_turn_had_said_hangs_on_the_message_it_answers_though_nobody_runs_it_to_its_end(store: Store) -> None:
    """B11: set aside by the next message, or ended by a question that expired."""
    owner = await new_owner(store)
    ends: list[tuple[str, tuple[e.Event, ...]]] = [("cut", (CUT, LEFT)), ("asks", (question("q1", NOW + 10),))]
    for name, events in ends:
        await new_session(store, name, key=f"{CHAT}{name}")
        await say(store, name, anchor=f"upd-{name}")
        await append(store, await start(store, name, f"{name}.t", owner=owner), text("Half."), *events)
    await say(store, "cut", anchor="upd-8")
    await start(store, "cut", "t2", owner=owner)
    await store.expire_questions(now=NOW + 10)
    assert [delivery.anchor for delivery in await owed(store)] == ["upd-cut", "upd-asks", "upd-asks"]


async def test_a_chat_is_told_that_its_question_has_expired(store: Store) -> None:
    """P3: a page shows the end of the turn; a chat has to be sent it."""
    await append(store, await running(store, "s1", "t1", key=CHAT), question("q1", NOW + 10))
    await append(store, await running(store, "s2", "t2"), question("q2", NOW + 10))
    assert await store.expire_questions(now=NOW + 10) == ["s1", "s2"]
    [delivery] = await owed(store)
    assert (delivery.session_id, delivery.session_key) == ("s1", CHAT) and "expired" in delivery.text
    assert [event.text for event in await bodies(store, "s2") if isinstance(event, e.MessageWritten) and event.role == "notice"] == []


async def test_a_turn_that_was_left_and_then_stopped_is_not_set_aside_by_a_message(store: Store) -> None:
    """A21, R0: the stop was acknowledged before; whoever decides ends it as cancelled, and the message waits for that."""
    await left(store)
    await store.request_stop("s1", by="ann", dedup_key=None, at=NOW)
    await say(store)
    assert await store.start_turn("s1", owner=1, turn_id="t2", at=NOW) is None
    assert (await store.session("s1")).turn_state is TurnState.INTERRUPTED


async def test_a_turn_that_waits_for_an_answer_is_told_of_once(store: Store) -> None:
    """By its question: that nothing continues it meanwhile needs nobody."""
    await left(store)
    cut = await store.session("s1")
    waits = msgspec.structs.replace(cut, session_id="s2", turn_state=TurnState.WAITING, rule="R5")
    assert [item.session_id for item in operations.attention((), (), (cut, waits), ()).items] == ["s1"]
