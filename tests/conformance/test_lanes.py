"""Which session a key points at: resets by policy and by hand, going back, and what becomes of what was under way (A14, A19-A24)."""

import pytest

from holdfast.core import events as e
from holdfast.core.errors import DuplicateOtherContent, NotFound
from holdfast.core.plans.leave import Moved
from holdfast.core.plans.start import StartedTurn
from holdfast.core.resets import Boundary
from holdfast.core.turns import Outcome, TurnState
from holdfast.ports.store import Store
from tests.conformance.steps import (
    CHAT,
    CUT,
    NOW,
    append,
    bodies,
    kinds,
    left,
    new_owner,
    new_session,
    notices,
    owed,
    question,
    rested,
    running,
    say,
    start,
    whole_log,
)

pytestmark = pytest.mark.anyio

KEY = "agent:main:web:page:s1"
IDLE = (Boundary("idle", NOW + 1),)


async def current(store: Store, key: str = KEY) -> str | None:
    session = await store.current_session(key)
    return session.session_id if session else None


async def reset(store: Store, session_id: str = "s1", new: str = "s2", key: str | None = None) -> Moved:
    return await store.reset(session_id, fresh=(new, f"l{new}"), by="ann", dedup_key=key, at=NOW + 5)


async def resume(store: Store, session_id: str = "s1", key: str | None = None) -> Moved:
    return await store.resume_session(session_id, by="ann", dedup_key=key, at=NOW + 9)


# --- by policy


@pytest.mark.parametrize("reason", ["idle", "daily"])
async def test_a_message_to_a_session_that_rests_since_before_a_boundary_begins_a_new_one(store: Store, reason: str) -> None:
    """A19: in one transaction; the first words say why and how to get back."""
    await rested(store)
    accepted = await say(store, text="good morning", key="k1", fresh=("s2", "l2"), resets=(Boundary(reason, NOW + 1),))
    assert accepted.session_id == "s2" and await current(store) == "s2"
    new = await store.session("s2")
    assert (new.was_auto_reset, new.auto_reset_reason, new.log, new.queued, new.title) == (True, reason, "l2", 1, "good morning")
    assert kinds(await whole_log(store, "s2")) == ["session.created", "message.written", "message.accepted"]
    [told] = await notices(store, "s2")
    assert "/resume 1" in told.text and told.delivery_id is None
    old = await store.session("s1")
    assert (old.current, old.suspended, old.queued) == (False, False, 0)
    again = await say(store, text="good morning", key="k1", fresh=("s3", "l3"), resets=(Boundary(reason, NOW + 99),))
    assert (again.session_id, again.duplicate) == ("s2", True)


async def test_a_chat_is_told_of_its_new_conversation_with_the_number_of_the_old(store: Store) -> None:
    """A19: what a page can read a chat has to be sent."""
    await new_session(store, "s0", key=CHAT)
    await rested(store, "s1", key=CHAT)
    await say(store, "s1", fresh=("s2", "l2"), resets=IDLE)
    [delivery] = await owed(store)
    assert (delivery.session_id, delivery.session_key) == ("s2", CHAT)
    assert "/resume 2" in delivery.text


async def test_a_session_that_lived_since_the_boundary_continues(store: Store) -> None:
    """A19"""
    await rested(store)
    assert (await say(store, resets=(Boundary("idle", NOW), Boundary("daily", NOW - 10**6)))).session_id == "s1"
    assert not (await store.session("s1")).was_auto_reset


async def test_what_is_pending_waiting_queued_running_or_unused_is_never_reset_by_a_policy(store: Store) -> None:
    """A24"""
    await rested(store, "pending")
    await store.mark_pending("agent:main:web:page:pending", at=NOW)
    await append(store, await running(store, "waiting", "t1"), question())
    await rested(store, "queued")
    await say(store, "queued")
    await running(store, "running", "t2")
    await left(store, "cut", "t3")
    await new_session(store, "unused")
    for name in ("pending", "waiting", "queued", "running", "cut", "unused"):
        assert (await say(store, name, resets=IDLE)).session_id == name
    assert (await store.session("waiting")).turn_state is TurnState.ANSWERED


# --- a session that is not its key's current one


async def test_a_message_to_a_session_that_was_left_goes_to_the_one_its_key_points_at(store: Store) -> None:
    """A20"""
    await rested(store)
    await reset(store)
    accepted = await say(store, "s1", fresh=("s3", "l3"))
    assert accepted.session_id == "s2"
    assert ((await store.session("s1")).queued, (await store.session("s2")).queued) == (0, 1)


async def test_a_message_to_an_old_session_whose_key_points_at_a_suspended_one_begins_a_new_one(store: Store) -> None:
    """A14"""
    await rested(store)
    await reset(store)
    await store.change_session("s2", e.SessionChanged(suspended=True), at=NOW)
    assert (await say(store, "s1", fresh=("s3", "l3"))).session_id == "s3"
    assert await current(store) == "s3"


async def test_a_message_that_is_no_answer_waits_while_a_question_is_open(store: Store) -> None:
    await append(store, await running(store), question())
    await say(store, text="later", answers=False)
    session = await store.session("s1")
    assert (session.turn_state, session.queued) == (TurnState.WAITING, 1)
    await say(store, text="the answer")
    session = await store.session("s1")
    assert (session.turn_state, session.queued) == (TurnState.ANSWERED, 1)


async def test_what_waits_in_a_session_that_was_switched_away_starts_no_turn_and_is_refused_once(store: Store) -> None:
    """A20: its key points elsewhere now, whoever made it so."""
    owner = await new_owner(store)
    await new_session(store, key=CHAT)
    waiting = [(await say(store, text=words)).message_id for words in ("one", "two\nlines")]
    await new_session(store, "s2", key=CHAT)
    for _ in range(2):
        assert await store.start_turn("s1", owner=owner, turn_id="t1", at=NOW) is None
    refused = [event for event in await bodies(store) if isinstance(event, e.MessageRefused)]
    assert [event.message_id for event in refused] == waiting
    [told] = await notices(store)
    assert "> one\n> two\n> lines" in told.text
    assert [delivery.text for delivery in await owed(store)] == [told.text]
    assert await store.waiting_lanes(limit=10) == []


async def test_a_session_that_becomes_suspended_refuses_what_waits_with_one_notice(store: Store) -> None:
    """A20: in that transaction, not when somebody looks at it next."""
    await new_session(store, key=CHAT)
    waiting = [(await say(store, text=words)).message_id for words in ("one", "two")]
    session = await store.change_session("s1", e.SessionChanged(suspended=True), at=NOW)
    assert session.queued == 0
    assert [event.message_id for event in await bodies(store) if isinstance(event, e.MessageRefused)] == waiting
    [told] = await notices(store)
    assert "> one\n> two" in told.text
    await store.change_session("s1", e.SessionChanged(suspended=True), at=NOW)
    await store.change_session("s1", e.SessionChanged(suspended=False, title="x"), at=NOW)
    assert await notices(store) == [told]


# --- by hand


async def test_a_reset_stops_what_runs_refuses_what_waits_and_begins_a_new_session_in_one_transaction(store: Store) -> None:
    """A20, A22"""
    turn = await running(store, key=CHAT)
    await say(store, text="one", message_id="m1")
    await say(store, text="two", message_id="m2")
    heard: list[int] = []
    leave = store.subscribe(lambda: heard.append(1))
    assert await reset(store) == Moved("s2", changed=True)
    leave()
    assert len(heard) == 1
    old = await store.session("s1")
    assert (old.turn_state, old.stop_requested, old.queued, old.current) == (TurnState.RUNNING, True, 0, False)
    stopped, first, second, told = (await bodies(store))[-4:]
    assert stopped == e.StopRequested(turn_id="t1", by="ann")
    assert [event.message_id for event in (first, second) if isinstance(event, e.MessageRefused)] == ["m1", "m2"]
    assert isinstance(told, e.MessageWritten) and "> one\n> two" in told.text
    assert await current(store, CHAT) == "s2"
    new = await store.session("s2")
    assert (new.was_auto_reset, new.auto_reset_reason, new.log) == (False, None, "ls2")
    assert ["/resume 1" in delivery.text for delivery in await owed(store)] == [False, True]
    await append(store, turn, e.TurnEnded(outcome=Outcome.CANCELLED))  # Its own process ends it.


async def test_a_reset_ends_a_turn_that_waits_at_once(store: Store) -> None:
    """A22: a waiting turn has no process that could."""
    await append(store, await running(store), question())
    await reset(store)
    assert (await store.session("s1")).turn_state is TurnState.ENDED
    assert (await bodies(store))[-1] == e.TurnEnded(outcome=Outcome.CANCELLED)


async def test_a_session_that_was_never_used_is_not_reset(store: Store) -> None:
    """A22"""
    await new_session(store)
    assert await reset(store) == Moved("s1", changed=False)
    with pytest.raises(NotFound):
        await store.session("s2")
    await rested(store, "used")
    assert (await reset(store, "used", "new")).changed
    assert await reset(store, "used", "newer") == Moved("new", changed=False)


async def test_a_suspended_session_is_left_by_a_reset_though_it_was_never_used(store: Store) -> None:
    """A14: its next message would begin a new one anyway."""
    await new_session(store)
    await store.change_session("s1", e.SessionChanged(suspended=True), at=NOW)
    assert await reset(store) == Moved("s2", changed=True)
    assert not (await store.session("s2")).suspended


async def test_the_same_request_for_a_reset_is_one_reset(store: Store) -> None:
    """A22: it gives the first answer, also when the new session was used since, and another one was begun."""
    await rested(store)
    assert await reset(store, key="k1") == Moved("s2", changed=True)
    assert await reset(store, new="s3", key="k1") == Moved("s2", changed=True)
    await say(store, "s2")
    assert (await reset(store, new="s3", key="k2")).changed
    assert await reset(store, new="s4", key="k1") == Moved("s2", changed=True)
    assert await current(store) == "s3"
    assert [session.session_id for _, session in await store.conversations(KEY, limit=10)] == ["s3", "s2", "s1"]


async def test_a_reset_of_an_old_session_leaves_the_one_its_key_points_at(store: Store) -> None:
    await rested(store)
    await reset(store)
    await say(store, "s2", message_id="m9")
    assert await reset(store, "s1", "s3") == Moved("s3", changed=True)
    assert [event.message_id for event in await bodies(store, "s2") if isinstance(event, e.MessageRefused)] == ["m9"]


async def test_nothing_that_is_not_there_is_reset_or_resumed(store: Store) -> None:
    with pytest.raises(NotFound):
        await reset(store, "nowhere")
    with pytest.raises(NotFound):
        await resume(store, "nowhere")


async def test_a_key_of_one_kind_of_request_is_no_key_of_another(store: Store) -> None:
    """A22"""
    await rested(store)
    await reset(store, key="k1")
    for wrong in (resume(store, "s1", "k1"), say(store, key="k1"), store.request_stop("s1", by="ann", dedup_key="k1", at=NOW)):
        with pytest.raises(DuplicateOtherContent):
            await wrong


# --- going back


async def test_a_session_that_is_resumed_is_its_keys_current_one_again_and_the_other_is_left(store: Store) -> None:
    """A14, A20, A22: as by a reset."""
    await rested(store)
    await reset(store)
    await say(store, "s2")
    turn = await start(store, "s2", "t9", owner=await new_owner(store))
    await say(store, "s2", "still waiting", message_id="m9")
    assert await resume(store) == Moved("s1", changed=True)
    assert await current(store) == "s1"
    assert ((await store.session("s1")).current, (await store.session("s2")).current) == (True, False)
    stopped, refused, told = (await bodies(store, "s2"))[-3:]
    assert stopped == e.StopRequested(turn_id=turn.turn_id, by="ann")
    assert isinstance(refused, e.MessageRefused) and refused.message_id == "m9"
    assert isinstance(told, e.MessageWritten) and "> still waiting" in told.text
    assert (await bodies(store))[-1] == e.SessionResumed(by="ann")
    assert (await say(store, "s2")).session_id == "s1"
    await append(store, turn, e.TurnEnded(outcome=Outcome.CANCELLED))  # Until it has ended, the other one waits for it.
    assert await start(store, "s1", "t10", owner=1)


async def test_resuming_lifts_a_suspension_and_forgets_the_restarts(store: Store) -> None:
    """A14, A17"""
    turn = await running(store)
    await append(store, turn, e.TurnInterrupted(reason="crash", restarts=3), e.SessionChanged(suspended=True))
    await append(store, await taken(store), e.TurnEnded(outcome=Outcome.SET_ASIDE, rule="R2"))
    assert (await say(store, fresh=("s2", "l2"))).session_id == "s2"
    assert await resume(store) == Moved("s1", changed=True, continues=True)
    session = await store.session("s1")
    assert (session.suspended, session.interrupted_restarts, session.current) == (False, 0, True)
    assert (await say(store)).session_id == "s1"


@pytest.mark.parametrize(("rule", "again"), [("R2", True), ("R6", True), ("R8", False), (None, False)])
async def test_resuming_puts_a_request_again_that_a_rule_set_aside(store: Store, rule: str | None, again: bool) -> None:
    """R2, R6, P6: once, with the mark of what interrupted it, as a message of the same sender in reply to the same one."""
    owner = await new_owner(store)
    await new_session(store, key=CHAT)
    await say(store, text="the work", anchor="upd-1")
    turn = await append(store, await start(store, "s1", "t1", owner=owner), e.TurnInterrupted(reason="restart_timeout", restarts=3))
    await append(store, turn, e.TurnEnded(outcome=Outcome.SET_ASIDE, rule=rule))
    assert await resume(store) == Moved("s1", changed=again, continues=again)
    asked = e.MessageAccepted(message_id="t1.again.6", content="the work", sender="owner", anchor="upd-1")
    assert ((await bodies(store))[-1] == asked) == again
    session = await store.session("s1")
    assert (session.queued, session.resume_pending, session.resume_reason) == ((1, True, "restart_timeout") if again else (0, False, None))
    assert await resume(store) == Moved("s1", changed=False), "it waits for its turn"
    if again:
        await start(store, "s1", "t2", owner=owner)
        assert await resume(store) == Moved("s1", changed=False), "it runs"


async def test_a_request_that_is_put_again_and_left_again_before_its_turn_started_is_another_message_each_time(store: Store) -> None:
    """A20, P6, R6: as in a pause. Each time its sender is told that it is not answered."""
    owner = await new_owner(store)
    await new_session(store, key=CHAT)
    await say(store, text="the work", anchor="upd-1")
    turn = await append(store, await start(store, "s1", "t1", owner=owner), e.TurnInterrupted(reason="crash", restarts=1))
    await append(store, turn, e.TurnEnded(outcome=Outcome.SET_ASIDE, rule="R6"))
    for new in ("s2", "s3"):
        assert await resume(store) == Moved("s1", changed=True, continues=True)
        assert (await reset(store, new=new)).session_id == new
    put = [event.message_id for event in await bodies(store) if isinstance(event, e.MessageAccepted) and event.text == "the work"]
    assert len(set(put)) == len(put) == 3
    assert len([delivery for delivery in await owed(store) if "the work" in delivery.text]) == 2


async def taken(store: Store) -> StartedTurn:
    session = await store.session("s1")
    return await store.take_turn("s1", owner=1, turn_id=session.turn_id or "", epoch=session.epoch, events=(), at=NOW)


@pytest.mark.parametrize("away", [False, True], ids=["here", "from another one"])
async def test_a_cut_turn_that_was_left_is_to_go_on_once_its_session_is_resumed(store: Store, away: bool) -> None:
    """R7: a human asked."""
    await left(store)
    if away:
        await new_session(store, "s2", key=KEY)
    assert await store.open_turns(apart_from=0) == []
    assert await resume(store) == Moved("s1", changed=True, continues=True)
    [session] = await store.open_turns(apart_from=0)
    assert (session.session_id, session.left, session.turn_state) == ("s1", False, TurnState.INTERRUPTED)
    assert await store.start_turn("s1", owner=1, turn_id="t2", at=NOW) is None


async def test_the_same_request_to_resume_is_one(store: Store) -> None:
    """A22: it gives the first answer, whatever happened since."""
    await left(store)
    assert await resume(store, key="k1") == Moved("s1", changed=True, continues=True)
    assert await resume(store, key="k1") == Moved("s1", changed=True, continues=True)
    await append(store, await taken(store), e.TurnEnded(outcome=Outcome.FAILED))
    await reset(store, new="s3")
    assert await resume(store, key="k1") == Moved("s1", changed=True, continues=True)
    assert await current(store) == "s3"
    assert await resume(store, key="k2") == Moved("s1", changed=True)
    assert await resume(store, key="k2") == Moved("s1", changed=True)
    assert kinds(await whole_log(store)).count("session.resumed") == 2


@pytest.mark.parametrize("state", ["unused", "idle", "running", "waiting"])
async def test_there_is_nothing_to_resume_in_a_current_session_that_goes_its_way(store: Store, state: str) -> None:
    if state == "unused":
        await new_session(store)
    elif state == "idle":
        await rested(store)
    else:
        turn = await running(store)
        if state == "waiting":
            await append(store, turn, question())
    before = await store.session("s1")
    assert await resume(store) == Moved("s1", changed=False)
    assert await store.session("s1") == before


async def test_a_turn_that_nobody_decided_upon_yet_continues_when_its_session_is_resumed(store: Store) -> None:
    await append(store, await running(store), CUT)
    assert (await resume(store)).continues


# --- numbers


async def test_the_conversations_of_a_key_keep_their_numbers(store: Store) -> None:
    await rested(store, "s1", key=CHAT)
    await rested(store, "other")
    await reset(store, "s1", "s2")
    await say(store, "s2")
    await reset(store, "s2", "s3")

    async def listed(limit: int = 10) -> list[tuple[int, str, bool]]:
        return [(number, session.session_id, session.current) for number, session in await store.conversations(CHAT, limit=limit)]

    assert await listed() == [(3, "s3", True), (2, "s2", False), (1, "s1", False)]
    await resume(store, "s1")
    assert await listed() == [(3, "s3", False), (2, "s2", False), (1, "s1", True)]
    assert await listed(limit=2) == [(3, "s3", False), (2, "s2", False)]
    await say(store, "s1")
    await reset(store, "s1", "s4")
    assert (await listed())[0] == (4, "s4", True)
    assert "/resume 1" in (await notices(store, "s4"))[0].text
    assert await store.conversations("agent:main:chat:dm:8", limit=10) == []
    assert await store.conversations(CHAT, limit=0) == []
