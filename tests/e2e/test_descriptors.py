"""Descriptors run out: a real process with few of them, flooded with connections, keeps its work and hands over."""

import contextlib
import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from holdfast import tool_processes
from tests.e2e.serving import Serving, wait_until

FILES = 160
AT_ONCE = 32


@pytest.fixture
def few(tmp_path: Path) -> Iterator[Serving]:
    """Gateways of which each process may have only so many open files."""
    with Serving(tmp_path / "home", inside=("prlimit", f"--nofile={FILES // 2}:{FILES}")) as serving:
        yield serving


@contextlib.contextmanager
def flood(port: int, count: int, *, says: bytes = b"") -> Iterator[list[socket.socket]]:
    """Connections that are held; each says so much. Several come at once: one that finds the queue of a listener full tries again only a
    second later.
    """
    held: list[socket.socket] = []

    def connect(_: int) -> None:
        connection = socket.create_connection(("127.0.0.1", port), timeout=20)
        held.append(connection)
        with contextlib.suppress(ConnectionError):
            connection.sendall(says)

    try:
        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(connect, range(count)))
        yield held
    finally:
        for connection in held:
            connection.close()


def open_files(serving: Serving) -> int:
    return psutil.Process(serving.pid).num_fds()


def answered(serving: Serving, session_id: str, text: str) -> str:
    serving.post(session_id, text)
    return str(serving.wait_for(session_id)["messages"][-1]["text"])


def test_the_limit_is_raised_as_far_as_the_system_allows(few: Serving) -> None:
    assert resource.prlimit(few.pid, resource.RLIMIT_NOFILE) == (FILES, FILES)


@pytest.mark.parametrize("says", [b"", b"GET /healthz HTTP/1.1\r\nHost: x"], ids=["silent", "half a request"])
def test_a_flood_of_connections_keeps_nobody_out_and_leaves_room_for_a_hand_over(few: Serving, says: bytes) -> None:
    """P1, P3, C24: messages are accepted, the turn that runs is not cut, and the successor serves, all while it lasts."""
    running = few.new_session()
    few.post(running, "count 50 0.1")
    few.wait_for(running, state="running")
    session_id = few.new_session()
    with flood(few.port, 3 * FILES, says=says):
        assert open_files(few) < FILES
        assert answered(few, session_id, "count 3 0") == "1 2 3"
        assert answered(few, session_id, "run echo a tool runs") == "Done."
        before = few.pid
        assert few.order("/api/admin/restart")["mode"] == "hand_over"
        wait_until(lambda: few.pid != before)
        with flood(few.port, 3 * FILES, says=says):
            assert answered(few, session_id, "count 4 0") == "1 2 3 4"
    session = few.wait_for(running)
    assert [(turn["outcome"], turn["attempt"]) for turn in session["turns"]] == [("completed", 1)]
    assert "Traceback" not in few.output()


def readers(serving: Serving, session_id: str) -> Iterator[socket.socket]:
    """Streams, until one is refused."""
    while True:
        connection = socket.create_connection(("127.0.0.1", serving.port), timeout=20)
        request = f"GET /api/sessions/{session_id}/events HTTP/1.1"
        head = [request, f"Host: 127.0.0.1:{serving.port}", f"Authorization: Bearer {serving.token}", "", ""]
        connection.sendall("\r\n".join(head).encode())
        answer = connection.recv(4096)
        if not answer.startswith(b"HTTP/1.1 200"):
            assert answer.startswith(b"HTTP/1.1 503") and b"too_many_connections" in answer
            connection.close()
            return
        yield connection


def downloads(serving: Serving, size: int) -> bytes:
    """A request for an attachment of a conversation, too large for what a connection holds unread."""
    with serving.client() as client:
        attached = client.post("/api/uploads", content=bytes(size)).json()["attachment_id"]
        session_id = serving.new_session()
        client.post(f"/api/sessions/{session_id}/messages", json={"text": "see", "attachments": [attached]})
    [part] = [part for part in serving.wait_for(session_id)["messages"][0]["parts"] if part["type"] == "file"]
    head = [f"GET /api/blobs/{part['digest']} HTTP/1.1", f"Host: 127.0.0.1:{serving.port}", f"Authorization: Bearer {serving.token}"]
    return "\r\n".join([*head, "", ""]).encode()


def test_attachments_that_are_read_slowly_leave_descriptors_for_the_work(few: Serving) -> None:
    """P1, P3: each holds a file next to its connection. Those beyond the bound are told so, and none is said to be lost."""
    says = downloads(few, 20_000_000)
    session_id = few.new_session()
    with flood(few.port, FILES // 3, says=says) as held:
        statuses = [connection.recv(12) for connection in held]
        assert set(statuses) == {b"HTTP/1.1 200", b"HTTP/1.1 503"}
        assert open_files(few) < FILES - 32
        assert answered(few, session_id, "run echo a tool runs") == "Done."
        before = few.pid
        assert few.order("/api/admin/restart")["mode"] == "hand_over"
        wait_until(lambda: few.pid != before)
    assert "Traceback" not in few.output() and "Too many open files" not in few.output()
    with few.client() as client:
        assert client.post("/api/uploads", content=b"x").status_code == 201


def test_readers_beyond_the_bound_are_told_so_and_the_work_goes_on(few: Serving) -> None:
    """P3: a turn that runs meanwhile comes to its end, with its tools."""
    session_id = few.new_session()
    few.post(session_id, "run sleep 1; echo done")
    held = list(readers(few, session_id))
    try:
        assert len(held) >= 32 and open_files(few) < FILES
        assert httpx.get(f"{few.url}/healthz").status_code == 503
    finally:
        for connection in held:
            connection.close()

    def ended() -> bool:
        with contextlib.suppress(httpx.HTTPError, AssertionError):
            return bool(few.session(session_id)["state"] == "idle")
        return False

    wait_until(ended)
    assert few.session(session_id)["messages"][-1]["text"] == "Done."


def test_a_process_without_a_single_descriptor_left_loses_nothing_and_continues_when_there_are_some(few: Serving) -> None:
    """P1, P3: housekeeping, peers, the status file, lanes and the accept loop survive it."""
    session_id = few.new_session()
    few.post(session_id, "count 50 0.1")
    few.wait_for(session_id, state="running")
    with few.client() as client:
        assert client.get("/api/status").status_code == 200  # A connection that stays.
        resource.prlimit(few.pid, resource.RLIMIT_NOFILE, (open_files(few), FILES))
        deadline = time.monotonic() + 4.0
        while time.monotonic() < deadline:  # Some rounds of everything that looks once a second.
            assert client.get("/api/status").json()["gateway_state"] == "running"
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", few.port), timeout=1) as refused:
                refused.recv(1)
        accepted = client.post(f"/api/sessions/{session_id}/messages", json={"text": "count 2 0"})
        assert accepted.status_code == 202
        resource.prlimit(few.pid, resource.RLIMIT_NOFILE, (FILES, FILES))
    session = few.wait_for(session_id)
    assert [(turn["outcome"], turn["attempt"]) for turn in session["turns"]] == [("completed", 1), ("completed", 1)]
    assert "task failed" not in few.output() and "Traceback" not in few.output()
    before = few.pid
    few.order("/api/admin/restart")
    wait_until(lambda: few.pid != before)
    assert answered(few, session_id, "count 3 0") == "1 2 3"


def test_a_hand_over_for_which_there_are_no_descriptors_is_refused_and_changes_nothing(few: Serving) -> None:
    """C25"""
    with few.client() as client:
        assert client.get("/api/status").status_code == 200
        resource.prlimit(few.pid, resource.RLIMIT_NOFILE, (open_files(few), FILES))
        refused = client.post("/api/admin/restart", json={})
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "hand_over_failed")
        assert "Too many open files" in refused.json()["error"]["message"]
        assert client.get("/api/status").json()["gateway_state"] == "running"
        resource.prlimit(few.pid, resource.RLIMIT_NOFILE, (FILES, FILES))
    before = few.pid
    few.order("/api/admin/restart")
    wait_until(lambda: few.pid != before)


def test_what_a_dead_gateway_left_running_is_found_also_where_descriptors_are_short_for_a_moment(tmp_path: Path) -> None:
    """P5: a command that is not seen would run next to the next attempt of its turn."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    left = subprocess.Popen(["sleep", "60"], env={tool_processes.VARIABLE: tool_processes.mark(tmp_path, "o_dead")})
    back = threading.Timer(0.3, resource.setrlimit, (resource.RLIMIT_NOFILE, limits))
    try:
        wait_until(lambda: [process.pid for process, _ in tool_processes.running(tmp_path)] == [left.pid])
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        back.start()
        assert tool_processes.kill(tmp_path, lambda owner: owner == "o_dead") == 1
        assert left.wait(10) == -signal.SIGKILL
    finally:
        back.cancel()
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        left.kill()
        left.wait()
