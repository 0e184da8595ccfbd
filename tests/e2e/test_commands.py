"""Commands of the terminal in a real gateway: what they leave behind, how much they print, and that nobody else suffers from it."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from holdfast import tool_processes
from tests.e2e.serving import NO_CERTIFICATES, Serving, wait_until

# Measured at a twentieth of it. It was 10 s, and grew with the square of the output.
SILENCE_S = 1.0


def left(serving: Serving) -> int:
    return len(list(tool_processes.running(serving.home)))


def test_a_command_that_leaves_a_daemon_ends_its_turn_and_names_it(tmp_path: Path) -> None:
    """P3: what is left goes on until the gateway stops."""
    with Serving(tmp_path / "home") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "run echo started; sleep 600 >/dev/null 2>&1 &")
        session = serving.wait_for(session_id)
        (call,) = session["messages"][-1]["tool_calls"]
        assert re.fullmatch(r"started\n\(still running in the background.*: sleep \(pid \d+\)\)", call["result"])
        assert left(serving) >= 1  # The sandbox may have a process of its own.
        serving.stop()
        wait_until(lambda: left(serving) == 0)


def test_what_a_finished_command_left_is_gone_before_a_killed_gateways_turn_continues(tmp_path: Path) -> None:
    """P5, C29: by its mark, as for commands that were still running."""
    with Serving(tmp_path / "home") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "run setsid sleep 600 >/dev/null 2>&1 & sleep 600")
        wait_until(lambda: left(serving) >= 2)
        serving.kill()
        assert left(serving) >= 2
        serving.start()
        serving.wait_for(session_id)
        assert left(serving) == 0


def test_a_stop_reaches_a_process_in_a_session_of_its_own(tmp_path: Path) -> None:
    """A21: within five seconds, though it does not listen."""
    with Serving(tmp_path / "home") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "run setsid sh -c 'trap \"\" TERM HUP; while true; do sleep 1; done' & sleep 600")
        wait_until(lambda: left(serving) >= 3)
        began = time.monotonic()
        serving.order(f"/api/sessions/{session_id}/stop")
        session = serving.wait_for(session_id)
        assert time.monotonic() - began < 5
        assert session["turns"][-1]["outcome"] == "cancelled"
        assert left(serving) == 0


@contextmanager
def patience(serving: Serving) -> Iterator[list[float]]:
    """For how long the gateway computed while somebody else waited for an answer. Ten times as long may have passed on a busy machine."""
    waits: list[float] = []
    done = threading.Event()
    gateway = psutil.Process(serving.pid)

    def ask() -> None:
        with httpx.Client(verify=NO_CERTIFICATES, trust_env=False, timeout=60) as client:
            while not done.wait(0.005):
                began, used = time.monotonic(), sum(gateway.cpu_times()[:2])
                client.get(f"{serving.url}/healthz")
                took_s = time.monotonic() - began
                waits.append(max(min(took_s, sum(gateway.cpu_times()[:2]) - used), took_s / 10))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield waits
    finally:
        done.set()
        asking.join()


def test_forty_megabytes_of_output_hold_up_nobody_before_and_after_a_kill(tmp_path: Path) -> None:
    """P8: recorded in part, read at once, resumed at once."""
    with Serving(tmp_path / "home") as serving:
        session_id = serving.new_session()
        with patience(serving) as waits:
            serving.post(session_id, "run yes 0123456789012345678901234567890123456789 | head -c 40000000; echo; echo printed; sleep 600")

            def printed() -> bool:
                calls = [call for message in serving.session(session_id)["messages"] for call in message.get("tool_calls", ())]
                return bool(calls) and "printed" in calls[0]["output"]

            wait_until(printed)
            with serving.client() as client:
                answer = client.get(f"/api/sessions/{session_id}")
            assert len(answer.content) < 100_000
            assert answer.json()["messages"][1]["tool_calls"][0]["output_omitted"] > 39_000_000
        assert max(waits) < SILENCE_S
        assert sum(file.stat().st_size for file in serving.home.glob("holdfast.db*")) < 10_000_000
        serving.kill()
        serving.start()
        with patience(serving) as waits:
            session = serving.wait_for(session_id)
        assert max(waits, default=0.0) < SILENCE_S
        assert session["turns"][-1]["attempt"] == 2
