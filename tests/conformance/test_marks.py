"""The resume mark by key, and what a crash policy makes of sessions that were active (A5-A13, A16, A18)."""

import pytest

from holdfast.core import events as e
from holdfast.core.turns import Outcome
from holdfast.ports.store import Store
from tests.conformance.backends import Backend
from tests.conformance.steps import CUT, ENDED, LEFT, NOW, append, new_owner, new_session, rested, running, say, so_far, start, whole_log

pytestmark = pytest.mark.anyio

KEY = "agent:main:web:page:s1"


async def mark(store: Store, session_id: str = "s1") -> tuple[bool, str | None, int | None]:
    session = await store.session(session_id)
    return session.resume_pending, session.resume_reason, session.last_resume_marked_at


async def test_marking_a_key_marks_its_current_session(store: Store) -> None:
    """A5, A6"""
    await new_session(store, "s0", key=KEY)
    await new_session(store, "s1", key=KEY)
    assert await store.mark_pending(KEY, at=NOW + 5)
    assert await mark(store) == (True, "restart_timeout", NOW + 5)
    assert await mark(store, "s0") == (False, None, None)
    assert await store.mark_pending(KEY, reason="shutdown_timeout", at=NOW + 6)
    assert await mark(store) == (True, "shutdown_timeout", NOW + 6)


async def test_a_mark_is_seen_by_whoever_opens_the_place_next(backend: Backend) -> None:
    """A9"""
    async with backend.opened() as store:
        await new_session(store)
        await store.mark_pending(KEY, reason="node_lost", at=NOW + 5)
    async with backend.opened() as store:
        assert await mark(store) == (True, "node_lost", NOW + 5)


@pytest.mark.parametrize("unknown", [f"{KEY}x", "", "agent:main:web:page:nowhere", "s1"])
async def test_an_unknown_key_is_neither_marked_nor_cleared_nor_made(store: Store, unknown: str) -> None:
    """A7, A12"""
    await new_session(store)
    before = await so_far(store)
    assert not await store.mark_pending(unknown, at=NOW)
    assert not await store.clear_pending(unknown, at=NOW)
    assert await so_far(store) == before
    assert await store.current_session(unknown) is None


async def test_a_suspended_session_is_not_marked(store: Store) -> None:
    """A8"""
    await new_session(store)
    before = await store.change_session("s1", e.SessionChanged(suspended=True), at=NOW)
    assert not await store.mark_pending(KEY, at=NOW + 5)
    assert await store.session("s1") == before


async def test_clearing_empties_all_three_fields_and_says_whether_there_was_anything_to_clear(store: Store) -> None:
    """A10, A11"""
    await new_session(store)
    assert not await store.clear_pending(KEY, at=NOW)
    await store.mark_pending(KEY, at=NOW)
    assert await store.clear_pending(KEY, at=NOW)
    assert await mark(store) == (False, None, None)
    seq = (await store.session("s1")).seq
    assert not await store.clear_pending(KEY, at=NOW)
    assert (await store.session("s1")).seq == seq


async def test_a_mark_that_a_rule_clears_leaves_the_rule(store: Store) -> None:
    """R3: the label is recorded, also where there was no turn to record it with."""
    await new_session(store)
    await store.mark_pending(KEY, at=NOW)
    session = await store.change_session("s1", e.SessionChanged(resume_pending=False, rule="R3"), at=NOW)
    assert (session.resume_pending, session.rule) == (False, "R3")


async def test_the_next_message_of_a_marked_session_stays_there_and_does_not_clear_the_mark(store: Store) -> None:
    """A13"""
    await rested(store)
    await store.mark_pending(KEY, reason="crash", at=NOW + 5)
    assert (await say(store, fresh=("s2", "l2"))).session_id == "s1"
    session = await store.session("s1")
    assert (session.was_auto_reset, session.queued) == (False, 1)
    await start(store, "s1", "t2", owner=await new_owner(store))
    assert await mark(store) == (True, "crash", NOW + 5)


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.CANCELLED, Outcome.SET_ASIDE])
async def test_a_turn_that_did_not_complete_may_leave_the_mark_for_the_next(store: Store, outcome: Outcome) -> None:
    """A13: only a completed turn, or a rule, clears it."""
    await rested(store)
    owner = await new_owner(store)
    await store.mark_pending(KEY, reason="crash", at=NOW + 5)
    for number in (2, 3):
        await say(store)
        turn = await start(store, "s1", f"t{number}", owner=owner)
        await append(store, turn, e.TurnEnded(outcome=outcome, still_pending=True))
        assert await mark(store) == (True, "crash", NOW + 5)
    await say(store)
    await append(store, await start(store, "s1", "t4", owner=owner), e.TurnEnded(outcome=outcome))
    assert await mark(store) == (False, None, None)


async def test_a_completed_turn_clears_mark_and_count_in_its_own_transaction(store: Store) -> None:
    """A13, A18: also when a drain had marked it and it completed anyway."""
    turn = await append(store, await running(store), CUT, e.TurnResumed(attempt=2, rule="R9", reason="crash"))
    await store.mark_pending(KEY, reason="shutdown_timeout", at=NOW)
    assert (await store.session("s1")).interrupted_restarts == 1
    await append(store, turn, ENDED)
    assert await mark(store) == (False, None, None)
    assert (await store.session("s1")).interrupted_restarts == 0
    assert [item.kind for item in await whole_log(store)][-1] == "turn.ended"


# --- the crash policy `suspend`


async def test_what_was_active_shortly_before_the_newest_sign_of_life_is_suspended(store: Store) -> None:
    """A16: the window counts from the last thing that happened, however long the gateway was down."""
    await rested(store, "old", at=NOW)
    await rested(store, "edge", at=NOW + 1)
    await rested(store, "recent", at=NOW + 100)
    await new_session(store, "waits", at=NOW)
    await say(store, "waits", at=NOW + 121)
    assert await store.suspend_active(window_ms=120, at=NOW + 10**9) == 3
    assert [(await store.session(name)).suspended for name in ("old", "edge", "recent", "waits")] == [False, True, True, True]
    assert (await store.session("waits")).queued == 0  # Refused, as by any other suspension (A20).
    assert await store.suspend_active(window_ms=120, at=NOW + 10**9) == 0


async def test_what_is_marked_or_was_never_used_is_left_alone_by_the_crash_policy(store: Store) -> None:
    """A16"""
    await rested(store, "marked")
    await store.mark_pending("agent:main:web:page:marked", reason="shutdown_timeout", at=NOW)
    cut = await running(store, "cut", "t2")
    await append(store, cut, CUT, LEFT)
    await new_session(store, "unused")
    await running(store, "runs", "t3")
    await rested(store, "archived")
    await store.change_session("archived", e.SessionChanged(archived=True), at=NOW)
    assert await store.suspend_active(window_ms=0, at=NOW + 1) == 2
    suspended = [name for name in ("marked", "cut", "unused", "runs", "archived") if (await store.session(name)).suspended]
    assert suspended == ["runs", "archived"]
    assert await mark(store, "marked") == (True, "shutdown_timeout", NOW)


async def test_an_empty_store_has_nothing_to_suspend(store: Store) -> None:
    assert await store.suspend_active(window_ms=10**9, at=NOW) == 0
