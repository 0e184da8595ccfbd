"""What a container starts, again and again: each end of the gateway, and what the next start makes of it."""

import signal
import sys
from pathlib import Path

import pytest

from holdfast.install.entry import is_waiting
from tests.e2e.command_line import holdfast
from tests.e2e.serving import Serving, wait_until

ENTRY = (sys.executable, "-P", "-m", "holdfast.install.entry")


class Container(Serving):
    """Its process is started by the entry. It is not process 1 here, so it is told who would start it again."""

    def __init__(self, home: Path, **settings: str) -> None:
        super().__init__(home, command=ENTRY)
        self.configure(home=str(home), supervisor="docker", port=str(self.port), **settings)


def running(container: Serving, text: str) -> str:
    session_id = container.new_session()
    container.post(session_id, text)
    container.wait_for(session_id, state="running")
    return session_id


def reasons(container: Serving, session_id: str) -> list[str]:
    return [message["reason"] for message in container.session(session_id)["messages"] if message["role"] == "interruption"]


def test_a_restart_ends_with_75_and_the_next_start_serves_although_the_state_is_stopped(tmp_path: Path) -> None:
    """C9, C17, C19: the note that the restart leaves tells it from an operator's stop; it is gone once it has served."""
    with Container(tmp_path / "home") as container:
        session_id, process = running(container, "count 40 0.05"), container.reaped()
        container.order("/api/admin/restart")
        assert process.wait(30) == 75
        note = container.home / "restart-pending.json"
        assert container.written["gateway_state"] == "stopped" and note.exists()
        container.start()
        session = container.wait_for(session_id)
        assert reasons(container, session_id) == ["restart_timeout"] and session["turns"][-1]["outcome"] == "completed"
        wait_until(lambda: not note.exists())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_alone_is_followed_by_a_start_that_serves(tmp_path: Path, number: int) -> None:
    """C17, C26: the container is recreated, or its machine goes down."""
    with Container(tmp_path / "home") as container:
        session_id = running(container, "count 40 0.05")
        assert container.stop(number) == 75
        assert (container.written["gateway_state"], container.written["supervisor"]) == ("running", "other")
        said = holdfast(container.home, "status")
        assert said.code == 1 and "its last state was running: not running, comes back with its supervisor (other)." in said.out
        container.start()
        assert container.wait_for(session_id)["turns"][-1]["outcome"] == "completed"
        assert reasons(container, session_id) == ["shutdown_timeout"]


@pytest.mark.parametrize(("asked", "reason"), [("stop", "shutdown_timeout"), ("restart", "restart_timeout")])
def test_a_kill_in_the_middle_of_a_drain_is_followed_by_a_start_that_serves(tmp_path: Path, asked: str, reason: str) -> None:
    """C17, C9, C27: whatever the drain was for, the state is `draining`; the turn continues for the reason its user was told."""
    with Container(tmp_path / "home", drain_timeout_s="60") as container:
        session_id = running(container, "count 40 0.05")
        container.order(f"/api/admin/{asked}")
        wait_until(lambda: bool(container.written["gateway_state"] == "draining"))
        container.kill()
        assert container.written["gateway_state"] == "draining"
        container.start()
        assert container.wait_for(session_id)["turns"][-1]["outcome"] == "completed"
        assert reasons(container, session_id) == [reason]


def test_an_operators_stop_is_kept_until_it_is_taken_back(tmp_path: Path) -> None:
    """C18, C26: exit code 0; the next start of the container waits, and serves once somebody wants it to."""
    with Container(tmp_path / "home") as container:
        process = container.reaped()
        assert holdfast(container.home, "stop").code == 0 and process.wait(30) == 0
        assert container.written["gateway_state"] == "stopped"
        container.launch()
        wait_until(lambda: is_waiting(container.home))
        said = holdfast(container.home, "service", "start")
        assert said.code == 0 and "The stop was undone" in said.out
        assert container.new_session()
