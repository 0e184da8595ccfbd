"""What the start of a container does, and what its files promise. Docker itself does not run here."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.core.lifecycle import GatewayState
from holdfast.install.container import held_down
from holdfast.install.description import MARGIN_S
from holdfast.install.entry import is_waiting
from tests.install.texts import DEPLOY, container

DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
COMPOSE = (DEPLOY / "compose.yaml").read_text()
DOWN = {GatewayState.STOPPED, GatewayState.STARTUP_FAILED}


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


@pytest.mark.parametrize("state", GatewayState)
def test_every_state_but_stopped_and_failed_brings_it_back(state: GatewayState) -> None:
    """C17, C18."""
    assert (held_down({"gateway_state": state}, restart_noted=False) is not None) == (state in DOWN)


@pytest.mark.parametrize("status", [None, {}, {"gateway_state": None}, {"gateway_state": "new"}])
def test_without_a_status_that_says_otherwise_it_starts(status: dict | None) -> None:
    """C17: the first start, and a file that nobody can read."""
    assert held_down(status, restart_noted=False) is None


@pytest.mark.parametrize("state", DOWN)
def test_a_restart_that_was_asked_for_brings_it_back_although_it_ended_as_stopped(state: GatewayState) -> None:
    """C9, C19."""
    assert held_down({"gateway_state": state}, restart_noted=True) is None


class Entry:
    """A container's start-up on a home folder, as a process."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST")}
        # It cannot serve on such a port and ends with 78: enough to see that it tried.
        environment = kept | {"HOLDFAST_HOME": str(home), "HOLDFAST_PORT": "no port"}
        words = [sys.executable, "-P", "-m", "holdfast.install.entry"]
        self.process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)

    def __enter__(self) -> "Entry":
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.communicate()


def left(home: Path, state: str) -> Path:
    home.mkdir(mode=0o700)
    (home / "status.json").write_text(json.dumps({"pid": 1, "process_started_at": 1, "gateway_state": state}))
    return home


def test_a_gateway_that_was_killed_is_served_again(tmp_path: Path) -> None:
    """C17."""
    with Entry(left(tmp_path / "home", "draining")) as entry:
        _, said = entry.process.communicate(timeout=30)
    assert entry.process.returncode == 78 and "no port" in said


def test_a_gateway_that_was_stopped_stays_down_and_its_container_does_not_end(tmp_path: Path) -> None:
    """C18: it would only be started again; so it waits, and ends when the container does."""
    with Entry(left(tmp_path / "home", "stopped")) as entry:
        wait_until(lambda: is_waiting(entry.home))
        assert entry.process.poll() is None
        entry.process.send_signal(signal.SIGTERM)
        _, said = entry.process.communicate(timeout=30)
    assert entry.process.returncode == 0
    assert "does not start: it was stopped" in said and "`holdfast service start`" in said
    assert not is_waiting(entry.home)


def test_a_stop_that_is_taken_back_starts_the_waiting_container(tmp_path: Path) -> None:
    """C18."""
    with Entry(left(tmp_path / "home", "stopped")) as entry:
        wait_until(lambda: is_waiting(entry.home))
        (entry.home / "status.json").unlink()
        _, said = entry.process.communicate(timeout=30)
    assert entry.process.returncode == 78 and "no port" in said


def test_nothing_waits_where_no_container_was_started(tmp_path: Path) -> None:
    assert not is_waiting(tmp_path) and not is_waiting(tmp_path / "missing")


# --- the files


def instruction(name: str) -> str:
    (found,) = re.findall(rf"^{name} ((?:.*\\\n)*.*)$", DOCKERFILE, re.MULTILINE)
    return str(found)


def setting(name: str) -> str:
    (found,) = re.findall(rf"^ +{name}: *(.+)$", COMPOSE, re.MULTILINE)
    return str(found).strip('"')


def test_the_image_starts_through_the_entry_as_process_1_and_not_as_root() -> None:
    """C17: no shell that would swallow the signals, no init that would end the container when a process hands over."""
    assert json.loads(instruction("ENTRYPOINT")) == ["python", "-P", "-m", "holdfast.install.entry"]
    assert instruction("USER") == "holdfast" and instruction("STOPSIGNAL") == "SIGTERM"
    assert DOCKERFILE.index("\nUSER ") < DOCKERFILE.index("\nENTRYPOINT ")
    assert setting("init") == "false"


def test_the_home_folder_is_a_volume_in_both_files() -> None:
    home = container().home
    assert instruction("VOLUME") == home and f"HOLDFAST_HOME={home}" in instruction("ENV") and f"- home:{home}\n" in COMPOSE
    assert f"mkdir --mode=0700 {home}" in DOCKERFILE and f"chown holdfast:holdfast {home}" in DOCKERFILE


def test_the_container_is_asked_for_its_health_where_it_listens() -> None:
    command = json.loads(re.sub(r".*CMD ", "", instruction("HEALTHCHECK"), flags=re.DOTALL))
    port = instruction("EXPOSE")
    assert f"http://127.0.0.1:{port}/healthz" in command[-1] and f"HOLDFAST_PORT={port}" in instruction("ENV")
    assert f'- "127.0.0.1:{port}:{port}"' in COMPOSE
    compile(command[-1], "healthcheck", "exec")


def test_the_container_is_killed_only_after_a_stop_must_be_over() -> None:
    """C23."""
    told = setting("HOLDFAST_STOP_TIMEOUT_S")
    assert told == str(container().stop_timeout_s) and f"HOLDFAST_STOP_TIMEOUT_S={told}" in instruction("ENV")
    assert setting("stop_grace_period") == f"{int(told) + MARGIN_S}s"


def test_a_restart_of_the_gateway_and_of_the_machine_bring_the_container_back() -> None:
    """C9: exit code 75; `on-failure` would forget it when the machine starts."""
    assert setting("restart") == "unless-stopped"


def test_every_file_the_image_is_built_from_exists_and_is_let_through() -> None:
    let_through = re.findall(r"^!(.+)$", (DEPLOY / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    copied = [name for words in re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE) for name in words.split()]
    assert sorted(copied) == sorted(let_through)
    assert all((DEPLOY.parent / name).exists() for name in copied)


def test_the_image_is_named_plainly_and_no_registry_is_named() -> None:
    assert re.fullmatch(r"python:3\.\d+-slim", instruction("FROM"))
    assert setting("image") == "holdfast"
