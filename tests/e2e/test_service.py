"""Holdfast as a service of a real systemd, which runs in namespaces of its own."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from holdfast.install import systemd
from holdfast.install.description import Service as Described
from holdfast.install.description import describe
from tests.e2e.command_line import Said
from tests.e2e.serving import wait_until
from tests.install import machine as machines
from tests.install.machine import Machine


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    if missing := machines.missing():
        pytest.skip(f"No service was tried: {missing}.")
    with Machine(tmp_path_factory.mktemp("machine") / "root") as machine:
        yield machine


class Service:
    """A home folder and the service that serves it. Its folder has everything in its name that a unit could misread."""

    def __init__(self, machine: Machine, folder: Path, settings: str = "") -> None:
        self.machine, self.home, self.name = machine, folder / '50%h of "it" at $HOME', folder.name.replace("_", "-")
        self.home.mkdir(mode=0o700)
        (self.home / "config.toml").write_text(settings)

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *exc: object) -> None:
        """Whatever a test left: systemd must be as it was before."""
        self.machine.run("systemctl", "--user", "kill", "--signal=KILL", self.name)
        self.machine.run("systemctl", "--user", "disable", "--now", self.name)
        self.unit.unlink(missing_ok=True)
        shutil.rmtree(self.unit.with_suffix(".service.d"), ignore_errors=True)

    def add(self, text: str) -> None:
        """A drop-in, as an operator would write it."""
        folder = self.unit.with_suffix(".service.d")
        folder.mkdir()
        (folder / "own.conf").write_text(text)

    @property
    def unit(self) -> Path:
        return self.machine.units / f"{self.name}.service"

    def __call__(self, word: str, *words: str) -> Said:
        """`holdfast service WORD`."""
        return self.machine.run(*self.command("service", word, "--name", self.name, *words))

    def must(self, word: str, *words: str) -> Said:
        said = self(word, *words)
        assert said.code == 0, f"{word}: {said.out}{said.err}"
        return said

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "holdfast", "--home", str(self.home), *words]

    def show(self, field: str) -> str:
        return self.machine.run("systemctl", "--user", "show", self.name, f"--property={field}", "--value").out.strip()

    @property
    def main_pid(self) -> int:
        return int(self.show("MainPID"))

    @property
    def status(self) -> dict[str, Any]:
        return dict(json.loads((self.home / "status.json").read_text()))

    def is_up(self) -> bool:
        return self("status").code == 0

    def turns(self) -> list[tuple[str, int]]:
        """Outcome and attempt of every turn of the one conversation there is."""
        return [(turn["outcome"], turn["attempt"]) for turn in self._conversation()["turns"]]

    def cuts(self) -> list[str]:
        """Why it was interrupted, each time."""
        return [message["reason"] for message in self._conversation()["messages"] if message["role"] == "interruption"]

    def _conversation(self) -> dict[str, Any]:
        (session,) = self.machine.run(*self.command("sessions", "--json")).json["sessions"]
        return dict(self.machine.run(*self.command("show", session["session_id"], "--json")).json)


class Counting:
    """`holdfast send new "count N 0.1"`: a person who watches an answer come, whatever happens to the gateway."""

    def __init__(self, service: Service, last: int) -> None:
        self._process = service.machine.start(*service.command("send", "new", f"count {last} 0.1"))
        self._expected = " ".join(str(number) for number in range(1, last + 1))
        assert self._process.stdout is not None
        self._seen = os.read(self._process.stdout.fileno(), 4).decode()

    def __enter__(self) -> "Counting":
        return self

    def __exit__(self, *exc: object) -> None:
        for process in psutil.Process(self._process.pid).children() if self._process.poll() is None else ():
            process.kill()
        self._process.communicate()

    def is_whole(self) -> bool:
        out, err = self._process.communicate(timeout=60)
        assert self._process.returncode == 0, err
        return (self._seen + out).strip() == self._expected


def test_a_service_comes_back_after_a_kill_goes_on_where_it_was_and_stays_down_when_stopped(machine: Machine, tmp_path: Path) -> None:
    """C17, C18, C20, P1: installed and seen to be up; killed in the middle of an answer; stopped; started; removed."""
    with Service(machine, tmp_path) as service:
        said = service.must("install", "--user")
        first = service.main_pid
        assert f"process {first} answers at" in said.out and service.status["pid"] == first
        shown = service.must("status", "--json").json
        assert (shown["up"], shown["enabled"], shown["stale"], shown["restarts"]) == (True, True, [], 0)

        with Counting(service, 30) as counting:  # Longer than two restarts take on a busy machine.
            assert machine.run("kill", "-9", str(first)).code == 0
            assert counting.is_whole()
        assert service.turns() == [("completed", 2)]
        assert service.main_pid != first and service.show("NRestarts") == "1"

        service.must("stop")
        assert service.status["gateway_state"] == "stopped"
        assert (service.show("ActiveState"), service.show("Result"), service.main_pid) == ("inactive", "success", 0)
        assert service("status").code == 1
        service.must("start")
        assert service.main_pid == service.status["pid"]
        service.must("uninstall")
        assert not service.unit.exists() and service.show("LoadState") == "not-found"
        assert service.status["gateway_state"] == "stopped" and (service.home / "holdfast.db").exists()


def test_a_restart_of_a_service_cuts_no_turn_and_leaves_its_supervisor_content(machine: Machine, tmp_path: Path) -> None:
    """C9, C19, C24: another main process, the same service; the old one finishes its turn, and the watchdog hears the new one."""
    with Service(machine, tmp_path) as service:
        service.add("[Service]\nWatchdogSec=8\n")
        service.must("install", "--user")
        old = service.main_pid
        with Counting(service, 40) as counting:
            service.must("restart")
            new = service.main_pid
            assert new != old and service.status["pid"] == new
            heard = int(service.show("WatchdogTimestampMonotonic"))
            assert counting.is_whole()
        assert service.turns() == [("completed", 1)]
        wait_until(lambda: int(service.show("WatchdogTimestampMonotonic")) > heard)
        assert service.main_pid == new and service.show("NRestarts") == "0"


def test_a_signal_nobody_announced_brings_it_back_and_its_turn_goes_on(machine: Machine, tmp_path: Path) -> None:
    """C26, C17, P1: a bare SIGTERM in the middle of an answer, then a SIGINT."""
    with Service(machine, tmp_path) as service:
        service.must("install", "--user")
        with Counting(service, 30) as counting:  # Longer than two restarts take on a busy machine.
            for restarts, name in enumerate(("TERM", "INT"), 1):
                before = service.main_pid
                assert machine.run("kill", f"-{name}", str(before)).code == 0
                wait_until(lambda before=before: service.main_pid not in (0, before) and service.is_up())  # type: ignore[misc]
                assert service.show("NRestarts") == str(restarts)
            assert counting.is_whole()
        assert service.turns() == [("completed", 3)] and service.cuts() == ["shutdown_timeout"] * 2
        assert service.status["supervisor"] == "systemd"


@pytest.mark.parametrize("how", ["systemctl", "holdfast"])
def test_a_service_that_is_stopped_stays_down_and_is_no_failure(machine: Machine, tmp_path: Path, how: str) -> None:
    """C26, C18: `systemctl stop` is nobody's word, and leaves `running`; `holdfast stop` is an operator's, and leaves `stopped`."""
    with Service(machine, tmp_path) as service:
        service.must("install", "--user")
        pid = service.main_pid
        with Counting(service, 25) as counting:
            if how == "systemctl":
                assert machine.run("systemctl", "--user", "stop", service.name).code == 0
            else:
                assert machine.run(*service.command("stop")).code == 0
            wait_until(lambda: service.show("ActiveState") == "inactive")
            assert (service.show("SubState"), service.show("Result"), service.main_pid) == ("dead", "success", 0)
            assert service.status["gateway_state"] == {"systemctl": "running", "holdfast": "stopped"}[how]
            assert machine.run("systemctl", "--user", "is-failed", service.name).out.strip() == "inactive"
            said = machine.run(*service.command("status"))
            gone = f"The last one (process {pid}) is gone; its last state was"
            words = {
                "systemctl": f"{gone} running: not running, comes back with its supervisor (systemd).",
                "holdfast": f"{gone} stopped. Start it with `holdfast serve --home ",
            }
            assert said.code == 1 and words[how] in said.out
            assert machine.run("systemctl", "--user", "start", service.name).code == 0
            assert counting.is_whole()
        assert service.turns() == [("completed", 2)] and service.cuts() == ["shutdown_timeout"]
        assert service.show("NRestarts") == "0"


def test_a_service_that_hangs_and_is_stopped_by_force_stays_down(machine: Machine, tmp_path: Path) -> None:
    """C28, C29: systemd is told that this end is wanted, before the kill that it would take for a crash."""
    with Service(machine, tmp_path) as service:
        service.must("install", "--user")
        machine.run("kill", "-STOP", str(service.main_pid))
        said = machine.run(*service.command("stop", "--timeout", "1"))
        assert said.code == 1 and "so it was killed" in said.err and "No turn was running." in said.err
        wait_until(lambda: service.show("ActiveState") in ("inactive", "failed"))
        assert service.main_pid == 0 and service.status["gateway_state"] == "stopped" and service.show("NRestarts") == "0"
        service.must("start")
        assert service.status["gateway_state"] == "running"


def test_systemctl_restart_is_a_stop_nobody_announced_and_a_start(machine: Machine, tmp_path: Path) -> None:
    """C26"""
    with Service(machine, tmp_path) as service:
        service.must("install", "--user")
        before = service.main_pid
        with Counting(service, 30) as counting:  # Longer than two restarts take on a busy machine.
            assert machine.run("systemctl", "--user", "restart", service.name).code == 0
            assert service.main_pid not in (0, before) and service.show("NRestarts") == "0"
            assert counting.is_whole()
        assert service.turns() == [("completed", 2)] and service.cuts() == ["shutdown_timeout"]


def test_a_background_process_outlives_every_restart_of_its_service_and_ends_with_an_operators_stop(
    machine: Machine, tmp_path: Path
) -> None:
    """C15, E5: systemd kills what is left in the service, and does not reach what runs in a scope of its own."""
    with Service(machine, tmp_path) as service:
        service.must("install", "--user")
        assert machine.run(*service.command("send", "new", "background while [ ! -e go ]; do sleep 0.1; done; exit 7")).code == 0

        def runs() -> list[str]:
            return machine.run("pgrep", "-f", "while . ! -e go").out.split()

        places = [machine.run("cat", f"/proc/{pid}/cgroup").out.strip() for pid in runs()]
        assert places and all(place.endswith(".scope") for place in places)
        for words in (("systemctl", "--user", "restart"), ("systemctl", "--user", "kill", "--signal=KILL")):
            before = service.main_pid
            assert machine.run(*words, service.name).code == 0
            wait_until(lambda before=before: service.main_pid not in (0, before) and service.is_up())  # type: ignore[misc]
            assert runs()
        assert machine.run("systemctl", "--user", "stop", service.name).code == 0
        (folder,) = (service.home / "work").iterdir()
        (folder / "go").touch()
        wait_until(lambda: not runs())
        service.must("start")
        wait_until(lambda: [turn[0] for turn in service.turns()] == ["completed", "completed"])
        assert "exit code 7" in machine.run(*service.command("show", "last")).out
        assert machine.run(*service.command("send", "new", "background sleep 1234")).code == 0
        assert machine.run(*service.command("stop")).code == 0
        assert machine.run("pgrep", "-f", "sleep 1234").code == 1


# Stands in for the gateway: says that it is ready, notes its start, and ends in its first lives as it is told.
ENDS = """
import os, signal, socket, sys
notes, end, lives = sys.argv[1:]
with open(notes, "a") as file:
    file.write("start ")
wire = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
wire.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
if open(notes).read().count("start") <= int(lives):
    os.kill(os.getpid(), -int(end)) if int(end) < 0 else sys.exit(int(end))
signal.pause()
"""


def test_systemd_starts_what_died_or_asks_for_it_and_nothing_else(machine: Machine, tmp_path: Path) -> None:
    """C9, C17, C26: the unit's rules, played by a real systemd: 0 and 78 stay down, 75 and everything else comes back, however often: no
    number of starts puts it down for good.
    """
    (tmp_path / "ends.py").write_text(ENDS)
    lives = {1: 12}

    def begin(end: int) -> str:
        name = f"ends-{end}".replace("--", "-by-")
        command = (sys.executable, str(tmp_path / "ends.py"), str(tmp_path / name), str(end), str(lives.get(end, 1)))
        service = msgspec.structs.replace(_gone(tmp_path, name), command=command)
        # Without the pause between starts, by which the unit is kind to the machine.
        (machine.units / f"{name}.service").write_text(systemd.unit(service) + "[Service]\nRestartSec=0.05\n")
        return name

    stay_down, come_back = [begin(end) for end in (0, 78)], [begin(end) for end in (1, 69, 75, -signal.SIGKILL)]
    machine.run("systemctl", "--user", "daemon-reload")
    # One after the other: when the last has come back, the first would have too.
    for name in (*stay_down, *come_back):
        machine.run("systemctl", "--user", "start", name)

    def starts(name: str) -> int:
        return (tmp_path / name).read_text().count("start")

    wait_until(lambda: [starts(name) for name in come_back] == [13, 2, 2, 2])
    states = machine.run("systemctl", "--user", "show", *stay_down, "--property=SubState", "--value").out.split()
    assert [starts(name) for name in stay_down] == [1, 1] and states == ["dead", "failed"]
    machine.run("systemctl", "--user", "stop", *come_back)


def test_a_service_that_cannot_start_says_why_and_does_not_try_for_ever(machine: Machine, tmp_path: Path) -> None:
    """Exit code 78 is not tried again; what the process said is told, and nothing is left running or enabled."""
    with Service(machine, tmp_path, 'host = "nowhere.invalid"\nallowed_hosts = ["elsewhere"]\n') as service:
        said = service("install", "--user")
        assert said.code == 1 and "did not come up" in said.err and "Cannot listen on nowhere.invalid" in said.err
        shown = service("status", "--json")
        assert shown.code == 1
        assert (shown.json["up"], shown.json["enabled"], shown.json["pid"]) == (False, False, None)
        assert "Cannot listen on nowhere.invalid" in service.must("logs").out
        (service.home / "config.toml").write_text("port = 'none'\n")
        assert "Its settings are wrong" in service("status").out


# Another program that has the port.
HOLDS = """
import signal, socket
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", 8420))
listener.listen()
print("held", flush=True)
signal.pause()
"""


def test_a_port_in_other_hands_is_tried_again_until_it_is_free(machine: Machine, tmp_path: Path) -> None:
    """C26: exit code 69; no human has to do anything."""
    with Service(machine, tmp_path) as service:
        service.must("install", "--user")
        service.must("stop")
        with machine.start(sys.executable, "-c", HOLDS) as other:
            assert other.stdout is not None and other.stdout.readline() == "held\n"
            said = service("start")
            assert said.code == 1 and "Port 8420 on 127.0.0.1 is taken by another program." in said.err
            wait_until(lambda: int(service.show("NRestarts")) >= 2)
            assert service.show("ActiveState") == "activating"
            for process in psutil.Process(other.pid).children() or [psutil.Process(other.pid)]:
                process.kill()
        wait_until(service.is_up)
        assert service.status["gateway_state"] == "running"


def test_a_name_that_serves_another_home_folder_is_not_taken_over(machine: Machine, tmp_path: Path) -> None:
    with Service(machine, tmp_path) as service:
        text = systemd.unit(_gone(tmp_path, service.name))
        service.unit.write_text(text)
        said = service("install", "--user")
        assert said.code == 1 and str(tmp_path / "moved") in said.err and "--name" in said.err
        assert service.unit.read_text() == text


def test_a_unit_that_no_longer_fits_is_told_with_what_to_do(machine: Machine, tmp_path: Path) -> None:
    """The interpreter and the home folder it names are gone, and its text is not what this version writes."""
    with Service(machine, tmp_path) as service:
        service.unit.write_text(systemd.unit(_gone(tmp_path, service.name)) + "Nice=5\n")
        said = service("status")
        assert said.code == 1
        assert f"interpreter {tmp_path}/gone/python no longer exists" in said.out
        assert f"home folder {tmp_path}/moved no longer exists" in said.out
        assert "changed by hand" in said.out


def _gone(folder: Path, name: str) -> Described:
    return describe(
        name=name,
        python=str(folder / "gone" / "python"),
        home=str(folder / "moved"),
        folder=str(folder),
        user=None,
        drain_timeout_s=0,
        environment={},
    )
