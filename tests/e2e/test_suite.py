"""The program that runs all tests: what it starts comes to an end with it."""

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts import suite
from tests.e2e.serving import ROOT

PATIENCE_S = 60.0
# Writes its own id and that of a process in another session, and waits. As tests with gateways do.
WAITS = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN if {deaf} else signal.default_int_handler)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
with open({name!r} + "~", "w") as file:
    file.write(f"{{os.getpid()}} {{child.pid}}")
os.rename({name!r} + "~", {name!r})
try:
    time.sleep(600)
finally:
    child.kill()
    child.wait()
"""
INTERRUPTED = """
import signal, sys
from concurrent.futures import Future
from scripts import suite
signal.signal(signal.SIGTERM, signal.default_int_handler)
ready = Future()
ready.set_result(None)
names = ("first", "later", "waiting", "behind")
parts = {name: [suite.Part("group", name, ("-c", text))] for name, text in zip(names, sys.argv[1:])}
try:
    suite.run_all(ready, **parts)
except KeyboardInterrupt:
    sys.exit(130)
"""


def waiting(name: Path, *, deaf: bool = False) -> str:
    return WAITS.format(name=str(name), deaf=deaf)


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """A zombie is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_suite_that_is_told_to_end_ends_every_part_it_has_begun(tmp_path: Path) -> None:
    names = [tmp_path / name for name in ("first", "later", "waiting", "behind")]
    program = subprocess.Popen([sys.executable, "-c", INTERRUPTED, *map(waiting, names)], cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        until(lambda: all(name.exists() for name in names))
        pids = [int(pid) for name in names for pid in name.read_text().split()]
        program.send_signal(signal.SIGTERM)
        assert program.wait(PATIENCE_S) == 130
        until(lambda: not any(map(is_running, pids)))
    finally:
        if program.poll() is None:
            suite.kill_all(program.pid)
            program.wait()


def test_a_part_that_hangs_and_hears_no_interrupt_is_killed_with_all_it_started(tmp_path: Path) -> None:
    name = tmp_path / "hangs"
    part = suite.Part("group", "hangs", ("-c", waiting(name, deaf=True)))
    ended = suite.run(part, suite.Running(), limit_s=2, ends_s=0.1)
    assert ended.code == -signal.SIGKILL
    pids = [int(pid) for pid in name.read_text().split()]
    until(lambda: not any(map(is_running, pids)))


def test_every_test_is_in_exactly_one_part_and_every_file_that_is_named_exists() -> None:
    parts = [part for group in suite.GROUPS for part in suite.parts_of(group)]
    dealt = Counter(word for part in parts for word in part.words[len(suite.PYTEST) :])
    assert dealt == Counter(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))
    assert {*suite.LONGEST, *suite.WAITING} <= {part.name for part in parts}


def test_the_account_names_every_company_and_when_its_last_part_ended() -> None:
    """So that it can be seen which of them the others waited for."""
    groups = {suite.FIRST.name: "first", suite.PROCESSES.name: suite.WAITING[0], suite.WORLDS.name: "a world", suite.ALONE: "again"}
    parts = [suite.Part(group, name, ()) for group, name in groups.items()]
    ended = [suite.Ended(part, 0, took_s=10, processor_s=2, at=100.0 + number) for number, part in enumerate(parts)]
    lines = [*suite.account([ended[0]._replace(at=50.0), *ended], 90.0, 20.0, 10.0)]
    last = lines[lines.index("The last ones ended after:") + 1 : -1]
    assert [line.split() for line in last] == [["10", "s", "in", "front"], ["11", "s", "waiting"], ["12", "s", "behind"]]
    assert "busy for 10 s" in lines[-1]


def test_what_the_machine_was_busy_with_counts_also_what_nobody_waited_for() -> None:
    """As the successors of gateways, and what a browser starts."""
    before = suite.machine_busy_s()
    orphaned = "import os, time\nif os.fork() == 0:\n    while time.process_time() < 1: pass"
    subprocess.run([sys.executable, "-c", orphaned], check=True)
    until(lambda: suite.machine_busy_s() - before >= 1)


def test_what_a_part_prints_is_shown_also_where_it_is_not_utf_8(capfd: pytest.CaptureFixture[str]) -> None:
    part = suite.Part("group", "odd", ("-c", "import os; os.write(1, b'before \\xff after')"))
    assert suite.run(part, suite.Running()).code == 0
    assert "before \ufffd after" in capfd.readouterr().out


FAILS_AT_FIRST = """
import pathlib, pytest

@pytest.mark.parametrize("number", range({count}))
def test_one(number):
    mark = pathlib.Path(__file__).with_name(f"seen {{number}}")
    seen = len(mark.read_text()) if mark.exists() else 0
    mark.write_text("x" * (seen + 1))
    assert seen >= {failures}

def test_another():
    pass
"""


@pytest.mark.parametrize(
    ("group", "count", "failures", "unsteady", "codes"),
    [
        ("e2e", 1, 0, 0, [0]),
        ("e2e", 2, 1, 2, [0, 0, 0, 0, 0]),  # Each passes alone, twice.
        ("e2e", 1, 2, 0, [1, 1]),  # Fails alone, too.
        ("e2e", suite.UNSTEADY + 1, 1, 0, [1]),  # Too many for bad luck.
        (suite.WORLDS.name, 1, 1, 0, [1]),  # Nothing next to it can have disturbed it.
    ],
)
def test_a_test_that_fails_next_to_others_counts_unless_it_passes_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, count: int, failures: int, unsteady: int, codes: list[int]
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path("test_steadiness.py")
    file.write_text(FAILS_AT_FIRST.format(count=count, failures=failures))
    first = suite.run(suite.Part(group, "part", (*suite.PYTEST, str(file))), suite.Running())
    assert sorted(first.failed) == [f"{file}::test_one[{number}]" for number in range(count if failures else 0)]
    tests, ended = suite.try_alone([first])
    assert len(tests) == unsteady and [each.code for each in ended] == codes
