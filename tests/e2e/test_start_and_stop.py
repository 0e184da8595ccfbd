"""Starting on bad ground says what is wrong; stopping in the middle loses nothing."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import httpx
import pytest

from tests.e2e.command_line import holdfast
from tests.e2e.serving import Serving, Terminal, wait_until
from tests.e2e.writes import Writes

# A shell that puts its child into a process group of its own and stays in the foreground itself, as an interactive one does for `&`.
BACKGROUND = (sys.executable, "-c", "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], process_group=0).returncode)")


def serve(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *words], capture_output=True, text=True, timeout=60, env=os.environ | environment
    )


def test_a_taken_port_is_said_clearly(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        answer = serve("--home", str(tmp_path / "home"), "serve", "--port", str(port))
    assert answer.returncode == 69
    assert f"Port {port} on 127.0.0.1 is taken" in answer.stderr and "Traceback" not in answer.stderr


def test_a_home_that_cannot_be_used_is_said_clearly(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    answer = serve("--home", str(tmp_path / "file"), "serve", "--port", "0")
    assert answer.returncode == 78
    assert "home folder" in answer.stderr and "--home" in answer.stderr and "Traceback" not in answer.stderr


def test_an_open_address_without_named_hosts_is_refused(tmp_path: Path) -> None:
    answer = serve("--home", str(tmp_path / "home"), "serve", "--host", "0.0.0.0", "--port", "0")
    assert answer.returncode == 78 and "allowed_hosts" in answer.stderr


def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    with Serving(tmp_path / "home") as serving:
        serving.stop()

    db = apsw.Connection(str(tmp_path / "home" / "holdfast.db"))
    db.execute("PRAGMA user_version = 999")
    db.close()
    answer = serve("--home", str(tmp_path / "home"), "serve", "--port", "0")
    assert answer.returncode == 78 and "schema 999" in answer.stderr and "Traceback" not in answer.stderr


def test_a_second_gateway_on_the_same_home_is_refused_and_a_leftover_is_not_in_the_way(tmp_path: Path) -> None:
    """C20: the lock is the operating system's."""
    with Serving(tmp_path / "home") as serving:
        answer = serve("--home", str(serving.home), "serve", "--port", "0")
        assert answer.returncode == 69 and "already serves" in answer.stderr
        serving.kill()
        serving.start()
        assert serving.new_session()


def test_a_stop_in_mid_turn_marks_it_and_the_next_start_resumes_it(tmp_path: Path) -> None:
    """C1, C5, C26: the turn cut with its reason and finished after the next start."""
    with Serving(tmp_path / "home") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "count 40 0.05")
        serving.wait_for(session_id, state="running")
        assert serving.stop() == 75
        serving.start()
        session = serving.wait_for(session_id)
        cut = next(message for message in session["messages"] if message["role"] == "interruption")
        assert (cut["reason"], cut["rule"]) == ("shutdown_timeout", "R9")
        assert session["messages"][-1]["text"] == " ".join(str(number) for number in range(1, 41))


def test_a_drain_window_lets_a_turn_end_in_time(tmp_path: Path) -> None:
    """C2, C5: nothing is marked, nothing is interrupted."""
    with Serving(tmp_path / "home", drain_timeout_s="20") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "count 10 0.05")
        serving.wait_for(session_id, state="running")
        assert serving.stop() == 75
        serving.start()
        session = serving.session(session_id)
        assert [(turn["outcome"], turn["attempt"]) for turn in session["turns"]] == [("completed", 1)]


def test_an_end_that_nobody_planned_leaves_running_in_the_status_file(tmp_path: Path) -> None:
    """C17, C26: a kill, or a signal that nobody announced, so that its supervisor or a container's start-up brings it back."""
    with Serving(tmp_path / "home") as serving:
        serving.kill()
        assert serving.written["gateway_state"] == "running"
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            serving.start()
            assert serving.stop(number) == 75
            assert (serving.written["gateway_state"], serving.written["why"]) == ("running", number.name)


def test_ctrl_c_at_its_terminal_is_somebodys_stop_and_the_end_of_the_terminal_is_not(tmp_path: Path) -> None:
    """C26, C18: a real terminal, whose driver sends the signals."""
    with Terminal() as terminal, Serving(tmp_path / "home", terminal=terminal) as serving:
        process = serving.reaped()
        terminal.press("\x03")
        assert process.wait(30) == 0
        assert (serving.written["gateway_state"], serving.written["why"]) == ("stopped", "SIGINT")
        process = serving.start().reaped()
        process.send_signal(signal.SIGTERM)  # It matters who sends, not where it runs.
        assert process.wait(30) == 75 and serving.written["gateway_state"] == "running"
        process = serving.start().reaped()
        terminal.hang_up()
        assert process.wait(30) == 75
        assert (serving.written["gateway_state"], serving.written["why"]) == ("running", "SIGHUP")


def test_in_the_background_of_a_terminal_sigint_is_no_ctrl_c(tmp_path: Path) -> None:
    """C26: another process group is in the foreground."""
    with Terminal() as terminal, Serving(tmp_path / "home", terminal=terminal, inside=BACKGROUND) as serving:
        os.kill(serving.pid, signal.SIGINT)
        wait_until(lambda: serving.written["gateway_state"] == "running" and serving.written["why"] == "SIGINT")
        assert serving.process is not None and serving.process.wait(30) == 75


def test_started_by_nohup_it_outlives_its_terminal(tmp_path: Path) -> None:
    """C26: whoever started it said so."""
    with Serving(tmp_path / "home", inside=("nohup",)) as serving:
        os.kill(serving.pid, signal.SIGHUP)
        assert serving.new_session()
        assert serving.stop() == 75 and serving.written["why"] == "SIGTERM"


def test_a_signal_that_announces_a_stop_needs_no_marker(tmp_path: Path) -> None:
    """C26, D9"""
    with Serving(tmp_path / "home") as serving:
        assert serving.stop(signal.SIGUSR1) == 0
        assert serving.written["gateway_state"] == "stopped"


def test_a_stop_that_somebody_asked_for_leaves_stopped_in_the_status_file(tmp_path: Path) -> None:
    """C18, C26: by the command, over HTTP."""

    def by_command() -> None:
        serving.reaped()
        assert holdfast(serving.home, "stop").code == 0

    with Serving(tmp_path / "home") as serving:
        for ask in (by_command, lambda: serving.order("/api/admin/stop")):
            ask()
            assert serving.process is not None and serving.process.wait(30) == 0
            assert serving.written["gateway_state"] == "stopped"
            serving.start()
            assert serving.written["gateway_state"] == "running"


def test_during_a_drain_the_status_file_is_written_when_it_begins_when_a_turn_ends_and_at_the_end(tmp_path: Path) -> None:
    """C14: real writes of the file. Text that is streamed, messages that come and seconds that pass are no reason for one."""
    with Serving(tmp_path / "home", module="tests.e2e.stumbling", drain_timeout_s="60") as serving:
        sessions = [serving.new_session() for _ in range(3)]
        for session_id, text in zip(sessions, ("count 10 0.1", "count 25 0.1", "tick"), strict=True):
            serving.post(session_id, text)
            serving.wait_for(session_id, state="running")
        process = serving.reaped()
        with Writes(serving.home / "status.json") as writes:
            serving.order("/api/admin/stop")
            wait_until(lambda: serving.written["running_turns"] == 1)
            for number in range(5):
                serving.post(sessions[0], f"for later {number}")
            before = len(str(serving.session(sessions[2])["messages"]))
            wait_until(lambda: len(str(serving.session(sessions[2])["messages"])) > before + 300)
            assert writes.count() == 3  # Draining with three turns, with two, with one.
            (serving.home / "enough").touch()
            assert process.wait(30) == 0
            assert writes.count() == 2  # Stopping, stopped.


def test_a_kill_in_the_middle_of_a_drain_leaves_draining_in_the_status_file(tmp_path: Path) -> None:
    """C17."""
    with Serving(tmp_path / "home", drain_timeout_s="60") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "hang")
        serving.wait_for(session_id, state="running")
        assert serving.process is not None
        serving.process.send_signal(signal.SIGTERM)
        wait_until(lambda: bool(serving.written["gateway_state"] == "draining"))
        serving.kill()
        assert serving.written["gateway_state"] == "draining"


def test_a_command_does_not_outlive_the_gateway_that_was_killed(tmp_path: Path) -> None:
    """P5: what a killed gateway's tool left running ends before its turn goes on."""
    with Serving(tmp_path / "home") as serving:
        session_id = serving.new_session()
        beat = serving.folder / "beat"
        serving.post(session_id, f"run while true; do date +%s%N > {beat}; sleep 0.05; done")
        while not beat.exists():
            time.sleep(0.02)
        serving.kill()
        serving.start()
        session = serving.wait_for(session_id)
        (call,) = session["messages"][-1]["tool_calls"]
        assert call["outcome"] == "unknown"
        last = beat.read_text()
        time.sleep(0.3)
        assert beat.read_text() == last


def test_a_stop_from_a_signal_ends_even_while_a_command_ignores_it(tmp_path: Path) -> None:
    """C15, C23."""
    with Serving(tmp_path / "home") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "run trap '' TERM; sleep 300")
        serving.wait_for(session_id, state="running")
        assert serving.stop(signal.SIGINT) == 75


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with little room. Needs root, as in the test command's containers."""
    place = tmp_path / "small"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(place)], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no small file system can be made here: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(disk: Path, left_kib: int = 0) -> Path:
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    os.truncate(ballast, max(0, ballast.stat().st_size - left_kib * 1024))
    return ballast


@pytest.mark.parametrize("left_kib", [0, 64])
def test_a_start_on_a_full_disk_says_so(small_disk: Path, left_kib: int) -> None:
    """Whether not even the lock, or only the database, has no room."""
    (small_disk / "home").mkdir()
    fill(small_disk, left_kib)
    answer = serve("--home", str(small_disk / "home"), "serve", "--port", "0")
    assert answer.returncode == 1 and "disk" in answer.stderr and "full" in answer.stderr and "Traceback" not in answer.stderr


def test_on_a_full_disk_nothing_is_acknowledged_and_it_goes_on_by_itself_when_there_is_room(small_disk: Path) -> None:
    """P1: 507, `degraded`, and the words that were acknowledged before are all there after."""
    with Serving(small_disk / "home") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "before")
        serving.wait_for(session_id)
        ballast = fill(small_disk)
        acknowledged, refused = 0, None
        with serving.client() as client:
            for _ in range(200):
                answer = client.post(f"/api/sessions/{session_id}/messages", json={"text": "x" * 100_000})
                if answer.status_code == 507:
                    refused = answer
                    break
                assert answer.status_code in (202, 429), answer.text
                acknowledged += answer.status_code == 202
            assert refused is not None and refused.json()["error"]["code"] == "store_full"
            fill(small_disk)  # Whatever the reserve gave up is taken, too: there is no room for one more file.
            told = client.get("/api/status").json()["degraded"]
            assert told == "the disk is full"
            wait_until(lambda: serving.written["degraded"] == told)
            assert client.get("/healthz").text == "not ok\n"
            ballast.unlink()
            deadline = time.monotonic() + 60
            while client.get("/api/status").json()["degraded"] and time.monotonic() < deadline:
                time.sleep(0.1)
            wait_until(lambda: serving.written["degraded"] is None)
            assert client.get("/healthz").text == "ok\n"
            assert client.post(f"/api/sessions/{session_id}/messages", json={"text": "after"}).status_code in (202, 429)
        session = serving.wait_for(session_id)
        users = [message for message in session["messages"] if message["role"] == "user"]
        assert acknowledged + 1 <= len(users) <= acknowledged + 2
        serving.kill()
        serving.start()
        assert len([m for m in serving.session(session_id)["messages"] if m["role"] == "user"]) == len(users)


def test_the_printed_address_signs_in_once(tmp_path: Path) -> None:
    """The code is used up by its first use; the cookie outlives a restart."""
    with Serving(tmp_path / "home") as serving:
        wait_until(lambda: "#code=" in serving.output())  # It answers a moment before it says so.
        code = serving.output().split("#code=")[1].split()[0]
        with httpx.Client(base_url=serving.url) as browser:
            assert browser.get("/api/sessions").status_code == 401
            assert browser.post("/api/login", json={"code": code}).status_code == 204
            assert browser.get("/api/sessions").status_code == 200
            assert httpx.post(f"{serving.url}/api/login", json={"code": code}).status_code == 401
            serving.kill()
            serving.start()
            assert browser.get("/api/sessions").status_code == 200


def test_a_sign_out_holds_over_a_hand_over_and_a_restart(tmp_path: Path) -> None:
    """DESIGN 11: a cookie that somebody kept opens nothing any more, in whichever process."""
    with Serving(tmp_path / "home") as serving:
        with httpx.Client(base_url=serving.url) as browser, httpx.Client(base_url=serving.url) as other:
            for each in (browser, other):
                assert each.post("/api/login", json={"token": serving.token}).status_code == 204
            kept = dict(browser.cookies)
            assert browser.post("/api/logout").status_code == 204
            serving.order("/api/admin/restart")
            assert httpx.get(f"{serving.url}/api/sessions", cookies=kept).status_code == 401
            assert other.get("/api/sessions").status_code == 200
            serving.kill()
            for process in serving.processes():
                process.kill()
            serving.start()
            assert httpx.get(f"{serving.url}/api/sessions", cookies=kept).status_code == 401
            assert other.get("/api/sessions").status_code == 200


def test_a_new_token_ends_what_the_old_one_opened(tmp_path: Path) -> None:
    """DESIGN 11: open streams and sign-ins, within seconds, without a restart."""
    with Serving(tmp_path / "home") as serving, serving.client() as client:
        session_id = serving.new_session()
        with httpx.Client(base_url=serving.url) as browser:
            assert browser.post("/api/login", json={"token": serving.token}).status_code == 204
            path = f"/api/sessions/{session_id}/events"
            with client.stream("GET", path) as by_token, browser.stream("GET", path, timeout=20) as by_cookie:
                assert (by_token.status_code, by_cookie.status_code) == (200, 200)
                assert holdfast(serving.home, "token", "rotate").code == 0
                for answer in (by_token, by_cookie):
                    assert '{"reason":"signed_out"}' in answer.read().decode()
            assert browser.get("/api/sessions").status_code == 401
            assert client.get("/api/sessions").status_code == 401
            with serving.client() as again:
                assert again.get("/api/sessions").status_code == 200
