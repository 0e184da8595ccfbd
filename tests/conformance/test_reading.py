"""Reading the log: order, pages, cursors, and what happens when its bytes were changed (P7, F8)."""

import asyncio

import msgspec
import pytest

from holdfast.core import events as e
from holdfast.core.effects import Effect
from holdfast.core.errors import HoldfastError
from holdfast.core.events import Damaged, Logged
from holdfast.core.history import History
from holdfast.core.turns import Outcome
from holdfast.ports.store import Store
from tests.conformance.backends import BEGINNING, COLUMNS, Backend
from tests.conformance.steps import ANSWER, ENDED, NOW, append, kinds, new_owner, new_session, running, say, start, text, whole_log

pytestmark = pytest.mark.anyio

# Where the session `conversation` makes has what: one event of each class.
CREATED, ACCEPTED, STARTED, USER, FIRST, SECOND, WRITTEN, ENDED_AT = range(1, 9)


async def conversation(store: Store, session_id: str = "s1") -> list[Logged]:
    """Eight events: a message, a turn with two pieces, its answer."""
    turn = await running(store, session_id, f"{session_id}.t", owner=await new_owner(store))
    turn = await append(store, turn, text("one "), text("two", 4))
    await append(store, turn, e.MessageWritten(message_id=f"{session_id}.a", role="assistant", content="one two"), ENDED)
    return await whole_log(store, session_id)


async def test_a_reader_sees_the_same_from_every_cursor_in_every_page_size(store: Store) -> None:
    """P7"""
    whole = await conversation(store)
    assert [item.seq for item in whole] == list(range(1, 9))
    for after in range(-2, 10):
        for limit in (1, 3, 8, 1000, 10**9):
            assert await store.events("s1", after=after, limit=limit) == whole[max(0, after) : max(0, after) + limit]
    for after in (2**62, 2**63, 2**100):
        assert await store.events("s1", after=after, limit=10) == []
    assert await store.events("s1", after=-(2**100), limit=2) == whole[:2]
    assert await store.events("s1", after=0, limit=0) == await store.events("s1", after=0, limit=-1) == []


async def test_records_are_the_log_without_its_pieces(store: Store) -> None:
    whole = await conversation(store)
    records = [item for item in whole if not item.event.stream]
    assert kinds(records) == ["session.created", "message.accepted", "turn.started", "message.written", "message.written", "turn.ended"]
    assert await store.records("s1", after=0, limit=100) == records
    assert await store.records("s1", after=FIRST, limit=1) == [whole[WRITTEN - 1]]


async def test_changes_name_every_session_that_changed_since_a_cursor(backend: Backend, store: Store) -> None:
    """Whoever wrote, and however often: also a process that opened the store later."""
    await conversation(store, "s1")
    cursor = (await store.changes(None)).cursor
    assert (await store.changes(cursor)).newest == {}
    await conversation(store, "s2")
    async with backend.opened() as other:
        await say(other, "s1")
    found = await store.changes(cursor)
    assert found.newest == {"s1": 9, "s2": 8} and not found.page and not found.more
    await say(store, "s2")
    again = await store.changes(found.cursor)
    assert again.newest == {"s2": 9}
    assert (await store.changes(again.cursor)).newest == {} and (await store.changes(again.cursor)).cursor == again.cursor


async def test_changes_bring_the_events_of_the_sessions_asked_for_behind_what_is_known_of_them(store: Store) -> None:
    one = await conversation(store, "s1")
    cursor = (await store.changes(None)).cursor
    two = await conversation(store, "s2")
    await conversation(store, "s3")
    await say(store, "s1")
    found = await store.changes(cursor, behind={"s1": len(one), "s2": 3, "s4": 0})
    assert [item for item in found.page if item.session_id == "s2"] == two[3:]
    assert [item for item in found.page if item.session_id == "s1"] == (await whole_log(store, "s1"))[len(one) :]
    assert len(found.page) == len(two[3:]) + 1
    assert found.newest == {"s1": 9, "s2": 8, "s3": 8}
    assert not (await store.changes(found.cursor, behind={"s1": 9, "s2": 8})).page


async def test_changes_come_in_pages_and_none_is_missed_or_comes_twice(store: Store) -> None:
    cursor = (await store.changes(None)).cursor
    turns = [await running(store, f"s{number}", f"t{number}") for number in range(3)]
    for turn in turns:
        await append(store, turn, *(text("x", piece) for piece in range(900)))
    behind = {f"s{number}": 0 for number in range(3)}
    seen: dict[str, list[int]] = {name: [] for name in behind}
    more = True
    while more:
        found = await store.changes(cursor, behind=behind)
        assert len(found.page) <= 1000
        for item in found.page:
            seen[item.session_id].append(item.seq)
            behind[item.session_id] = item.seq
        cursor, more = found.cursor, found.more
    assert seen == {name: list(range(1, 905)) for name in behind}
    counted: set[str] = set()
    cursor, more = BEGINNING, True
    while more:
        found = await store.changes(cursor)
        counted |= found.newest.keys()
        cursor, more = found.cursor, found.more
    assert counted == behind.keys()


@pytest.mark.parametrize("seq", [CREATED, ACCEPTED, FIRST, WRITTEN, ENDED_AT])
@pytest.mark.parametrize("column", COLUMNS)
async def test_a_changed_byte_is_reported_in_its_place_and_takes_nothing_else_down(backend: Backend, column: str, seq: int) -> None:
    """One byte of each column, of an event of each class. The session reads on, the others are untouched, the finding is kept once, and
    the session can be written to."""
    async with backend.opened() as store:
        whole, other = await conversation(store, "s1"), await conversation(store, "s2")
        backend.change_byte("s1", seq, column)
        found = await whole_log(store, "s1")
        assert [item.seq for item in found] == list(range(1, 9))
        assert [item for item in found if item.seq != seq] == [item for item in whole if item.seq != seq]
        if column == "id":  # Its place in the log of all sessions is no part of what it says.
            assert found[seq - 1].event == whole[seq - 1].event
        else:
            assert isinstance(found[seq - 1].event, Damaged)
            assert found[seq - 1].session_id == "s1"
            # A record changed into a piece by the database itself is no longer in the index of records. Damage on disk leaves that alone.
            if seq not in (FIRST, SECOND) and column not in ("session", "seq", "stream"):
                assert any(item.seq == seq and isinstance(item.event, Damaged) for item in await store.records("s1", after=0, limit=10))
        assert await whole_log(store, "s2") == other
        changed = await store.changes(BEGINNING, behind={"s1": 0, "s2": 0})
        assert [item for item in changed.page if item.session_id == "s2"] == other
        assert all(item.seq <= 8 for item in changed.page) and set(changed.newest.values()) <= set(range(9))
        assert set((await store.changes(BEGINNING)).newest.items()) <= {("s1", 8), ("s2", 8)}
        for _ in range(3):
            await whole_log(store, "s1")
            await store.changes(BEGINNING, behind={"s1": 0})
        quarantined = backend.quarantine()
        if column != "id":
            assert quarantined.count(("s1", seq)) == 1
            assert len(quarantined) == len(set(quarantined)) <= 2  # One that lost its place is found where it should be and where it is.
        while await store.index_search(limit=100):
            pass
        await say(store, "s1")
        turn = await start(store, "s1", "t2", owner=await new_owner(store))
        await append(store, turn, *(text("x", n) for n in range(40)))
        assert [item.seq for item in await whole_log(store, "s1")][-1] == 8 + 3 + 40
    async with backend.opened() as store:
        assert await whole_log(store, "s2") == other
        assert len(await whole_log(store, "s1")) == 51
        assert backend.quarantine() == quarantined or column in ("session", "seq")


@pytest.mark.parametrize("taken", [11, 12, 13, 14])
async def test_a_row_that_was_moved_into_the_future_of_its_log_gives_way(backend: Backend, store: Store, taken: int) -> None:
    """Its session goes on: what stands where the next event belongs, and is none, goes into quarantine. Pieces are written together."""
    await conversation(store)
    backend.move("s1", SECOND, taken)
    assert [item.seq for item in await store.events("s1", after=8, limit=10)] == []
    await say(store)
    turn = await start(store, "s1", "t2", owner=await new_owner(store))
    turn = await append(store, turn, text("one"), text("two", 3), text("three", 6))
    log = await whole_log(store)
    assert [item.seq for item in log] == list(range(1, 15))
    assert [item.seq for item in log if isinstance(item.event, Damaged)] == [SECOND]
    assert [item.event.text for item in log[-3:] if isinstance(item.event, e.Text)] == ["one", "two", "three"]
    assert [item.position for item in log[-3:]] == [turn.position - 3, turn.position - 2, turn.position - 1]
    assert ("s1", taken) in backend.quarantine()


@pytest.mark.parametrize("lost", [(CREATED,), (FIRST,), (ENDED_AT,), (ACCEPTED, STARTED, USER), (SECOND, ENDED_AT)])
async def test_a_missing_event_is_reported_in_its_place(backend: Backend, store: Store, lost: tuple[int, ...]) -> None:
    whole = await conversation(store)
    for seq in lost:
        backend.lose("s1", seq)
    for page in (1, 2, 1000):
        found = await whole_log(store, page=page)
        assert [item.seq for item in found] == list(range(1, 9))
        assert [item.seq for item in found if isinstance(item.event, Damaged)] == list(lost)
        assert [item for item in found if item.seq not in lost] == [item for item in whole if item.seq not in lost]
    assert backend.quarantine() == [("s1", seq) for seq in lost]


async def test_a_message_that_was_damaged_in_the_inbox_still_gets_its_turn(backend: Backend, store: Store) -> None:
    """P1: it cannot be read, but it is answered for."""
    await new_session(store)
    await say(store, message_id="m1")
    backend.change_byte("s1", ACCEPTED, "body")
    await start(store, "s1", "t1", owner=await new_owner(store))
    written = (await whole_log(store))[-1].event
    assert isinstance(written, e.MessageWritten) and written.message_id == "m1" and "damaged" in written.text


async def test_damage_can_be_read_while_nothing_can_be_written(backend: Backend) -> None:
    """A full disk must not take reading away."""
    async with backend.limited("pages") as (store, room):
        await conversation(store)
        backend.change_byte("s1", FIRST, "body")
        await room.fill()
        for _ in range(200):
            try:
                await say(store, text="x" * 2000, max_waiting=1000)
            except HoldfastError:
                break
        assert store.degraded
        assert isinstance((await store.events("s1", after=0, limit=8))[FIRST - 1].event, Damaged)


async def test_pruned_pieces_are_gone_as_a_record_and_nothing_looks_damaged(backend: Backend, store: Store) -> None:
    """P7: every old cursor reads on; what was pruned is known, not guessed."""
    whole = await conversation(store)
    untouched = await conversation(store, "s2")
    await say(store, "s2", at=NOW)
    await start(store, "s2", "t2", owner=await new_owner(store))  # A session at work is left alone.
    assert await store.prune_streams(before=NOW, at=NOW, limit=10) == 0
    assert await store.prune_streams(before=NOW + 1, at=NOW + 5, limit=10) == 2
    assert await store.prune_streams(before=NOW + 1, at=NOW + 5, limit=10) == 0
    session = await store.session("s1")
    assert (session.pruned_seq, session.seq) == (8, 9)
    left = [item for item in whole if not item.event.stream]
    pruned = e.JournalPruned(through=8)
    for after in range(10):
        found = await store.events("s1", after=after, limit=100)
        assert [item for item in found if item.seq <= 8] == [item for item in left if item.seq > after]
        assert [item.event for item in found if item.seq > 8] == ([pruned] if after < 9 else [])
    assert await store.records("s1", after=0, limit=100) == await store.events("s1", after=0, limit=100)
    assert (await whole_log(store, "s2"))[:8] == untouched
    assert backend.quarantine() == []
    await store.change_session("s1", e.SessionChanged(title="later"), at=NOW + 6)
    assert await store.prune_streams(before=NOW + 10, at=NOW + 10, limit=10) == 0  # Nothing new to prune.
    assert (await store.session("s1")).seq == 10


async def test_what_comes_after_a_pruning_is_checked_and_pruned_again(backend: Backend, store: Store) -> None:
    await conversation(store)
    await store.prune_streams(before=NOW + 1, at=NOW, limit=10)
    await say(store)
    turn = await start(store, "s1", "t2", owner=await new_owner(store))
    await append(store, turn, text("a"), text("b", 1), ENDED, at=NOW + 50)
    log = await whole_log(store)
    pieces = [item.seq for item in log if item.event.stream]
    backend.lose("s1", pieces[0])
    assert [item.seq for item in await whole_log(store) if isinstance(item.event, Damaged)] == [pieces[0]]
    assert await store.prune_streams(before=NOW + 51, at=NOW + 60, limit=10) == 1
    assert not [item for item in await whole_log(store) if isinstance(item.event, Damaged)]


async def test_a_long_journal_is_pruned_in_pieces(store: Store) -> None:
    """No single write holds the others up for long."""
    turn = await running(store)
    for _ in range(21):
        turn = await append(store, turn, *(text("x", n) for n in range(1000)))
    await append(store, turn, ENDED)
    assert await store.prune_streams(before=NOW + 1, at=NOW, limit=10) == 21_000
    log = await store.events("s1", after=0, limit=1000)
    assert [item.event.through for item in log if isinstance(item.event, e.JournalPruned)] == sorted(
        item.event.through for item in log if isinstance(item.event, e.JournalPruned)
    )
    assert kinds(log).count("text") == 0 and kinds(log).count("damaged") == 0
    assert await store.prune_streams(before=NOW + 1, at=NOW, limit=10) == 0


async def test_a_turn_that_waits_keeps_its_journal(store: Store) -> None:
    turn = await running(store)
    cut = await append(store, turn, text("kept"), e.TurnInterrupted(reason="crash", restarts=1))
    assert await store.prune_streams(before=NOW + 10**9, at=NOW, limit=10) == 0
    await append(store, cut, e.TurnEnded(outcome=Outcome.SET_ASIDE))
    assert await store.prune_streams(before=NOW + 10**9, at=NOW, limit=10) == 1


async def test_reading_an_open_turns_journal_costs_one_page_whatever_lies_before(store: Store) -> None:
    turn = await running(store)
    for _ in range(3):
        turn = await append(store, turn, *(text("x", n) for n in range(900)))
    session = await store.session("s1")
    assert session.seq == 4 + 2700
    last = await store.events("s1", after=session.seq - 10, limit=1000)
    assert [item.seq for item in last] == list(range(session.seq - 9, session.seq + 1))


async def test_a_page_ends_once_it_is_large_and_the_next_one_continues_behind_it(store: Store) -> None:
    """P8: what is done with a page takes a few milliseconds, whatever is in it."""
    turn = await running(store)
    await append(store, turn, *(e.ToolOutput(call_id="c", text=str(number) * 100_000) for number in range(8)))
    last = (await store.session("s1")).seq
    seen: list[Logged] = []
    page = await store.events("s1", after=0, limit=1000)
    while page.more:
        assert 0 < sum(len(item.body) for item in page) <= e.PAGE_BYTES + 100_100
        seen += page
        page = await store.events("s1", after=page[-1].seq, limit=1000)
    assert [item.seq for item in (*seen, *page)] == list(range(1, last + 1))
    changed: list[Logged] = []
    found = await store.changes(BEGINNING, behind={"s1": 0})
    while found.more:
        changed += found.page
        found = await store.changes(found.cursor, behind={"s1": changed[-1].seq})
    assert [*changed, *found.page] == [*seen, *page]


async def test_large_events_are_made_ready_where_they_are_read_and_small_ones_are_not(store: Store) -> None:
    turn = await running(store)
    await append(store, turn, e.Text(offset=0, text="x" * 100_000), e.Text(offset=100_000, text="y"))
    changed = await store.changes(BEGINNING, behind={"s1": 0}, make=_made)
    for page in (await store.events("s1", after=0, limit=100, make=_made), changed.page):
        [large] = [item for item in page if len(item.body) > 100_000]
        assert page.made == {("s1", large.seq): b"made of %d" % large.seq}


def _made(item: Logged) -> bytes:
    return b"made of %d" % item.seq


async def test_a_transcript_is_the_records_of_what_is_over_and_every_event_of_what_is_open(store: Store) -> None:
    """However many pages it takes."""
    turn = await running(store)
    answer = e.MessageWritten(message_id="t1.answer", role="assistant", content="one")
    await append(store, turn, *(e.Text(offset=number, text="-") for number in range(1500)), answer, ENDED)
    await say(store)
    turn = await start(store, "s1", "t2", owner=turn.lease.owner)
    await append(store, turn, *(e.Text(offset=1000 * number, text="+" * 1000) for number in range(1200)))
    session = await store.session("s1")
    found = await store.transcript(session)
    assert [message.text for message in found.messages] == ["hello", "one", "hello", "+" * 1_200_000]
    assert found.seq == session.seq


async def test_what_was_read_of_a_conversation_grows_by_what_is_new(store: Store) -> None:
    """Also if it was read while a turn ran that is over since, and then by its records alone."""
    turn = await running(store)
    turn = await append(store, turn, e.Text(offset=0, text="on"), e.Text(offset=2, text="e"))
    known = await store.transcript(await store.session("s1"))
    assert [message.text for message in known.messages] == ["hello", "one"]
    await append(store, turn, e.Text(offset=3, text="!"), e.MessageWritten(message_id="t1.answer", role="assistant", content="one!"), ENDED)
    await say(store)
    turn = await start(store, "s1", "t2", owner=turn.lease.owner)
    await append(store, turn, e.Text(offset=0, text="two"))
    session = await store.session("s1")
    grown, whole = await store.transcript(session, known=known), await store.transcript(session)
    assert grown is known and grown.seq == whole.seq == session.seq
    assert [message.text for message in grown.messages] == [message.text for message in whole.messages] == ["hello", "one!", "hello", "two"]


async def test_conversations_that_are_read_at_once_leave_room_for_short_reads(store: Store) -> None:
    """P8: somebody who wants to know something short waits for a slice of one conversation, not for pages of all of them."""
    sessions = []
    for number in range(4):
        turn = await running(store, f"s{number}", f"t{number}")
        for _ in range(3):
            turn = await append(store, turn, *(text("x", place) for place in range(1000)))
        sessions.append(await store.session(f"s{number}"))
    folding = asyncio.gather(*(store.transcript(session) for session in sessions))
    short = 0
    while not folding.done():
        await store.session("s0")
        short += 1
    assert [transcript.seq for transcript in await folding] == [session.seq for session in sessions]
    assert short > 30


async def summarised(store: Store) -> int:
    """Four turns, of which the third is running when the fourth message comes; then it sums the first two up. Gives the place from which
    it, and what follows, is read.
    """
    owner = await new_owner(store)
    await append(store, await running(store, "s1", "t1", owner=owner), text("one"), ANSWER, ENDED)
    await say(store, text="second")
    turn = await start(store, "s1", "t2", owner=owner)
    await say(store, text="third")
    await append(store, turn, text("two"), e.MessageWritten(message_id="t2.answer", role="assistant", content="two"), ENDED)
    turn = await start(store, "s1", "t3", owner=owner)
    await say(store, text="fourth")
    compacted = e.ContextCompacted(through=2, summary="what was said")
    recall = (await store.transcript(await store.session("s1"))).recall(compacted)
    compacted = msgspec.structs.replace(compacted, recall=recall)
    await append(store, turn, compacted, e.MessageWritten(message_id="t3.answer", role="assistant", content="three"), ENDED)
    await append(store, await start(store, "s1", "t4", owner=owner), text("fo"))
    return recall


async def test_what_a_summary_stands_for_is_not_read_for_an_agent(store: Store) -> None:
    """A conversation may be long; what its next turn costs is what its agent is given. People still read all of it."""
    recall = await summarised(store)
    session = await store.session("s1")
    whole, short = await store.transcript(session), await store.transcript(session, whole=False)
    accepted = {item.event.text: item.seq for item in await whole_log(store, "s1") if isinstance(item.event, e.MessageAccepted)}
    assert (whole.behind, short.behind) == (0, recall) and recall == accepted["third"] - 1
    assert [turn.id for turn in short.turns] == ["t3", "t4"] and list(short.queued) == []
    assert list(History(short)) == list(History(whole)) and short.answer_text == "fo"
    assert [message.text for message in whole.messages if message.role == "user"] == ["hello", "second", "third", "fourth"]
    await say(store, text="fifth")
    session = await store.session("s1")
    longer = await store.transcript(session, known=short, whole=False)
    assert [message.text for message in longer.queued.values()] == ["fifth"]


async def test_a_conversation_whose_summary_is_damaged_is_read_whole(backend: Backend) -> None:
    async with backend.opened() as store:
        await summarised(store)
        [seq] = [item.seq for item in await whole_log(store, "s1") if isinstance(item.event, e.ContextCompacted)]
        backend.change_byte("s1", seq, "body")
        short = await store.transcript(await store.session("s1"), whole=False)
        assert short.behind == 0 and [turn.id for turn in short.turns] == ["t1", "t2", "t3", "t4"]


async def test_a_conversation_whose_first_turn_behind_its_summary_is_damaged_is_read_whole(backend: Backend) -> None:
    """The summary stands in that very turn: an agent would be given neither."""
    async with backend.opened() as store:
        await summarised(store)
        found = await whole_log(store, "s1")
        [seq] = [item.seq for item in found if isinstance(item.event, e.TurnStarted) and item.turn_id == "t3"]
        backend.change_byte("s1", seq, "body")
        session = await store.session("s1")
        short, whole = await store.transcript(session, whole=False), await store.transcript(session)
        assert list(History(short)) == list(History(whole)) and list(short.queued) == list(whole.queued) == []


async def test_what_a_turn_does_now_is_known_however_much_it_prints(store: Store) -> None:
    turn = await running(store)
    turn = await append(store, turn, e.ToolStarted(call_id="c1", name="terminal", arguments={}, effect=Effect.UNSAFE))
    await append(store, turn, *(e.ToolOutput(call_id="c1", text=f"line {number}\n") for number in range(100)), at=NOW + 9)
    [found] = await store.working(limit=5)
    assert (found.phase, found.name, found.since, found.signed_at) == ("tool", "terminal", NOW, NOW + 9)
