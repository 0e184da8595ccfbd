"""A session that begins with records of another one: stored whole or not at all, once, and the same after a rebuild."""

import pytest

from holdfast.core import events as e
from holdfast.core.plans import branch
from holdfast.core.plans.branch import Names, Origin
from holdfast.core.sessions import Session
from holdfast.ports.store import Store
from tests.conformance.backends import Backend
from tests.conformance.steps import ENDED, NOW, append, new_owner, owed, running, say, start, whole_log

pytestmark = pytest.mark.anyio


async def branched(store: Store, *, name: str = "s2", key: str | None = None) -> Session:
    session = await store.session("s1")
    turns = branch.turns_up_to(await store.transcript(session), "t1.answer")
    records = tuple(await store.records("s1", after=0, limit=100))
    origin = Origin(session=session, message_id="t1.answer", turns=turns, records=records)
    names = Names(session_id=name, session_key=f"agent:main:web:page:{name}", log=f"l{name}", turns={"t1": f"{name}.t1"})
    return await store.branch_session(origin, names, by="owner", dedup_key=key, at=NOW + 60_000)


async def seeded(store: Store) -> None:
    turn = await running(store, "s1", "t1", key="agent:main:chat:dm:7")
    response = e.ModelResponded(step=0, text="done", usage=e.Usage(input=9), cost=3, day="2023-11-14", sender="ann")
    answer = e.MessageWritten(message_id="t1.answer", role="assistant", content="done", delivery_id="d1")
    await append(store, turn, response, answer, ENDED)


async def test_a_branch_stands_for_itself_and_is_the_same_after_a_rebuild(backend: Backend, store: Store) -> None:
    """P4, P7: its own log and key, idle, owing nothing; a rebuild gives the same catalog."""
    await seeded(store)
    made = await branched(store)
    assert (made.session_id, made.state, made.current, made.title) == ("s2", "idle", True, "A title (2)")
    assert made.updated_at == NOW + 60_000 and made.turn_id == "s2.t1"
    assert [each.session_id for each in await owed(store)] == ["s1"]
    assert [item.at for item in await whole_log(store, "s2") if item.turn_id is not None] == [NOW] * 5
    spent = sum(each.spent.requests for each in await store.spent_by_day(since="2023-11-01"))
    assert spent == 1
    backend.rebuild()
    assert await store.session("s2") == made


async def test_the_same_request_again_gives_the_first_branch(store: Store) -> None:
    await seeded(store)
    first = await branched(store, key="k1")
    assert (await branched(store, name="s3", key="k1")).session_id == first.session_id
    assert (await branched(store, name="s3", key="k2")).session_id == "s3"


async def test_turns_that_were_copied_are_not_marks_of_the_branch(backend: Backend, store: Store) -> None:
    await seeded(store)
    await branched(store)
    await say(store, "s2", at=NOW)
    turn = await start(store, "s2", "s2.t2", owner=await new_owner(store))
    assert [(each.session_id, each.turn_id) for each in await store.marks(since=NOW, limit=9)] == [("s1", "t1")]
    await append(store, turn, ENDED, at=NOW + 1)
    found = [(each.session_id, each.turn_id) for each in await store.marks(since=NOW, limit=9)]
    assert found == [("s2", "s2.t2"), ("s1", "t1")]
