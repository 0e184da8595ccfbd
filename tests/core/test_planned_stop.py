"""The planned-stop marker: whom it names, and for how long it counts."""

from typing import Any

import pytest

from holdfast.core.planned_stop import COUNTS_FOR_MS, marker, names
from holdfast.core.process_id import ProcessId

NOW = 1_800_000_000_000
US = ProcessId(pid=42, started_at=5000, boot_id="b")


def test_a_marker_names_the_life_it_was_written_for() -> None:
    """D8"""
    assert marker(US, at=NOW) == {"pid": 42, "process_started_at": 5000, "boot_id": "b", "written_at": NOW}
    assert names(marker(US, at=NOW), US, now=NOW)


@pytest.mark.parametrize(
    "other",
    [
        ProcessId(43, 5000, "b"),
        ProcessId(42, 5010, "b"),
        ProcessId(42, 4990, "b"),
        ProcessId(42, 5000, "another boot"),
        ProcessId(0, 0, ""),
    ],
)
def test_a_marker_names_no_other_process_and_no_other_life_of_the_same_number(other: ProcessId) -> None:
    """D4, D8, C20: numbers are given out again, start times are not."""
    assert not names(marker(US, at=NOW), other, now=NOW)
    assert not names(marker(other, at=NOW), US, now=NOW)


@pytest.mark.parametrize(
    ("age_ms", "counts"),
    [(0, True), (59_999, True), (60_000, True), (60_001, False), (-60_000, True), (-60_001, False), (10**12, False), (-(10**12), False)],
)
def test_a_marker_counts_for_a_minute_before_and_after_the_time_it_bears(age_ms: int, counts: bool) -> None:
    """D8: a clock that was set may make it look as if it came from the future."""
    assert COUNTS_FOR_MS == 60_000
    assert names(marker(US, at=NOW - age_ms), US, now=NOW) is counts


@pytest.mark.parametrize(
    "change",
    [
        {"pid": None}, {"pid": "42"}, {"pid": [42]}, {"pid": {}}, {"pid": -42},
        {"process_started_at": None}, {"process_started_at": str(US.started_at)}, {"process_started_at": []}, {"boot_id": None},
        {"written_at": None}, {"written_at": str(NOW)}, {"written_at": float(NOW)}, {"written_at": True}, {"written_at": [NOW]},
    ],
)  # fmt: skip
def test_a_marker_with_a_wrong_field_names_nobody(change: dict[str, Any]) -> None:
    """D7, D8"""
    assert not names(marker(US, at=NOW) | change, US, now=NOW)


def test_a_marker_without_one_of_its_fields_names_nobody() -> None:
    """D2, D8"""
    assert not names(None, US, now=NOW)
    assert not names({}, US, now=NOW)
    for name in marker(US, at=NOW):
        whole = marker(US, at=NOW)
        del whole[name]
        assert not names(whole, US, now=NOW), name


def test_what_a_newer_version_adds_is_no_obstacle() -> None:
    """D8"""
    assert names(marker(US, at=NOW) | {"why": "upgrade"}, US, now=NOW)
