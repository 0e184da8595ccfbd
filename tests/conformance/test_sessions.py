"""Session records: the catalog's row, the flags, the list, the search (part A)."""

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core import events as e
from holdfast.core.errors import BadInput, NotFound
from holdfast.core.plans.answer import Answer
from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState
from holdfast.ports.store import Store
from holdfast.ports.upkeep import Counts
from tests.conformance.backends import Backend
from tests.conformance.steps import (
    ANSWER,
    ENDED,
    NOW,
    append,
    bodies,
    kinds,
    left,
    new_owner,
    new_session,
    question,
    rested,
    running,
    say,
    start,
    text,
    whole_log,
)

pytestmark = pytest.mark.anyio


async def listed(store: Store, **asked: object) -> list[str]:
    return [session.session_id for session in (await store.sessions(limit=100, **asked)).sessions]  # type: ignore[arg-type]


async def test_a_new_session_has_no_flags(store: Store) -> None:
    """A1"""
    session = await new_session(store, title="first")
    assert session == Session(
        session_id="s1", session_key="agent:main:web:page:s1", log="ls1", seq=1, title="first", created_at=NOW, updated_at=NOW
    )
    assert (session.resume_pending, session.resume_reason, session.last_resume_marked_at, session.suspended) == (False, None, None, False)
    assert (session.state, session.turn_state, session.was_auto_reset) == ("idle", TurnState.NONE, False)
    assert await store.session("s1") == session
    assert await store.current_session("agent:main:web:page:s1") == session


async def test_every_flag_survives_a_reopen(backend: Backend) -> None:
    """A2, A9: also for a new process on the same place; times included."""
    async with backend.opened() as store:
        turn = await running(store)
        await append(store, turn, e.TurnInterrupted(reason="shutdown_timeout", restarts=2), at=NOW + 77)
        change = e.SessionChanged(title="t\u2028x", pinned=True, archived=True, suspended=True, model="a:b")
        before = await store.change_session("s1", change, at=NOW + 78)
    async with backend.opened() as store:
        after = await store.session("s1")
    assert after == before
    assert (after.resume_pending, after.resume_reason, after.last_resume_marked_at) == (True, "shutdown_timeout", NOW + 77)
    assert (after.suspended, after.pinned, after.archived, after.title, after.interrupted_restarts) == (True, True, True, "t\u2028x", 2)
    assert after.model == "a:b"


async def test_a_mark_can_be_set_and_taken_back(store: Store) -> None:
    """A5, A6, A10"""
    await new_session(store)
    marked = await store.change_session("s1", e.SessionChanged(resume_pending=True, resume_reason="node_lost"), at=NOW + 5)
    assert (marked.resume_pending, marked.resume_reason, marked.last_resume_marked_at) == (True, "node_lost", NOW + 5)
    again = await store.change_session("s1", e.SessionChanged(resume_pending=True), at=NOW + 6)
    assert (again.resume_reason, again.last_resume_marked_at) == ("restart_timeout", NOW + 6)
    cleared = await store.change_session("s1", e.SessionChanged(resume_pending=False), at=NOW + 7)
    assert (cleared.resume_pending, cleared.resume_reason, cleared.last_resume_marked_at) == (False, None, None)


async def test_a_malformed_stored_time_is_dropped_and_the_rest_kept(backend: Backend) -> None:
    """A4"""
    async with backend.opened() as store:
        turn = await running(store)
        await append(store, turn, e.TurnInterrupted(reason="crash", restarts=1))
    backend.spoil_time("s1")
    async with backend.opened() as store:
        session = await store.session("s1")
        assert (session.resume_pending, session.resume_reason, session.last_resume_marked_at) == (True, "crash", None)
        assert [found.session_id for found in await store.open_turns(apart_from=0)] == ["s1"]


async def test_what_is_not_there_is_not_found(store: Store) -> None:
    for unknown in ("nowhere", "", "\0", "'; DROP TABLE event"):
        with pytest.raises(NotFound):
            await store.session(unknown)
        with pytest.raises(NotFound):
            await store.events(unknown, after=0, limit=1)
        with pytest.raises(NotFound):
            await store.records(unknown, after=0, limit=1)
        with pytest.raises(NotFound):
            await store.change_session(unknown, e.SessionChanged(title="x"), at=NOW)
        assert await store.current_session(unknown) is None


async def test_a_change_touches_only_what_it_names(store: Store) -> None:
    before = await new_session(store, title="old")
    after = await store.change_session("s1", e.SessionChanged(title="new"), at=NOW + 9)
    assert after == msgspec.structs.replace(before, title="new", seq=2)
    pinned = await store.change_session("s1", e.SessionChanged(pinned=True), at=NOW + 9)
    assert pinned == msgspec.structs.replace(after, pinned=True, seq=3)


async def test_a_new_session_becomes_its_keys_current_one_and_the_old_stays_readable(store: Store) -> None:
    await new_session(store)
    await say(store)
    await store.create_session(session_id="s2", session_key="agent:main:web:page:s1", log="l2", at=NOW)
    current = await store.current_session("agent:main:web:page:s1")
    assert current is not None and current.session_id == "s2"
    assert kinds(await whole_log(store, "s1")) == ["session.created", "message.accepted"]


async def test_an_untitled_session_is_named_after_its_first_message(store: Store) -> None:
    await new_session(store, title=None)
    await say(store, text="How tall is the lighthouse?\nIn metres.")
    title = (await store.session("s1")).title
    assert title and "lighthouse" in title
    await say(store, text="And the church?")
    assert (await store.session("s1")).title == title


async def test_the_generation_belongs_to_the_key(store: Store) -> None:
    owner = await new_owner(store)
    await new_session(store)
    await say(store)
    await append(store, await start(store, "s1", "t1", owner=owner), ENDED)
    await store.create_session(session_id="s2", session_key="agent:main:web:page:s1", log="l2", at=NOW)
    await say(store, "s2")
    await start(store, "s2", "t2", owner=owner)
    assert (await store.session("s2")).generation == 2


async def test_a_chosen_folder_stays_and_the_next_conversation_of_its_key_has_it(backend: Backend) -> None:
    """A2, A20: over a reopen, a reset and a suspension."""
    async with backend.opened() as store:
        key = "agent:main:web:page:s1"
        made = await store.create_session(session_id="s1", session_key=key, log="l1", at=NOW, folder="/srv/project")
        assert made.folder == "/srv/project"
    async with backend.opened() as store:
        await say(store, "s1")
        await store.change_session("s1", e.SessionChanged(suspended=True), at=NOW)
        assert (await say(store, "s1", fresh=("s2", "l2"))).session_id == "s2"
        assert (await store.session("s2")).folder == (await store.session("s1")).folder == "/srv/project"
        assert (await new_session(store, "other")).folder is None


@pytest.mark.parametrize("pending", [False, True], ids=["suspended", "suspended and pending"])
async def test_a_message_for_a_suspended_session_starts_a_new_one_in_the_same_transaction(
    backend: Backend, store: Store, pending: bool
) -> None:
    """A14, A15: suspended wins; the old conversation stays readable."""
    await new_session(store, title="the title")
    flags = e.SessionChanged(suspended=True, resume_pending=True, resume_reason="crash") if pending else e.SessionChanged(suspended=True)
    await store.change_session("s1", flags, at=NOW)
    accepted = await say(store, "s1", "afresh", key="k1", message_id="m1", fresh=("s2", "l2"))
    assert accepted.session_id == "s2"
    new = await store.session("s2")
    assert (new.was_auto_reset, new.auto_reset_reason, new.suspended, new.queued, new.log) == (True, "suspended", False, 1, "l2")
    assert new.session_key == "agent:main:web:page:s1" and new.title == "the title (2)"
    assert await store.current_session(new.session_key) == new
    old = await store.session("s1")
    assert (old.suspended, old.queued) == (True, 0)
    assert [event.kind for event in await bodies(store, "s2")] == ["session.created", "message.written", "message.accepted"]
    repeated = await say(store, "s1", "afresh", key="k1", fresh=("s3", "l3"))
    assert (repeated.session_id, repeated.message_id, repeated.duplicate) == ("s2", "m1", True)
    assert (await say(store, "s1", "more", fresh=("s3", "l3"))).session_id == "s2"
    with pytest.raises(NotFound):
        await store.session("s3")
    async with backend.opened() as again:
        assert (await again.session("s2")).auto_reset_reason == "suspended"


async def test_a_message_for_a_suspended_session_is_not_the_answer_to_its_question(store: Store) -> None:
    turn = await running(store)
    await append(store, turn, question())
    await store.change_session("s1", e.SessionChanged(suspended=True), at=NOW)
    assert (await say(store, fresh=("s2", "l2"))).session_id == "s2"
    assert (await store.session("s1")).state == "waiting"


async def test_a_new_session_that_cannot_take_the_message_is_not_made(store: Store) -> None:
    await new_session(store)
    await store.change_session("s1", e.SessionChanged(suspended=True), at=NOW)
    with pytest.raises(Exception, match="already wait"):
        await say(store, fresh=("s2", "l2"), max_waiting=0)
    with pytest.raises(NotFound):
        await store.session("s2")
    current = await store.current_session("agent:main:web:page:s1")
    assert current is not None and current.session_id == "s1"


async def test_sessions_are_listed_newest_first_in_pages_without_a_gap(store: Store) -> None:
    expected: list[str] = []
    for number in range(25):
        await new_session(store, f"s{number}", at=NOW + number // 3)  # Some have the same time.
        expected.insert(0, f"s{number}")
    await say(store, "s4", at=NOW + 100)
    expected.remove("s4")
    expected.insert(0, "s4")
    for size in (1, 7, 24, 25, 26):
        found: list[str] = []
        before = None
        while True:
            page = await store.sessions(limit=size, before=before)
            found += [session.session_id for session in page.sessions]
            before = page.next
            if before is None:
                break
        assert found == expected
    assert (await store.sessions(limit=0)).sessions[0].session_id == "s4"
    assert (await store.sessions(limit=-5)).next is not None
    assert len((await store.sessions(limit=10**9)).sessions) == 25


@pytest.mark.parametrize("before", ["x", ".", "1", "1.2.3", "1.x", f"{2**64}.1", f"1.{-(2**64)}", "\ud800", "9" * 5000, "\0"])
async def test_a_place_in_the_list_that_does_not_parse_is_refused(store: Store, before: str) -> None:
    await new_session(store)
    with pytest.raises(BadInput):
        await store.sessions(limit=5, before=before)


async def test_archived_sessions_have_a_list_of_their_own(store: Store) -> None:
    await new_session(store, "s1")
    await new_session(store, "s2")
    await store.change_session("s1", e.SessionChanged(archived=True), at=NOW)
    assert await listed(store) == ["s2"]
    assert await listed(store, archived=True) == ["s1"]


@pytest.mark.parametrize("state", ["suspended", "pending", "running", "waiting", "pinned"])
async def test_the_list_can_be_of_one_state_alone(store: Store, state: str) -> None:
    for number, name in enumerate(
        ("suspended", "pending", "running", "waiting", "answered", "idle", "both", "archived", "pinned", "put away")
    ):
        await new_session(store, name, at=NOW + number)
    owner = await new_owner(store)
    for name in ("running", "waiting", "answered", "idle"):
        await say(store, name)
        turn = await start(store, name, f"{name}.t", owner=owner)
        if name in ("waiting", "answered"):
            await append(store, turn, question(f"{name}.q"))
        elif name == "idle":
            await append(store, turn, ENDED)
    await say(store, "answered")
    await store.change_session("pending", e.SessionChanged(resume_pending=True), at=NOW)
    await store.change_session("suspended", e.SessionChanged(suspended=True), at=NOW)
    await store.change_session("both", e.SessionChanged(suspended=True, resume_pending=True), at=NOW)
    await store.change_session("archived", e.SessionChanged(suspended=True, archived=True), at=NOW)
    for name in ("pinned", "both", "put away"):
        await store.change_session(name, e.SessionChanged(pinned=True), at=NOW)
    await store.change_session("put away", e.SessionChanged(archived=True), at=NOW)
    expected = {
        "pinned": ["both", "pinned"],
        "suspended": ["both", "suspended"],
        "pending": ["both", "pending"],
        "running": ["answered", "running"],
        "waiting": ["waiting"],
    }
    found: list[str] = []
    page = await store.sessions(limit=1, state=state)
    found += [session.session_id for session in page.sessions]
    while page.next:
        page = await store.sessions(limit=1, state=state, before=page.next)
        found += [session.session_id for session in page.sessions]
    assert sorted(found) == expected[state]
    times = [(await store.session(name)).updated_at for name in found]
    assert times == sorted(times, reverse=True)
    assert await listed(store, state="suspended", archived=True) == ["archived"]
    assert await listed(store, state="pinned", archived=True) == ["put away"]


@pytest.mark.parametrize("state", ["", "idle", "Suspended", "x'"])
async def test_a_state_that_no_session_is_listed_by_is_refused(store: Store, state: str) -> None:
    with pytest.raises(BadInput, match="suspended, pending, running, waiting, pinned, deleted"):
        await store.sessions(limit=5, state=state)


async def test_search_finds_words_of_titles_and_messages(store: Store) -> None:
    owner = await new_owner(store)
    await new_session(store, "s1", title="Über die Brücke")
    await new_session(store, "s2", title="Shopping")
    await say(store, "s2", 'Buy 3 apples, and "O\'Reilly" books!')
    await append(store, await start(store, "s2", "t1", owner=owner), ANSWER, ENDED)
    assert await listed(store, query="apples") == []  # Not yet.
    while await store.index_search(limit=2):
        pass
    for query in ("apples", "APPL", "apples books", 'o\'reilly "books"', "done", "shopping", "  apples  ", "apples OR"):
        assert await listed(store, query=query) == (["s2"] if query != "apples OR" else []), query
    assert await listed(store, query="brucke") == ["s1"]
    assert await listed(store, query="") == await listed(store, query=" \t") == ["s2", "s1"]
    await store.change_session("s1", e.SessionChanged(title="Renamed"), at=NOW)
    await store.index_search(limit=10)
    assert await listed(store, query="renamed") == ["s1"]
    assert not await store.index_search(limit=10)


async def test_pieces_of_an_answer_give_the_index_nothing_to_do(store: Store) -> None:
    """A thousand conversations that stream have nothing new to be found until one of them has said it all."""
    turn = await running(store)
    while await store.index_search(limit=100):
        pass
    turn = await append(store, turn, *(text(f"piece{number} ") for number in range(5)))
    assert not await store.index_search(limit=100)
    await append(store, turn, ANSWER, ENDED)
    while await store.index_search(limit=2):
        pass
    assert await listed(store, query="done") == ["s1"]


async def test_search_finds_what_answered_a_question_or_steered_a_turn(store: Store) -> None:
    """What people said is found, however it came into the conversation."""
    turn = await running(store)
    await say(store, text="a llama please", mode="steer")
    causes, position = await store.take_causes(turn.lease, turn_id="t1", attempt=1, position=turn.position, step=0, offset=0, at=NOW)
    assert [cause.content for cause in causes] == ["a llama please"]
    await append(store, msgspec.structs.replace(turn, position=position), question())
    await store.answer("q1", Answer(content="a vicuña", by="owner"), at=NOW)
    while await store.index_search(limit=10):
        pass
    assert await listed(store, query="llama") == await listed(store, query="vicuna") == ["s1"]


async def test_long_messages_are_indexed_by_their_beginnings_and_nobody_waits_for_it(store: Store) -> None:
    """P8: forty megabytes in one go held up every other write for seconds."""
    owner = await new_owner(store)
    await new_session(store)
    long = " ".join(f"word{number}" for number in range(100_000))
    for number in range(10):
        await say(store, text=f"{long} {number}")
        await append(store, await start(store, "s1", f"t{number}", owner=owner), ENDED)
    steps = 0
    while await store.index_search(limit=1000):
        steps += 1
    assert steps >= 4  # Three messages at most in one of them.
    assert await listed(store, query="word5000") == ["s1"]
    assert await listed(store, query="word99999") == []


WEIRD = [
    *('"', '""', "'", "*", "-", "NEAR(", "a AND", "NOT", "title:x", "(", ")", "^", "{", "+", "\\", "a*", "--", "%", "_", ". , ;"),
    *("\0", "a\0b", "\ud800", "😀", "\u2028", "日本語", "a" * 100_000, " ".join(["w"] * 5000)),
]


async def test_no_query_is_an_error(backend: Backend, store: Store) -> None:
    await new_session(store, title="something")
    await store.index_search(limit=10)
    for query in WEIRD:
        await store.sessions(limit=5, query=query)


@settings(max_examples=60, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(query=st.text(max_size=30))
async def test_no_query_whatever_is_an_error(store: Store, query: str) -> None:
    await store.sessions(limit=5, query=query)


async def test_the_counts_count(store: Store) -> None:
    assert await store.counts() == Counts(0, 0, 0, 0, 0, 0)
    owner = await new_owner(store)
    turn = await running(store, "s1", "t1", owner=owner)
    await running(store, "s2", "t2", owner=owner)
    await say(store, "s1")
    await append(store, turn, e.MessageWritten(message_id="a", role="assistant", content="x", delivery_id="d1"), ENDED)
    assert await store.counts() == Counts(sessions=2, inbox=1, outbox=1, running=1, suspended=0, pending=0)


async def test_the_counts_count_what_is_suspended_and_what_is_pending(store: Store) -> None:
    await rested(store, "s1")
    await left(store, "s2", "t2")
    await new_session(store, "s3")
    await store.change_session("s3", e.SessionChanged(suspended=True), at=NOW)
    counts = await store.counts()
    assert (counts.sessions, counts.running, counts.suspended, counts.pending) == (3, 0, 1, 1)


async def test_whoever_subscribed_hears_of_commits_until_it_leaves(store: Store) -> None:
    heard = []
    leave = store.subscribe(lambda: heard.append(1))
    await new_session(store)
    assert heard
    leave()
    leave()
    heard.clear()
    await say(store)
    assert not heard
