"""One stop of everything that lives on a home, whichever of its processes hears of it, and whatever is going on there."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from holdfast import locks
from tests.e2e.command_line import command, environment, holdfast, process_fields
from tests.e2e.serving import Serving, freeze, hand_over, now, running, wait_until
from tests.e2e.test_marker import put
from tests.e2e.test_windows import STUMBLING, gone, is_interrupted_once


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    with Serving(tmp_path / "home", module=STUMBLING) as started:
        yield started


@pytest.mark.parametrize("target", ["front", "retiring", "serving"])
@pytest.mark.parametrize("announced", [False, True], ids=["bare", "announced"])
def test_a_signal_to_any_process_of_a_chain_is_one_stop_of_the_whole(serving: Serving, target: str, announced: bool) -> None:
    """C30, C28, C26: each turn is interrupted once, for the reason its user was told; the process in front ends last."""
    pids = {"front": serving.pid}
    pids["retiring"] = hand_over(serving)
    sessions = [running(serving, "tick")]
    pids["serving"] = hand_over(serving)
    sessions.append(running(serving, "tick"))
    wait_until(lambda: [other["pid"] for other in serving.status()["retiring"]] == [pids["retiring"]])
    front = serving.process
    assert front is not None and len(set(pids.values())) == 3
    os.kill(pids[target], signal.SIGUSR1 if announced else signal.SIGTERM)
    assert front.wait(30) == (0 if announced else 75)
    assert gone(serving), "the process in front ends last"
    assert serving.written["gateway_state"] == ("stopped" if announced else "running")
    is_interrupted_once(serving, sessions[0])
    wait_until(lambda: serving.session(sessions[1])["turns"][0]["attempt"] == 2)
    told = [[m["text"] for m in serving.session(s)["messages"] if m["role"] == "notice"] for s in sessions]
    assert told[0] == told[1] and len(told[0]) == 1


@pytest.mark.parametrize("target", ["front", "retiring"])
def test_a_marker_for_a_process_that_serves_no_more_stops_the_whole(serving: Serving, target: str) -> None:
    """C28, D1: written from a status file that was read a moment too early."""
    pids = {"front": serving.pid}
    pids["retiring"] = hand_over(serving)
    wait_until(lambda: serving.status()["retiring"] == [])
    session_id = running(serving, "tick")
    hand_over(serving)
    front = serving.reaped()
    put(serving, process_fields(pids[target]) | {"written_at": now()})
    assert front.wait(30) == 0 and gone(serving)
    assert serving.written["gateway_state"] == "stopped"
    is_interrupted_once(serving, session_id)


def test_a_stop_of_a_home_that_nobody_serves_ends_what_retires_there(serving: Serving) -> None:
    """C28: the successor is dead, and a turn of the one before it still runs."""
    session_id, front = running(serving, "tick"), serving.reaped()
    os.kill(hand_over(serving), signal.SIGKILL)
    said = holdfast(serving.home, "stop")
    assert said.code == 0, said.err
    assert gone(serving) and front.wait(10) == 1 and serving.written["gateway_state"] == "stopped"
    is_interrupted_once(serving, session_id)


def test_a_stop_reaches_those_that_retire_also_when_the_one_that_serves_is_frozen(tmp_path: Path) -> None:
    """C28, C30, A17, C29: what can be stopped in good order is not killed with what cannot, and its turn counts no crash. The command waits
    as long as the processes themselves may take, whatever its own settings are.
    """
    with Serving(tmp_path / "home", module=STUMBLING, stop_timeout_s="4") as serving:
        session_id, front = running(serving, "tick"), serving.reaped()
        freeze(serving, hand_over(serving))
        said = holdfast(serving.home, "stop")
        assert said.code == 1 and "No turn was running." in said.err and "after 9.0 s" in said.err
        assert front.wait(10) is not None and gone(serving) and serving.written["gateway_state"] == "stopped"
        is_interrupted_once(serving, session_id)


def test_a_stop_finds_a_process_that_has_not_loaded_yet(tmp_path: Path) -> None:
    """C28: frozen in its first moments, it has written no status file and listens nowhere."""
    serving = Serving(tmp_path / "home")
    serving.launch()
    process = serving.reaped()
    try:
        wait_until(lambda: locks.living(serving.home) != [])
        process.send_signal(signal.SIGSTOP)
        assert not (serving.home / "status.json").exists(), "the rest of it has yet to be loaded"
        stopping = subprocess.Popen(command(serving.home, "stop"), env=environment(), stdout=subprocess.PIPE, text=True)
        wait_until((serving.home / "planned-stop.json").exists)
        process.send_signal(signal.SIGCONT)
        assert stopping.communicate(timeout=30)[0].startswith(f"Stopped (process {process.pid}") and stopping.returncode == 0
        assert process.wait(10) is not None and locks.living(serving.home) == []
    finally:
        process.kill()


def test_a_stop_reaches_the_others_also_when_it_cannot_be_recorded(tmp_path: Path) -> None:
    """C30, C23: the disk hangs, so they are signalled, and each ends by its deadline."""
    with Serving(tmp_path / "home", module=STUMBLING, stop_timeout_s="4") as serving:
        retiring = serving.pid
        running(serving, "tick")
        hand_over(serving)
        (serving.home / "stumble").write_text("disk hang")
        wait_until((serving.home / "hung").exists)
        front = serving.reaped()
        os.kill(retiring, signal.SIGTERM)
        wait_until(lambda: gone(serving))
        assert front.wait(10) == 75 and serving.written["gateway_state"] == "running"


def test_a_stop_during_a_pause_stays(serving: Serving) -> None:
    """C28, C21: the turn that runs is interrupted; the pause holds for the next start."""
    front, session_id = serving.reaped(), running(serving, "tick")
    serving.order("/api/admin/pause", for_s=600)
    assert holdfast(serving.home, "stop").code == 0 and gone(serving)
    assert front.wait(10) == 0 and serving.written["gateway_state"] == "stopped"
    serving.start()
    assert serving.written["gateway_state"] == "paused"
    serving.order("/api/admin/unpause")
    wait_until(lambda: serving.session(session_id)["turns"][0]["attempt"] == 2)


def test_an_operators_stop_during_an_unplanned_drain_stays(tmp_path: Path) -> None:
    """C28, C18: by HTTP, after a bare signal; beside a process that retires."""
    with Serving(tmp_path / "home", module=STUMBLING, drain_timeout_s="60") as serving:
        sessions = [running(serving, "tick")]
        hand_over(serving)
        front = serving.reaped()
        sessions.append(running(serving, "tick"))
        os.kill(serving.pid, signal.SIGTERM)
        wait_until(lambda: serving.written["gateway_state"] == "draining")
        with subprocess.Popen(command(serving.home, "stop"), stdout=subprocess.PIPE, env=environment()) as stop:
            wait_until(lambda: serving.written["why"] in ("asked over HTTP", "planned-stop.json"))
            assert stop.poll() is None, "it waits for the drain"
            (serving.home / "enough").touch()
            out, _ = stop.communicate(timeout=60)
        assert stop.returncode == 0 and b"Stopped" in out and gone(serving)
        assert front.wait(10) == 0 and serving.written["gateway_state"] == "stopped"
        serving.start()
        for session_id in sessions:
            assert [(t["outcome"], t["attempt"]) for t in serving.session(session_id)["turns"]] == [("completed", 1)]


def test_an_operators_stop_while_it_ends_to_be_restarted_is_a_stop(tmp_path: Path) -> None:
    """C28, C9: no start-up takes the note of the restart for the wish to come back."""
    with Serving(tmp_path / "home", module=STUMBLING, supervisor="launchd", drain_timeout_s="60") as serving:
        session_id, process = running(serving, "tick"), serving.reaped()
        serving.order("/api/admin/restart")
        wait_until(lambda: serving.written["gateway_state"] == "draining")
        with subprocess.Popen(command(serving.home, "stop"), stdout=subprocess.PIPE, env=environment()) as stop:
            wait_until(lambda: "asked to stop" in (serving.home / "holdfast.log").read_text())
            (serving.home / "enough").touch()
            out, _ = stop.communicate(timeout=60)
        assert stop.returncode == 0 and b"Stopped" in out
        assert process.wait(10) == 0 and serving.written["gateway_state"] == "stopped"
        assert not (serving.home / "restart-pending.json").exists()
        serving.start()
        assert [(turn["outcome"], turn["attempt"]) for turn in serving.session(session_id)["turns"]] == [("completed", 1)]


@pytest.mark.parametrize(("by", "code", "stays"), [(signal.SIGTERM, 75, False), (signal.SIGUSR1, 0, True), (None, 0, True)])
def test_a_stop_of_a_start_that_hangs_ends_it_at_once(tmp_path: Path, by: int | None, code: int, stays: bool) -> None:
    """C28, C26, C17: it has begun nothing yet; only an announced stop stays. Otherwise it leaves a state that brings it back."""
    serving = Serving(tmp_path / "home")
    serving.home.mkdir()
    db = apsw.Connection(str(serving.home / "holdfast.db"))
    db.execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; CREATE TABLE nothing (n)")
    try:
        serving.launch()
        process = serving.reaped()
        wait_until(lambda: (serving.home / "status.json").exists() and serving.pid == process.pid)
        if by is None:
            assert holdfast(serving.home, "stop").code == 0
        else:
            process.send_signal(by)
        assert process.wait(30) == code
        assert serving.written["gateway_state"] in (("stopped",) if stays else ("starting", "running"))
    finally:
        db.close()


def test_stops_at_any_moment_of_a_hand_over_leave_nothing_behind(serving: Serving) -> None:
    """C28: no named places."""
    for number in range(6):
        session_id, front = running(serving, "tick"), serving.reaped()
        with subprocess.Popen(command(serving.home, "restart"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()):
            time.sleep(0.2 + number * 0.15)
            said = holdfast(serving.home, "stop")
        assert said.code == 0 and gone(serving), (number, said.err, serving.processes())
        assert serving.written["gateway_state"] == "stopped" and front.wait(10) == 0
        is_interrupted_once(serving, session_id)
        complete(serving, session_id)


def complete(serving: Serving, session_id: str) -> None:
    (serving.home / "enough").touch()
    serving.wait_for(session_id)
    (serving.home / "enough").unlink()
