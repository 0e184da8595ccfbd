"""Hand-over between real processes: a new one takes the place of the old one, and nobody who talks to Holdfast notices."""

import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import httpx
import psutil
import pytest

from holdfast.store.sqlite.connection import SCHEMA_VERSION
from tests.e2e.command_line import command, environment, holdfast, is_one_sentence, process_fields, write_status
from tests.e2e.serving import NO_CERTIFICATES, Reader, Serving, complete_a_turn, hand_over, running, wait_until

STUMBLING = "tests.e2e.stumbling"


def answers(session: dict[str, Any]) -> list[str]:
    return [message["text"] for message in session["messages"] if message["role"] == "assistant"]


def cuts(session: dict[str, Any]) -> list[str]:
    return [message["reason"] for message in session["messages"] if message["role"] == "interruption"]


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def counts_up(text: str) -> bool:
    return text == " ".join(str(number) for number in range(1, len(text.split()) + 1)) != ""


def is_whole(serving: Serving, session_id: str) -> bool:
    """`tick` is let come to its end: one turn, one attempt, one answer, no word about any of it."""
    (serving.home / "enough").touch()
    session = serving.wait_for(session_id)
    assert [(turn["outcome"], turn["attempt"]) for turn in session["turns"]] == [("completed", 1)], session["turns"]
    (answer,) = answers(session)
    assert counts_up(answer) and cuts(session) == []
    return True


def answers_people(serving: Serving) -> bool:
    session_id = serving.new_session()
    serving.post(session_id, "count 2 0")
    return answers(serving.wait_for(session_id)) == ["1 2"]


# what becomes of the work


def test_a_turn_ends_where_it_began_and_the_new_process_streams_it(tmp_path: Path) -> None:
    """C24, C19, P2, P3, P7: `restart` returns while the turn runs; every event once, in order; what is said meanwhile waits."""
    with Serving(tmp_path / "home", module=STUMBLING) as serving:
        old = serving.pid
        session_id = running(serving, "tick")
        reader = Reader(serving, session_id).start()
        wait_until(lambda: len(reader.seen) > 3)
        said = holdfast(serving.home, "restart", "--json")
        assert said.code == 0 and said.json["mode"] == "hand_over", said.err
        new = said.json["pid"]
        assert serving.session(session_id)["state"] == "running", "it returned while the turn ran"
        assert serving.pid == new != old
        serving.post(session_id, "count 3 0")
        (retiring,) = serving.status()["retiring"]
        assert retiring == {**process_fields(old), "running_turns": 1}
        assert f"process {old}, 1 turn" in holdfast(serving.home, "status").out
        wait_until(lambda: [other["pid"] for other in serving.written["retiring"]] == [old])

        (serving.home / "enough").touch()
        session = serving.wait_for(session_id)
        assert [(turn["outcome"], turn["attempt"]) for turn in session["turns"]] == [("completed", 1)] * 2
        first, second = answers(session)
        assert counts_up(first) and second == "1 2 3" and cuts(session) == []
        log = serving.log(session_id)
        assert [item.seq for item in log] == list(range(1, len(log) + 1))
        wait_until(lambda: len(reader.seen) >= len(log))
        assert reader.stop() == log and reader.connections >= 2
        wait_until(lambda: serving.status()["retiring"] == [] and serving.written["retiring"] == [])
        assert (serving.pid, serving.written["gateway_state"]) == (new, "running"), "the old one wrote nothing behind it"
        assert "retiring" not in holdfast(serving.home, "status").out


@pytest.mark.parametrize("woken", [True, False], ids=["woken", "every wake-up is lost"])
def test_stops_and_answers_reach_a_turn_in_a_retiring_process(tmp_path: Path, woken: bool) -> None:
    """C24, A21, R5: asked of the new process, carried out in the old one within a second, which then has nothing more to do and goes."""
    with Serving(tmp_path / "home", module=STUMBLING) as serving:
        old = serving.pid
        by_api, by_chat = running(serving, "hang"), running(serving, "hang")
        asked = serving.new_session()
        serving.post(asked, "ask What is your name?")
        serving.wait_for(asked, state="waiting")
        asks_later = running(serving, "wonder")
        hand_over(serving)
        if not woken:
            for path in (serving.home / "run").glob("*.sock"):
                path.unlink()
        assert serving.session(asks_later)["state"] == "running"
        assert [(other["pid"], other["running_turns"]) for other in serving.status()["retiring"]] == [(old, 3)]
        serving.order(f"/api/sessions/{by_api}/stop")
        serving.post(by_chat, "/stop")
        for session_id in (by_api, by_chat):
            wait_until(lambda session_id=session_id: serving.session(session_id)["turns"][0]["state"] == "ended")  # type: ignore[misc]
            times = {seen.event: datetime.fromisoformat(seen.body["at"]) for seen in reversed(serving.log(session_id))}
            assert (times["turn.ended"] - times["stop.requested"]).total_seconds() < 10, "a second, on a machine that is busy"
            (turn,) = serving.session(session_id)["turns"]
            assert (turn["outcome"], turn["attempt"]) == ("cancelled", 1)
        wait_until(lambda: [other["running_turns"] for other in serving.status()["retiring"]] == [1])
        serving.post(asked, "Ada")
        assert answers(serving.wait_for(asked)) == ["Thank you. You answered: Ada"]
        (serving.home / "enough").touch()
        serving.wait_for(asks_later, state="waiting")
        serving.post(asks_later, "sleep")
        session = serving.wait_for(asks_later)
        (answer,) = answers(session)
        assert counts_up(answer.removesuffix(" and sleep")) and answer.endswith(" and sleep") and cuts(session) == []
        wait_until(lambda: serving.status()["retiring"] == [])
        assert serving.process is not None and serving.process.pid == old and serving.process.poll() is None, "it stays in front"


def test_a_stop_ends_every_process_within_one_deadline(tmp_path: Path) -> None:
    """C24, C1, C18: three retire at once beside the one that serves; each cuts and marks its own turn."""
    with Serving(tmp_path / "home") as serving:
        retiring, sessions = [], []
        for _ in range(3):
            retiring.append(serving.pid)
            sessions.append(running(serving, "hang"))
            hand_over(serving)
        wait_until(lambda: {other["pid"]: other["running_turns"] for other in serving.status()["retiring"]} == dict.fromkeys(retiring, 1))
        assert answers_people(serving)
        front = serving.reaped()
        said = holdfast(serving.home, "stop")
        assert said.code == 0, said.err
        assert serving.processes() == []
        assert front.wait(10) == 0
        assert serving.written["gateway_state"] == "stopped"
        assert not (serving.home / "planned-stop.json").exists()
        serving.start()
        for session_id in sessions:
            wait_until(lambda session_id=session_id: serving.session(session_id)["turns"][0]["attempt"] == 2)  # type: ignore[misc]
            assert cuts(serving.session(session_id)) == ["shutdown_timeout"]


def test_no_request_is_refused_over_many_hand_overs(tmp_path: Path) -> None:
    """C24: new connections, kept ones, and a stream."""
    with Serving(tmp_path / "home") as serving:
        session_id = serving.new_session()
        signed = {"Authorization": f"Bearer {serving.token}"}
        over, counted, errors = threading.Event(), [0, 0, 0, 0], list[str]()

        def ask(number: int) -> None:
            """Odd ones keep their connection while they may; even ones have a new one each time."""
            while not over.is_set():
                with httpx.Client(headers=signed, verify=NO_CERTIFICATES, trust_env=False, timeout=20) as client:
                    go_on = True
                    while go_on:
                        go_on = bool(number % 2) and not over.is_set()
                        try:
                            answer = client.get(f"{serving.url}/api/sessions/{session_id}")
                            assert answer.status_code == 200, answer.text
                            counted[number] += 1
                        except (httpx.HTTPError, AssertionError) as error:
                            errors.append(f"{number}: {type(error).__name__}: {error}")

        asking = [threading.Thread(target=ask, args=(number,)) for number in range(len(counted))]
        for thread in asking:
            thread.start()
        reader = Reader(serving, session_id).start()
        try:
            for number in range(5):
                hand_over(serving)
                serving.post(session_id, f"count {number + 2} 0")
            wait_until(lambda: len(answers(serving.wait_for(session_id))) == 5)
        finally:
            over.set()
            for thread in asking:
                thread.join()
        assert errors == [] and all(counted), (counted, errors[:5])
        log = serving.log(session_id)
        wait_until(lambda: len(reader.seen) >= len(log))
        assert reader.stop() == log


# the lock


def test_a_second_gateway_is_refused_also_after_a_hand_over(tmp_path: Path) -> None:
    """C20: the lock went over to the successor, and says so."""
    with Serving(tmp_path / "home") as serving:
        new = hand_over(serving)
        said = holdfast(serving.home, "serve", "--port", "0")
        assert said.code == 69 and is_one_sentence(said.err)
        assert f"Process {new} already serves {serving.home}" in said.err and "holdfast stop" in said.err


def test_after_the_death_of_a_successor_a_new_start_serves_beside_the_retiring_one(tmp_path: Path) -> None:
    """C20, C24: at once, on the same port; the turn in the retiring one ends in it. The one in front tells of the death by its code."""
    with Serving(tmp_path / "home", module=STUMBLING) as serving:
        session_id = running(serving, "tick")
        old = serving.pid
        os.kill(hand_over(serving), signal.SIGKILL)
        front = serving.process
        assert front is not None
        serving.start()
        assert serving.session(session_id)["state"] == "running"
        assert [(other["pid"], other["running_turns"]) for other in serving.status()["retiring"]] == [(old, 1)]
        assert answers_people(serving)
        assert is_whole(serving, session_id)
        assert front.wait(20) == 1
        wait_until(lambda: serving.status()["retiring"] == [])


def test_the_turn_of_a_retiring_process_that_is_killed_goes_on_in_the_new_one(tmp_path: Path) -> None:
    """C20, C24, R9."""
    with Serving(tmp_path / "home", module=STUMBLING) as serving:
        session_id = running(serving, "tick")
        hand_over(serving)
        serving.kill()
        wait_until(lambda: serving.session(session_id)["turns"][0]["attempt"] == 2)
        (serving.home / "enough").touch()
        session = serving.wait_for(session_id)
        assert [(turn["outcome"], turn["attempt"], turn["rule"]) for turn in session["turns"]] == [("completed", 2, "R9")]
        assert counts_up(answers(session)[0]) and cuts(session) == ["crash"]
        assert serving.status()["retiring"] == []


def test_no_leftover_keeps_a_start_from_serving(tmp_path: Path) -> None:
    """C20: a lock file, a status file and an owner's file, all naming processes that live and are not gateways."""
    serving = Serving(tmp_path / "home")
    write_status(serving.home, gateway_state="running", owner="o_left")
    (serving.home / "serving.lock").write_text(json.dumps({"pid": os.getpid()}))
    (serving.home / "owners").mkdir()
    (serving.home / "owners" / "o_left").touch()
    with serving:
        assert serving.process is not None and serving.pid == serving.process.pid
        assert serving.status()["retiring"] == []
        assert not (serving.home / "owners" / "o_left").exists()


def test_what_a_killed_gateway_started_keeps_no_start_out(tmp_path: Path) -> None:
    """C20: a command that left its process group and outlives the gateway holds none of its locks."""
    with Serving(tmp_path / "home") as serving:
        beat = serving.folder / "beat"
        running(serving, f"run setsid sh -c 'touch {beat}; sleep 600' & sleep 600")
        wait_until(beat.exists)
        complete_a_turn(serving)
        serving.kill()
        serving.start()
        assert serving.process is not None and serving.pid == serving.process.pid


# successors that fail


def is_refused(serving: Serving, words: str) -> None:
    """The old process serves on, and whoever asked is told why."""
    old = serving.pid
    said = holdfast(serving.home, "restart")
    assert said.code == 1 and is_one_sentence(said.err), said
    assert words in said.err and "still serves" in said.err, said.err
    assert (serving.pid, serving.status()["gateway_state"]) == (old, "running")
    wait_until(lambda: [process.pid for process in serving.processes()] == [old])  # Nothing of the new one is left.
    assert answers_people(serving)


def test_a_successor_that_cannot_read_its_settings_leaves_the_old_process_serving(tmp_path: Path) -> None:
    """C25: the reason is told to whoever asked, not only to the log."""
    with Serving(tmp_path / "home", module=STUMBLING) as serving:
        session_id = running(serving, "tick")
        (serving.home / "config.toml").write_text("max_waiting = 'many'\n")
        is_refused(serving, "Invalid max_waiting 'many'")
        (serving.home / "config.toml").unlink()
        assert is_whole(serving, session_id)
        assert hand_over(serving)


def test_a_successor_refuses_to_take_over_from_an_older_schema_and_says_to_stop_and_start(tmp_path: Path) -> None:
    """C25: the running process is of a schema that it could not work with any more, and serves on."""
    with Serving(tmp_path / "home", module=STUMBLING, variables={"OFFERED_SCHEMA": "4"}) as serving:
        process, session_id = serving.reaped(), running(serving, "tick")
        is_refused(serving, "`holdfast stop")
        said = holdfast(serving.home, "restart").err
        assert f"schema 4 to {SCHEMA_VERSION}" in said and "then `holdfast serve" in said
        assert is_whole(serving, session_id)
        assert holdfast(serving.home, "stop").code == 0 and process.wait(10) == 0
        serving.start()
        assert answers_people(serving)


def test_a_successor_that_does_not_know_the_database_leaves_the_old_process_serving(tmp_path: Path) -> None:
    """C25."""
    with Serving(tmp_path / "home", module=STUMBLING) as serving:
        session_id = running(serving, "tick")
        db = apsw.Connection(str(serving.home / "holdfast.db"))
        db.set_busy_timeout(10_000)  # The gateway writes all the while.
        version = db.pragma("user_version")
        db.execute("PRAGMA user_version = 999")
        is_refused(serving, "schema 999")
        db.execute(f"PRAGMA user_version = {version}")
        db.close()
        assert is_whole(serving, session_id)
        assert hand_over(serving)


@pytest.mark.parametrize(("how", "patience_s", "words"), [("die", "30", "exited before it was"), ("hang", "2", "within 2 s")])
def test_a_successor_that_dies_or_hangs_on_its_way_leaves_the_old_process_serving(
    tmp_path: Path, how: str, patience_s: str, words: str
) -> None:
    """C25, C24: before it is ready, before and after it is told to go, and before it has said that it serves."""
    with Serving(tmp_path / "home", module=STUMBLING, variables={"PATIENCE_S": patience_s}) as serving:
        session_id = running(serving, "tick")
        for place in ("loaded", "ready", "told-to-go", "about-to-serve"):
            (serving.home / "stumble").write_text(f"{place} {how}")
            is_refused(serving, words)
        (serving.home / "stumble").unlink()
        if how == "die":
            hand_over(serving)
        assert is_whole(serving, session_id)


def test_a_stop_in_the_middle_of_a_hand_over_stops_the_successor_too(tmp_path: Path) -> None:
    """C18, C24: whoever asked for a stop finds nothing running when it is over."""
    with Serving(tmp_path / "home", module=STUMBLING, drain_timeout_s="3") as serving:
        running(serving, "tick")
        (serving.home / "stumble").write_text("loaded dawdle")
        front = serving.reaped()
        with subprocess.Popen(
            command(serving.home, "restart"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment()
        ) as restart:
            wait_until(lambda: serving.status()["gateway_state"] == "handing_over")
            said = holdfast(serving.home, "stop")
            assert said.code == 0, said.err
        assert serving.processes() == []
        assert front.wait(10) == 0 and restart.returncode == 1
        assert serving.written["gateway_state"] == "stopped"


# the process in front


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_process_in_front_passes_signals_on_and_ends_as_its_successor_does(tmp_path: Path, number: int) -> None:
    """C24, C17, C26: after two hand-overs, with a turn that runs in the one that serves."""
    with Serving(tmp_path / "home") as serving:
        hand_over(serving)
        hand_over(serving)
        session_id = running(serving, "hang")
        assert serving.process is not None
        wait_until(lambda: len(serving.processes()) == 2)
        assert serving.stop(number) == 75
        assert serving.processes() == [] and serving.written["gateway_state"] == "running"
        serving.start()
        wait_until(lambda: serving.session(session_id)["turns"][0]["attempt"] == 2)


def test_a_signal_to_the_process_in_front_stops_the_service_also_while_its_own_turn_goes_on(tmp_path: Path) -> None:
    """C24: whoever started it knows only that one."""
    with Serving(tmp_path / "home") as serving:
        running(serving, "hang")
        new = hand_over(serving)
        serving.stop()
        wait_until(lambda: gone(new))
        assert serving.processes() == []


def test_the_service_outlives_the_process_in_front(tmp_path: Path) -> None:
    """C24."""
    with Serving(tmp_path / "home") as serving:
        new = hand_over(serving)
        serving.kill()
        assert answers_people(serving) and serving.pid == new
        assert hand_over(serving) != new
        assert holdfast(serving.home, "stop").code == 0
        assert serving.processes() == []


def test_sighup_hands_over_under_a_service_manager(tmp_path: Path) -> None:
    """C24, C26: elsewhere it is the end of a terminal."""
    address = str(tmp_path / "notify")
    with manager(address), Serving(tmp_path / "home", module=STUMBLING, variables={"NOTIFY_SOCKET": address}) as serving:
        session_id = running(serving, "tick")
        first = serving.pid
        os.kill(first, signal.SIGHUP)
        wait_until(lambda: serving.pid != first)
        assert is_whole(serving, session_id)
        wait_until(lambda: serving.status()["retiring"] == [])
        second = serving.pid
        os.kill(second, signal.SIGHUP)
        wait_until(lambda: serving.pid != second)
        assert serving.pid not in (first, second)


# where no successor can take its place


def test_a_supervisor_that_knows_one_process_only_starts_it_again(tmp_path: Path) -> None:
    """C9, C19, C1: it ends with 75 and leaves a note and `stopped`; `restart` returns when the next one serves."""
    with Serving(tmp_path / "home", module=STUMBLING, supervisor="launchd") as serving:
        session_id = running(serving, "tick")
        first = serving.process
        assert first is not None
        with subprocess.Popen(command(serving.home, "restart", "--json"), stdout=subprocess.PIPE, env=environment()) as restart:
            assert first.wait(30) == 75
            note, written = json.loads((serving.home / "restart-pending.json").read_text()), serving.written
            assert note["at"] and written["gateway_state"] == "stopped"
            assert restart.poll() is None, "nobody serves yet"
            serving.start()
            assert restart.stdout is not None
            said = json.loads(restart.stdout.read())
        assert restart.returncode == 0 and said["pid"] == serving.pid != first.pid
        (serving.home / "enough").touch()
        session = serving.wait_for(session_id)
        assert counts_up(answers(session)[0]) and cuts(session) == ["restart_timeout"]


def test_process_1_of_a_container_ends_with_75(tmp_path: Path) -> None:
    """C9, C19."""
    inside = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    if subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("no process 1 can be had here: unshare is not allowed.")
    with Serving(tmp_path / "home", inside=inside) as serving:
        assert serving.pid == 1
        answered = serving.order("/api/admin/restart")
        assert answered["mode"] == "exit"
        assert serving.process is not None and serving.process.wait(30) == 75
        assert serving.written["gateway_state"] == "stopped" and (serving.home / "restart-pending.json").exists()
        serving.start()
        assert serving.new_session()


# what a service manager is told


@contextmanager
def manager(address: str) -> Iterator["Manager"]:

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wire:
        wire.bind("\0" + address[1:] if address.startswith("@") else address)
        wire.settimeout(60)
        yield Manager(wire)


class Manager:
    """The service manager's end of the wire: what each process told it, in order."""

    def __init__(self, wire: Any) -> None:

        wire.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._wire = wire

    def hear(self) -> tuple[int, dict[str, str]]:
        """Who told what; beats of the watchdog are passed over."""

        while True:
            text, ancillary, _, _ = self._wire.recvmsg(4096, socket.CMSG_SPACE(struct.calcsize("3i")))
            fields = dict(line.split("=", 1) for line in text.decode().splitlines())
            if "WATCHDOG" not in fields:
                return struct.unpack("3i", ancillary[0][2])[0], fields

    def hear_beat(self, within_s: float) -> bool:
        """Whether a beat comes within this time."""
        self._wire.settimeout(within_s)
        try:
            return self._wire.recv(4096) == b"WATCHDOG=1"
        except TimeoutError:
            return False


@pytest.mark.parametrize("abstract", [False, True])
def test_a_service_manager_is_told_who_serves_and_when_it_ends(tmp_path: Path, abstract: bool) -> None:
    """C9, C23: only the main process is believed, so the old one names the new one before that says it is ready."""
    address = f"@holdfast-{os.getpid()}-{time.monotonic_ns()}" if abstract else str(tmp_path / "notify")
    with manager(address) as told, Serving(tmp_path / "home", variables={"NOTIFY_SOCKET": address}, stop_timeout_s="20") as serving:
        assert serving.process is not None
        old = serving.process.pid
        assert told.hear() == (old, {"READY": "1", "MAINPID": str(old)})
        assert "#code=" not in serving.output(), "what a service manager keeps is read by others"
        new = hand_over(serving)
        assert told.hear() == (old, {"MAINPID": str(new)})
        assert told.hear() == (new, {"READY": "1", "MAINPID": str(new)})
        assert serving.process.wait(20) == 0, "the one before has ended, and nobody stays in front"
        os.kill(new, signal.SIGTERM)
        pid, fields = told.hear()
        assert pid == new and fields["STOPPING"] == "1" and int(fields["EXTEND_TIMEOUT_USEC"]) >= 20_000_000
        wait_until(lambda: gone(new))


def test_a_service_manager_hears_no_beat_of_a_loop_that_hangs(tmp_path: Path) -> None:
    """C23: it beats while the loop answers, and what hangs is printed."""
    address = str(tmp_path / "notify")
    with (
        manager(address) as told,
        Serving(tmp_path / "home", module=STUMBLING, variables={"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1000000"}) as serving,
    ):
        told.hear()
        assert told.hear_beat(30) and told.hear_beat(30)
        running(serving, "block sleep 300")
        (serving.home / "stumble").write_text("block")
        wait_until(lambda: "has not answered" in serving.output() and "stumbling.py" in serving.output())
        while told.hear_beat(0.01):
            pass
        assert not told.hear_beat(1.5), "three times as long as it takes to the next one"
