"""The floor: what this disk, and a bare SQLite loop on it, can do at best. Measured beside every repeat: disks change their speed."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from bench.figures import Summary, quantile, summary
from holdfast.core.plans.start import StartedTurn
from holdfast.store.queries import FENCED, INSERT
from holdfast.store.sqlite.connection import connect

T = TypeVar("T")
BLOCK = b"x" * 256
MOVED = 2.0
MORE_TRIES = 3


def append_and_sync(folder: Path, count: int) -> list[float]:
    """Milliseconds of each append of 256 bytes to a growing file, fdatasync included."""
    path = folder / "floor"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_TRUNC, 0o600)
    took = []
    try:
        for _ in range(count):
            began = time.perf_counter()
            os.write(descriptor, BLOCK)
            os.fdatasync(descriptor)
            took.append(1000 * (time.perf_counter() - began))
    finally:
        os.close(descriptor)
        path.unlink()
    return took


class Steady:
    """Takes repeats of a measurement between two looks at the floor. One during which the floor moved by more than 2x does not count; it is
    tried again a few times, and the worst movement is reported.
    """

    def __init__(self, folder: Path, *, repeats: int, samples: int) -> None:
        self._folder, self._repeats, self.samples = folder, repeats, samples
        self.floors: list[Summary] = []
        self.moved = 1.0
        self.thrown_away = 0

    def measure(self, once: Callable[[], T]) -> list[T]:
        taken: list[T] = []
        tries_left = MORE_TRIES
        before = append_and_sync(self._folder, self.samples)
        while len(taken) < self._repeats:
            found = once()
            after = append_and_sync(self._folder, self.samples)
            moved = _ratio(quantile(sorted(before), 0.5), quantile(sorted(after), 0.5))
            if moved > MOVED and tries_left and self._repeats > 1:
                tries_left -= 1
                self.thrown_away += 1
            else:
                self.moved = max(self.moved, moved)
                self.floors.append(summary(before + after))
                taken.append(found)
            before = after
        return taken


def _ratio(one: float, other: float) -> float:
    return max(one, other) / min(one, other)


def bare_appends_per_s(path: Path, turns: Sequence[StartedTurn], *, seconds: float, body: bytes) -> float:
    """Fenced appends per second of a loop that executes the store's own statements, one commit per round of all turns, and nothing else: no
    futures, no threads, no encoding, no checksums.
    """
    db = connect(path)
    fences = [(turn.lease.session_id, turn.lease.epoch, turn.lease.owner, turn.turn_id, turn.attempt) for turn in turns]
    position = turns[0].position
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        db.execute("BEGIN IMMEDIATE")
        for fence in fences:
            session, seq = db.execute(FENCED, (1, 1, *fence, position)).fetchall()[0]
            db.execute(INSERT, (session, seq, fence[3], fence[1], fence[4], position, "text", 1, 1_700_000_000_000, body, 123456789))
        db.execute("COMMIT")
        position += 1
        done += len(fences)
    took = time.perf_counter() - began
    db.close()
    return done / took
