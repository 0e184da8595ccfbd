"""A gateway that keeps dying starts in safe mode: it answers people, resumes nothing by itself, says so, and finds its way back."""

import json
from pathlib import Path

import pytest

from tests.e2e.command_line import holdfast
from tests.e2e.serving import Serving

COUNT = "count 40 0.05"
NUMBERS = " ".join(str(number) for number in range(1, 41))


def killed_three_times(serving: Serving, cut: list[str]) -> list[str]:
    """Sessions with these words, each cut by the last of three kills, or before. Serves again when it returns."""
    ids = [serving.new_session() for _ in cut]
    serving.kill()
    serving.start()
    serving.kill()
    serving.start()
    for session_id, text in zip(ids, cut, strict=True):
        serving.post(session_id, text)
        serving.wait_for(session_id, state="running")
    serving.kill()
    serving.start()
    return ids


def is_safe(serving: Serving) -> bool:
    """The server, its file and the command say the same."""
    asked = serving.status()["safe_mode"]
    written = json.loads((serving.home / "status.json").read_text())["safe_mode"]
    told = holdfast(serving.home, "status", "--json").json["safe_mode"]
    assert asked == written == told
    return bool(asked)


def test_after_three_starts_that_died_nothing_is_resumed_and_messages_are_answered(tmp_path: Path) -> None:
    """B14, R7, P8, A9: shown wherever one looks; the cut turn is left pending with its reason and time, for the next process too."""
    with Serving(tmp_path / "home") as serving:
        first, second = killed_three_times(serving, [COUNT, "hang"])
        assert is_safe(serving)
        left = serving.wait_for(first, state="interrupted")
        serving.wait_for(second, state="interrupted")
        other = serving.new_session()
        serving.post(other, "hello")
        assert serving.wait_for(other)["turns"][0]["outcome"] == "completed"
        serving.post(other, "/status")
        assert "safe mode" in serving.session(other)["messages"][-1]["text"]
        assert "safe mode" in holdfast(serving.home, "status").out

        held = serving.session(first)
        assert held["turns"][0]["rule"] == "R7" and held["turns"][0]["attempt"] == 1
        assert (held["resume_pending"], held["resume_reason"]) == (True, "crash") and held["last_resume_marked_at"]
        (told,) = (message["text"] for message in held["messages"] if message["role"] == "notice")
        assert "safe mode" in told and "/resume" in told
        assert is_safe(serving), "a turn of a session that was not pending proves nothing about the others"
        assert left["last_resume_marked_at"] == held["last_resume_marked_at"]


@pytest.mark.parametrize("way", ["command", "request"])
def test_an_operator_ends_safe_mode_and_what_was_cut_goes_on(tmp_path: Path, way: str) -> None:
    """B14, R9: by `holdfast resume --all` or over HTTP; one session after the other, each decided by the table."""
    with Serving(tmp_path / "home") as serving:
        ids = killed_three_times(serving, [COUNT, COUNT])
        for session_id in ids:
            serving.wait_for(session_id, state="interrupted")
        if way == "command":
            said = holdfast(serving.home, "resume", "--all")
            assert said.code == 0, said
        else:
            serving.order("/api/admin/resume")
        assert not is_safe(serving)
        for session_id in ids:
            session = serving.wait_for(session_id)
            assert (session["turns"][0]["outcome"], session["turns"][0]["rule"]) == ("completed", "R9")
            assert session["messages"][-1]["text"] == NUMBERS and not session["resume_pending"]


def test_a_pending_session_that_completes_a_turn_ends_safe_mode_for_all(tmp_path: Path) -> None:
    """B14, A23: its user's message goes on from the cut turn; that is proof enough, and the others are decided again."""
    with Serving(tmp_path / "home") as serving:
        first, second = killed_three_times(serving, [COUNT, COUNT])
        for session_id in (first, second):
            serving.wait_for(session_id, state="interrupted")
        serving.post(first, "what about it?")
        session = serving.wait_for(first)
        assert [(turn["outcome"], turn["rule"]) for turn in session["turns"]] == [("set_aside", "R7"), ("completed", None)]
        assert not session["resume_pending"]
        other = serving.wait_for(second)
        assert (other["turns"][0]["outcome"], other["messages"][-1]["text"]) == ("completed", NUMBERS)
        assert not is_safe(serving)


def test_a_start_that_completed_a_turn_or_ended_on_purpose_is_no_part_of_a_crash_loop(tmp_path: Path) -> None:
    """B14: three kills with a completed turn, or a stop, among them leave the next start as it always is."""
    with Serving(tmp_path / "home") as serving:
        serving.kill()
        serving.start()
        session_id = serving.new_session()
        serving.post(session_id, "hello")
        serving.wait_for(session_id)
        for _ in range(2):
            serving.kill()
            serving.start()
        assert not is_safe(serving)
        assert serving.stop() == 75
        for _ in range(3):
            serving.start()
            serving.kill()
        serving.start()
        assert is_safe(serving)
        assert serving.stop() == 75
        serving.start()
        assert not is_safe(serving)
