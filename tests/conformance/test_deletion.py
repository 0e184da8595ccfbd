"""A deleted session is out of sight at once, comes back whole by an undo, and after that is really gone: from the bytes on disk, too."""

import asyncio
import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core import events as e
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.errors import Deleted, NotFound, QuestionClosed, StaleEpoch
from holdfast.core.plans.answer import Answer
from holdfast.core.plans.command import Aside, Say
from holdfast.core.plans.delete import LAST_WORDS_MS
from holdfast.core.plans.edit import Edit
from holdfast.core.turns import Outcome, TurnState
from holdfast.ports.store import Store
from holdfast.store.deletion import PAGE_ROWS
from tests.conformance.backends import Backend, SqliteBackend
from tests.conformance.steps import (
    CHAT,
    ENDED,
    NOW,
    append,
    kinds,
    new_owner,
    new_session,
    owed,
    question,
    rested,
    running,
    say,
    start,
    text,
    whole_log,
)

pytestmark = pytest.mark.anyio

UNTIL = NOW + 600_000
MANY = 10_000


async def delete(store: Store, session_id: str = "s1") -> None:
    await store.delete_session(session_id, by="owner", until=UNTIL, at=NOW)


async def purge(store: Store, *, now: int = UNTIL) -> None:
    while await store.purge(now=now, steps=MANY):
        pass


async def listed(store: Store, **how: str) -> list[str]:
    return [session.session_id for session in (await store.sessions(limit=100, **how)).sessions]  # type: ignore[arg-type]


class Words:
    """Words that stand nowhere else. `tails` are looked for, because an index may share the beginnings of its words."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.tails: list[str] = []

    def new(self) -> str:
        self.tails.append("".join(self._random.choices("bcdfghjklmnpqrstvwxz", k=12)))
        return f"{self._random.choice('amz')}{self.tails[-1]}"

    def left_in(self, folder: Path) -> list[str]:
        stored = b"".join(file.read_bytes() for file in folder.iterdir() if file.is_file())
        return [tail for tail in self.tails if tail.encode() in stored]


async def fill(store: Store, words: Words, owner: int, sessions: Iterator[str]) -> None:
    """Everything that a conversation can leave on disk, in the session "secret", with others beside it on the same pages."""
    await new_session(store, "secret", key=CHAT, title=f"title {words.new()}")
    for number, other in enumerate(sessions):
        turn_id = f"t{number}"
        await rested(store, other)
        await say(store, "secret", f"asked {words.new()}", key=f"update|{words.new()}", anchor=words.new())
        turn = await start(store, "secret", turn_id, owner=owner)
        call = e.ToolStarted(call_id="c", name="run", arguments={"command": words.new()}, effect=Effect.PURE)
        turn = await append(store, turn, text(words.new()), e.Reasoning(text=words.new()), call)
        turn = await append(store, turn, e.ToolOutput(call_id="c", text=f"{words.new()} {'x' * (number % 7) * 1000}"))
        result = f"{words.new()} {'y' * (number % 5) * 2000}"
        turn = await append(store, turn, e.ToolFinished(call_id="c", outcome=ToolOutcome.DONE, content=result))
        answer = e.MessageWritten(message_id=f"{turn_id}.a", role="assistant", content=f"said {words.new()}", delivery_id=f"d{number}")
        failed = e.DeliveryChanged(delivery_id=f"d{number}", state="dead", error=words.new())
        await append(store, turn, answer, e.TurnEnded(outcome=Outcome.FAILED, error=words.new()))
        await store.record_delivery("secret", failed, expect=(await owed(store))[0].state, at=NOW)
        if number % 9 == 0:
            await store.index_search(limit=MANY)
        if number % 20 == 10:
            await store.prune_streams(before=NOW + 1, at=NOW, limit=1)
    aside = Aside(message_id="aside", content=f"/status {words.new()}", sender="owner", dedup_key=None)
    await store.command("secret", aside, Say(words.new()), at=NOW)
    await store.change_session("secret", e.SessionChanged(title=words.new()), at=NOW)
    await say(store, "secret", f"ask {words.new()}")
    turn = await start(store, "secret", "waits", owner=owner)
    asked = e.QuestionAsked(question_id="q", call_id="q", content=words.new(), expires_at=NOW + 10**7)
    await append(store, turn, e.ToolStarted(call_id="q", name="ask", arguments={}, effect=Effect.PURE), asked)
    await say(store, "secret", f"queued {words.new()}", answers=False, message_id="edited")
    queued = (await store.transcript(await store.session("secret"))).queued["edited"]
    for key in ("first", "second"):
        edit = Edit(message_id="edited", text=f"edited {words.new()}", by="owner", seq=queued.seq, waits=True, dedup_key=key)
        await store.edit("secret", edit, at=NOW)


@pytest.mark.parametrize("seed", range(3))
async def test_no_byte_of_a_purged_session_is_left_in_any_file_and_the_others_are_whole(tmp_path: Path, seed: int) -> None:
    """A28: database, write-ahead log, search index, quarantine; while the store is in use."""
    backend, words = SqliteBackend(tmp_path), Words(seed)
    async with backend.opened() as store:
        others = [f"s{number}" for number in range(60)]
        await fill(store, words, await new_owner(store), iter(others))
        harmed = next(item.seq for item in await whole_log(store, "secret") if item.kind == "tool.finished")
    backend.change_byte("secret", harmed, "position")
    async with backend.opened() as store:
        await whole_log(store, "secret")  # Finds the damaged one, and sets it apart.
        assert backend.quarantine() == [("secret", harmed)]
        await store.index_search(limit=MANY)
        assert len(words.left_in(tmp_path)) > len(words.tails) // 2
        before = [await whole_log(store, other) for other in others]
        await delete(store, "secret")
        await say(store, others[0], "something else")
        assert len(words.left_in(tmp_path)) > len(words.tails) // 2
        await purge(store)
        assert words.left_in(tmp_path) == []
        assert [await whole_log(store, other) for other in others][1:] == before[1:]
        assert backend.quarantine() == []
        assert await listed(store, query=words.tails[0]) == []
        with backend.raw() as db:
            db.execute("INSERT INTO search (search) VALUES ('integrity-check')")
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert words.left_in(tmp_path) == []


async def test_a_deleted_session_is_in_no_list_no_search_and_no_count_and_takes_no_words(store: Store) -> None:
    """A28"""
    await rested(store, "kept")
    await rested(store, "s1")
    await store.index_search(limit=MANY)
    assert set(await listed(store)) == set(await listed(store, query="hello")) == {"s1", "kept"}
    deleted = await store.delete_session("s1", by="owner", until=UNTIL, at=NOW)
    assert (deleted.deleted_at, deleted.undo_until) == (NOW, UNTIL)
    assert await listed(store) == await listed(store, query="hello") == ["kept"]
    assert await listed(store, state="deleted") == ["s1"]
    assert (await store.counts()).sessions == 1
    session = await store.session("s1")
    assert (session.deleted_at, session.undo_until, session.current) == (NOW, UNTIL, False)
    assert await store.current_session(session.session_key) is None and await store.conversations(session.session_key, limit=9) == []
    aside = Aside(message_id="m", content="/status", sender="owner", dedup_key=None)
    for refused in (
        store.change_session("s1", e.SessionChanged(title="x"), at=NOW),
        store.reset("s1", fresh=("n", "l"), by="owner", dedup_key=None, at=NOW),
        store.resume_session("s1", by="owner", dedup_key=None, at=NOW),
        store.command("s1", aside, Say("x"), at=NOW),
        store.tell_once("s1", notice_id="n", content="x", anchor=None, at=NOW),
        store.request_stop("s1", by="owner", dedup_key=None, at=NOW),
    ):
        with pytest.raises(Deleted, match="holdfast delete --undo s1"):
            await refused
    assert await store.delete_session("s1", by="other", until=UNTIL + 9, at=NOW + 9) == deleted


async def test_a_session_that_never_was_cannot_be_deleted(store: Store) -> None:
    with pytest.raises(NotFound):
        await delete(store, "nobody")
    with pytest.raises(NotFound):
        await store.undelete_session("nobody", by="owner", at=NOW)


async def test_an_undo_brings_a_session_back_whole(store: Store) -> None:
    """A28"""
    await rested(store, "s1", key=CHAT)
    await store.index_search(limit=MANY)
    before, log = await store.session("s1"), await whole_log(store)
    await delete(store)
    assert await store.undelete_session("s1", by="ann", at=NOW + 1)
    after = await store.session("s1")
    assert await whole_log(store) == [*log, *(await whole_log(store))[-2:]] and after.seq == before.seq + 2
    assert kinds(await whole_log(store))[-2:] == ["session.deleted", "session.undeleted"]
    changed = {name for name, value in _fields(after).items() if value != getattr(before, name)}
    assert changed == {"seq", "updated_at"}  # Retention must not take it again at once.
    assert await listed(store) == await listed(store, query="hello") == ["s1"]
    assert (await store.current_session(CHAT)) == after
    await purge(store, now=UNTIL * 2)
    assert await store.session("s1") == after
    assert not await store.undelete_session("s1", by="ann", at=NOW + 2)


def _fields(session: object) -> dict[str, object]:
    return {name: getattr(session, name) for name in session.__struct_fields__}  # type: ignore[attr-defined]


async def test_the_key_of_a_deleted_session_goes_on_with_a_new_one_and_an_undo_takes_nothing_from_it(store: Store) -> None:
    """A28, A20"""
    await rested(store, "s1", key=CHAT)
    await delete(store)
    accepted = await say(store, "s1", "next", fresh=("s2", "l2"))
    assert accepted.session_id == "s2"
    session = await store.session("s2")
    assert session.current and (session.auto_reset_reason, session.queued) == ("deleted", 1)
    assert "message.written" not in kinds(await whole_log(store, "s2"))  # Nothing says how to get back to what is deleted.
    await store.undelete_session("s1", by="ann", at=NOW)
    assert not (await store.session("s1")).current and (await store.session("s2")).current
    assert [(number, found.session_id) for number, found in await store.conversations(CHAT, limit=9)] == [(2, "s2"), (1, "s1")]
    assert (await store.resume_session("s1", by="ann", dedup_key=None, at=NOW)).changed


async def test_a_message_to_an_older_session_of_a_key_whose_current_one_is_deleted_starts_a_new_one(store: Store) -> None:
    """A20"""
    await rested(store, "s1", key=CHAT)
    await store.reset("s1", fresh=("s2", "l2"), by="ann", dedup_key=None, at=NOW)
    await delete(store, "s2")
    assert (await say(store, "s1", fresh=("s3", "l3"))).session_id == "s3"


async def test_what_waits_in_a_deleted_session_starts_no_turn_and_its_sender_is_told_once(store: Store) -> None:
    """A20, P1"""
    turn = await running(store, "s1", key=CHAT)
    await say(store, "s1", "first", message_id="m1")
    await say(store, "s1", "second", message_id="m2")
    await delete(store)
    session = await store.session("s1")
    assert session.queued == 0 and session.stop_requested
    refused = [item.event.message_id for item in await whole_log(store) if isinstance(item.event, e.MessageRefused)]
    assert refused == ["m1", "m2"]
    told = [delivery.text for delivery in await owed(store)]
    assert told == ["These messages were not answered, because the conversation was deleted first. Send them again:\n\n> first\n> second"]
    await append(store, turn, ENDED)
    assert (await store.session("s1")).turn_state is TurnState.ENDED
    assert await store.start_turn("s1", owner=turn.lease.owner, turn_id="t2", at=NOW) is None
    assert len(await owed(store)) == 1


async def test_what_is_owed_is_held_back_comes_back_with_an_undo_and_is_dropped_by_the_purge(store: Store) -> None:
    """A28"""
    turn = await running(store, "s1", key=CHAT)
    await append(store, turn, e.MessageWritten(message_id="a", role="assistant", content="done", delivery_id="d"), ENDED)
    await delete(store)
    assert await owed(store) == [] and (await store.counts()).outbox == 0
    await store.undelete_session("s1", by="ann", at=NOW)
    assert [delivery.delivery_id for delivery in await owed(store)] == ["d"]
    await delete(store)
    await purge(store)
    assert await owed(store) == [] and (await store.counts()).outbox == 0


async def test_nobody_is_owed_what_a_turn_says_while_it_is_stopped_by_a_deletion(store: Store) -> None:
    """A28"""
    turn = await running(store, "s1", key=CHAT)
    await delete(store)
    written = e.MessageWritten(message_id="a", role="assistant", content="half", delivery_id="d")
    await append(store, turn, written, e.TurnEnded(outcome=Outcome.COMPLETED))
    assert await owed(store) == []
    ended = (await whole_log(store))[-1].event
    assert isinstance(ended, e.TurnEnded) and ended.outcome is Outcome.CANCELLED


async def test_a_waiting_turn_ends_with_its_session_and_its_question_takes_no_answer(store: Store) -> None:
    """A28, P3"""
    await append(store, await running(store), question("q1", NOW + 10**9))
    await delete(store)
    session = await store.session("s1")
    assert session.turn_state is TurnState.ENDED
    with pytest.raises(QuestionClosed):
        await store.answer("q1", Answer(content="a", by="owner"), at=NOW)
    assert await store.undecided() == [] and await store.open_turns(apart_from=0) == []


async def test_of_a_purged_session_nothing_can_be_read_and_its_id_still_says_that_it_was_deleted(backend: Backend, store: Store) -> None:
    """A28"""
    await rested(store, "s1", key=CHAT)
    await delete(store)
    await purge(store, now=UNTIL - 1)
    assert (await store.session("s1")).undo_until == UNTIL  # Not before its time.
    assert await store.purged(["s1", "never"]) == []
    await purge(store)
    assert await store.purged(["never", "s1"]) == ["s1"]
    for read in (
        store.session("s1"),
        store.events("s1", after=0, limit=9),
        store.records("s1", after=0, limit=9),
        store.undelete_session("s1", by="ann", at=UNTIL),
        store.delete_session("s1", by="ann", until=UNTIL, at=UNTIL),
        store.change_session("s1", e.SessionChanged(title="x"), at=UNTIL),
    ):
        with pytest.raises(Deleted, match="Its content is gone"):
            await read
    assert await listed(store, state="deleted") == []
    assert [kind for kind, _ in backend.log()] == ["session.purged", "session.forgotten"]
    assert (await say(store, "s1", "next", fresh=("s2", "l2"))).session_id == "s2"
    assert [number for number, _ in await store.conversations(CHAT, limit=9)] == [2]  # It keeps its number.


async def test_what_was_said_in_a_purged_session_and_is_delivered_again_starts_nothing(backend: Backend) -> None:
    """P1, P6: also after the catalog was made from the log again."""
    async with backend.opened() as store:
        await new_session(store, "s1", key=CHAT)
        await say(store, "s1", "hello", key="update|7")
        await delete(store)
        assert (await say(store, "s1", "hello", key="update|7")).duplicate
        await purge(store)
    backend.rebuild()
    async with backend.opened() as store:
        await new_session(store, "s2", key=CHAT)
        with pytest.raises(Deleted):
            await say(store, "s2", "hello", key="update|7")
        assert (await store.session("s2")).queued == 0
        assert not (await say(store, "s2", "hello", key="update|8")).duplicate


async def test_generations_go_on_behind_those_of_a_purged_session(backend: Backend) -> None:
    """P2, E3: the generation grows by one per turn of the key, whatever was deleted."""
    async with backend.opened() as store:
        owner = await new_owner(store)
        await new_session(store, "s1", key=CHAT)
        for turn_id in ("t1", "t2", "t3"):
            await say(store, "s1")
            await append(store, await start(store, "s1", turn_id, owner=owner), ENDED)
        await delete(store)
        await purge(store)
    backend.rebuild()
    async with backend.opened() as store:
        await say(store, "s1", fresh=("s2", "l2"))
        await start(store, "s2", "t4", owner=owner)
        assert (await store.session("s2")).generation == 4


async def test_whoever_was_not_told_of_the_refusal_before_the_purge_is_told_without_the_words(backend: Backend) -> None:
    """A20, A28: a chat that is out of reach for longer than the undo time."""
    async with backend.opened() as store:
        await new_session(store, "s1", key=CHAT)
        await say(store, "s1", "words that must go")
        await delete(store)
        await purge(store)
        expected = ["The conversation here was deleted before your last message was answered. Send it again to start a new one."]
        assert [delivery.text for delivery in await owed(store)] == expected
        catalog = backend.catalog()
    backend.rebuild()
    assert backend.catalog() == catalog
    async with backend.opened() as store:
        [delivery] = await owed(store)
        sent = e.DeliveryChanged(delivery_id=delivery.delivery_id, state="sent")
        assert await store.record_delivery("s1", sent, expect=delivery.state, at=UNTIL)
        assert await owed(store) == []


async def test_a_purge_waits_a_moment_for_a_turn_that_was_told_to_stop_and_then_takes_its_lease(store: Store) -> None:
    """A28, P2"""
    turn = await running(store)
    await delete(store)
    await purge(store)
    assert (await store.session("s1")).turn_state is TurnState.RUNNING
    await purge(store, now=UNTIL + LAST_WORDS_MS)
    with pytest.raises(Deleted):
        await store.session("s1")
    for event in (text("x"), ENDED):
        with pytest.raises(StaleEpoch):
            await append(store, turn, event)
    assert await store.open_turns(apart_from=0) == []


async def test_a_purge_that_stops_after_any_step_goes_on_and_the_catalog_is_the_one_of_the_log_at_each(tmp_path: Path) -> None:
    """A28: each step is a transaction of its own, of bounded size. Between any two everything may die."""
    backend, words = SqliteBackend(tmp_path), Words(7)
    async with backend.opened() as store:
        owner = await new_owner(store)
        await running(store, "kept", "other", owner=owner, key=CHAT)
        turn = await running(store, "s1", owner=owner)
        for number in range(0, 3 * PAGE_ROWS, 100):
            turn = await append(store, turn, *(text(words.new(), number + piece) for piece in range(100)))
        await append(store, turn, ENDED)
        await say(store, "s1", "again", key="k1")
        await delete(store)
    removed = [len(words.left_in(tmp_path))]
    more = True
    while more:
        async with backend.opened() as store:
            more = await store.purge(now=UNTIL, steps=1)
            first = await store.session("kept")
        catalog = backend.catalog()
        backend.rebuild()
        assert backend.catalog() == catalog
        async with backend.opened() as store:
            assert await store.session("kept") == first
            with pytest.raises(Deleted):
                await store.session("s1")
        removed.append(len(words.left_in(tmp_path)))
    assert removed[0] == len(words.tails) and removed[-1] == 0
    pages = [before - after for before, after in itertools.pairwise(removed) if before != after]
    assert len(pages) >= 3 and max(pages) <= PAGE_ROWS


async def test_retention_removes_the_oldest_first_and_only_what_nobody_needs(backend: Backend, store: Store) -> None:
    """Never one that is pinned, pending, queued, running or waiting, or that owes a reply."""
    owner = await new_owner(store)
    for number in range(3):
        await rested(store, f"old{number}", at=NOW - 1000 + number)
        await store.change_session(f"old{number}", e.SessionChanged(archived=number == 1), at=NOW)
    await new_session(store, "empty", at=NOW - 500)
    await rested(store, "new", at=NOW)
    for needed in ("pinned", "pending", "queued", "suspended"):
        await rested(store, needed, at=NOW - 2000)
    await store.change_session("pinned", e.SessionChanged(pinned=True), at=NOW)
    await store.change_session("pending", e.SessionChanged(resume_pending=True), at=NOW)
    await store.change_session("suspended", e.SessionChanged(suspended=True), at=NOW)
    await say(store, "queued", at=NOW - 2000)
    await running(store, "runs", "tr", owner=owner)
    await append(store, await running(store, "waits", "tw", owner=owner), question("q1", NOW + 10**9), at=NOW - 2000)
    turn = await running(store, "owes", "to", owner=owner, key=CHAT)
    await append(store, turn, e.MessageWritten(message_id="a", role="assistant", content="x", delivery_id="d"), ENDED, at=NOW - 2000)

    async def remove(limit: int) -> list[str]:
        return await store.remove_oldest(before=NOW, limit=limit, why="it is old", until=UNTIL, at=NOW)

    assert await remove(2) == ["suspended", "old0"]
    assert await remove(9) == ["old1", "old2", "empty"]
    assert await remove(9) == []
    assert {"new", "pinned", "pending", "queued", "runs", "waits", "owes"} <= set(await listed(store))
    deleted = (await whole_log(store, "old0"))[-1].event
    assert deleted == e.SessionDeleted(by="retention", purge_at=UNTIL, why="it is old")
    assert (await store.usage()).removing == 5
    await purge(store)
    [purged] = [e.decode(kind, body) for kind, body in backend.log() if kind == "session.purged"][:1]
    assert isinstance(purged, e.SessionPurged) and (purged.by, purged.why) == ("retention", "it is old")
    assert (await store.usage()).removing == 0
    assert await store.undelete_session("new", by="ann", at=NOW) is False


async def test_the_room_that_counts_shrinks_when_something_is_purged(store: Store) -> None:
    turn = await running(store)
    await append(store, turn, e.ToolOutput(call_id="c", text="x" * 500_000), ENDED)
    before = (await store.usage()).bytes
    await delete(store)
    await purge(store)
    assert (await store.usage()).bytes < before - 400_000


async def test_two_processes_that_purge_at_once_purge_once(tmp_path: Path) -> None:
    """A28: a retiring process keeps house as well."""
    backend, words = SqliteBackend(tmp_path), Words(3)
    async with backend.opened() as store, backend.opened() as other:
        owner = await new_owner(store)
        for session_id in ("s1", "s2", "s3"):
            turn = await running(store, session_id, f"t.{session_id}", owner=owner)
            for _ in range(2):
                turn = await append(store, turn, *(text(words.new(), piece) for piece in range(PAGE_ROWS)))
            await append(store, turn, ENDED)
            await say(store, session_id, words.new(), key=f"k.{session_id}")
            await delete(store, session_id)
        await asyncio.gather(purge(store), purge(other))
        await purge(store)
        assert words.left_in(tmp_path) == []
        log = [e.decode(kind, body) for kind, body in backend.log()]
        assert sorted(event.kind for event in log) == ["session.forgotten"] * (len(log) - 3) + ["session.purged"] * 3
        assert sum(event.done for event in log if isinstance(event, e.SessionForgotten)) == 3
    catalog = backend.catalog()
    backend.rebuild()
    assert backend.catalog() == catalog
