"""Restarts that are asked for in a conversation, with real processes: by hand-over, by a supervisor, and one that fails."""

from pathlib import Path

import httpx

from tests import words
from tests.e2e.serving import Serving, wait_until

LOBBY = "agent:main:web:page:lobby"
NOTE = "restart-pending.json"


def said(serving: Serving, session_id: str) -> list[str]:
    """What the gateway itself has said there; nothing while nobody serves."""
    try:
        return [message["text"] for message in serving.session(session_id)["messages"] if message["role"] == "notice"]
    except httpx.TransportError:
        return []


def in_lobby(serving: Serving) -> list[str]:
    with serving.client() as client:
        sessions = client.get("/api/sessions").json()["sessions"]
    return [text for session in sessions if session["session_key"] == LOBBY for text in said(serving, session["session_id"])]


def test_a_hand_over_asked_for_in_a_conversation_happens_once_and_is_told_there(tmp_path: Path) -> None:
    """C10, C11, C12, C13: the turn that runs elsewhere is neither cut nor told."""
    with Serving(tmp_path / "home", home_channels=LOBBY) as serving:
        first = serving.pid
        asks, runs = serving.new_session(), serving.new_session()
        serving.post(runs, "count 30 0.1")
        for _ in range(2):
            serving.post(asks, "/restart", client_id="once")
        wait_until(lambda: said(serving, asks) == [words.RESTARTING, words.BACK])
        second = serving.pid
        assert second != first
        serving.post(asks, "/restart", client_id="once")
        session = serving.wait_for(runs)
        assert [message["role"] for message in session["messages"]] == ["user", "assistant"]
        assert (serving.pid, said(serving, asks)) == (second, [words.RESTARTING, words.BACK])
        assert in_lobby(serving) == [] and not (serving.home / NOTE).exists()
        serving.order("/api/admin/restart")
        wait_until(lambda: serving.pid != second)
        wait_until(lambda: not (serving.home / NOTE).exists())
        assert said(serving, asks) == [words.RESTARTING, words.BACK] and in_lobby(serving) == []


def test_where_a_supervisor_starts_the_next_process_that_one_tells_whoever_asked(tmp_path: Path) -> None:
    """C9, C10, C11, C12"""
    with Serving(tmp_path / "home", supervisor="launchd", home_channels=LOBBY) as serving:
        asks, runs = serving.new_session(), serving.new_session()
        serving.post(runs, "count 30 0.1")
        wait_until(lambda: serving.session(runs)["state"] == "running")
        serving.post(asks, "/restart")
        assert serving.process is not None and serving.process.wait(30) == 75
        assert (serving.home / NOTE).exists()
        serving.start()
        wait_until(lambda: said(serving, asks) == [words.RESTARTING, words.BACK])
        serving.wait_for(runs)
        assert said(serving, runs) == [words.RESTARTING_INTERRUPTS]
        assert in_lobby(serving) == [] and not (serving.home / NOTE).exists()


def test_a_hand_over_that_fails_is_told_where_it_was_asked_for_with_the_reason(tmp_path: Path) -> None:
    """C11, C25"""
    with Serving(tmp_path / "home") as serving:
        first, asks = serving.pid, serving.new_session()
        (serving.home / "config.toml").write_text("max_waiting = 'many'\n")
        serving.post(asks, "/restart")
        wait_until(lambda: len(said(serving, asks)) == 2)
        answer, outcome = said(serving, asks)
        assert answer == words.RESTARTING and outcome.startswith("Holdfast did not restart.")
        assert "Invalid max_waiting 'many'" in outcome and "still serves" in outcome
        assert serving.pid == first and not (serving.home / NOTE).exists()
