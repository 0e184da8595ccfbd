"""What of a spool enters the log: for every state in which its turn can be found (F2, P5, P7)."""

import itertools

import pytest

from holdfast.core import events as e
from holdfast.core import journals
from holdfast.core.effects import ToolOutcome
from holdfast.core.events import encode
from holdfast.core.journals import Found, Limits, Sight, State
from holdfast.core.plans.ship import Shipment, Snapshot, plan
from holdfast.core.spools import Spooled

AT = 1000
EVENTS = (e.Text(offset=0, text="one"), e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="x"), e.Text(offset=3, text=" two"))
ITEMS = tuple(Spooled(place, 1, 7, event.kind, encode(event)) for place, event in enumerate(EVENTS, 5))
WHOLE = Sight(found=Found.WHOLE, size=44)


def found(*stored: int, current: bool = False, over: bool = False, pruned: bool = False) -> Snapshot:
    late = journals.unexpected("s", "t", 3, at=AT)
    return Snapshot(stored=frozenset(stored), current=current, over=over, pruned=pruned, late=late)


def shipped(snapshot: Snapshot, sight: Sight = WHOLE) -> Shipment:
    return plan(snapshot, ITEMS, sight, limits=Limits(), at=AT)


@pytest.mark.parametrize("stored", [stored for size in range(4) for stored in itertools.combinations((5, 6, 7), size)])
def test_what_is_stored_already_is_never_put_again(stored: tuple[int, ...]) -> None:
    for current, over in ((True, False), (False, False), (False, True)):
        shipment = shipped(found(*stored, current=current, over=over))
        assert [item.position for item in shipment.events] == [place for place in (5, 6, 7) if place not in stored]
        assert shipment.in_place is current


def test_while_its_lease_is_the_newest_it_continues_the_turn_and_nothing_else_is_recorded() -> None:
    assert shipped(found(current=True)) == Shipment(events=ITEMS, in_place=True)


@pytest.mark.parametrize(
    ("over", "pruned", "places"),
    ((False, False, [5, 6, 7]), (True, False, [5, 6, 7]), (True, True, [6]), (False, True, [5, 6, 7])),
)
def test_pieces_that_were_removed_on_purpose_do_not_come_back_and_results_do(over: bool, pruned: bool, places: list[int]) -> None:
    shipment = shipped(found(over=over, pruned=pruned))
    assert [item.position for item in shipment.events] == places and not shipment.in_place
    [change] = shipment.changes
    assert (change.state, change.size, change.call_ids) == ("recovered", 44, ("c1",))
    assert change.text == ("one two" if 5 in places else "") and shipment.state is State.RECOVERED


def test_a_late_journal_that_brings_nothing_new_changes_nothing() -> None:
    assert shipped(found(5, 6, 7)) == Shipment(events=(), in_place=False, state=State.NEUTRAL)


def test_a_journal_that_nobody_waits_for_is_neutral_until_something_arrives() -> None:
    late = journals.unexpected("s", "t", 3, at=AT)
    assert (late.stream_id, late.state, late.tries, late.filled, late.first_seen, late.changed_at) == ("t.3", "neutral", 0, False, AT, AT)
