"""Holdfast at a terminal of its own: what Ctrl-C does, before and after a hand-over, and how often it counts."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.command_line import command, environment
from tests.e2e.serving import CTRL_C, Serving, Terminal, freeze, hand_over, running, wait_until

STUMBLING = "tests.e2e.stumbling"
FORCED = "Stopped by force. Accepted messages are on disk, and interrupted answers continue at the next start."


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    with Terminal() as made:
        yield made


@pytest.mark.parametrize("hand_overs", [0, 1, 2])
def test_one_ctrl_c_is_one_stop_with_its_drain(tmp_path: Path, terminal: Terminal, hand_overs: int) -> None:
    """C28, C30, C26: wherever the turn runs it may end within the window, and it stays stopped."""
    with Serving(tmp_path / "home", module=STUMBLING, terminal=terminal, drain_timeout_s="60") as serving:
        sessions = [running(serving, "tick")]
        for _ in range(hand_overs):
            new = hand_over(serving)
            assert os.getsid(new) == new, "it is out of the terminal's reach"
            sessions.append(running(serving, "tick"))
        front = serving.reaped()
        terminal.press(CTRL_C)
        wait_until(lambda: serving.written["gateway_state"] == "draining")
        before = [len(serving.session(session_id)["messages"][1]["text"]) for session_id in sessions]
        wait_until(
            lambda: all(
                len(serving.session(session_id)["messages"][1]["text"]) > length + 100
                for session_id, length in zip(sessions, before, strict=True)
            )
        )
        (serving.home / "enough").touch()
        assert front.wait(60) == 0 and serving.processes() == []
        assert serving.written["gateway_state"] == "stopped" and serving.written["why"] == "SIGINT"
        serving.start()
        for session_id in sessions:
            assert [(turn["outcome"], turn["attempt"]) for turn in serving.session(session_id)["turns"]] == [("completed", 1)]


def test_ctrl_c_while_a_successor_loads_is_one_stop_and_the_successor_is_not_heard_of(tmp_path: Path, terminal: Terminal) -> None:
    """C18, C28: the successor still belongs to the terminal, and ends because the old process ends it."""
    with Serving(tmp_path / "home", terminal=terminal, drain_timeout_s="0") as serving:
        front = serving.reaped()
        asking = command(serving.home, "restart")
        with subprocess.Popen(asking, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()) as restart:
            wait_until(lambda: len([each for each in serving.processes() if _serves(each)]) == 2)
            terminal.press(CTRL_C)
            assert front.wait(60) == 0 and restart.wait(60) != 0
        wait_until(lambda: serving.processes() == [])
        assert serving.written["gateway_state"] == "stopped" and serving.written["why"] == "SIGINT"
        assert "KeyboardInterrupt" not in serving.output() and "Traceback" not in serving.output()


def _serves(process: psutil.Process) -> bool:
    """And is not a launcher of one that does."""
    try:
        return "-c" not in process.cmdline()
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("hand_overs", [0, 1, 2])
def test_a_second_ctrl_c_gives_running_turns_no_more_time(tmp_path: Path, terminal: Terminal, hand_overs: int) -> None:
    """C28: everywhere at once."""
    with Serving(tmp_path / "home", module=STUMBLING, terminal=terminal, drain_timeout_s="600") as serving:
        sessions = [running(serving, "tick")]
        for _ in range(hand_overs):
            hand_over(serving)
            sessions.append(running(serving, "tick"))
        front = serving.reaped()
        terminal.press(CTRL_C)
        wait_until(lambda: serving.written["gateway_state"] == "draining")
        terminal.press(CTRL_C)
        assert front.wait(60) == 0 and serving.processes() == []
        assert serving.written["gateway_state"] == "stopped"
        serving.start()
        for session_id in sessions:
            wait_until(lambda session_id=session_id: serving.session(session_id)["turns"][0]["attempt"] == 2)  # type: ignore[misc]
            cuts = [m["reason"] for m in serving.session(session_id)["messages"] if m["role"] == "interruption"]
            assert cuts == ["shutdown_timeout"]


def test_a_third_ctrl_c_ends_a_process_that_hangs(tmp_path: Path, terminal: Terminal) -> None:
    """C28, C18: its event loop is blocked for ever, and its deadline is far away."""
    with Serving(tmp_path / "home", module=STUMBLING, terminal=terminal, stop_timeout_s="600") as serving:
        running(serving, "doze sleep 600")
        front = serving.reaped()
        for presses in range(1, 4):
            assert front.poll() is None
            terminal.press_ctrl_c(front.pid)
            if presses == 1:
                wait_until(lambda: serving.written["gateway_state"] == "stopping")
        assert front.wait(60) == 0 and serving.processes() == []
        assert serving.written["gateway_state"] == "stopped"
        assert serving.output().splitlines()[-1] == FORCED and serving.output().count(FORCED) == 1


@pytest.mark.parametrize("text", ["tick", ""], ids=["its own turn runs", "it only waits"])
def test_a_third_ctrl_c_ends_a_successor_that_hangs(tmp_path: Path, terminal: Terminal, text: str) -> None:
    """C28: counted by the process in front, which ends last."""
    with Serving(tmp_path / "home", module=STUMBLING, terminal=terminal) as serving:
        front = serving.reaped()
        if text:
            running(serving, text)
        new = hand_over(serving)
        if not text:
            wait_until(lambda: serving.status()["retiring"] == [])
        freeze(serving, new)
        for _ in range(3):
            assert front.poll() is None
            terminal.press_ctrl_c(front.pid)
        assert front.wait(60) == 0 and serving.processes() == []
        assert serving.written["gateway_state"] == "stopped"
        assert serving.output().splitlines()[-1] == FORCED and serving.output().count(FORCED) == 1


def test_a_terminal_that_is_closed_after_a_hand_over_stops_everything_and_it_may_come_back(tmp_path: Path, terminal: Terminal) -> None:
    """C26, C30: nobody announced it."""
    with Serving(tmp_path / "home", module=STUMBLING, terminal=terminal) as serving:
        sessions = [running(serving, "tick")]
        hand_over(serving)
        sessions.append(running(serving, "tick"))
        front = serving.reaped()
        terminal.hang_up()
        assert front.wait(60) == 75 and serving.processes() == []
        assert serving.written["gateway_state"] == "running" and serving.written["why"] == "SIGHUP"
