"""All of `./run test`, in parts that each have a process of their own, and where the time went.

Parts in front share the cores AT_ONCE at a time: tests with real processes wait more than they compute. Parts behind are simulated worlds,
which only compute and read no real clock: they get what those in front leave idle.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from scripts.run import ROOT, find_axe, find_browser, find_homeserver, find_proxy, find_sandbox, find_service_manager, say

BUDGET_S = 900
# A part that takes this long hangs, and is ended.
LIMIT_S = 1800
# With four of them kills and deadlines come too late on two cores.
AT_ONCE = 3
AT_ONCE_BEHIND = 2
LOWEST = 19
# How many of the longest parts are named at the end.
NAMED = 12
PYTEST = ("-m", "pytest", "-q", "--no-header", "--durations=3", "--durations-min=5")


class Group(NamedTuple):
    """Test folders, and into how many parts their files are dealt. Files among the LONGEST are parts of their own."""

    folders: tuple[str, ...]
    hands: int

    @property
    def name(self) -> str:
        return ", ".join(self.folders)


FIRST = Group(("gateway", "conformance", "core", "blobs", "agents", "tools"), hands=6)
PROCESSES = Group(("e2e", "install", "platforms"), hands=10)
BROWSER = Group(("browser",), hands=3)
WORLDS = Group(("sim",), hands=1)
GROUPS = (FIRST, PROCESSES, BROWSER, WORLDS)
# In this order: one of them left for the end would run alone.
LONGEST = (
    *(f"tests/sim/test_{name}.py" for name in ("every_write", "every_write_in_chats", "seeds")),
    *(
        f"tests/e2e/test_{name}.py"
        for name in ("service", "oracle", "windows", "handover", "descriptors", "one_stop", "tour", "kill", "background", "deadline")
    ),
    "tests/platforms/test_matrix.py",
)


class Part(NamedTuple):
    group: str
    name: str
    words: tuple[str, ...]


class Ended(NamedTuple):
    """`processor_s`: its own and that of all processes that it waited for."""

    part: Part
    code: int
    took_s: float
    processor_s: float


CHECK = Part("check", "check", ("scripts/run.py", "check"))


def main() -> int:
    started = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # As Ctrl-C: nothing is left running.
    with ThreadPoolExecutor(1) as background:
        # It is mostly downloaded, and the first tests do not need it.
        homeserver = background.submit(find_homeserver)
        if browser := find_browser(required=has_tests(ROOT / "tests" / "browser")):
            os.environ["HOLDFAST_TEST_BROWSER"] = browser
        find_axe(required=has_tests(ROOT / "tests" / "browser"))
        find_service_manager()
        find_proxy()
        find_sandbox()
        ended = run_all(homeserver)
    took_s = time.monotonic() - started
    for line in account(ended, took_s):
        say(line)
    failed = "; ".join(each.part.name for each in ended if each.code)
    late = f"; over its budget of {BUDGET_S} s" if took_s > BUDGET_S else ""
    say(f"test: {f'FAILED ({failed})' if failed else 'everything passed'}, {took_s:.0f} s{late}")
    return 1 if failed else 0


def run_all(homeserver: Future[None]) -> list[Ended]:
    worlds = Behind()
    with ThreadPoolExecutor(AT_ONCE) as front, ThreadPoolExecutor(AT_ONCE_BEHIND) as behind:
        try:
            ends = [behind.submit(worlds.run, part) for part in parts_of(WORLDS)]
            ends += [front.submit(run, part) for part in (CHECK, *parts_of(FIRST))]
            homeserver.result()
            ends += [front.submit(run, part) for group in (PROCESSES, BROWSER) for part in parts_of(group)]
            return [each.result() for each in ends]
        finally:  # After an interrupt nothing else begins, and what runs comes to its end.
            for pool in (front, behind):
                pool.shutdown(wait=False, cancel_futures=True)
            worlds.interrupt()


def run(part: Part, *, started: Callable[["subprocess.Popen[bytes]"], object] = lambda process: None, apart: bool = False) -> Ended:
    """What it says is shown at its end, in one piece. `apart`: in a session of its own, which no terminal interrupts."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen([sys.executable, *part.words], stdout=said, stderr=said, start_new_session=apart)
        started(process)
        code, processor_s = wait_for(process)
        took_s = time.monotonic() - began
        said.seek(0)
        verdict = f"--- {part.name}: {'FAILED' if code else 'passed'}, {took_s:.1f} s ({processor_s:.1f} s of processor time)"
        print(verdict, said.read(), sep="\n", flush=True)
    return Ended(part, code, took_s, processor_s)


class Behind:
    """Parts that give way to everything else that wants the processors."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []

    def run(self, part: Part) -> Ended:
        return run(part, started=self._give_way, apart=True)

    def _give_way(self, process: "subprocess.Popen[bytes]") -> None:
        self._processes.append(process)
        os.setpriority(os.PRIO_PROCESS, process.pid, LOWEST)
        with contextlib.suppress(OSError):  # Where Linux shares processors out to sessions, the priority of this one counts.
            Path(f"/proc/{process.pid}/autogroup").write_text(str(LOWEST))

    def interrupt(self) -> None:
        for process in self._processes:
            if process.returncode is None:
                os.kill(process.pid, signal.SIGINT)


def wait_for(process: "subprocess.Popen[bytes]") -> tuple[int, float]:
    """Its exit code and the processor time it took."""
    # pytest says where it was interrupted.
    guards = [
        threading.Timer(LIMIT_S, os.kill, (process.pid, signal.SIGINT)),
        threading.Timer(LIMIT_S + 30, os.kill, (process.pid, signal.SIGKILL)),
    ]
    for guard in guards:
        guard.daemon = True
        guard.start()
    _, status, used = os.wait4(process.pid, 0)
    for guard in guards:
        guard.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime


def parts_of(group: Group) -> list[Part]:
    """The longest first; then the others, dealt out by their size."""
    files = sorted(files_of(group), key=lambda path: -path.stat().st_size)
    names = [str(path.relative_to(ROOT)) for path in files]
    alone = [name for name in LONGEST if name in names]
    rest = [name for name in names if name not in alone]
    hands = [rest[start :: group.hands] for start in range(group.hands)]
    parts = [Part(group.name, name, (*PYTEST, name)) for name in alone]
    for number, hand in enumerate(filter(None, hands), 1):
        parts.append(Part(group.name, f"{group.name} ({number} of {group.hands})", (*PYTEST, *hand)))
    return parts


def files_of(group: Group) -> Iterator[Path]:
    """The first group also takes what no group names: nothing is left out."""
    named = {folder for each in GROUPS for folder in each.folders}
    for path in (ROOT / "tests").rglob("test_*.py"):
        folder = path.relative_to(ROOT / "tests").parts[0]
        if folder in group.folders or (group is FIRST and folder not in named):
            yield path


def has_tests(folder: Path) -> bool:
    return any(folder.rglob("test_*.py"))


def account(ended: list[Ended], took_s: float) -> Iterator[str]:
    """Where the time went."""
    used_s = sum(each.processor_s for each in ended)
    cores = os.cpu_count() or 1
    yield f"{'took':>8} {'processor':>10}"
    for name in dict.fromkeys(each.part.group for each in ended):
        parts = [each for each in ended if each.part.group == name]
        yield f"{sum(each.took_s for each in parts):6.0f} s {sum(each.processor_s for each in parts):8.0f} s  {name}"
    yield "The longest:"
    for each in sorted(ended, key=lambda each: -each.took_s)[:NAMED]:
        yield f"{each.took_s:6.0f} s {each.processor_s:8.0f} s  {each.part.name}"
    yield f"{cores} cores were busy for {used_s:.0f} s of {cores} x {took_s:.0f} s ({100 * used_s / (cores * took_s):.0f} %)."


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
