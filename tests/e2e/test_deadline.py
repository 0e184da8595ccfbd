"""One deadline governs a stop: whatever hangs is named, and is gone with the process."""

import os
import re
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.e2e.command_line import holdfast
from tests.e2e.serving import Serving, running, wait_until

STUMBLING = "tests.e2e.stumbling"


STAY = 'echo $$ > "{file}"; trap "" TERM; while true; do sleep 1; done'

# Neither in its process group nor among its children.
ORPHAN = f"(setsid sh -c '{STAY}' &); sleep 300"


def with_a_tool(serving: Serving, word: str, command: str = STAY) -> tuple[str, psutil.Process]:
    """A session whose agent is as stubborn as the word says, and the command that runs for it."""
    session_id, file = serving.new_session(), serving.folder / "tool"
    serving.post(session_id, f"{word} {command.format(file=file)}")
    wait_until(lambda: file.exists() and file.read_text().strip().isdigit())
    return session_id, serving.tool(int(file.read_text()))


def ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("word", ["deaf", "doze"])
def test_a_stop_ends_in_time_though_the_agent_does_not_let_go(tmp_path: Path, word: str) -> None:
    """C23, C15, C1, C29: it swallows its cancellation, or blocks the event loop in it. The turn was marked before, and goes on at the next
    start.
    """
    with Serving(tmp_path / "home", module=STUMBLING, stop_timeout_s="2") as serving:
        session_id, tool = with_a_tool(serving, word, ORPHAN)
        began = time.monotonic()
        assert serving.stop(timeout_s=60) == 75
        assert time.monotonic() - began < 20
        said = serving.output()
        assert re.search(r"the stop did not end in time, at the step '[a-z ]+'", said) and "most recent call first" in said
        assert word == "deaf" or "in _stay" in said, "the stack of what blocks"
        kept = (serving.home / "holdfast.log").read_text()
        assert "did not end in time, at the step" in kept and "most recent call first" in kept
        wait_until(lambda: ended(tool))
        serving.start()
        session = serving.session(session_id)
        assert [message["reason"] for message in session["messages"] if message["role"] == "interruption"] == ["shutdown_timeout"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_process_in_time_whose_event_loop_is_blocked(tmp_path: Path, number: int) -> None:
    """C23: nothing of it can hear but the watchdog."""
    with Serving(tmp_path / "home", module=STUMBLING, stop_timeout_s="2") as serving:
        _, tool = with_a_tool(serving, "block")
        (serving.home / "stumble").write_text("block")
        wait_until(lambda: "has not answered" in serving.output())
        assert serving.stop(number, timeout_s=30) == 75
        assert "did not end in time" in serving.output() and "in _stay" in serving.output()
        assert (serving.written["gateway_state"], serving.written["why"]) == ("running", signal.Signals(number).name)
        wait_until(lambda: ended(tool))


@pytest.mark.parametrize("writable", [True, False])
def test_an_announced_stop_of_a_process_whose_event_loop_is_blocked_stays_one(tmp_path: Path, writable: bool) -> None:
    """C18, C23, C26, D9: by the marker, or by the signal that needs none; it ends itself, and nobody has to kill it."""
    with Serving(tmp_path / "home", module=STUMBLING, stop_timeout_s="2") as serving:
        _, tool = with_a_tool(serving, "block")
        (serving.home / "stumble").write_text("block")
        wait_until(lambda: "has not answered" in serving.output())
        if not writable:
            (serving.home / "planned-stop.json").mkdir()
        process = serving.reaped()
        assert holdfast(serving.home, "stop").code == 0
        assert process.wait(30) == 0 and serving.written["gateway_state"] == "stopped"
        wait_until(lambda: ended(tool))


@pytest.mark.parametrize(("ask", "code", "state"), [("signal", 75, "running"), ("command", 0, "stopped")])
def test_a_stop_ends_in_time_though_the_disk_hangs(tmp_path: Path, ask: str, code: int, state: str) -> None:
    """C23, C26, C18, P1: a sync of the database never returns. Nothing of the stop can be recorded, and the step and the stack say so; the
    turn continues at the next start.
    """
    with Serving(tmp_path / "home", module=STUMBLING, stop_timeout_s="3") as serving:
        session_id, process = serving.new_session(), serving.reaped()
        serving.post(session_id, "tick")
        serving.wait_for(session_id, state="running")
        (serving.home / "stumble").write_text("disk hang")
        wait_until((serving.home / "hung").exists)
        began = time.monotonic()
        if ask == "signal":
            process.send_signal(signal.SIGTERM)
        else:
            assert holdfast(serving.home, "stop").code == 0
        assert process.wait(60) == code and time.monotonic() - began < 30
        assert serving.written["gateway_state"] == state
        said = serving.output()
        assert "the stop did not end in time, at the step 'record'" in said and "in xSync" in said
        (serving.home / "stumble").unlink()
        (serving.home / "enough").touch()
        serving.start()
        session = serving.wait_for(session_id)
        assert [(turn["outcome"], turn["attempt"]) for turn in session["turns"]] == [("completed", 2)]
        numbers = session["messages"][-1]["text"].split()
        assert numbers == [str(number) for number in range(1, len(numbers) + 1)]


def test_a_gateway_that_hangs_is_said_to_hang_and_is_stopped_by_force(tmp_path: Path) -> None:
    """C18, C23, C29, D9: `status` ends with 1 and says so; `stop` kills what cannot end itself; the next start goes on."""
    with Serving(tmp_path / "home", module=STUMBLING) as serving:
        process, pid = serving.reaped(), serving.pid
        session_id = running(serving, "tick")
        _, tool = with_a_tool(serving, "run", ORPHAN)
        assert holdfast(serving.home, "status", "--json").json["hung"] is False
        process.send_signal(signal.SIGSTOP)
        beats = serving.home / "owners" / serving.written["owner"]
        wait_until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
        os.utime(beats, (time.time() - 15, time.time() - 15))  # As if it had been stopped fifteen seconds ago.
        said = holdfast(serving.home, "status")
        assert said.code == 1 and f"Process {pid}" in said.out and "hangs" in said.out and "`holdfast stop " in said.out
        said = holdfast(serving.home, "status", "--json")
        assert said.code == 1 and {"running": True, "answers": False, "hung": True}.items() <= said.json.items()
        said = holdfast(serving.home, "stop", "--timeout", "1")
        assert ended(tool), "before it answers, though it has left its process group"
        assert said.code == 1 and said.err == (
            f"holdfast: Process {pid} was asked to stop but was still running after 1.0 s, so it was killed, along with the commands its "
            "tools were running. 2 turns were interrupted and continue at the next start. Accepted messages are on disk.\n"
        )
        assert process.wait(10) == -signal.SIGKILL
        assert serving.written["gateway_state"] == "stopped"
        serving.start()
        (serving.home / "enough").touch()
        numbers = serving.wait_for(session_id)["messages"][-1]["text"].split()
        assert numbers == [str(number) for number in range(1, len(numbers) + 1)]
        reasons = [item.body["reason"] for item in serving.log(session_id) if item.event == "turn.interrupted"]
        assert reasons == ["shutdown_timeout"], "an operator stopped it: no crash"


def test_a_gateway_that_answers_beats(tmp_path: Path) -> None:
    """C23: what a status is judged by."""
    with Serving(tmp_path / "home") as serving:
        beats = serving.home / "owners" / serving.written["owner"]
        os.utime(beats, (0, 0))
        wait_until(lambda: time.time() - beats.stat().st_mtime < 60)
        assert holdfast(serving.home, "status").code == 0
