"""Words to the gateway itself: recorded, done and answered in one transaction, once."""

import pytest

from holdfast.core import events as e
from holdfast.core.errors import DuplicateOtherContent, NotFound
from holdfast.core.plans.accept import Accepted
from holdfast.core.plans.command import Action, Aside, Reset, Resume, Say, Stop
from holdfast.core.transcript import Transcript
from holdfast.core.turns import Outcome, TurnState
from holdfast.ports.store import Store
from tests import words
from tests.conformance.backends import Backend
from tests.conformance.steps import (
    CHAT,
    CUT,
    LEFT,
    NOW,
    append,
    bodies,
    kinds,
    left,
    new_session,
    owed,
    question,
    rested,
    running,
    say,
    so_far,
    whole_log,
)

pytestmark = pytest.mark.anyio


async def order(
    store: Store,
    text: str,
    action: Action,
    session_id: str = "s1",
    *,
    message_id: str = "m1",
    key: str | None = None,
    anchor: str | None = None,
) -> Accepted:
    aside = Aside(message_id=message_id, content=text, sender="ann", dedup_key=key, anchor=anchor)
    return await store.command(session_id, aside, action, at=NOW + 5)


async def reply(store: Store, session_id: str = "s1", message_id: str = "m1") -> str:
    """What was said to a command. The command stands right above it, and neither belongs to a turn."""
    shown = Transcript().extend(await whole_log(store, session_id)).messages
    place = next(place for place, message in enumerate(shown) if message.id == message_id)
    command, answer = shown[place : place + 2]
    assert (command.role, command.status, command.turn_id) == ("user", "command", None)
    assert (answer.id, answer.role, answer.turn_id) == (f"{message_id}.reply", "notice", None)
    return answer.text


async def test_words_to_the_gateway_are_recorded_with_their_answer_and_start_no_turn(store: Store) -> None:
    await new_session(store)
    assert await order(store, "/help", Say("the help")) == Accepted("m1", "s1")
    assert await reply(store) == "the help"
    session = await store.session("s1")
    assert (session.queued, session.turn_state) == (0, TurnState.NONE)
    assert await store.waiting_lanes(limit=10) == []
    assert await owed(store) == []  # A page reads the log.


async def test_a_chat_is_sent_the_answer_as_a_reply_to_the_command(store: Store) -> None:
    """B11"""
    await new_session(store, key=CHAT)
    await order(store, "/help", Say("the help"), anchor="upd-9")
    [delivery] = await owed(store)
    assert (delivery.text, delivery.anchor, delivery.delivery_id) == ("the help", "upd-9", "m1.reply")


async def test_a_command_that_comes_twice_is_done_once(backend: Backend, store: Store) -> None:
    """A22: also after a restart."""
    await rested(store)
    first = await order(store, "/new", Reset(("s2", "l2"), "ann"), key="k1")
    assert first == Accepted("m1", "s2")
    before = await so_far(store)
    async with backend.opened() as again:
        for session_id in ("s1", "s2"):
            found = await order(again, "/new", Reset(("s3", "l3"), "ann"), session_id, message_id="m2", key="k1")
            assert found == Accepted("m1", "s2", duplicate=True)
    assert await so_far(store) == before


async def test_the_key_of_a_command_with_other_words_is_refused(store: Store) -> None:
    await new_session(store)
    await order(store, "/help", Say("the help"), key="k1")
    with pytest.raises(DuplicateOtherContent):
        await order(store, "/stop", Stop("ann"), message_id="m2", key="k1")
    with pytest.raises(DuplicateOtherContent):
        await say(store, text="hello", key="k1")
    assert kinds(await whole_log(store)) == ["session.created", "message.written", "message.written"]


async def test_a_command_to_nobody_is_refused(store: Store) -> None:
    before = await so_far(store)
    with pytest.raises(NotFound):
        await order(store, "/help", Say("x"), "nowhere")
    assert await so_far(store) == before


async def test_a_stop_names_the_turn_and_says_how_many_wait(store: Store) -> None:
    """A21: from a chat as from anywhere else."""
    turn = await running(store)
    await say(store)
    await say(store)
    await order(store, "/stop", Stop("ann"))
    assert e.StopRequested(turn_id="t1", by="ann") in await bodies(store)
    assert await reply(store) == words.STOPPED_TWO_WAIT
    session = await store.session("s1")
    assert (session.stop_requested, session.queued, session.suspended) == (True, 2, False)
    await append(store, turn, e.TurnEnded(outcome=Outcome.CANCELLED))


async def test_a_stop_where_nothing_runs_is_answered(store: Store) -> None:
    await rested(store)
    await order(store, "/stop", Stop("ann"))
    assert await reply(store) == words.NOTHING_TO_STOP
    assert "stop.requested" not in kinds(await whole_log(store))


async def test_a_stop_ends_a_turn_that_waits_at_once(store: Store) -> None:
    """A21, R0"""
    await append(store, await running(store), question())
    await order(store, "/stop", Stop("ann"))
    assert (await store.session("s1")).turn_state is TurnState.ENDED
    assert await reply(store) == words.STOPPED


async def test_a_stop_of_a_turn_that_was_left_is_news_for_whoever_decides(store: Store) -> None:
    """R0: no boot revives it, and nobody has to start one for it."""
    await left(store)
    assert await store.open_turns(apart_from=0) == []
    await order(store, "/stop", Stop("ann"))
    assert [session.stop_requested for session in await store.open_turns(apart_from=0)] == [True]


async def test_a_new_conversation_is_answered_in_itself(store: Store) -> None:
    """A22: what ran is stopped first; the answer says how to get back, once."""
    await running(store, key=CHAT)
    await say(store, text="waits", message_id="m0")
    assert await order(store, "/new", Reset(("s2", "l2"), "ann")) == Accepted("m1", "s2")
    assert (await store.session("s1")).stop_requested and (await store.session("s1")).queued == 0
    assert kinds(await whole_log(store, "s2")) == ["session.created", "message.written", "message.written"]
    assert await reply(store, "s2") == words.BEGUN["asked"]
    assert [(delivery.session_id, delivery.delivery_id) for delivery in await owed(store)] == [("s1", "m0.refused"), ("s2", "m1.reply")]
    current = await store.current_session(CHAT)
    assert current and (current.session_id, current.was_auto_reset) == ("s2", False)


async def test_a_new_conversation_in_one_that_was_never_used_changes_nothing_and_says_so(store: Store) -> None:
    """A22: commands alone are no use of it."""
    await new_session(store)
    await order(store, "/help", Say("the help"), message_id="m0")
    assert (await order(store, "/new", Reset(("s2", "l2"), "ann"))).session_id == "s1"
    assert await reply(store) == words.ALREADY_NEW
    with pytest.raises(NotFound):
        await store.session("s2")


async def test_going_back_is_answered_in_the_conversation_that_is_resumed(store: Store) -> None:
    """A14"""
    turn = await running(store)
    await append(store, turn, CUT, LEFT)
    await new_session(store, "s2", key="agent:main:web:page:s1")
    assert (await order(store, "/resume 1", Resume("s1", "ann"), "s2")).session_id == "s1"
    resumed = await store.session("s1")
    assert resumed.current and not resumed.left
    assert e.SessionResumed(by="ann", goes_on=True) in await bodies(store)
    assert await reply(store) == "Back in the conversation “A title”. The interrupted work continues."


async def test_going_back_to_where_one_is_changes_nothing_and_says_so(store: Store) -> None:
    await rested(store)
    await order(store, "/resume 1", Resume("s1", "ann"))
    assert await reply(store) == words.ALREADY_HERE
    assert "session.resumed" not in kinds(await whole_log(store))


async def test_a_command_to_a_session_that_was_left_is_one_to_its_keys_current_one(store: Store) -> None:
    """A20: what is current now is what is stopped."""
    await rested(store)
    await store.reset("s1", fresh=("s2", "l2"), by="ann", dedup_key=None, at=NOW)
    await say(store, "s2")
    await store.start_turn("s2", owner=1, turn_id="t9", at=NOW)
    assert (await order(store, "/stop", Stop("ann"), "s1")).session_id == "s2"
    assert (await store.session("s2")).stop_requested
