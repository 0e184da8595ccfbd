"""The windows of a hand-over, each held open at a named place (tests/e2e/stumbling.py) while a process is stopped, frozen or killed there.
Whatever happens, exactly one process serves or none is left, and a stop ends everything that lives on the home.
"""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from holdfast.core.shutdowns import Shutdown
from holdfast.store import SqliteStore
from tests.e2e.command_line import command, environment, holdfast, process_fields
from tests.e2e.serving import Serving, freeze, now, running, wait_until
from tests.e2e.test_marker import put

STUMBLING = "tests.e2e.stumbling"
# Where the new process is, and where the old one is.
NEW = ("loaded", "ready", "told-to-go", "about-to-serve", "serving")
OLD = ("letting-go", "let-go", "heard-serving")
# The new process has said that it serves: it is the one that was asked for.
SERVES = ("serving", "heard-serving")


@contextlib.contextmanager
def held(serving: Serving, place: str) -> Iterator[int]:
    """A hand-over that has come to this place, and the process that is held there. It is let go at the end."""
    (serving.home / "held").unlink(missing_ok=True)
    (serving.home / "stumble").write_text(f"{place} hold")
    asking = threading.Thread(target=ask_for_a_restart, args=(serving,))
    asking.start()
    try:
        wait_until(lambda: (serving.home / "held").exists() and bool((serving.home / "held").read_text()))
        yield int((serving.home / "held").read_text())
    finally:
        let_go(serving)
        asking.join(60)


def ask_for_a_restart(serving: Serving) -> None:
    """What becomes of it is the test's affair."""
    with contextlib.suppress(httpx.HTTPError), serving.client() as client:
        client.post("/api/admin/restart", json={}, timeout=60)


def let_go(serving: Serving) -> None:
    (serving.home / "stumble").unlink(missing_ok=True)


def gone(serving: Serving) -> bool:
    return serving.processes() == []


def the_other(serving: Serving, pid: int) -> int:
    """The one process besides this. While it starts a tool it looks like two for a moment."""
    found: list[int] = []

    def is_one() -> bool:
        found[:] = [process.pid for process in serving.processes() if process.pid != pid]
        return len(found) == 1

    wait_until(is_one)
    return found[0]


def is_interrupted_once(serving: Serving, session_id: str, words: str = "shutting down") -> None:
    """By the stop, for the reason its user was told, and resumed by the next start alone."""
    serving.start()
    wait_until(lambda: serving.session(session_id)["turns"][0]["attempt"] == 2)
    session = serving.session(session_id)
    assert [message["reason"] for message in session["messages"] if message["role"] == "interruption"] == ["shutdown_timeout"]
    told = [message["text"] for message in session["messages"] if message["role"] == "notice"]
    assert len(told) == 1 and words in told[0], told


def answers_people(serving: Serving) -> bool:
    session_id = serving.new_session()
    serving.post(session_id, "count 2 0")
    return bool(serving.wait_for(session_id)["messages"][-1]["text"] == "1 2")


def is_whole(serving: Serving, session_id: str) -> None:
    (serving.home / "enough").touch()
    session = serving.wait_for(session_id)
    assert [(turn["outcome"], turn["attempt"]) for turn in session["turns"]] == [("completed", 1)]
    assert [message["role"] for message in session["messages"]] == ["user", "assistant"]


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    with Serving(tmp_path / "home", module=STUMBLING) as started:
        yield started


# stops


@pytest.mark.parametrize("place", [*NEW, *OLD])
def test_a_stop_in_any_window_ends_both_processes_and_stays(serving: Serving, place: str) -> None:
    """C28, C18, D9: `stop` returns when nothing is left, and the successor has resumed nothing."""
    front, session_id = serving.reaped(), running(serving, "tick")
    with (
        held(serving, place),
        subprocess.Popen(command(serving.home, "stop"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as stop,
    ):
        wait_until(lambda: (serving.home / "planned-stop.json").exists() or serving.written["gateway_state"] != "handing_over")
        if place in (*SERVES, *OLD):  # It is held itself, and nobody may give it up.
            time.sleep(1.0)  # Long enough for the request to be under way.
            let_go(serving)
        said, trouble = stop.communicate(timeout=60)
        assert stop.returncode == 0 and b"Stopped" in said, trouble
        assert gone(serving), "nothing is left when it returns"
    assert front.wait(10) == 0 and serving.written["gateway_state"] == "stopped"
    is_interrupted_once(serving, session_id)


def test_a_restart_that_a_stop_overtook_does_not_say_that_anybody_still_serves(serving: Serving) -> None:
    """C25, C28: whoever asked for the restart hears what became of it."""
    front = serving.reaped()
    (serving.home / "stumble").write_text("loaded hold")
    words = command(serving.home, "restart")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as restart:
        wait_until((serving.home / "held").exists)
        assert holdfast(serving.home, "stop").code == 0
        assert restart.communicate(timeout=60) == (
            b"",
            b"holdfast: The new process did not take over: Holdfast was asked to stop instead. Nothing was lost.\n",
        )
    assert restart.returncode == 1 and front.wait(10) == 0


@pytest.mark.parametrize("place", ["loaded", "told-to-go", "serving", "let-go", "heard-serving"])
def test_a_marker_alone_in_any_window_ends_both_processes_and_stays(serving: Serving, place: str) -> None:
    """C28, D1: written for the process that the status file names, whichever of the two acts on it."""
    front, session_id = serving.reaped(), running(serving, "tick")
    with held(serving, place):
        put(serving, process_fields(serving.pid) | {"written_at": now()})
    wait_until(lambda: gone(serving))
    assert front.wait(10) == 0 and serving.written["gateway_state"] == "stopped"
    is_interrupted_once(serving, session_id)


@pytest.mark.parametrize("place", ["loaded", "told-to-go", "serving", "let-go", "heard-serving"])
def test_a_bare_signal_in_any_window_is_nobodys_word_and_ends_both_processes(serving: Serving, place: str) -> None:
    """C30, C26, C17: it comes back with its supervisor; the reason is the same for both."""
    front, session_id = serving.reaped(), running(serving, "tick")
    with held(serving, place):
        front.send_signal(signal.SIGTERM)
    wait_until(lambda: gone(serving))
    assert front.wait(10) == 75 and serving.written["gateway_state"] == "running"
    is_interrupted_once(serving, session_id)


@pytest.mark.parametrize("place", ["ready", "about-to-serve", "serving"])
def test_a_bare_signal_to_the_new_process_is_a_stop_of_both(serving: Serving, place: str) -> None:
    """C30: whichever process of a chain is signalled."""
    front, session_id = serving.reaped(), running(serving, "tick")
    with held(serving, place) as new:
        os.kill(new, signal.SIGTERM)
    wait_until(lambda: gone(serving))
    assert front.wait(10) == 75 and serving.written["gateway_state"] == "running"
    is_interrupted_once(serving, session_id)


# freezing, killing, taking long


@pytest.mark.parametrize("place", ["told-to-go", "serving"])
def test_an_old_process_that_was_frozen_does_not_kill_the_one_that_serves(tmp_path: Path, place: str) -> None:
    """C24, C20: its patience is over when it wakes, and what the new one said has long arrived."""
    patience_s = 10.0  # It must be frozen before that is over, also on a busy machine.
    with Serving(tmp_path / "home", module=STUMBLING, variables={"SERVING_S": str(patience_s)}) as serving:
        assert serving.process is not None
        session_id, old = running(serving, "tick"), serving.process
        with held(serving, place) as new:
            began = time.monotonic()
            freeze(serving, old.pid)
            let_go(serving)
            wait_until(lambda: serving.pid == new)
            assert answers_people(serving), "while the old one is frozen"
            time.sleep(max(0.0, began + patience_s + 1.0 - time.monotonic()))
            old.send_signal(signal.SIGCONT)
        wait_until(lambda: [other["pid"] for other in serving.status()["retiring"]] == [old.pid])
        assert serving.pid == new and answers_people(serving)
        is_whole(serving, session_id)


@pytest.mark.parametrize("place", ["loaded", "let-go", "told-to-go", "about-to-serve", "serving", "heard-serving"])
def test_after_the_death_of_the_old_process_in_any_window_the_new_one_serves(serving: Serving, place: str) -> None:
    """C20, C24, R9: a start at once is refused, because the lock is the successor's; and that one serves."""
    assert serving.process is not None
    session_id, old = running(serving, "tick"), serving.process.pid
    with held(serving, place):
        serving.kill()
        new = the_other(serving, old)
        said = holdfast(serving.home, "serve", "--port", "0")
        assert said.code == 69 and "already serves" in said.err
        let_go(serving)
        wait_until(lambda: serving.pid == new and serving.written["gateway_state"] == "running")
    assert answers_people(serving)
    wait_until(lambda: serving.session(session_id)["turns"][0]["attempt"] == 2)
    assert [message["reason"] for message in serving.session(session_id)["messages"] if message["role"] == "interruption"] == ["crash"]
    assert holdfast(serving.home, "stop").code == 0 and gone(serving)


@pytest.mark.parametrize("place", ["let-go", "told-to-go"])
def test_a_new_process_whose_predecessor_was_stopped_and_killed_does_not_serve(serving: Serving, place: str) -> None:
    """C28: the stop was on record before the new one was; whoever died of it has left its place to nobody."""

    async def tell_the_old_one(store: SqliteStore) -> None:
        new = max(owner.id for owner in await store.owners())
        await store.tell_owners(Shutdown(why="a test", planned=True), by=new)

    with held(serving, place):
        front = serving.reaped()
        serving.between_lives(tell_the_old_one)
        front.send_signal(signal.SIGKILL)
        front.wait(10)
    wait_until(lambda: gone(serving))


def test_a_new_process_waits_for_its_turn_as_long_as_it_takes(tmp_path: Path) -> None:
    """C24: replies that are being sent may take longer than anybody would wait for a process to start."""
    with Serving(tmp_path / "home", module=STUMBLING, variables={"PATIENCE_S": "4"}) as serving:
        session_id, old = running(serving, "tick"), serving.pid
        with held(serving, "let-go"):
            time.sleep(5.0)  # Longer than a successor has to be ready.
        wait_until(lambda: serving.pid != old)
        assert answers_people(serving)
        is_whole(serving, session_id)
