"""A session that brings the real process down, with innocent ones beside it: only that one is suspended (A17, A25, P8)."""

import os
import time
from pathlib import Path

import httpx

from tests.e2e.serving import Serving, wait_until

COUNT = "count 80 0.05"
NUMBERS = " ".join(str(number) for number in range(1, 81))
SUSPENDED = (
    "3 restarts in a row interrupted this conversation, so it is suspended. "
    "Send /resume to continue it, or a message to start a new conversation."
)


def died_or_suspended(serving: Serving, session_id: str) -> bool:
    """Waits for the one or the other; true when the session is suspended."""
    assert serving.process is not None
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if serving.process.poll() is not None:
            return False
        try:
            if serving.session(session_id)["suspended"]:
                return True
        except httpx.TransportError:
            pass  # It has just died.
        time.sleep(0.02)
    raise AssertionError(f"neither within two minutes:\n{serving.output()[-3000:]}")


def test_a_session_that_kills_the_gateway_on_each_attempt_is_suspended_and_five_beside_it_complete(tmp_path: Path) -> None:
    """A17, A25, P8, R2: it records a result before each kill, and no life completes a turn before it dies."""
    with Serving(tmp_path / "home", module="tests.e2e.scripted") as serving:
        innocent = [serving.new_session() for _ in range(5)]
        killer = serving.new_session()
        for session_id in innocent:
            serving.post(session_id, COUNT)
            serving.wait_for(session_id, state="running")
        serving.post(killer, "kill")
        deaths = 0
        while not died_or_suspended(serving, killer):
            deaths += 1
            assert deaths <= 4, serving.output()
            serving.start()
        found = serving.session(killer)
        assert deaths == 3 and not serving.status()["safe_mode"]
        assert (found["turns"][0]["outcome"], found["turns"][0]["rule"]) == ("set_aside", "R2")
        assert [call["outcome"] for message in found["messages"] for call in message.get("tool_calls") or []] == ["done"] * 3
        assert found["messages"][-1]["text"] == SUSPENDED
        for session_id in innocent:
            session = serving.wait_for(session_id, timeout_s=120)
            assert not session["suspended"] and session["interrupted_restarts"] == 0
            assert [message["text"] for message in session["messages"] if message["role"] == "assistant"] == [NUMBERS]


def test_a_session_that_has_a_result_on_record_before_each_of_three_kills_is_suspended(tmp_path: Path) -> None:
    """A17: what it recorded does not save it; each kill is a real one from outside."""
    with Serving(tmp_path / "home", module="tests.e2e.scripted") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "again")
        for attempt in (1, 2, 3):

            def recorded(attempt: int = attempt) -> bool:
                calls = [call for message in serving.session(session_id)["messages"] for call in message.get("tool_calls") or []]
                return [call["outcome"] for call in calls] == ["done"] * attempt

            wait_until(recorded)
            serving.kill()
            serving.start()
        session = serving.wait_for(session_id)
        assert session["suspended"] and session["turns"][0]["rule"] == "R2" and not serving.status()["safe_mode"]


def test_the_count_that_suspends_is_a_setting_and_too_low_a_one_is_refused(tmp_path: Path) -> None:
    """A17: exit code 78, and a sentence that says why."""
    serving = Serving(tmp_path / "home", stuck_after="2")
    assert serving.launch().wait(30) == os.EX_CONFIG
    said = "Invalid stuck_after 2 (from HOLDFAST_STUCK_AFTER). It must be at least 3, because nothing is suspended without a trial."
    assert said in serving.output()
