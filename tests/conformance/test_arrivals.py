"""What came from chats and is no part of a conversation yet; where each account is read from next; who was let in."""

import pytest

from holdfast.core.pairing import Pending
from holdfast.core.places import Spot
from holdfast.ports.store import Store
from holdfast.store.arrivals import REFUSED_KEPT
from tests.conformance.backends import Backend
from tests.conformance.steps import NOW

pytestmark = pytest.mark.anyio
BOT = "chat:1"


async def waiting(store: Store, account: str = BOT) -> list[bytes]:
    return [update.body for update in await store.updates(account, limit=100)]


async def test_updates_and_the_place_to_read_on_from_are_stored_together(backend: Backend, store: Store) -> None:
    """P1"""
    assert await store.cursor(BOT) is None
    await store.take_updates(BOT, [b"one", b"two"], cursor="7", at=NOW)
    await store.take_updates("other:1", [b"three"], cursor=None, at=NOW)
    await store.take_updates(BOT, [], cursor="8", at=NOW)
    async with backend.opened() as again:
        assert await waiting(again) == [b"one", b"two"]
        assert await waiting(again, "other:1") == [b"three"]
        assert (await again.cursor(BOT), await again.cursor("other:1")) == ("8", None)


async def test_an_update_that_is_settled_is_forgotten_and_its_number_is_given_to_no_other(store: Store) -> None:
    await store.take_updates(BOT, [b"one", b"two"], cursor=None, at=NOW)
    first, second = await store.updates(BOT, limit=10)
    await store.settle_update(first.id)
    await store.settle_update(second.id)
    await store.take_updates(BOT, [b"three"], cursor=None, at=NOW)
    [third] = await store.updates(BOT, limit=10)
    assert third.id > second.id and await store.updates(BOT, after=third.id, limit=10) == []


async def test_an_update_that_is_refused_is_kept_with_the_reason_and_only_the_newest_thousand(store: Store) -> None:
    await store.take_updates(BOT, [b"%d" % number for number in range(REFUSED_KEPT + 5)], cursor=None, at=NOW)
    for update in await store.updates(BOT, limit=2000):
        await store.settle_update(update.id, refused="it cannot be read")
    kept = await store.refused_updates(limit=5000)
    assert len(kept) == REFUSED_KEPT and kept[0].body == b"%d" % (REFUSED_KEPT + 4)
    assert {update.refused for update in kept} == {"it cannot be read"}
    assert await waiting(store) == []


async def test_a_time_to_be_quiet_never_becomes_shorter(store: Store) -> None:
    assert await store.quiet_until(BOT) == 0
    await store.quiet(BOT, until=NOW + 50)
    await store.quiet(BOT, until=NOW + 20)
    await store.take_updates(BOT, [], cursor="1", at=NOW)
    assert await store.quiet_until(BOT) == NOW + 50


async def test_places_in_which_nothing_arrives_are_remembered_until_they_open_again(backend: Backend, store: Store) -> None:
    await store.close_place(Spot("chat", "7"), why="gone", at=NOW)
    await store.close_place(Spot("chat", "7", "3"), why="closed", at=NOW + 1)
    await store.close_place(Spot("chat", "8"), why="gone", at=NOW + 2)
    async with backend.opened() as again:
        assert [(dead.spot, dead.why) for dead in await again.dead_places()] == [
            (Spot("chat", "8"), "gone"),
            (Spot("chat", "7", "3"), "closed"),
            (Spot("chat", "7"), "gone"),
        ]
    assert await store.reopen_place("chat", "7") and not await store.reopen_place("chat", "7")
    assert [dead.spot for dead in await store.dead_places()] == [Spot("chat", "8")]


async def test_a_chat_that_moves_twice_is_kept_under_its_first_name(store: Store) -> None:
    assert await store.move_chat(BOT, was="-1", now="-100")
    assert not await store.move_chat(BOT, was="-1", now="-100")
    assert await store.move_chat(BOT, was="-100", now="-200")
    assert await store.chat_names(BOT) == {"-1": "-200"}
    assert await store.chat_names("other:1") == {}


async def test_a_stranger_has_one_code_and_is_let_in_once(backend: Backend, store: Store) -> None:
    def pending(user: str, digest: bytes) -> Pending:
        return Pending(platform="chat", user=user, name="Eve", salt=b"s", digest=digest, made_at=NOW)

    await store.put_pairing(pending("1", b"a"))
    await store.put_pairing(pending("1", b"b"))
    await store.put_pairing(pending("2", b"c"))
    assert [one.digest for one in await store.pairings(platform="chat")] == [b"b", b"c"]
    assert await store.pairings(platform="other") == []
    await store.pair("chat", "1", name="Eve", at=NOW)
    await store.pair("chat", "1", name="Eva", at=NOW + 5)
    async with backend.opened() as again:
        assert [(one.user, one.name, one.at) for one in await again.paired()] == [("1", "Eva", NOW)]
        assert [one.user for one in await again.pairings()] == ["2"]
        assert await again.is_paired("chat", "1") and not await again.is_paired("other", "1")
    assert await store.unpair("chat", "1") and await store.paired() == []


async def test_the_last_few_wrong_codes_are_remembered(store: Store) -> None:
    for number in range(9):
        await store.note_wrong_code(at=NOW + number)
    assert await store.wrong_codes() == [NOW + number for number in (8, 7, 6, 5, 4)]
