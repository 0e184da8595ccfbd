"""Approvals and rules in a store: given once, used once, and gone with their turn or their conversation (R5, P5)."""

import asyncio

import pytest

from holdfast.core import approvals
from holdfast.core import events as e
from holdfast.core.effects import Effect
from holdfast.core.errors import ApprovalVoid, DuplicateOtherContent, NotFound, QuestionClosed
from holdfast.core.plans.answer import Answer
from holdfast.core.plans.start import StartedTurn
from holdfast.core.turns import Outcome, TurnState
from holdfast.ports.store import Store
from tests.conformance.backends import Backend
from tests.conformance.steps import ENDED, NOW, append, bodies, new_owner, running, say, so_far, start

pytestmark = pytest.mark.anyio
ARGUMENTS = {"command": "git push"}
PATTERN = "terminal(git push *)"
APPROVE = Answer(by="owner", verdict="approve", scope="once")
ALWAYS = Answer(by="ann", verdict="approve", scope="session")
DENY = Answer(by="owner", verdict="deny", scope="once", reason="not now")


def asked(question_id: str = "q1", call_id: str = "c1", *, expires_at: int = NOW + 1000) -> e.QuestionAsked:
    return e.QuestionAsked(
        question_id=question_id,
        call_id=call_id,
        content="May I?",
        expires_at=expires_at,
        form=approvals.FORM,
        call=e.ProposedCall(name="terminal", arguments=ARGUMENTS),
        fingerprint=approvals.fingerprint("terminal", ARGUMENTS, "here"),
        pattern=PATTERN,
        ends_attempt=False,
    )


def started(approval: str | None = "q1", call_id: str = "c1", *, place: str = "here") -> e.ToolStarted:
    return e.ToolStarted(call_id=call_id, name="terminal", arguments=ARGUMENTS, effect=Effect.UNSAFE, approval=approval, place=place)


async def refused(store: Store, turn: StartedTurn, event: e.ToolStarted) -> None:
    """And nothing was written."""
    before = await so_far(store)
    with pytest.raises(ApprovalVoid):
        await append(store, turn, event)
    assert await so_far(store) == before


async def test_an_approval_starts_its_call_once(store: Store) -> None:
    """P5"""
    turn = await append(store, await running(store), asked())
    await refused(store, turn, started())
    assert await store.answer("q1", APPROVE, at=NOW) == "s1"
    await refused(store, turn, started(call_id="c2"))
    await refused(store, turn, started(place="elsewhere"))
    turn = await append(store, turn, started())
    await refused(store, turn, started())


async def test_a_denied_approval_and_one_of_another_conversation_start_nothing(store: Store) -> None:
    turn = await append(store, await running(store), asked())
    await store.answer("q1", DENY, at=NOW)
    await refused(store, turn, started())
    other = await append(store, await running(store, "s2", "t2"), asked("q2", "c9"))
    await store.answer("q2", APPROVE, at=NOW)
    await refused(store, turn, started("q2", "c9"))
    await refused(store, turn, started("q3"))
    await append(store, other, started("q2", "c9"))


async def test_an_approval_is_void_once_its_turn_is_over(store: Store) -> None:
    """R5: also for a call of the same name."""
    owner = await new_owner(store)
    turn = await append(store, await running(store, owner=owner), asked())
    await store.answer("q1", APPROVE, at=NOW)
    await append(store, turn, e.TurnEnded(outcome=Outcome.FAILED))
    await say(store)
    turn = await start(store, "s1", "t2", owner=owner)
    await refused(store, turn, started())


async def test_the_first_to_expire_ends_the_turn_and_voids_what_was_approved(store: Store) -> None:
    """R5"""
    turn = await append(store, await running(store), asked(), asked("q2", "c2", expires_at=NOW + 10))
    await store.answer("q1", APPROVE, at=NOW)
    await append(store, turn, e.TurnWaiting(question_ids=("q2",)))
    assert await store.expire_questions(now=NOW + 10) == ["s1"]
    assert (await store.session("s1")).turn_state is TurnState.ENDED
    assert not any(isinstance(event, e.ToolFinished) for event in await bodies(store))  # Neither call had started.
    for late in ("q1", "q2"):
        with pytest.raises(QuestionClosed):
            await store.answer(late, APPROVE, at=NOW + 11)


async def test_of_two_answers_at_once_one_counts_and_the_other_is_told(backend: Backend) -> None:
    """P6: also from two processes."""
    async with backend.opened() as one, backend.opened() as two:
        await append(one, await running(one), asked())
        both = await asyncio.gather(one.answer("q1", APPROVE, at=NOW), two.answer("q1", DENY, at=NOW), return_exceptions=True)
        assert sorted(type(each).__name__ for each in both) == ["QuestionClosed", "str"]
        answers = [event for event in await bodies(one) if isinstance(event, e.QuestionAnswered)]
        assert len(answers) == 1


async def test_a_verdict_under_the_same_key_is_given_once_and_another_one_under_it_is_refused(store: Store) -> None:
    await append(store, await running(store), asked())
    keyed = Answer(by="owner", verdict="approve", scope="once", dedup_key="k")
    assert await store.answer("q1", keyed, at=NOW) == await store.answer("q1", keyed, at=NOW) == "s1"
    with pytest.raises(DuplicateOtherContent):
        await store.answer("q1", Answer(by="owner", verdict="deny", scope="once", dedup_key="k"), at=NOW)


async def test_always_adds_the_rule_that_was_shown_until_somebody_takes_it_back(store: Store) -> None:
    await append(store, await running(store), asked())
    await running(store, "s2", "t2")
    await store.answer("q1", ALWAYS, at=NOW + 5)
    [rule] = await store.rules("s1")
    assert (rule.pattern, rule.by, rule.at, rule.session_id) == (PATTERN, "ann", NOW + 5, "s1")
    assert await store.rules() == [rule] and await store.rules("s2") == []
    assert await store.remove_rule(rule.rule_id, by="owner", at=NOW) == rule
    assert await store.rules("s1") == []
    with pytest.raises(NotFound):
        await store.remove_rule(rule.rule_id, by="owner", at=NOW)
    with pytest.raises(NotFound):
        await store.rules("nobody")


async def test_rules_are_gone_with_a_reset_and_do_not_come_back_with_the_conversation(store: Store) -> None:
    """A20"""
    turn = await append(store, await running(store), asked())
    await store.answer("q1", ALWAYS, at=NOW)
    await append(store, turn, ENDED)
    await store.reset("s1", fresh=("s2", "l2"), by="ann", dedup_key=None, at=NOW)
    assert await store.rules("s1") == [] and await store.rules("s2") == []
    await store.resume_session("s1", by="ann", dedup_key=None, at=NOW)
    assert await store.rules("s1") == []


async def test_rules_of_a_deleted_conversation_are_not_listed_and_go_with_its_content(store: Store) -> None:
    """A28"""
    turn = await append(store, await running(store), asked())
    await store.answer("q1", ALWAYS, at=NOW)
    await append(store, turn, ENDED)
    await store.delete_session("s1", by="ann", until=NOW + 10, at=NOW)
    assert await store.rules() == []
    await store.undelete_session("s1", by="ann", at=NOW)
    assert len(await store.rules()) == 1
    await store.delete_session("s1", by="ann", until=NOW + 10, at=NOW)
    while await store.purge(now=NOW + 10**9, steps=100):
        pass
    assert await store.rules() == []


async def test_a_damaged_record_of_what_was_shown_lets_nothing_start(backend: Backend) -> None:
    """P5: nobody can say any more what was approved."""
    async with backend.opened() as store:
        turn = await append(store, await running(store), asked())
        await store.answer("q1", APPROVE, at=NOW)
        [seq] = [item.seq for item in await store.records("s1", after=0, limit=100) if item.kind == "question.asked"]
        backend.change_byte("s1", seq, "body")
        await refused(store, turn, started())
