"""Where writes are gathered, a batch holds at most one operation per lane: what that means, and that it is enough."""

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import events as e
from holdfast.core.errors import Conflict
from holdfast.core.plans.answer import Answer
from holdfast.core.sessions import Lease
from holdfast.core.turns import Outcome
from holdfast.ports.store import Store
from holdfast.ports.turns import StreamItem
from holdfast.store import targets
from holdfast.store.lines import Operation
from holdfast.store.sqlite.connection import connect, fetch
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.work import inbox, turns
from tests.conformance.backends import NOW, SqliteBackend, quick_place
from tests.conformance.buffering import BufferingLines
from tests.conformance.steps import append, new_owner, new_session, say, start, text

pytestmark = pytest.mark.anyio

CHAT = "agent:main:telegram:dm:1"
LANES = ("a", "b", "c")
ROWS = {
    "inbox": "seq, cause_id, what",
    "dedup": "dedup_key, digest, ref",
    "outbox": "delivery_id, seq, state",
    "question": "question_id, turn, state, message",
}


@contextlib.asynccontextmanager
async def gathering(*, shared: bool = False) -> AsyncIterator[tuple[SqliteStore, BufferingLines, SqliteBackend]]:
    with quick_place() as place:
        backend = SqliteBackend(place)
        lines = BufferingLines(lambda: connect(backend.path), shared=shared)
        try:
            yield SqliteStore(lines, now=lambda: NOW), lines, backend
        finally:
            await lines.aclose()


# the rule


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        ([], []),
        (["a", "b", "c"], [0, 0, 0]),
        (["a", "a", "a"], [0, 1, 2]),
        (["a", "b", "a", "c"], [0, 0, 1, 0]),
        (["ab", "b", "a", "c"], [0, 1, 1, 0]),
        (["a", "ab", "b"], [0, 1, 2]),
        ([None], [0]),
        (["a", None, "a", "b"], [0, 1, 2, 2]),
        (["a", "a", None, "b"], [0, 1, 2, 3]),
        ([None, None], [0, 1]),
        (["", "a"], [0, 0]),
    ],
)
def test_operations_that_want_the_same_come_one_after_another(wanted: list[str | None], numbers: list[int]) -> None:
    """Names are letters; None wants everything."""
    assert targets.cut([None if names is None else set(names) for names in wanted]) == numbers


@given(st.lists(st.none() | st.sets(st.sampled_from("abcd"))))
def test_no_batch_holds_two_of_one_name_and_nobody_overtakes_one_who_wants_the_same(wanted: list[set[str] | None]) -> None:
    numbers = targets.cut(wanted)
    assert set(numbers) == set(range(len(set(numbers))))
    for later, (number, names) in enumerate(zip(numbers, wanted, strict=True)):
        for earlier, others in zip(numbers[:later], wanted[:later], strict=True):
            if names is None or others is None or names & others:
                assert earlier < number


def test_an_operation_that_names_nothing_may_touch_anything() -> None:
    future: Any = None
    assert targets.of(Operation(future, inbox.expire_questions, (NOW,), True)) is None
    named = targets.of(Operation(future, turns.pass_trial, (Lease("s1", 1, 1), "t1", NOW), False))
    assert named == targets.Targets(sessions=("s1",))


@pytest.mark.parametrize("operation", targets.NAMED, ids=lambda operation: operation.__name__)
def test_targets_are_named_by_the_arguments_that_the_operation_takes(operation: Callable[..., Any]) -> None:
    taken = list(inspect.signature(operation).parameters)[1:]
    asked = [
        name for name, given in inspect.signature(targets.NAMED[operation]).parameters.items() if given.kind is not given.VAR_POSITIONAL
    ]
    assert asked == taken[: len(asked)]


# what goes wrong without it


async def two_messages(store: Store) -> list[Coroutine[Any, Any, Any]]:
    await new_session(store, "s1")
    return [say(store, "s1", "one"), say(store, "s1", "two")]


async def two_sessions_of_one_key(store: Store) -> list[Coroutine[Any, Any, Any]]:
    await new_session(store, "s1", key=CHAT)
    await new_session(store, "s2", key=CHAT)
    return [say(store, "s1", "to the one before"), say(store, "s2", "to the current one")]


async def one_message_to_two_chats(store: Store) -> list[Coroutine[Any, Any, Any]]:
    await new_session(store, "s1")
    await new_session(store, "s2")
    return [say(store, "s1", "again", key="k1"), say(store, "s2", "again", key="k1")]


async def an_answer_and_a_message(store: Store) -> list[Coroutine[Any, Any, Any]]:
    await new_session(store, "s1")
    await say(store, "s1")
    turn = await start(store, "s1", "t1", owner=await new_owner(store))
    asked = e.QuestionAsked(question_id="q1", call_id="c1", content="?", expires_at=NOW + 9, ends_attempt=False)
    await append(store, turn, asked)
    return [store.answer("q1", Answer(content="yes", by="ann"), at=NOW), say(store, "s1", "and more")]


@pytest.mark.parametrize("both", [two_messages, two_sessions_of_one_key, one_message_to_two_chats, an_answer_and_a_message])
async def test_two_operations_of_one_lane_go_wrong_in_one_batch_and_right_in_two(
    both: Callable[[Store], Coroutine[Any, Any, list[Coroutine[Any, Any, Any]]]],
) -> None:
    """P1: they take the same place in the log, or the same key."""
    async with gathering(shared=True) as (store, _, _):
        found = await asyncio.gather(*await both(store), return_exceptions=True)
        assert any(isinstance(one, apsw.ConstraintError) for one in found)
    async with gathering() as (store, lines, _):
        pair = await both(store)
        before = len(lines.sizes)
        await asyncio.gather(*pair)
        assert lines.sizes[before:] == [1, 1]


async def test_operations_of_different_lanes_share_a_batch() -> None:
    async with gathering() as (store, lines, _):
        for name in LANES:
            await new_session(store, name)
        before = len(lines.sizes)
        await asyncio.gather(*(say(store, name, word) for word in ("one", "two") for name in LANES))
        assert lines.sizes[before:] == [3, 3]


# what it leaves


async def story(store: Store) -> None:
    """Everything that is queued at once is one `gather`."""
    owner = await new_owner(store)
    await asyncio.gather(*(new_session(store, name, key=CHAT if name == "c" else None) for name in LANES))
    said = [say(store, name, word, message_id=f"{name}.{word}", key=f"{name}.{word}") for word in ("one", "two") for name in LANES]
    await asyncio.gather(*said, say(store, "a", "one", message_id="again", key="a.one"))
    begun = await asyncio.gather(*(start(store, name, f"t.{name}", owner=owner) for name in LANES))
    items = [StreamItem(turn.lease, turn.turn_id, turn.attempt, turn.position, (text("hel"), text("lo", 3))) for turn in begun]
    places = await store.append_streams(items, at=NOW)
    assert all(isinstance(place, int) for place in places)
    a, b, c = (type(turn)(turn.lease, turn.turn_id, turn.attempt, turn.position + 2) for turn in begun)
    written = e.MessageWritten(message_id="r", role="assistant", content="hello", delivery_id="d")
    asked = e.QuestionAsked(question_id="q", call_id="c1", content="?", expires_at=NOW + 9, ends_attempt=False)
    _, _, refused, went_on, _ = await asyncio.gather(
        store.request_stop("a", by="ann", dedup_key="stop", at=NOW),
        append(store, a, e.TurnEnded(outcome=Outcome.COMPLETED)),
        append(store, a, text("late", 5)),
        append(store, b, asked),
        append(store, c, written, e.TurnEnded(outcome=Outcome.COMPLETED)),
        return_exceptions=True,
    )
    assert isinstance(refused, Conflict) and not isinstance(went_on, BaseException)
    await asyncio.gather(
        store.answer("q", Answer(content="yes", by="ann", dedup_key="answer"), at=NOW),
        store.change_session("a", e.SessionChanged(pinned=True), at=NOW),
        store.reset("c", fresh=("c2", "lc2"), by="ann", dedup_key=None, at=NOW),
        say(store, "c", "after the reset", message_id="late"),
        store.expire_questions(now=NOW),
    )
    await append(store, went_on, e.TurnEnded(outcome=Outcome.FAILED, error="x"))


async def test_a_story_leaves_the_same_log_and_catalog_as_where_each_write_is_made_at_once() -> None:
    """P1, P2"""
    with quick_place() as place:
        plain = SqliteBackend(place)
        async with plain.opened() as store:
            await story(store)
        async with gathering() as (gathered, lines, backend):
            await story(gathered)
            assert max(lines.sizes) >= 3
            assert _by_name(backend) == _by_name(plain)


def _by_name(backend: SqliteBackend) -> dict[str, list[Any]]:
    """The log of each session by its id, and its row. Numbers of sessions and rows are an engine's own."""
    with backend.raw() as db:
        names: dict[int, str] = dict(fetch(db, "SELECT id, session_id FROM session"))
        found: dict[str, list[Any]] = {name: [] for name in names.values()}
        for session, *row in fetch(db, "SELECT session, seq, turn, epoch, attempt, position, kind, body FROM event ORDER BY session, seq"):
            found[names[session]].append(tuple(row))
        for session, *row in fetch(db, "SELECT session, seq, state, epoch, turn, attempt, position, stop FROM head"):
            found[names[session]].append(tuple(row))
        for table, columns in ROWS.items():
            for session, *row in fetch(db, f"SELECT session, {columns} FROM {table} ORDER BY {columns}"):
                found[names[session]].append((table, *row))
        return found
