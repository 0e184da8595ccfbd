"""What models used, summed up in the catalog: for a turn, a session, a day and a person; true also after deletions and rebuilds."""

import pytest

from holdfast.core import events as e
from holdfast.core.limits import Bounds, SpendingLimits
from holdfast.core.usage import DaySpent, Spent
from holdfast.ports.store import Store
from tests.conformance.backends import Backend
from tests.conformance.steps import ENDED, NOW, append, new_owner, new_session, running, say, start, whole_log

pytestmark = pytest.mark.anyio
TODAY, TOMORROW = "2023-11-14", "2023-11-15"
UNTIL = NOW + 600_000


def used(tokens: int, cost: int | None, *, step: int = 0, day: str = TODAY, sender: str = "ann", model: str = "small") -> e.ModelResponded:
    usage = e.Usage(input=tokens, output=1, cached=tokens // 2, stored=1, thought=1)
    return e.ModelResponded(step=step, usage=usage, cost=cost, day=day, sender=sender, model=model)


def spent(tokens: int, cost: int, *, requests: int = 1, cached: int = 0, unpriced: int = 0) -> Spent:
    return Spent(
        requests=requests, input=tokens, output=requests, cached=cached, stored=requests, thought=requests, cost=cost, unpriced=unpriced
    )


async def live(store: Store) -> None:
    """Two sessions, three turns, one of which lasts until the next day."""
    turn = await append(store, await running(store, "s1", "t1"), used(100, 7), used(20, None, step=1))
    await append(store, turn, used(4, 1, step=2, day=TOMORROW), ENDED)
    await say(store, "s1")
    await append(store, await start(store, "s1", "t2", owner=turn.lease.owner), used(10, 2, sender="bob"), ENDED)
    await append(store, await running(store, "s2", "t3", owner=turn.lease.owner), used(1000, 50), ENDED)


async def days(store: Store) -> dict[str, Spent]:
    found: dict[str, Spent] = {}
    for each in await store.spent_by_day(since=TODAY):
        found[each.day] = found.get(each.day, Spent()) + each.spent
    return found


async def test_sums_are_of_the_turn_the_session_the_day_and_the_person(store: Store) -> None:
    await live(store)
    account = await store.account("s1", turn_id="t1", day=TODAY, sender="ann")
    assert account.turn == spent(124, 8, requests=3, cached=62, unpriced=1)
    assert account.session == spent(134, 10, requests=4, cached=67, unpriced=1)
    assert account.day == spent(1130, 59, requests=4, cached=565, unpriced=1)
    assert account.sender == spent(1120, 57, requests=3, cached=560, unpriced=1) and account.sender_turns == 1
    assert account.turn.tokens == 127
    nobody = await store.account("s1", turn_id="t9", day="2023-11-20", sender="ann")
    assert (nobody.turn, nobody.day, nobody.sender, nobody.sender_turns) == (Spent(), Spent(), Spent(), 0)


async def test_days_are_listed_oldest_first_for_each_person(store: Store) -> None:
    await live(store)
    tomorrow = DaySpent(day=TOMORROW, spent=spent(4, 1, cached=2), turns=1, sender="ann")
    assert await store.spent_by_day(since=TODAY) == [
        DaySpent(day=TODAY, spent=spent(1120, 57, requests=3, cached=560, unpriced=1), turns=2, sender="ann"),
        DaySpent(day=TODAY, spent=spent(10, 2, cached=5), turns=1, sender="bob"),
        tomorrow,
    ]
    assert await store.spent_by_day(since=TOMORROW) == [tomorrow]


async def test_models_and_conversations_have_sums_of_their_own_and_a_turn_counts_once_for_each(store: Store) -> None:
    await live(store)
    await say(store, "s2")
    owner = await new_owner(store)
    await append(store, await start(store, "s2", "t4", owner=owner), used(5, 1), used(7, 2, step=1, model="large"), ENDED)
    models = [(each.day, each.model, each.turns, each.spent.input) for each in await store.spent_by_model(since=TODAY)]
    assert models == [(TODAY, "large", 1, 7), (TODAY, "small", 4, 1135), (TOMORROW, "small", 1, 4)]
    conversations = [(each.session_id, each.turns, each.spent.input) for each in await store.spent_by_session(since=TODAY, limit=9)]
    assert conversations == [("s2", 2, 1012), ("s1", 2, 134)]
    assert [each.session_id for each in await store.spent_by_session(since=TODAY, limit=1)] == ["s2"]
    assert [each.turns for each in await store.spent_by_day(since=TODAY) if each.sender == "ann"] == [3, 1]
    assert (await store.account("s2", turn_id="t3", day=TODAY, sender="ann")).sender_turns == 2
    await store.delete_session("s2", by="owner", until=UNTIL, at=NOW)
    assert [each.session_id for each in await store.spent_by_session(since=TODAY, limit=9)] == ["s1"]


async def test_a_summary_counts_if_a_model_was_asked_for_it(store: Store) -> None:
    turn = await running(store)
    asked = e.ContextCompacted(through=1, summary="s", usage=e.Usage(input=30, output=3), cost=5, model="m", day=TODAY, sender="ann")
    await append(store, turn, e.ContextCompacted(through=1, summary="", problem="p", day=TODAY), asked)
    account = await store.account("s1", turn_id="t1", day=TODAY, sender="ann")
    assert account.turn == Spent(requests=1, input=30, output=3, cost=5) == account.day


async def test_what_a_record_of_an_earlier_version_used_counts_for_the_day_it_was_written_on(store: Store) -> None:
    await append(store, await running(store), e.ModelResponded(step=0, usage=e.Usage(input=3)))
    assert [(each.day, each.spent.input) for each in await store.spent_by_day(since="2023-01-01")] == [(TODAY, 3)]


async def test_the_sums_of_a_day_stay_true_when_a_session_is_deleted_and_purged(backend: Backend) -> None:
    """A28: its turns and the people in it are forgotten, what they used is not; a rebuild knows it from the tombstone."""
    async with backend.opened() as store:
        await live(store)
        before = await days(store)
        await store.delete_session("s1", by="owner", until=UNTIL, at=NOW)
        assert await days(store) == before
        while await store.purge(now=UNTIL, steps=1):
            pass
        assert await days(store) == before
        people = [(each.sender, each.turns, each.spent.input) for each in await store.spent_by_day(since=TODAY)]
        assert people == [(None, 0, 130), ("ann", 1, 1000), (None, 0, 4)]
    catalog = backend.catalog()
    backend.rebuild()
    assert backend.catalog() == catalog


async def test_a_turn_that_asks_no_model_counts_for_its_sender_where_turns_are_limited(backend: Backend) -> None:
    """P1, P6: what its sender may not have is refused in the transaction that would start it, and nothing else waits for it."""
    bounds = Bounds(limits=SpendingLimits(sender_turns=1), day=TODAY)
    async with backend.opened() as store:
        owner = await new_owner(store)
        await new_session(store)
        await say(store)
        turn = await store.start_turn("s1", owner=owner, turn_id="t1", at=NOW, bounds=bounds)
        assert turn is not None
        assert (await store.account("s1", turn_id="t1", day=TODAY, sender="owner")).sender_turns == 0, "apart from this one"
        assert (await store.account("s1", turn_id="", day=TODAY, sender="owner")).sender_turns == 1
        await append(store, turn, ENDED)
        for _ in range(2):
            await say(store)
        assert await store.start_turn("s1", owner=owner, turn_id="t2", at=NOW, bounds=bounds) is None
        session = await store.session("s1")
        assert (session.queued, session.state, session.generation) == (0, "idle", 1)
        kinds = [item.kind for item in await whole_log(store)]
        assert kinds.count("message.refused") == 2 and kinds[-4:] == ["message.refused", "message.written"] * 2
        assert await store.spent_by_day(since=TODAY) == [], "no model was asked"
        await say(store)
        assert await store.start_turn("s1", owner=owner, turn_id="t2", at=NOW, bounds=Bounds(limits=bounds.limits, day=TOMORROW))
    catalog = backend.catalog()
    backend.rebuild()
    assert backend.catalog() == catalog
