"""Two versions of Holdfast measured in turn, in one run: what the disk and the machine do to one they do to the other.

Each version measures itself, with the bench of its own checkout, in a process of its own that is told which row is next. What counts is the
ratio of the two in the same round, and how far the rounds lie apart.
"""

import contextlib
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench import report
from bench.figures import Figure, Row, middle, shown

ROOT = Path(__file__).parents[1]
SLOWER = 1.1
RATES = ("/s", "M/s")
# Runs in the checkout that is measured, with whatever its bench has: a row's name comes in, the row goes out, or nothing if it has no such.
MEASURE = """
import sys, os
from pathlib import Path
import msgspec
answers = os.fdopen(os.dup(1), "wb", buffering=0)
os.dup2(2, 1)
from bench import processes
from bench.__main__ import ROWS, _measured
from bench.profiling import Profiles
from bench.setting import Setting
processes.raise_file_limit()
folder = Path(sys.argv[1])
setting = Setting(folder, quick=sys.argv[2] == "quick", profiles=Profiles(folder / "profiles", wanted=False))
for line in sys.stdin:
    name = line.strip()
    answers.write(msgspec.json.encode(_measured(name, setting) if name in ROWS else None) + b"\\n")
"""


class Compared(msgspec.Struct, frozen=True):
    """One figure of one row. `ratios`: the new version's by the old one's, turned so that more than 1 is slower, a round each."""

    row: str
    figure: Figure
    old: list[float]
    new: list[float]

    @property
    def ratios(self) -> list[float]:
        more_is_better = self.figure.unit in RATES or ">=" in self.figure.goal
        pairs = zip(self.new, self.old, strict=True)
        return [(old / new if more_is_better else new / old) if old and new else 1.0 for new, old in pairs]

    @property
    def verdict(self) -> str:
        if middle(self.ratios) <= SLOWER:
            return ""
        return "SLOWER" if min(self.ratios) > SLOWER else "unclear"


def compare(revision: str, rows: Sequence[str], *, folder: Path, rounds: int, quick: bool) -> int:
    """Prints each row as it is done; 1 when a figure is slower in every round."""
    before = folder / "before"
    try:
        _check_out(revision, before)
    except subprocess.CalledProcessError as error:
        report.say(f"There is no version {revision!r} to compare with: {error.stderr.decode().strip()}")
        return 2
    worse = False
    report.say(f"{'new against ' + revision:46}{'before':>9}{'now':>9}  {'ratio':>6}  {'of all rounds':16}verdict")
    with _measuring(before, folder / "old", quick=quick) as old, _measuring(ROOT, folder / "new", quick=quick) as new:
        for name in rows:
            report.say(name)
            if not (found := list(_rounds(name, old, new, rounds))):
                report.say(f"  {revision} has no such row")
            for each in _figures(name, found):
                worse = worse or each.verdict == "SLOWER"
                report.say(_line(each))
            floors = [middle([floor.p50 for floor in row.floors]) for pair in found for row in pair if row.floors]
            if floors:
                report.say(f"  floor p50 {shown(min(floors))} to {shown(max(floors))} ms over {rounds} rounds")
    return 1 if worse else 0


def _check_out(revision: str, folder: Path) -> None:
    packed = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")


class _Version:
    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def measure(self, name: str) -> Row | None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{name}\n".encode())
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"The bench of one version ended at the row {name}, with {self._process.wait()}.")
        return msgspec.json.decode(line, type=Row | None)


@contextlib.contextmanager
def _measuring(checkout: Path, folder: Path, *, quick: bool) -> Iterator[_Version]:
    folder.mkdir()
    environment: dict[str, Any] = os.environ | {"PYTHONPATH": os.pathsep.join((str(checkout), str(checkout / "src")))}
    command = [sys.executable, "-P", "-c", MEASURE, str(folder), "quick" if quick else "full"]
    with subprocess.Popen(command, cwd=checkout, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield _Version(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.terminate()


def _rounds(name: str, old: _Version, new: _Version, rounds: int) -> Iterator[tuple[Row, Row]]:
    """Each goes first as often as the other. None where one of them has no such row."""
    for number in range(rounds):
        report.progress(f"{name}, round {number + 1} of {rounds} ...")
        first, second = (new, old) if number % 2 else (old, new)
        if (one := first.measure(name)) is None or (other := second.measure(name)) is None:
            return
        yield (other, one) if number % 2 else (one, other)


def _figures(name: str, found: Sequence[tuple[Row, Row]]) -> Iterator[Compared]:
    """What both versions measure. A row that failed has no figures, and is said to have failed."""
    for _, row in found:
        if row.error is not None:
            report.say(f"  did not run: {row.error}")
            return
    for figure in found[0][1].figures if found else ():
        both = [(_value(before, figure.label), _value(after, figure.label)) for before, after in found]
        values = [(old, new) for old, new in both if old is not None and new is not None]
        if values:
            yield Compared(name, figure, [old for old, _ in values], [new for _, new in values])


def _value(row: Row, label: str) -> float | None:
    return next((figure.value for figure in row.figures if figure.label == label), None)


def _line(each: Compared) -> str:
    ratios = each.ratios
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    columns = f"{shown(middle(each.old)):>9}{shown(middle(each.new)):>9}  {middle(ratios):>6.2f}  {spread:16}"
    return f"  {each.figure.label:37.37} {each.figure.unit:6}{columns}{each.verdict}".rstrip()
