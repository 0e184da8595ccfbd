"""Journals that are late: what a look leads to, for every way in which one can be found (F1-F7)."""

import itertools

import msgspec
import pytest

from holdfast.core import events as e
from holdfast.core import journals
from holdfast.core.effects import ToolOutcome
from holdfast.core.errors import Deleted, NotFound
from holdfast.core.events import encode
from holdfast.core.journals import Fate, Found, Late, Limits, Sight, State
from holdfast.core.spools import Contents, Header, Spooled

LIMITS = Limits()
T0 = 1_000_000_000
HOUR = 3_600_000
LATE = Late(
    session_id="s",
    turn_id="t",
    epoch=3,
    state=State.RECOVERING,
    tries=0,
    size=0,
    filled=False,
    first_seen=T0,
    changed_at=T0,
)
UNREADABLE, PARTLY, ARRIVING, WHOLE = (Sight(found=found) for found in Found)
GAVE = Sight(found=Found.WHOLE, new=True)


def late(**more: object) -> Late:
    return msgspec.structs.replace(LATE, **more)


def test_a_whole_journal_that_gave_something_is_recovered() -> None:
    """F2: also if what it gave had arrived earlier."""
    assert journals.judge(LATE, GAVE, T0 + 1, LIMITS) == (State.RECOVERED, 0)
    assert journals.judge(late(filled=True, tries=5), WHOLE, T0 + 1, LIMITS) == (State.RECOVERED, 0)
    assert journals.judge(late(state=State.RECOVERED, filled=True), WHOLE, T0 + 1, LIMITS) is None


def test_a_journal_that_still_arrives_uses_no_try_however_often_it_is_read() -> None:
    """F4, F7"""
    for number in range(100):
        assert journals.judge(LATE, ARRIVING, T0 + number * LIMITS.every_ms, LIMITS) is None
    partly = msgspec.structs.replace(ARRIVING, new=True, size=9)
    assert journals.judge(late(tries=2), partly, T0 + 1, LIMITS) == (State.RECOVERING, 2)


@pytest.mark.parametrize("sight", (UNREADABLE, PARTLY, WHOLE), ids=("unreadable", "damaged", "sealed without output"))
def test_a_look_in_vain_uses_a_try_and_the_last_one_makes_the_row_neutral(sight: Sight) -> None:
    """F5: twelve tries, ten seconds apart."""
    known, now, tried = LATE, T0, []
    while known.state is State.RECOVERING:
        judged = journals.judge(known, sight, now, LIMITS)
        if judged is not None:
            known = late(state=judged[0], tries=judged[1], changed_at=now)
            tried.append((now - T0, *judged))
        now += 1000
    assert [at for at, _, _ in tried] == [number * LIMITS.every_ms for number in range(LIMITS.tries)]
    assert [tries for _, _, tries in tried] == [*range(1, LIMITS.tries), 0]
    assert tried[-1][1] is State.NEUTRAL


def test_twelve_reads_in_a_second_are_one_try() -> None:
    """F6: the budget is time, not the number of page views."""
    known = LATE
    for number in range(12):
        if judged := journals.judge(known, UNREADABLE, T0 + number * 80, LIMITS):
            known = late(tries=judged[1], changed_at=T0 + number * 80)
    assert known.tries == 1


def test_growth_uses_no_try() -> None:
    """F6"""
    known = late(tries=3, size=10, changed_at=T0)
    grown = Sight(found=Found.UNREADABLE, size=20)
    assert journals.judge(known, grown, T0 + HOUR, LIMITS) == (State.RECOVERING, 3)
    assert journals.judge(late(tries=3, size=20), grown, T0 + HOUR, LIMITS) == (State.RECOVERING, 4)


def test_past_the_give_up_time_nobody_looks_and_the_row_is_neutral() -> None:
    """F6"""
    day = T0 + LIMITS.give_up_ms
    assert not journals.gives_up(LATE, day - 1, LIMITS) and journals.gives_up(LATE, day, LIMITS)
    assert not journals.gives_up(late(state=State.RECOVERED), day, LIMITS)
    assert journals.judge(LATE, UNREADABLE, day, LIMITS) == (State.NEUTRAL, 0)
    assert journals.judge(LATE, msgspec.structs.replace(UNREADABLE, size=9), day, LIMITS) == (State.NEUTRAL, 0)


def test_a_row_that_waits_no_more_changes_only_for_something_new() -> None:
    """F2: an operator may ship a journal that was given up; nothing of it is lost."""
    for state in (State.RECOVERED, State.NEUTRAL):
        known = late(state=state)
        for sight in (UNREADABLE, PARTLY, ARRIVING, WHOLE):
            assert journals.judge(known, sight, T0 + HOUR, LIMITS) is None
            new = msgspec.structs.replace(sight, new=True)
            assert journals.judge(known, new, T0 + HOUR, LIMITS) == (State.RECOVERED, 0)


def test_no_combination_invents_output_or_forgets_some() -> None:
    """F5, F7: a row says recovered only if something arrived, and whatever is new is recorded at once."""
    for state, filled, found, new, tries, size, passed in itertools.product(
        State, (False, True), Found, (False, True), (0, 11), (0, 9), (0, 5_000, HOUR, 100 * HOUR)
    ):
        known = late(state=state, filled=filled, tries=tries)
        judged = journals.judge(known, Sight(found=found, size=size, new=new), T0 + passed, LIMITS)
        assert judged is not None or not new
        if judged is not None and judged[0] is State.RECOVERED:
            assert new or filled
        if judged is not None and judged[0] is State.NEUTRAL:
            assert not new and state is State.RECOVERING


def test_a_look_is_due_after_a_while_and_not_before() -> None:
    """F3, F6"""
    every = LIMITS.every_ms
    assert journals.is_due(LATE, None, T0, LIMITS)
    assert not journals.is_due(LATE, T0, T0 + every - 1, LIMITS)
    assert journals.is_due(LATE, T0, T0 + every, LIMITS)
    tried = late(tries=1, changed_at=T0)
    assert not journals.is_due(tried, None, T0 + every - 1, LIMITS) and journals.is_due(tried, None, T0 + every, LIMITS)
    assert not journals.is_due(late(state=State.NEUTRAL), None, T0 + HOUR, LIMITS)
    assert journals.is_due(tried, T0, T0 - HOUR, LIMITS)  # The clock was set back.


@pytest.mark.parametrize(
    ("sealed", "damaged", "settled", "found"),
    (
        (False, 0, False, Found.ARRIVING),
        (False, 1, False, Found.ARRIVING),
        (False, 0, True, Found.WHOLE),
        (True, 0, False, Found.WHOLE),
        (True, 2, False, Found.PARTLY),
        (False, 2, True, Found.PARTLY),
    ),
)
def test_a_journal_is_complete_when_it_says_so_or_has_not_grown_for_a_while(
    sealed: bool, damaged: int, settled: bool, found: Found
) -> None:
    header = Header(session_id="s", turn_id="t", epoch=3, owner="o")
    assert journals.seen(Contents(header, (), sealed, 0, damaged), settled=settled) is found
    assert journals.has_settled(changed_at=T0, now=T0 + journals.SETTLED_MS)
    assert not journals.has_settled(changed_at=T0, now=T0 + journals.SETTLED_MS - 1)


def test_what_arrived_is_told_with_its_text_and_calls_step_by_step() -> None:
    """F2, F8: two steps with the same text are two texts; what a later piece writes over is gone."""
    events = (
        *(e.Text(offset=4, text="two ", step=0), e.Text(offset=8, text="thre", step=0), e.Text(offset=8, text="three", step=0)),
        *(e.TurnAlive(), e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="x")),
        e.Text(offset=0, text="two three", step=1),
    )
    items = [Spooled(place, 1, 7, event.kind, encode(event)) for place, event in enumerate(events)]
    [changed] = journals.changed(LATE, (State.RECOVERED, 0), 44, items)
    assert changed == e.JournalChanged(
        turn_id="t", stream_id="t.3", state="recovered", size=44, text="two three\n\ntwo three", call_ids=("c1",)
    )


@pytest.mark.parametrize("more", (-1, 0, 1, journals.RECORD_CHARS + 1))
def test_a_long_text_that_arrives_late_is_told_in_records_of_a_bounded_length(more: int) -> None:
    """P8"""
    text = "\U0001f600" * (journals.RECORD_CHARS + more)
    event, done = e.Text(offset=0, text=text), e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="x")
    items = [Spooled(1, 1, 7, event.kind, encode(event)), Spooled(2, 1, 7, done.kind, encode(done))]
    changes = journals.changed(LATE, (State.RECOVERED, 0), 44, items)
    assert "".join(change.text for change in changes) == text
    assert all(0 < len(change.text) <= journals.RECORD_CHARS for change in changes)
    assert [change.call_ids for change in changes] == [("c1",), *[()] * (len(changes) - 1)]
    assert {(change.stream_id, change.state, change.size) for change in changes} == {("t.3", "recovered", 44)}


DELETED, UNKNOWN = Deleted("s1", undoable=False), NotFound("turn", "t1")


@pytest.mark.parametrize(
    ("found", "refusal", "fate"),
    (
        (Found.WHOLE, None, Fate.DONE),
        (Found.PARTLY, None, Fate.DAMAGED),
        (Found.UNREADABLE, None, Fate.DAMAGED),
        (Found.ARRIVING, None, Fate.ARRIVING),
        *((found, DELETED, Fate.DONE) for found in Found),
        *((found, UNKNOWN, Fate.FOREIGN) for found in Found),
    ),
)
def test_the_file_of_a_journal_goes_only_when_all_of_it_is_stored_or_its_session_is_deleted(
    found: Found, refusal: NotFound | None, fate: Fate
) -> None:
    assert journals.fate(found, refusal) is fate


@pytest.mark.parametrize(
    ("hidden", "owner", "may"),
    (
        ((), "o_1", False),
        ((), None, False),
        (("o_1",), "o_1", True),
        (("o_2",), "o_1", False),
        (("o_2", "o_1"), "o_1", True),
        (("o_2",), None, True),  # Nobody knows its name any more.
        ((None,), "o_1", True),
    ),
)
def test_a_spool_may_lie_only_where_its_owner_wrote(hidden: tuple[str | None, ...], owner: str | None, may: bool) -> None:
    assert journals.may_be_among(hidden, owner) is may
