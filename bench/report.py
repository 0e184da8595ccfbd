"""The bench's results: a table for people, a file for programs."""

import os
import platform
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import apsw
import msgspec

from bench.figures import NAMES, Figure, Row, middle, shown
from holdfast import __version__
from holdfast.store.sqlite.connection import file_system

WIDTH = 100
VERDICTS = {True: "met", False: "MISSED", None: ""}


class Machine(msgspec.Struct, frozen=True):
    cores: int
    processor: str
    kernel: str
    python: str
    sqlite: str
    file_system: str
    holdfast: str


class Report(msgspec.Struct, frozen=True):
    at: str
    machine: Machine
    rows: list[Row]


def machine(folder: Path) -> Machine:
    return Machine(
        len(os.sched_getaffinity(0)),
        _processor(),
        platform.release(),
        platform.python_version(),
        apsw.sqlite_lib_version(),
        file_system(folder) or "?",
        __version__,
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def heading(found: Machine, *, quick: bool) -> Iterator[str]:
    yield f"Holdfast {found.holdfast}, Python {found.python}, SQLite {found.sqlite}, Linux {found.kernel}"
    yield f"{found.cores} cores ({found.processor}), {found.file_system}"
    if found.cores < 4:
        yield "Load clients are a process of their own, but share so few cores with the server: its figures are"
        yield "upper bounds."
    else:
        yield "Load clients are a process of their own on the same machine."
    if quick:
        yield "QUICK: small sizes, one repeat. It shows that every row runs; its figures prove nothing."
    yield ""
    yield f"{'':38}{'min':>8}{'median':>8}{'p99':>8} {'':5}{'goal':26}verdict"


def lines(row: Row) -> Iterator[str]:
    """One row: its name, its figures, the floor beside them."""
    yield f"{row.name}: {row.what}"[:WIDTH]
    if row.error is not None:
        yield f"  did not run: {row.error}"
    for figure in row.figures:
        yield _line(figure)
    if row.floors:
        yield _floor(row)
    for note in row.notes:
        yield f"  {note}"


def _line(figure: Figure) -> str:
    single = all(each.count == 1 for each in figure.repeats)
    low = min(each.min for each in figure.repeats)
    tail = figure.value if figure.judged == "p999" else middle([each.p99 for each in figure.repeats])
    label = figure.label + (f" ({NAMES['p999']})" if figure.judged == "p999" else "")
    columns = f"{shown(low):>8}{shown(middle([each.p50 for each in figure.repeats])):>8}{'' if single else shown(tail):>8}"
    return f"  {label:36.36}{columns} {figure.unit:5}{figure.goal:26}{VERDICTS[figure.met]}".rstrip()


def _floor(row: Row) -> str:
    floors = row.floors
    low, p50, p99, p999 = (
        min(each.min for each in floors),
        middle([each.p50 for each in floors]),
        middle([each.p99 for each in floors]),
        middle([each.p999 for each in floors]),
    )
    again = f", {row.thrown_away} again" if row.thrown_away else ""
    columns = f"{shown(low):>8}{shown(p50):>8}{shown(p99):>8}"
    return f"  {'floor: append + fdatasync':36}{columns} {'ms':5}p99.9 {shown(p999)}, moved {row.moved:.1f}x{again}"


def last_lines(rows: Sequence[Row]) -> Iterator[str]:
    figures = [figure for row in rows for figure in row.figures if figure.met is not None]
    missed = [row.name for row in rows if row.missed]
    yield f"{sum(bool(figure.met) for figure in figures)} of {len(figures)} goals met, {sum(row.took_s for row in rows):.0f} s."
    if missed:
        yield f"Where the time goes in a row: python -m bench --profile {missed[0]}  (missed: {', '.join(missed)})"


def write(path: Path, found: Machine, rows: list[Row]) -> None:
    """Replaced as a whole, so that a run that is cut short leaves the last one."""
    report = Report(datetime.now(UTC).isoformat(timespec="seconds"), found, rows)
    path.parent.mkdir(exist_ok=True)
    making = path.with_suffix(".making")
    making.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
    os.replace(making, path)


def say(text: str) -> None:
    print(text, flush=True)


def progress(text: str) -> None:
    """What is going on, where somebody watches."""
    if sys.stderr.isatty():
        print(f"\r{text:{WIDTH}.{WIDTH}}\r", end="", file=sys.stderr, flush=True)
