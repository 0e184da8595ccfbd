"""What a serving process stands on is taken away: its database, its home, the program it would start as its successor."""

import os
import resource
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import anyio
import httpx
import pytest

from holdfast.core.errors import HandOverFailed
from holdfast.locks import OwnerLock, OwnerLocks
from holdfast.process.handover import Offer, hand_over
from holdfast.processes import this_process
from tests.e2e.serving import Serving, wait_until

GONE = "is no longer the file that Holdfast opened: it was removed, replaced or moved away."


def unlinked(home: Path) -> None:
    (home / "holdfast.db").unlink()


def replaced(home: Path) -> None:
    shutil.copyfile(home / "holdfast.db", home / "other")
    os.replace(home / "other", home / "holdfast.db")


def error_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@pytest.mark.parametrize("blow", [unlinked, replaced], ids=lambda blow: blow.__name__)
def test_a_gateway_without_its_database_acknowledges_nothing_says_so_and_hands_over_to_nobody(
    tmp_path: Path, blow: Callable[[Path], None]
) -> None:
    """P1, C25: noticed within seconds, told everywhere alike, and the successor refuses what is there now."""
    with Serving(tmp_path / "home") as serving, serving.client() as client:
        session_id = serving.new_session()
        serving.post(session_id, "hello")
        serving.wait_for(session_id)
        token = serving.token
        blow(serving.home)
        wait_until(lambda: client.get("/healthz").status_code == 503)
        status = client.get("/api/status").json()
        assert GONE in status["degraded"] and str(serving.home) in status["degraded"]
        wait_until(lambda: serving.written["degraded"] == status["degraded"])
        refused = client.post(f"/api/sessions/{session_id}/messages", json={"text": "lost?"})
        assert error_of(refused) == (503, "store_gone") and refused.headers["retry-after"] == "5"
        assert error_of(client.get(f"/api/sessions/{session_id}")) == (503, "store_gone")
        failed = client.post("/api/admin/restart", json={})
        assert error_of(failed) == (409, "hand_over_failed")
        assert "is not the database that the serving process has open" in failed.json()["error"]["message"]
        assert serving.pid == serving.process.pid  # type: ignore[union-attr]
        assert client.get("/api/status", headers={"Authorization": f"Bearer {token}"}).json()["degraded"]
        assert serving.stop() == 75


def test_a_turn_that_runs_while_the_home_is_away_ends_once_it_is_back(tmp_path: Path) -> None:
    """P1, P3: what was acknowledged is there, the turn is interrupted for it and continued, and none is lost."""
    with Serving(tmp_path / "home") as serving, serving.client() as client:
        wait_until(lambda: serving.status()["sandbox"] is not None)  # Its trial makes folders in the home.
        session_id = serving.new_session()
        serving.post(session_id, "count 60 0.1")
        serving.wait_for(session_id, state="running")
        os.rename(serving.home, tmp_path / "away")
        wait_until(lambda: client.get("/healthz").status_code == 503)
        os.rename(tmp_path / "away", serving.home)
        wait_until(lambda: client.get("/healthz").status_code == 200)
        session = serving.wait_for(session_id)
        assert [message["text"] for message in session["messages"] if message["role"] == "assistant"] == [
            " ".join(str(number) for number in range(1, 61))
        ]


def test_a_launcher_that_fails_says_why_in_a_sentence_and_prints_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    """C25"""

    async def nothing() -> None:
        raise AssertionError("nobody was ready")

    async def give() -> None:
        with socket.socket() as listener, socket.socket() as lock:
            await hand_over(
                ["/no/such/program", "serve"],
                Offer(listener=listener.fileno(), lock=lock.fileno(), exit_pipe=None, schema=1, owner="o_1"),
                environment={},
                give_way=nothing,
                announce=lambda successor: None,
                given_up=lambda: False,
            )

    with pytest.raises(HandOverFailed) as failed:
        anyio.run(give)
    assert str(failed.value) == (
        "The new process did not take over: it could not be started (No such file or directory). "
        "The old process still serves, and nothing was lost."
    )
    assert capfd.readouterr() == ("", "")


def test_an_owner_that_cannot_be_asked_counts_as_living(tmp_path: Path) -> None:
    """P2: no turn is taken from a process because there are no descriptors left to ask for it."""
    owner, locks = OwnerLock(tmp_path, "o_1", this_process()), OwnerLocks(tmp_path)
    (tmp_path / "owners" / "o_2").touch()
    assert (locks.alive("o_1"), locks.alive("o_2"), locks.alive("o_3")) == (True, False, False)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        assert (locks.alive("o_1"), locks.alive("o_2")) == (True, True)
        locks.sweep()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert (locks.alive("o_1"), locks.alive("o_2")) == (True, False)
    owner.release()
