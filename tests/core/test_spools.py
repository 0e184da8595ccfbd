"""A spool as bytes: what is written whole is read whole, and whatever a kill or a disk does to it, nothing is invented."""

import itertools

import pytest

from holdfast.core import spools
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.events import Reasoning, Text, ToolFinished, ToolOutput, ToolStarted, TurnAlive, TurnEnded, encode
from holdfast.core.spools import FOR_RESULTS, TURN_BYTES, Header, Sealed, Spooled, Unreadable, frame, frames, read
from holdfast.core.turns import Outcome

HEADER = Header(session_id="s_1", turn_id="t_1", epoch=3, owner="o_1")
# What some readers take for the end of a line, half of a frame's mark, and a text that is there twice.
TEXTS = ("one ", "one ", "\u2028\u2029\u0085", "ä😀", "\\u0000HF\\u0001", spools.MARK.decode("latin-1"))


def spooled(position: int, text: str) -> Spooled:
    event = Text(offset=0, text=text)
    return Spooled(position, 1, 1000 + position, event.kind, encode(event))


EVENTS = tuple(spooled(position, text) for position, text in enumerate(TEXTS, 5))
PARTS = [frame(HEADER), *map(frame, EVENTS)]


def test_what_is_written_is_read_in_order_with_its_places() -> None:
    """F8: line ends of any kind and repeated texts are only bytes here."""
    found = read(frames((HEADER, *EVENTS)), "t_1.3")
    assert (found.header, found.events) == (HEADER, EVENTS)
    assert (found.sealed, found.torn, found.damaged) == (False, 0, 0)
    assert [event.text for each in found.events if isinstance(event := each.event, Text)] == list(TEXTS)
    assert found.header.stream_id == "t_1.3"


def test_a_spool_that_is_cut_anywhere_has_exactly_what_was_written_whole() -> None:
    """F8: a torn last record, a cut multi-byte character."""
    whole = frames((HEADER, *EVENTS))
    ends = list(itertools.accumulate(map(len, PARTS)))
    for length in range(ends[0], len(whole) + 1):
        found = read(whole[:length], "x")
        count = sum(end <= length for end in ends) - 1
        assert found.events == EVENTS[:count]
        assert found.torn == length - ends[count]
        assert not found.damaged


@pytest.mark.parametrize("tail", (b"\0" * 700, b"\xff" * 40, spools.MARK, spools.MARK + b"\xff\xff\xff\xff" * 3))
def test_what_a_power_cut_leaves_behind_the_end_does_not_count(tail: bytes) -> None:
    """F8"""
    found = read(frames((HEADER, *EVENTS)) + tail, "x")
    assert (found.events, found.torn, found.damaged) == (EVENTS, len(tail), 0)


def test_a_changed_byte_loses_one_event_and_is_reported_unless_it_is_the_last() -> None:
    """F8: what stands behind the damage is found by its own mark, in its own place."""
    for number, place in [(part, place) for part in range(1, len(PARTS)) for place in range(len(PARTS[part]))]:
        spoilt = bytearray(PARTS[number])
        spoilt[place] ^= 0x40
        found = read(b"".join((*PARTS[:number], bytes(spoilt), *PARTS[number + 1 :])), "x")
        assert found.events == EVENTS[: number - 1] + EVENTS[number:]
        last = number == len(PARTS) - 1
        assert (bool(found.torn), found.damaged) == (last, 0 if last else 1)


def test_a_spool_without_its_beginning_cannot_be_read_and_says_why() -> None:
    whole = frames((HEADER, *EVENTS))
    for place in range(len(frame(HEADER))):
        spoilt = bytearray(whole)
        spoilt[place] ^= 0x40
        with pytest.raises(Unreadable, match="The journal x cannot be read: its beginning is damaged"):
            read(bytes(spoilt), "x")
    with pytest.raises(Unreadable, match="it is empty"):
        read(b"", "x")
    later = Header(session_id="s", turn_id="t", epoch=1, owner="o", format=spools.FORMAT + 1)
    with pytest.raises(Unreadable, match="a later version of Holdfast wrote it"):
        read(frame(later), "x")


def test_a_seal_says_that_nothing_more_will_come() -> None:
    """F4, F5"""
    assert read(frames((HEADER, *EVENTS, Sealed())), "x").sealed
    assert read(frames((HEADER, *EVENTS, Sealed(), Sealed())), "x").sealed
    assert not read(frames((HEADER, *EVENTS, Sealed()))[:-1], "x").sealed
    assert not read(frames((HEADER, Sealed(), *EVENTS)), "x").sealed


def test_only_pieces_and_results_may_be_spooled() -> None:
    """No call starts, no step, end or question exists while the store is away."""
    finished = ToolFinished(call_id="c", outcome=ToolOutcome.DONE, content="x")
    pieces = (Text(offset=0, text="a"), Reasoning(text="b"), ToolOutput(call_id="c", text="d"), TurnAlive())
    assert spools.may_hold((*pieces, finished))
    started = ToolStarted(call_id="c", name="n", arguments={}, effect=Effect.PURE)
    for other in (started, TurnEnded(outcome=Outcome.COMPLETED), object()):
        assert not spools.may_hold((*pieces, other))


def test_the_end_of_a_full_spool_is_kept_for_results() -> None:
    full = TURN_BYTES - FOR_RESULTS
    assert spools.has_room(full - 10, 10, most=TURN_BYTES, results=False)
    assert not spools.has_room(full - 10, 11, most=TURN_BYTES, results=False)
    assert spools.has_room(full, FOR_RESULTS, most=TURN_BYTES, results=True)
    assert not spools.has_room(full, FOR_RESULTS + 1, most=TURN_BYTES, results=True)


@pytest.mark.parametrize("name", ("t_1", "t_1.", ".3", "t_1.x", "t_1.²", ""))
def test_a_file_that_is_named_otherwise_is_no_spool(name: str) -> None:
    assert spools.parse_stream_id(name) is None
    assert spools.parse_stream_id("t.1.3") == ("t.1", 3)


@pytest.mark.parametrize(
    ("owner", "name", "may"),
    (
        ("o_1", "t_1.3", True),
        ("o_1", "t_1", False),
        ("", "t_1.3", False),
        (".", "t_1.3", False),
        ("..", "t_1.3", False),
        ("../o_1", "t_1.3", False),
        ("/o_1", "t_1.3", False),
        ("o_1", "../t_1.3", False),
        ("o_1\0", "t_1.3", False),
        ("o_1", "t_1\0.3", False),
    ),
)
def test_a_spool_has_no_place_outside_the_folder_of_spools(owner: str, name: str, may: bool) -> None:
    assert spools.is_place(owner, name) is may
