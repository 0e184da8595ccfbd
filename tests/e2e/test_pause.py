"""A pause: no turn starts for a while, nothing that is said is lost, and it ends by itself."""

import signal
from pathlib import Path
from typing import Any

from tests.e2e.command_line import holdfast
from tests.e2e.serving import Serving, wait_until

STUMBLING = "tests.e2e.stumbling"


def told(session: dict[str, Any]) -> int:
    """How often it was said that messages are kept."""
    return sum(message["role"] == "notice" and "Your message is saved" in message["text"] for message in session["messages"])


def answers(session: dict[str, Any]) -> list[str]:
    return [message["text"] for message in session["messages"] if message["role"] == "assistant"]


def is_paused(serving: Serving) -> bool:
    return serving.status()["gateway_state"] == serving.written["gateway_state"] == "paused"


def test_a_pause_keeps_what_is_said_over_a_hand_over_and_a_restart(tmp_path: Path) -> None:
    """C21, C22: running turns go on; each conversation is told once; answers to questions wait too; all is answered after it, in order."""
    with Serving(tmp_path / "home", module=STUMBLING) as serving:
        busy, fresh, asked = (serving.new_session() for _ in range(3))
        serving.post(asked, "ask What is your name?")
        serving.wait_for(asked, state="waiting")
        serving.post(busy, "tick")
        serving.wait_for(busy, state="running")

        said = holdfast(serving.home, "pause", "--for", "600", "--holder", "Ada", "--json")
        assert said.code == 0 and said.json["gateway_state"] == "paused" and said.json["holder"] == "Ada", said.err
        status = holdfast(serving.home, "status")
        assert status.code == 0 and "by Ada until" in status.out and "`holdfast unpause " in status.out
        assert is_paused(serving) and serving.written["paused_by"] == "Ada" and serving.written["paused_until"]

        for session_id, text in ((busy, "count 2 0"), (fresh, "count 3 0"), (fresh, "count 4 0"), (asked, "Grace")):
            serving.post(session_id, text)
        assert [told(serving.session(session_id)) for session_id in (busy, fresh, asked)] == [1, 1, 1]
        before = len(serving.session(busy)["messages"][1]["text"])
        wait_until(lambda: len(serving.session(busy)["messages"][1]["text"]) > before)

        pid = serving.order("/api/admin/restart")["pid"]
        wait_until(lambda: serving.pid == pid and is_paused(serving))
        assert serving.written["paused_by"] == "Ada"
        serving.post(fresh, "count 5 0")
        (serving.home / "enough").touch()
        wait_until(lambda: serving.session(busy)["turns"][0]["state"] == "ended")
        assert serving.session(busy)["turns"][0]["outcome"] == "completed"

        assert serving.stop(signal.SIGINT) == 75
        serving.start()
        assert is_paused(serving)
        serving.post(fresh, "count 6 0")
        assert [told(serving.session(session_id)) for session_id in (busy, fresh, asked)] == [1, 1, 1]
        assert [len(serving.session(session_id)["turns"]) for session_id in (busy, fresh, asked)] == [1, 0, 1]

        said = holdfast(serving.home, "unpause")
        assert (said.code, said.out) == (0, "Resumed.\n")
        assert answers(serving.wait_for(fresh)) == ["1 2 3", "1 2 3 4", "1 2 3 4 5", "1 2 3 4 5 6"]
        assert answers(serving.wait_for(busy))[1:] == ["1 2"]
        assert answers(serving.wait_for(asked)) == ["Thank you. You answered: Grace"]
        assert serving.status()["paused_by"] is None and "paused" not in holdfast(serving.home, "status").out
        assert [told(serving.session(session_id)) for session_id in (busy, fresh, asked)] == [1, 1, 1]


def test_a_pause_ends_by_itself_and_a_second_one_is_told_of_again(tmp_path: Path) -> None:
    """C21, C22: also when nobody is there any more who knows of it."""
    with Serving(tmp_path / "home") as serving:
        session_id = serving.new_session()
        for number in (1, 2):
            serving.order("/api/admin/pause", for_s=0.5)
            serving.post(session_id, f"count {number} 0")
            wait_until(lambda number=number: len(answers(serving.session(session_id))) == number)  # type: ignore[misc]
            assert serving.status()["gateway_state"] == serving.written["gateway_state"] == "running"
            assert told(serving.session(session_id)) == number
        serving.order("/api/admin/pause", for_s=600)
        serving.order("/api/admin/pause", for_s=2)
        serving.post(session_id, "count 3 0")
        serving.kill()
        serving.start()
        wait_until(lambda: len(answers(serving.session(session_id))) == 3)
        assert serving.status()["gateway_state"] == "running" and serving.status()["paused_by"] is None


def test_a_hand_over_that_fails_does_not_end_a_pause(tmp_path: Path) -> None:
    """C21, C25."""
    with Serving(tmp_path / "home", module=STUMBLING) as serving:
        session_id = serving.new_session()
        serving.order("/api/admin/pause", for_s=600)
        serving.post(session_id, "count 3 0")
        (serving.home / "stumble").write_text("told-to-go die")
        for _ in range(3):
            assert holdfast(serving.home, "restart").code == 1
            assert is_paused(serving)
            assert serving.session(session_id)["turns"] == []
        serving.order("/api/admin/unpause")
        assert answers(serving.wait_for(session_id)) == ["1 2 3"]
        assert told(serving.session(session_id)) == 1
