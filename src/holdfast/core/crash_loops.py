"""What earlier starts that crashed mean for this one: how many of them count, and how long it waits before it resumes anything."""

from collections.abc import Iterable
from typing import NamedTuple

# Older crashes say nothing about this start.
WINDOW_MS = 10 * 60 * 1000
FROM = 3
FIRST_S, MOST_S = 2.0, 30.0


class Start(NamedTuple):
    """`ended`: on purpose. `sound`: it completed a turn, or ran for ten healthy minutes. `explained`: a session was suspended for its
    death.
    """

    ended: bool
    sound: bool
    explained: bool


def in_a_row(earlier: Iterable[Start]) -> int:
    """How many starts in a row died without an end and without having been sound (B14). `earlier`: the newest first. A death that is
    explained neither counts nor breaks the row.
    """
    count = 0
    for start in earlier:
        if start.ended or start.sound:
            break
        count += not start.explained
    return count


def wait_s(deaths: int) -> float:
    """2 s after the third death within the window, doubled for each further one, at most 30 s (C26). Messages are answered at once; but a
    resumed turn may be what kills the process, and a crash loop must not spin.
    """
    return min(MOST_S, FIRST_S * 2.0 ** min(deaths - FROM, 10)) if deaths >= FROM else 0.0
