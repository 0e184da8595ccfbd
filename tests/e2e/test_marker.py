"""The planned-stop marker: a file that asks one life of one process to stop, and no other."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from holdfast.core.process_id import ProcessId
from holdfast.process import stop_marker as markers
from tests.e2e.command_line import holdfast, is_one_sentence, process_fields, write_status
from tests.e2e.serving import Serving, now, wait_until
from tests.fakes.loop import SimLoop


def marker_for(pid: int, *, older_ms: int = 0, started_ms: int = 0) -> dict[str, Any]:
    """As `holdfast stop` writes it; or one that is older, or names another life of that pid."""
    process = process_fields(pid)
    return process | {"process_started_at": process["process_started_at"] + started_ms, "written_at": now() - older_ms}


def put(serving: Serving, marker: dict[str, Any]) -> Path:
    """In one step, so that no half of it is read."""
    making, place = serving.home / "making", serving.home / "planned-stop.json"
    making.write_text(json.dumps(marker))
    return making.replace(place)


def test_a_marker_that_names_the_process_stops_it_once(tmp_path: Path) -> None:
    """D1, D6, D8, C18: without a signal, by the same path, and it is taken away behind it."""
    with Serving(tmp_path / "home") as serving:
        assert serving.process is not None
        place = put(serving, marker_for(serving.pid))
        assert serving.process.wait(30) == 0
        assert (serving.written["gateway_state"], serving.written["why"]) == ("stopped", "planned-stop.json")
        assert serving.output().count("planned stop") == serving.output().count("asked to stop") == 1
        assert not place.exists()


def test_a_marker_for_somebody_else_is_left_alone(tmp_path: Path) -> None:
    """D2, D8, D4: another process, an earlier life of this one; also at the next start."""
    with Serving(tmp_path / "home") as serving:
        for marker in (
            marker_for(serving.pid, started_ms=-60_000),
            marker_for(psutil.Process().pid),
        ):
            place = put(serving, marker)
            session_id = serving.new_session()
            serving.post(session_id, "count 9 0.1")  # Longer than the time between two looks at the marker.
            assert serving.wait_for(session_id)["turns"][0]["attempt"] == 1
            assert json.loads(place.read_text()) == marker
        assert serving.stop(signal.SIGTERM) == 75
        assert serving.written["gateway_state"] == "running", "no marker that counts: nobody planned this"
        assert place.exists()
        serving.start()
        assert serving.new_session() and place.exists()


@pytest.mark.parametrize("older_ms", [61_000, -3_600_000], ids=["old", "from the future"])
def test_a_marker_that_counts_for_nobody_is_removed_by_whichever_process_finds_it_and_stops_nobody(tmp_path: Path, older_ms: int) -> None:
    """D8: while it serves, and at a start; whomever it names."""
    with Serving(tmp_path / "home") as serving:
        place = serving.home / "planned-stop.json"
        for pid in (serving.pid, psutil.Process().pid):
            put(serving, marker_for(pid, older_ms=older_ms))
            wait_until(lambda: not place.exists())
        assert serving.new_session()
        serving.kill()
        put(serving, marker_for(psutil.Process().pid, older_ms=older_ms))
        serving.start()
        assert not place.exists() and serving.new_session()


def test_a_marker_that_does_not_read_is_survived_and_obeyed_once_it_does(tmp_path: Path) -> None:
    """D7: each trouble is in the log, once."""
    with Serving(tmp_path / "home") as serving:
        assert serving.process is not None
        place = serving.home / "planned-stop.json"
        place.mkdir()
        wait_until(lambda: "the stop marker cannot be read" in serving.output())
        place.rmdir()
        for number, content in enumerate((b"{", b"[]"), 2):
            (serving.home / "making").write_bytes(content)
            (serving.home / "making").replace(place)
            wait_until(lambda number=number: serving.output().count("the stop marker cannot be read") == number)  # type: ignore[misc]
        assert serving.new_session()
        put(serving, marker_for(serving.pid))
        assert serving.process.wait(30) == 0
        assert serving.output().count("the stop marker cannot be read") == 3


def test_a_marker_that_comes_before_the_process_serves_is_obeyed_as_soon_as_it_does(tmp_path: Path) -> None:
    """D4."""
    with Serving(tmp_path / "home") as serving:
        assert serving.stop() == 75
        process = serving.launch()
        place = put(serving, marker_for(process.pid))
        assert process.wait(30) == 0
        assert serving.written["pid"] == process.pid and serving.written["gateway_state"] == "stopped"
        assert "serves the demo agent" in serving.output() and not place.exists()


def test_a_marker_while_it_already_drains_makes_it_an_announced_stop_and_changes_nothing_else(tmp_path: Path) -> None:
    """D3, C2, C28: the drain goes on as it began, and ends with its turn; but it stays stopped."""
    with Serving(tmp_path / "home", module="tests.e2e.stumbling", drain_timeout_s="60") as serving:
        assert serving.process is not None
        session_id = serving.new_session()
        serving.post(session_id, "tick")
        serving.wait_for(session_id, state="running")
        serving.process.send_signal(signal.SIGTERM)
        wait_until(lambda: bool(serving.written["gateway_state"] == "draining"))
        place = put(serving, marker_for(serving.pid))
        before = len(serving.session(session_id)["messages"][1]["text"])
        wait_until(lambda: len(serving.session(session_id)["messages"][1]["text"]) > before + 150)  # It goes on for some looks.
        (serving.home / "enough").touch()
        assert serving.process.wait(30) == 0
        assert serving.written["gateway_state"] == "stopped" and serving.written["why"] == "planned-stop.json"
        assert not place.exists()
        serving.start()
        assert [(turn["outcome"], turn["attempt"]) for turn in serving.session(session_id)["turns"]] == [("completed", 1)]


# the command that writes it


@pytest.mark.parametrize("by", ["HTTP", "signal"])
def test_a_marker_that_cannot_be_written_is_reported_and_the_stop_is_done_and_announced_all_the_same(tmp_path: Path, by: str) -> None:
    """D9, C26, C18"""
    with Serving(tmp_path / "home") as serving:
        place, process = serving.home / "planned-stop.json", serving.reaped()
        place.mkdir()
        if by == "signal":  # Nobody who asks over HTTP has a credential now. Another token would count for the gateway, too, in a moment.
            (serving.home / "token").unlink()
            (serving.home / "token").mkdir()
        said = holdfast(serving.home, "stop")
        assert said.code == 0 and f"Stopped (process {process.pid}," in said.out
        assert said.err.strip() == f"The stop marker {place} cannot be written (Is a directory). Stopping without it."
        assert process.wait(30) == 0
        assert (serving.written["gateway_state"], serving.written["why"]) == (
            "stopped",
            {"HTTP": "asked over HTTP", "signal": "SIGUSR1"}[by],
        )
        assert [path.name for path in serving.home.glob(".planned*")] == [], "nothing half made is left"


@pytest.mark.parametrize("stale", [{}, {"process_started_at": 12345}])
def test_a_stop_of_nothing_writes_no_marker(tmp_path: Path, stale: dict[str, Any]) -> None:
    """D9, C20: no gateway at all, or a pid that belongs to somebody else by now."""
    if stale:
        write_status(tmp_path, **stale)
    began = time.monotonic()
    said = holdfast(tmp_path, "stop")
    assert said.code == 1 and is_one_sentence(said.err) and "No gateway runs" in said.err
    assert not (tmp_path / "planned-stop.json").exists() and time.monotonic() - began < 30


def test_the_marker_of_a_stop_that_had_to_be_forced_does_not_stop_the_next_process(tmp_path: Path) -> None:
    """D9, D8: it names the life that could not hear of it."""
    with Serving(tmp_path / "home") as serving:
        process, pid = serving.reaped(), serving.pid
        process.send_signal(signal.SIGSTOP)
        said = holdfast(serving.home, "stop", "--timeout", "1")
        assert said.code == 1 and is_one_sentence(said.err) and f"Process {pid}" in said.err and "it was killed" in said.err
        assert process.wait(10) == -signal.SIGKILL
        written = json.loads((serving.home / "planned-stop.json").read_text())
        assert written["pid"] == pid and now() - written["written_at"] < 60_000
        serving.start()
        assert serving.new_session(), "it names a life that is over"


@pytest.fixture
def watcher(tmp_path: Path) -> Iterator["Watcher"]:
    made = Watcher(tmp_path)
    yield made
    made.task.cancel()
    made.loop.run_until_complete(asyncio.wait({made.task}))
    made.loop.close()


class Watcher:
    """The watcher in simulated time, and when it looked."""

    def __init__(self, home: Path) -> None:
        self.loop, self.looks, self.stops = SimLoop(), list[float](), 0
        self.process = ProcessId(os.getpid(), 1, "boot")
        watching = markers.watch(home, self.process, now=self._now, obeys=lambda: True, stop=self._stop)
        self.task = self.loop.create_task(watching)

    def _now(self) -> int:
        self.looks.append(self.loop.time())
        return 0

    def _stop(self) -> None:
        self.stops += 1

    def pass_s(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))


@pytest.mark.parametrize("after_s", [0.0, 0.1, 0.499, 0.5, 1.3])
def test_the_watcher_ends_within_one_interval_wherever_in_it_it_is_told_to_and_looks_no_more(watcher: "Watcher", after_s: float) -> None:
    """D5, D2"""
    watcher.pass_s(after_s)
    told, looked = watcher.loop.time(), len(watcher.looks)
    watcher.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        watcher.loop.run_until_complete(watcher.task)
    assert watcher.loop.time() - told <= markers.POLL_S
    watcher.pass_s(100 * markers.POLL_S)
    assert (len(watcher.looks), watcher.stops) == (looked, 0)


def test_the_watcher_looks_each_interval_and_ends_by_itself_once_it_has_fired(watcher: "Watcher", tmp_path: Path) -> None:
    """D1, D5, D6: a marker that stays does not fire twice."""
    watcher.pass_s(2.2)
    assert sorted(set(watcher.looks)) == pytest.approx([0.0, 0.5, 1.0, 1.5, 2.0])
    (tmp_path / "planned-stop.json").write_text(json.dumps({**watcher.process.fields, "written_at": 0}))
    watcher.pass_s(markers.POLL_S)
    assert watcher.task.done() and watcher.stops == 1
    looked = len(watcher.looks)
    watcher.pass_s(100 * markers.POLL_S)
    assert (len(watcher.looks), watcher.stops) == (looked, 1)


def test_a_marker_while_an_announced_stop_already_drains_changes_nothing(tmp_path: Path) -> None:
    """D3, C2: the drain is neither shortened nor begun again, and nobody is told twice."""
    with Serving(tmp_path / "home", module="tests.e2e.stumbling", drain_timeout_s="60") as serving:
        session_id, process = serving.new_session(), serving.reaped()
        serving.post(session_id, "tick")
        serving.wait_for(session_id, state="running")
        serving.order("/api/admin/stop")
        wait_until(lambda: bool(serving.written["gateway_state"] == "draining"))
        since = serving.written["since"]
        put(serving, marker_for(serving.pid))
        before = len(serving.session(session_id)["messages"][-1]["text"])
        # It goes on for several looks at the marker.
        wait_until(lambda: any(len(m["text"]) > before + 250 for m in serving.session(session_id)["messages"]))
        assert (serving.written["gateway_state"], serving.written["since"]) == ("draining", since)
        (serving.home / "enough").touch()
        assert process.wait(30) == 0
        assert (serving.written["gateway_state"], serving.written["why"]) == ("stopped", "asked over HTTP")
        assert serving.output().count("asked to stop") == 1
        serving.start()
        session = serving.session(session_id)
        assert [(turn["outcome"], turn["attempt"]) for turn in session["turns"]] == [("completed", 1)]
        assert [message["role"] for message in session["messages"]].count("notice") == 1
