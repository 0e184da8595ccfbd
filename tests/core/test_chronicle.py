"""How processes ended, and what that cost, from what is on record of them and of turns."""

import pytest

from holdfast.api import chronicle
from holdfast.ports.overview import Life, Mark


def life(started_at: int, *, ended: bool = False, handed_at: int | None = None, ended_at: int | None = None) -> Life:
    return Life(pid=started_at, started_at=started_at, ended=ended, handed_at=handed_at, ended_at=ended_at)


def mark(at: int, kind: str, turn: str = "t1", attempt: int = 1, **fields: str) -> Mark:
    return Mark(at=at, session_id="s", turn_id=turn, attempt=attempt, kind=f"turn.{kind}", fields=dict(fields))


@pytest.mark.parametrize(
    ("found", "until", "how"),
    [
        (life(10), 100, "crash"),
        (life(10, ended=True), 100, "stop"),
        (life(10, ended=True, ended_at=50), 50, "stop"),
        (life(10, ended=True, handed_at=40), 40, "hand_over"),
        (life(10, ended=True, handed_at=40, ended_at=90), 40, "hand_over"),
    ],
)
def test_a_hand_over_is_told_from_a_stop_and_both_from_a_crash(found: Life, until: int, how: str) -> None:
    first, last = chronicle.ends([found, life(100)], [])
    assert (first.until, first.how) == (until, how)
    assert (last.until, last.how, last.took_ms) == (None, None, None)


def test_what_an_end_interrupted_and_when_the_last_of_it_continued_is_its_cost() -> None:
    lives = [life(10), life(100, ended=True, ended_at=200), life(300)]
    marks = [
        mark(110, "interrupted", "t1", reason="crash"),
        mark(111, "interrupted", "t2", reason="crash"),
        mark(112, "interrupted", "t3", reason="crash"),
        mark(120, "resumed", "t1", 2),
        mark(150, "resumed", "t2", 2),
        mark(190, "interrupted", "t2", 2, reason="shutdown_timeout"),
        mark(310, "resumed", "t2", 3),
        mark(400, "ended", "t2", 3, outcome="completed"),
    ]
    for order in (marks, marks[::-1]):
        crashed, stopped, serves = chronicle.ends(lives, order)
        assert (crashed.interrupted, crashed.resumed, crashed.took_ms) == (3, 2, 50)
        assert (stopped.interrupted, stopped.resumed, stopped.took_ms) == (1, 1, 110)
        assert (serves.interrupted, serves.resumed, serves.took_ms) == (0, 0, None)


def test_a_crash_before_all_that_is_known_blames_nobody() -> None:
    [serves] = chronicle.ends([life(100)], [mark(110, "interrupted", reason="crash")])
    assert serves.interrupted == 0


def test_a_turn_that_no_end_interrupted_is_no_cost_of_one() -> None:
    """A full disk, a suspension; and a stop of the process that serves is none of an older one."""
    lives = [life(10, ended=True, ended_at=90), life(100)]
    marks = [mark(50, "interrupted", "t1", reason="store_full"), mark(120, "interrupted", "t2", reason="shutdown_timeout")]
    assert [each.interrupted for each in chronicle.ends(lives, marks)] == [0, 0]


def test_a_stop_that_the_next_process_had_to_record_is_a_cost_of_the_one_that_died_over_it() -> None:
    stopped, _ = chronicle.ends([life(10, ended=True), life(100)], [mark(110, "interrupted", reason="shutdown_timeout")])
    assert stopped.interrupted == 1


def test_a_death_after_a_hand_over_is_not_blamed_on_an_older_process() -> None:
    """What it took counts from the interruption: the process served nobody new, but worked on."""
    lives = [life(10), life(100, ended=True, handed_at=200), life(190)]
    marks = [mark(5000, "interrupted", reason="crash"), mark(5030, "resumed", attempt=2)]
    crashed, handed, _ = chronicle.ends(lives, marks)
    assert (crashed.interrupted, handed.interrupted, handed.resumed, handed.took_ms) == (0, 1, 1, 30)
    gone = [lives[0], life(100, ended=True, handed_at=200, ended_at=300), life(190), life(400)]
    assert [each.interrupted for each in chronicle.ends(gone, [mark(5000, "interrupted", reason="crash")])] == [0, 0, 1, 0]
