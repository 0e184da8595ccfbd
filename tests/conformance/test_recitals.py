"""Messages with a recital in a store: found by their id, by the key of their request, and by what was recited up to them."""

import pytest

from holdfast.core import events as e
from holdfast.core.errors import Deleted, NotFound
from holdfast.core.plans.command import Aside, Say
from holdfast.core.plans.withdraw import WITHDRAWN
from holdfast.core.recitals import Recital
from holdfast.ports.store import Store
from tests.conformance.steps import ENDED, NOW, append, bodies, new_owner, new_session, question, running, say, so_far, start

pytestmark = pytest.mark.anyio


async def recite(store: Store, session_id: str, digest: str, message_id: str, *, at: int = NOW, key: str | None = None) -> None:
    await say(store, session_id, f"words of {digest}", message_id=message_id, at=at, key=key, recital=Recital(digest=digest))


async def found(store: Store, *digests: str, limit: int = 10) -> list[str]:
    return [each.message_id for each in await store.reciting(digests, limit=limit)]


async def test_a_message_is_found_by_its_id_and_by_the_key_of_its_request(store: Store) -> None:
    await new_session(store)
    recital = Recital(digest="d1", instructions="i1")
    await say(store, "s1", message_id="m1", key="k1", recital=recital)
    each = await store.recited("m1")
    assert each is not None
    assert (each.session_id, each.message_id, each.seq, each.turn_seq, each.at, each.newest) == ("s1", "m1", 2, 0, NOW, True)
    assert each.recital == recital
    assert await store.recited_under("k1") == await store.last_recited("s1") == each
    assert await store.recited("m2") is await store.recited_under("k2") is await store.last_recited("s2") is None


async def test_a_message_without_a_recital_is_not_among_them(store: Store) -> None:
    await new_session(store)
    await say(store, "s1", message_id="m1", key="k1")
    assert await store.recited("m1") is await store.recited_under("k1") is await store.last_recited("s1") is None


async def test_of_each_session_only_its_newest_recital_is_found_by_its_digest(store: Store) -> None:
    for number, session_id in enumerate(("s1", "s2", "s3")):
        await new_session(store, session_id)
        await recite(store, session_id, "d1", f"m{session_id}", at=NOW + number)
    assert await found(store, "d1") == ["ms3", "ms2", "ms1"]
    assert await found(store, "d1", limit=2) == ["ms3", "ms2"]
    await recite(store, "s2", "d2", "m2", at=NOW + 9)
    assert await found(store, "d1") == ["ms3", "ms1"]
    assert await found(store, "d2", "d1", "d0") == ["m2", "ms3", "ms1"]
    assert not (await store.recited("ms2") or pytest.fail()).newest


async def test_words_to_the_gateway_have_a_recital_too(store: Store) -> None:
    await new_session(store)
    words = Aside(message_id="m1", content="/help", sender="owner", dedup_key="k1", recital=Recital(digest="d1"))
    await store.command("s1", words, Say("It helps."), at=NOW)
    assert await found(store, "d1") == ["m1"]
    assert await store.recited_under("k1") is not None


async def test_it_is_known_which_turn_was_open_when_a_message_came(store: Store) -> None:
    owner = await new_owner(store)
    turn = await running(store, owner=owner)
    [started] = [item.seq for item in await store.records("s1", after=0, limit=100) if item.kind == "turn.started"]
    await recite(store, "s1", "d1", "m1")
    await append(store, turn, ENDED)
    await recite(store, "s1", "d2", "m2")
    places = [each.turn_seq for each in [await store.recited("m1"), await store.recited("m2")] if each]
    assert places == [started, 0]


async def test_a_deleted_session_is_found_by_no_digest_and_a_purged_one_by_nothing(store: Store) -> None:
    await new_session(store)
    await recite(store, "s1", "d1", "m1", key="k1")
    await store.delete_session("s1", by="owner", until=NOW + 1, at=NOW)
    assert await found(store, "d1") == [] and await store.recited("m1") is not None
    await store.undelete_session("s1", by="owner", at=NOW)
    assert await found(store, "d1") == ["m1"]
    await store.delete_session("s1", by="owner", until=NOW + 1, at=NOW)
    await store.purge(now=2**60, steps=100)
    assert await store.recited("m1") is None
    with pytest.raises(Deleted):
        await store.recited_under("k1")


async def test_a_message_that_waits_can_be_taken_back_once(store: Store) -> None:
    """P1: it reaches no turn and one visible refusal."""
    owner = await new_owner(store)
    await running(store, owner=owner)
    await say(store, "s1", message_id="m1")
    assert await store.withdraw("s1", "m1", at=NOW)
    assert [event for event in await bodies(store) if isinstance(event, e.MessageRefused)] == [
        e.MessageRefused(message_id="m1", reason=WITHDRAWN)
    ]
    before = await so_far(store)
    for message_id in ("m1", "m2"):
        assert not await store.withdraw("s1", message_id, at=NOW)
    with pytest.raises(NotFound):
        await store.withdraw("s2", "m1", at=NOW)
    assert await so_far(store) == before
    assert (await store.session("s1")).queued == 0


async def test_a_message_that_a_turn_took_or_that_answered_a_question_cannot_be_taken_back(store: Store) -> None:
    owner = await new_owner(store)
    await new_session(store)
    await say(store, "s1", message_id="m1")
    turn = await start(store, "s1", "t1", owner=owner)
    assert not await store.withdraw("s1", "m1", at=NOW)
    await append(store, turn, question())
    await say(store, "s1", message_id="m2", on_page=True)
    assert not await store.withdraw("s1", "m2", at=NOW)
