"""The far side of the chats bites: gateways that are broken on purpose are caught by what people and their platform saw."""

import asyncio
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec
import pytest

from holdfast.core import delivery
from holdfast.core.delivery import DeliveryState
from holdfast.core.errors import Unavailable
from holdfast.core.events import DeliveryChanged
from holdfast.core.pacing import Bucket
from holdfast.core.places import Spot
from holdfast.ports.store import Store
from tests.sim.people import Aside, Garble, Say, Where
from tests.sim.promises import check
from tests.sim.test_controls import Lying
from tests.sim.twins import TwinWorld
from tests.sim.wire import Troubles, natures
from tests.sim.world import Death, Weather, World

SLOWLY = "say:one two|sleep:2|say:three four|sleep:2|say:five"


class MovesTheCursorFirst(Lying):
    """Tells the platform that updates are kept, and keeps them a moment later."""

    async def take_updates(self, account: str, updates: Sequence[bytes], *, cursor: str | None, at: int) -> None:
        await self._store.take_updates(account, (), cursor=cursor, at=at)
        asyncio.get_running_loop().create_task(self._store.take_updates(account, updates, cursor=None, at=at))


class ForgetsWhoSends(Lying):
    """Keeps of a message in flight that it is, and not whose it is."""

    async def record_delivery(self, session_id: str, change: DeliveryChanged, *, expect: DeliveryState, at: int) -> bool:
        return await self._store.record_delivery(session_id, msgspec.structs.replace(change, owner=None), expect=expect, at=at)


class KeepsNoReceipt(Lying):
    """Forgets which message shows an answer while it is being written."""

    async def record_delivery(self, session_id: str, change: DeliveryChanged, *, expect: DeliveryState, at: int) -> bool:
        if change.state == DeliveryState.LIVE:
            change = msgspec.structs.replace(change, state=DeliveryState.SENT)
        return await self._store.record_delivery(session_id, change, expect=expect, at=at)


class FailsOnce(Lying):
    """Does not take in, the first time, what a platform says of an account or a chat."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._failed: set[str] = set()

    async def quiet(self, account: str, *, until: int) -> None:
        self._fail("quiet")
        await self._store.quiet(account, until=until)

    async def close_place(self, spot: Spot, *, why: str, at: int) -> None:
        self._fail("close_place")
        await self._store.close_place(spot, why=why, at=at)

    def _fail(self, name: str) -> None:
        if name not in self._failed:
            self._failed.add(name)
            raise Unavailable("The store failed.", retry_after_s=0.1)


def in_a_group(world: World) -> None:
    world.person("ann", Say(SLOWLY), chats=True)
    world.person("bob", Aside("say:between us"), Say("say:hello"), where=Where("team"))
    world.person("cid", Say(SLOWLY), Garble(), where=Where("team", "7"))


def first_breach(made: Callable[[int], World], *, stride: int = 1) -> str:
    """What the invariants say of the first world that shows the fault; the number is where a process dies in it."""
    for point in itertools.count(1, stride):
        world = made(point)
        try:
            world.run()
            check(world)
        except AssertionError as broken:
            return str(broken)
        if point > 1 and not world.crashes:
            break
    return "nothing was found"


@pytest.mark.parametrize("name", sorted(natures()))
def test_on_each_platform_people_read_what_was_said_whatever_dies(name: str) -> None:
    """P1, P4, B11, E1: in a private chat, a group and a thread, with what each platform can do."""

    def made(point: int) -> World:
        world = World(point, deaths=(Death(point=point), Death(at_s=2.5)), nature=natures()[name])
        in_a_group(world)
        return world

    assert first_breach(made, stride=31) == "nothing was found"


@pytest.mark.parametrize(
    ("liar", "breach"),
    [(MovesTheCursorFirst, "P1: .* was accepted 0 times"), (KeepsNoReceipt, "(P4|E1): ")],
    ids=["moves the cursor before the commit", "keeps no receipt"],
)
def test_a_gateway_that_lies_to_its_platform_is_found(liar: type[Lying], breach: str) -> None:
    """P1, B11"""

    def made(point: int) -> World:
        wrap = lambda store: cast(Store, liar(store))  # noqa: E731
        world = World(1, deaths=(Death(point=point, unsynced="none"),), nature=natures()["telegram"], wrap=wrap)
        in_a_group(world)
        return world

    with pytest.raises(AssertionError, match=breach):
        raise AssertionError(first_breach(made))


def test_a_second_process_that_cannot_tell_whose_a_send_is_is_found() -> None:
    """P4: it takes what the first one is just sending for lost."""

    def made(point: int) -> World:
        world = TwinWorld(1, second_at_s=0.2 * point, nature=natures()["telegram"], wrap=lambda store: cast(Store, ForgetsWhoSends(store)))
        world.server.takes_s = 0.5
        for name in ("ann", "bob"):
            world.person(name, Say("say:one"), Say("say:two"), Say("say:three"), chats=True)
        return world

    found = [first_breach(lambda _, point=point: made(point)) for point in range(8)]  # type: ignore[misc]
    assert any("stand there" in breach for breach in found), found


def _patched(name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    module, _, attribute = name.rpartition(".")
    return lambda patch: patch.setattr({"delivery": delivery, "Bucket": Bucket}[module], attribute, value)


@pytest.mark.parametrize(
    ("fault", "world_is", "breach"),
    [
        (_patched("delivery.REPEAT_LABEL", ""), {"weather": Weather(moods=("", "cut"))}, "P4: .* do not say that they may be repeats"),
        (_patched("Bucket.wait_s", lambda bucket, now, *, above=0.0: 0.0), {}, "P8: .* is more than"),
        (
            _patched(
                "Bucket.wait_s", lambda bucket, now, *, above=0.0: 0.0 if bucket.quiet_until > now else max(0, 1 - bucket.filled(now))
            ),
            {"weather": Weather(moods=("", "limited account"))},
            "P8: .* was told at .* to wait",
        ),
        (_patched("delivery.gives_up", lambda **named: True), {"weather": Weather(moods=("", "refused"))}, "P4: "),
    ],
    ids=["hides repeats", "keeps to no rate", "does not wait when told to", "gives up"],
)
def test_a_decision_that_is_wrong_shows_at_the_far_side(
    monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch], None], world_is: dict[str, Any], breach: str
) -> None:
    """P4, P8: none of these is judged by the decision that was changed."""
    fault(monkeypatch)

    def made(seed: int) -> World:
        world = World(seed, nature=natures()["telegram"], **world_is)
        in_a_group(world)
        world.person("dan", *(Say(f"say:{number}") for number in range(9)), chats=True)
        return world

    found = [first_breach(lambda _, seed=seed: made(seed)) for seed in range(3)]  # type: ignore[misc]
    assert any(re.match(breach, each) for each in found), found


def test_many_chats_at_once_keep_to_the_budget_of_the_account() -> None:
    """P8: what is decided at the same moment leaves each other its turn."""
    world = World(1, nature=natures()["matrix"])
    for number in range(16):
        world.person(f"p{number}", Say(SLOWLY), chats=True)
    world.run()
    check(world)
    assert len(world.server.shown) == 16


@pytest.mark.parametrize("mood", ["limited account", ""])
def test_what_a_platform_says_is_kept_also_if_the_store_fails_in_that_moment(mood: str) -> None:
    """P4: a reply whose outcome could not be recorded would stay in flight, and those behind it would overtake it."""
    moods = iter([mood])
    world = World(
        1,
        nature=natures()["slack"],
        wrap=lambda store: cast(Store, FailsOnce(store)),
        troubles=Troubles() if mood else Troubles(gone={"ann": (0.0, 20.0)}),
    )
    world.server.moods = lambda: next(moods, "")
    world.person("ann", Say("say:one"), Say("say:two"), Say("say:three", after_s=30), chats=True)
    world.run()
    check(world)
    assert [sent.text for sent in world.server.shown] == (["one ", "two ", "three "] if mood else ["three "])


def test_a_chat_that_is_closed_and_open_again_is_answered_from_then_on() -> None:
    """P4: dead places are remembered, and come back with the first word."""
    world = World(1, nature=natures()["slack"], troubles=Troubles(gone={"ann": (0.0, 30.0)}, revoked=((60.0, 90.0),)))
    world.person("ann", Say("say:one"), Say("say:two", after_s=40), Say("say:three", after_s=30), chats=True)
    world.run()
    check(world)
    assert [sent.text for sent in world.server.shown] == ["two ", "three "]
