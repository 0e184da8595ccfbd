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
