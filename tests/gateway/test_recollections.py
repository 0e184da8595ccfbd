"""What a process keeps of conversations between their turns: it saves reading, and nothing depends on it."""

import gc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.gateway.recollections import KEPT_S, Recollections
from holdfast.ports.store import Store
from tests.conformance.backends import BACKENDS, quick_place
from tests.conformance.steps import rested, say
from tests.gateway import gateways
from tests.gateway.gateways import Life


class Now:
    at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    with quick_place() as place:
        async with BACKENDS["sqlite"](place).opened() as opened:
            yield opened


async def test_what_was_kept_is_read_on_and_given_to_one_reader_only(store: Store) -> None:
    await rested(store)
    recollections = Recollections(store, Now(), whole=True)
    session = await store.session("s1")
    first = await recollections.read(session)
    recollections.keep(session, first)
    await say(store, text="and then?")
    session = await store.session("s1")
    second, third = await recollections.read(session), await recollections.read(session)
    assert second is first and third is not first
    assert [message.text for message in second.queued.values()] == ["and then?"] == [message.text for message in third.queued.values()]


async def test_a_conversation_of_another_log_is_read_from_its_beginning(store: Store) -> None:
    """A store that was restored holds another past under the same name."""
    recollections = Recollections(store, Now(), whole=True)
    await rested(store)
    session = await store.session("s1")
    kept = await recollections.read(session)
    recollections.keep(session, kept)
    assert await recollections.read(msgspec.structs.replace(session, log="another")) is not kept


async def test_only_so_much_is_kept_and_not_for_ever(store: Store) -> None:
    now = Now()
    for name in ("s1", "s2", "s3"):
        await rested(store, name)
    sessions = [await store.session(name) for name in ("s1", "s2", "s3")]
    recollections = Recollections(store, now, whole=True, most_events=2 * sessions[0].seq)
    kept = [await recollections.read(session) for session in sessions]
    for session, transcript in zip(sessions, kept, strict=True):
        recollections.keep(session, transcript)
    again = [await recollections.read(session) for session in sessions]
    assert [one is other for one, other in zip(kept, again, strict=True)] == [False, True, True]
    recollections.keep(sessions[1], again[1])
    now.at += KEPT_S
    recollections.keep(sessions[2], again[2])
    recollections.tidy()
    assert [await recollections.read(session) is given for session, given in zip(sessions[1:], again[1:], strict=True)] == [False, True]


def seen(life: Life, session_id: str) -> Any:
    return msgspec.to_builtins(life.view(session_id))


SCRIPTS = ("say:half|hang / say:all of it", "steps: look > look a > deed 2 | done", "call:deed 1|say:so", "ask:why")


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_conversation_is_shown_as_one_who_never_looked_before_sees_it(tmp_path: Path, script: str) -> None:
    """P7: however often it was looked at, and in the middle of whatever turn."""
    with gateways.home(tmp_path) as home:
        life = home.start()
        page = life.open_page()
        for _ in range(2):
            life.post(page, "hello")
            life.rest(page)
            seen(life, page)
        life.post(page, script)
        life.until(lambda: seen(life, page)["state"] in ("running", "waiting"))
        life.pass_s(0.5)
        seen(life, page)
        life.die()
        life = home.start()
        life.pass_s(0.1)
        seen(life, page)
        life.pass_s(0.5)
        for text in ("an answer, or a message", "/status"):
            seen(life, page)
            life.post(page, text)
            life.rest(page)
        last = seen(life, page)
        assert last == seen(life, page)
        life.stop()
        assert seen(home.start(), page) == last


def test_a_turn_leaves_nothing_behind_that_only_a_look_through_everything_would_free(tmp_path: Path) -> None:
    """P8: such looks stop everybody, for the longer the more there is to free."""
    with gateways.home(tmp_path) as home:
        life = home.start()
        for number in range(30):
            if number == 20:
                gc.collect()
                gc.disable()
            life.say("say:hello|call:deed 1|say:so")
        try:
            assert gc.collect() < 50  # Of ten turns, in a loop that is simulated.
        finally:
            gc.enable()
