"""A clock that is set while Holdfast runs: whoever lives is still known. Start times of the day move then, because the system counts them
from an idea of its boot (`btime` in /proc/stat) that moves with the clock. Here that file is ours, so the clock of the machine stays as it
is.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from holdfast import processes
from holdfast.core.process_id import ProcessId, process_in
from tests.e2e.command_line import command, environment
from tests.e2e.serving import Serving, wait_until

STAT = Path("/proc/stat")
CREATED = "import psutil, sys; print(psutil.Process(int(sys.argv[1])).create_time())"


class Clock:
    """`inside`: a command that starts another one so that it sees this clock's idea of the boot."""

    def __init__(self, stat: Path) -> None:
        self._stat = stat
        self._text = STAT.read_text()
        self.inside = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /proc/stat && exec "$@"', str(stat))
        self.step(0)

    def step(self, seconds: int) -> None:
        """The time of day is set by so many seconds from what it was."""
        moved = re.sub(r"(?<=btime )\d+", lambda found: str(int(found[0]) + seconds), self._text)
        self._stat.write_text(moved)  # The same file: whoever sees it goes on seeing it.

    def created(self, pid: int) -> float:
        """The time of day at which a process started, as a program that starts now computes it."""
        done = subprocess.run([*self.inside, sys.executable, "-c", CREATED, str(pid)], capture_output=True, text=True, check=True)
        return float(done.stdout)


@pytest.fixture
def clock(tmp_path: Path) -> Iterator[Clock]:
    if not STAT.exists() or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("no name space of its own can be had here: unshare is not allowed.")
    yield Clock(tmp_path / "stat")


def holdfast_at(clock: Clock, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*clock.inside, *command(home, *words)], capture_output=True, text=True, env=environment(), timeout=120)


@pytest.mark.parametrize("seconds", [-3600, -5, 5, 3600])
def test_status_and_stop_find_a_gateway_after_the_clock_was_set(tmp_path: Path, clock: Clock, seconds: int) -> None:
    """C20, C28, D9: it is asked, told by its marker and ends by itself, not by force; so does one that retires beside it."""
    with Serving(tmp_path / "home", inside=clock.inside) as serving:
        front = serving.reaped()
        session_id = serving.new_session()
        serving.post(session_id, "hang")
        serving.wait_for(session_id, state="running")
        serving.order("/api/admin/restart")
        wait_until(lambda: [other["pid"] for other in serving.written["retiring"]] == [front.pid])
        clock.step(seconds)
        said = holdfast_at(clock, serving.home, "status")
        assert said.returncode == 0 and f"process {front.pid}, 1 turn" in said.stdout
        said = holdfast_at(clock, serving.home, "stop")
        assert (said.returncode, said.stdout[:9]) == (0, "Stopped (") and "killed" not in said.stderr, said
        assert serving.processes() == []
        assert front.wait(10) == 0 and serving.written["gateway_state"] == "stopped"


@pytest.mark.parametrize("seconds", [-5, 5])
def test_a_clock_that_is_set_hides_no_process_of_a_chain_from_another(tmp_path: Path, clock: Clock, seconds: int) -> None:
    """C20, C30: before and after a hand-over; a signal to the process in front still stops the one that serves."""
    with Serving(tmp_path / "home", inside=clock.inside) as serving:
        old = serving.pid
        clock.step(seconds)
        serving.order("/api/admin/restart")
        wait_until(lambda: serving.pid != old)
        wait_until(lambda: len(serving.processes()) == 2)
        clock.step(2 * seconds)
        assert serving.stop(signal.SIGTERM) == 75
        assert serving.processes() == [] and serving.written["gateway_state"] == "running"


def test_a_life_is_named_without_the_time_of_day(clock: Clock) -> None:
    """C20: the same process, the same name; though the time at which it started is another one."""
    us = os.getpid()
    before = clock.created(us)
    named = ProcessId(us, processes.this_process().started_at, processes.boot_id())
    clock.step(90)
    assert clock.created(us) - before > 80, "this clock does what it says"
    assert processes.this_process() == named and processes.is_alive(named)
    assert not processes.is_alive(ProcessId(us, named.started_at + 10, named.boot_id)), "another life of the same number"
    assert not processes.is_alive(ProcessId(us, named.started_at, "another boot"))


def test_a_process_that_is_over_or_a_zombie_lives_no_more_and_hears_nothing() -> None:
    """C20"""
    with subprocess.Popen(["sleep", "300"]) as process:
        named = processes.with_pid(process.pid)
        assert named is not None and processes.is_alive(named)
        assert not processes.send_signal(ProcessId(named.pid, named.started_at + 10, named.boot_id), signal.SIGKILL), "not meant for it"
        assert process.poll() is None
        assert processes.send_signal(named, signal.SIGKILL)
        wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE)
        assert not processes.is_alive(named)
    assert not processes.is_alive(named) and not processes.send_signal(named, signal.SIGTERM)


def test_what_names_no_life_is_read_as_none() -> None:
    """C20, D7"""
    named = processes.this_process().fields
    assert process_in(named) == processes.this_process()
    for field in named:
        assert process_in({**named, field: None}) is None
        assert process_in({name: value for name, value in named.items() if name != field}) is None
