"""All of `./run test`, in parts that each have a process of their own, and where the time went.

Parts in front share the cores AT_ONCE at a time: tests with real processes wait more than they compute. Next to them runs one part after
the other of tests that do hardly anything but wait. Parts behind are simulated worlds, which only compute and read no real clock: they get
what the others leave idle.

A test that fails next to others, unless in a simulated world, is tried again alone when everything else has ended. If it passes then, each
time, the run passes and names it as unsteady: a fault of the test or of Holdfast that is to be found next.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from scripts.run import (
    ROOT,
    find_axe,
    find_browser,
    find_homeserver,
    find_page_tools,
    find_proxy,
    find_sandbox,
    find_service_manager,
    find_tool_servers,
    say,
)

BUDGET_S = 900
# A part that takes this long hangs, and is ended.
LIMIT_S = 1800
# How long it may then take to say where it was interrupted.
ENDS_S = 30
# With four of them kills and deadlines come too late on two cores.
AT_ONCE = 3
AT_ONCE_WAITING = 1
AT_ONCE_BEHIND = 2
LOWEST = 19
# How many of the longest parts are named at the end.
NAMED = 12
# With more unsteady tests than that, something is wrong that no second try excuses.
UNSTEADY = 3
TRIES_ALONE = 2
ALONE = "alone"
PYTEST = ("-m", "pytest", "-q", "--no-header", "--durations=3", "--durations-min=5")
# pytest's exit code where tests failed, and nothing else went wrong.
TESTS_FAILED = 1


class Group(NamedTuple):
    """Test folders, and into how many parts their files are dealt. Files among the LONGEST and the WAITING are parts of their own."""

    folders: tuple[str, ...]
    hands: int

    @property
    def name(self) -> str:
        return ", ".join(self.folders)


FIRST = Group(("gateway", "conformance", "core", "blobs", "agents", "tools"), hands=6)
PROCESSES = Group(("e2e", "install", "platforms"), hands=14)
BROWSER = Group(("browser",), hands=3)
WORLDS = Group(("sim",), hands=1)
GROUPS = (FIRST, PROCESSES, BROWSER, WORLDS)
# In this order: one of them left for the end would run alone.
LONGEST = (
    *(f"tests/sim/test_{name}.py" for name in ("every_write", "every_write_in_chats", "seeds")),
    *(f"tests/platforms/test_{name}.py" for name in ("kills", "matrix_kills", "matrix")),
    "tests/e2e/test_kill.py",
)
# They use a core for a third of their time at most, and do without what is installed meanwhile. Together they should end when those in
# front do: the account says whether they did.
WAITING = (
    *(f"tests/e2e/test_{name}.py" for name in ("windows", "oracle", "service", "handover")),
    *(f"tests/platforms/test_{name}_conformance.py" for name in ("telegram", "slack", "discord")),
    *(f"tests/e2e/test_{name}.py" for name in ("background", "one_stop", "tour", "deadline", "descriptors", "spool")),
)


class Part(NamedTuple):
    group: str
    name: str
    words: tuple[str, ...]


class Ended(NamedTuple):
    """`processor_s`: its own and that of all processes that it waited for. `at`: when it ended, by the monotonic clock. `failed`: the
    tests that did.
    """

    part: Part
    code: int
    took_s: float
    processor_s: float
    at: float
    failed: tuple[str, ...] = ()


CHECK = Part("check", "check", ("scripts/run.py", "check"))


def main() -> int:
    started, busy_s = time.monotonic(), machine_busy_s()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # As Ctrl-C: nothing is left running.
    with ThreadPoolExecutor(1) as background:
        if browser := find_browser(required=has_tests(ROOT / "tests" / "browser")):
            os.environ["HOLDFAST_TEST_BROWSER"] = browser
        find_service_manager()
        find_proxy()
        find_sandbox()
        # It is mostly downloaded, and the first tests do not need it. Behind the others: the system installs one thing at a time.
        installed = background.submit(install_for_later)
        # The parts of the browser are long, and so not the last ones.
        rest = [part for group in (BROWSER, PROCESSES) for part in parts_of(group)]
        ended = run_all(
            installed,
            first=[CHECK, *parts_of(FIRST)],
            later=[part for part in rest if part.name not in WAITING],
            waiting=[part for part in rest if part.name in WAITING],
            behind=parts_of(WORLDS),
        )
        unsteady, ended = try_alone(ended)
    took_s = time.monotonic() - started
    for line in account(ended, started, took_s, machine_busy_s() - busy_s):
        say(line)
    for test in unsteady:
        say(f"unsteady: {test} failed next to others and passed {TRIES_ALONE} times alone. Find out why.")
    failed = "; ".join(each.part.name for each in ended if each.code)
    late = f"; over its budget of {BUDGET_S} s" if took_s > BUDGET_S else ""
    say(f"test: {f'FAILED ({failed})' if failed else 'everything passed'}, {took_s:.0f} s{late}")
    return 1 if failed else 0


def install_for_later() -> None:
    find_axe(required=has_tests(ROOT / "tests" / "browser"))
    find_page_tools(required=has_tests(ROOT / "tests" / "browser"))
    find_tool_servers()
    find_homeserver()


def run_all(
    installed: Future[None], *, first: Iterable[Part], later: Iterable[Part], waiting: Iterable[Part], behind: Iterable[Part]
) -> list[Ended]:
    """`later`: those that need what is installed meanwhile."""
    running = Running()
    with ThreadPoolExecutor(AT_ONCE) as front, ThreadPoolExecutor(AT_ONCE_WAITING) as aside, ThreadPoolExecutor(AT_ONCE_BEHIND) as back:
        try:
            ends = [back.submit(run, part, running, gives_way=True) for part in behind]
            ends += [aside.submit(run, part, running) for part in waiting]
            ends += [front.submit(run, part, running) for part in first]
            installed.result()
            ends += [front.submit(run, part, running) for part in later]
            return [each.result() for each in ends]
        finally:  # After an interrupt nothing else begins, and what runs comes to its end.
            for pool in (front, aside, back):
                pool.shutdown(wait=False, cancel_futures=True)
            running.interrupt()


def run(part: Part, running: "Running", *, gives_way: bool = False, limit_s: float = LIMIT_S, ends_s: float = ENDS_S) -> Ended:
    """In a session of its own, which no terminal interrupts. What it says is shown at its end, in one piece. `gives_way`: to everything
    else that wants the processors.
    """
    began = time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as said, tempfile.TemporaryDirectory() as cache:
        words = (*part.words, "-o", f"cache_dir={cache}") if part.words[: len(PYTEST)] == PYTEST else part.words
        process = subprocess.Popen([sys.executable, *words], stdout=said, stderr=said, start_new_session=True)
        running.add(process)
        if gives_way:
            give_way(process)
        code, processor_s = wait_for(process, limit_s, ends_s)
        at = time.monotonic()
        took_s = at - began
        said.seek(0)
        verdict = f"--- {part.name}: {'FAILED' if code else 'passed'}, {took_s:.1f} s ({processor_s:.1f} s of processor time)"
        print(verdict, said.read(), sep="\n", flush=True)
        return Ended(part, code, took_s, processor_s, at, failed_in(Path(cache)) if code == TESTS_FAILED else ())


def failed_in(cache: Path) -> tuple[str, ...]:
    """The tests that failed, by what pytest noted of its run."""
    try:
        return tuple(json.loads((cache / "v" / "cache" / "lastfailed").read_text()))
    except FileNotFoundError:
        return ()


def try_alone(ended: list[Ended]) -> tuple[list[str], list[Ended]]:
    """The tests that turned out to be unsteady, and what has ended without their failures. Simulated worlds get no second try: nothing
    next to them can change what they do.
    """
    again = [each for each in ended if each.failed and each.part.group != WORLDS.name]
    tests = [test for each in again for test in each.failed]
    if not 0 < len(tests) <= UNSTEADY:
        return [], ended
    tries: list[Ended] = []
    for test in tests:  # Each in a process of its own: one that fails may leave things behind.
        part = Part(ALONE, f"alone: {test}", (*PYTEST, test))
        for _ in range(TRIES_ALONE):
            if not any(each.code for each in tries):
                tries.append(run(part, Running()))
    if any(each.code for each in tries):
        return [], [*ended, *tries]
    return tests, [each._replace(code=0) if each in again else each for each in ended] + tries


class Running:
    """The parts that have begun, for an interrupt: also one that begins while it comes."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self._interrupted = False
        self._lock = threading.Lock()

    def add(self, process: "subprocess.Popen[bytes]") -> None:
        with self._lock:
            self._processes.append(process)
            if self._interrupted:
                os.kill(process.pid, signal.SIGINT)

    def interrupt(self) -> None:
        with self._lock:
            self._interrupted = True
            for process in self._processes:
                if process.returncode is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process.pid, signal.SIGINT)


def give_way(process: "subprocess.Popen[bytes]") -> None:
    os.setpriority(os.PRIO_PROCESS, process.pid, LOWEST)
    with contextlib.suppress(OSError):  # Where Linux shares processors out to sessions, the priority of this one counts.
        Path(f"/proc/{process.pid}/autogroup").write_text(str(LOWEST))


def wait_for(process: "subprocess.Popen[bytes]", limit_s: float, ends_s: float) -> tuple[int, float]:
    """Its exit code and the processor time it took. After `limit_s` it is interrupted, and `ends_s` later killed with all it started."""
    # pytest says where it was interrupted.
    guards = [
        threading.Timer(limit_s, os.kill, (process.pid, signal.SIGINT)),
        threading.Timer(limit_s + ends_s, kill_all, (process.pid,)),
    ]
    for guard in guards:
        guard.daemon = True
        guard.start()
    _, status, used = os.wait4(process.pid, 0)
    for guard in guards:
        guard.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime


def kill_all(pid: int) -> None:
    """With everything below it, also in other sessions: gateways and browsers. Whatever is found first cannot start more."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        for child in children(pid):
            kill_all(child)
        os.kill(pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # It has ended.
            if int(stat.read_text(errors="replace").rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


def parts_of(group: Group) -> list[Part]:
    """The longest first; then the others, dealt out by their size."""
    files = sorted(files_of(group), key=lambda path: -path.stat().st_size)
    names = [str(path.relative_to(ROOT)) for path in files]
    alone = [name for name in (*LONGEST, *WAITING) if name in names]
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


def machine_busy_s() -> float:
    """Of all cores since the machine started; 0 where the system does not tell."""
    try:
        user, nice, system = map(int, Path("/proc/stat").read_text().split(maxsplit=4)[1:4])
    except FileNotFoundError:
        return 0.0
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def company(part: Part) -> str:
    """Among which parts it runs."""
    return "behind" if part.group == WORLDS.name else "waiting" if part.name in WAITING else "alone" if part.group == ALONE else "in front"


def has_tests(folder: Path) -> bool:
    return any(folder.rglob("test_*.py"))


def account(ended: list[Ended], started: float, took_s: float, busy_s: float) -> Iterator[str]:
    """Where the time went. What ended long after everything else should have begun earlier, or have been in other company. `busy_s`: of all
    cores, by any program: the parts do not hear what processes used that outlived those which had started them.
    """
    cores = os.cpu_count() or 1
    yield f"{'took':>8} {'processor':>10}"
    for name in dict.fromkeys(each.part.group for each in ended):
        parts = [each for each in ended if each.part.group == name]
        yield f"{sum(each.took_s for each in parts):6.0f} s {sum(each.processor_s for each in parts):8.0f} s  {name}"
    yield "The longest:"
    for each in sorted(ended, key=lambda each: -each.took_s)[:NAMED]:
        yield f"{each.took_s:6.0f} s {each.processor_s:8.0f} s  {each.part.name}"
    yield "The last ones ended after:"
    for name in ("in front", "waiting", "behind"):
        if ends := [each.at - started for each in ended if company(each.part) == name]:
            yield f"{max(ends):6.0f} s  {name}"
    yield f"{cores} cores were busy for {busy_s:.0f} s of {cores} x {took_s:.0f} s ({100 * busy_s / (cores * took_s):.0f} %)."


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
