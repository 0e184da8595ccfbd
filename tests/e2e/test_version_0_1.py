"""A home of version 0.1, killed in mid-turn, is served by this version with everything in it."""

import fcntl
import io
import json
import socket
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command_line import command, environment, holdfast
from tests.e2e.serving import ROOT, Serving, running
from tests.homes import Shown, missing, unpack

LONG_S = "3000000000"  # These homes have lain here for a while.
NUMBERS = {last: " ".join(str(number) for number in range(1, last + 1)) for last in (40, 60, 100)}
LAST_REVISION = "054dfe1"
# Nothing was under way in these, and nothing is now.
AT_REST = ("pruned", "resumed", "rested", "archived", "failed", "long", "asked", "cancelled", "before_reset", "reset", "suspended")


class Upgraded:
    """A home of version 0.1 that this version serves, and what version 0.1 showed of it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.shown: Shown = unpack(name, folder)
        self.serving = Serving(folder, module="tests.e2e.scripted", resume_window_s=LONG_S)

    def view(self, name: str) -> dict[str, Any]:
        return self.serving.session(self.shown.names[name])

    def at_rest(self, name: str) -> dict[str, Any]:
        return self.serving.wait_for(self.shown.names[name])

    def after(self, name: str, cursor: str) -> list[tuple[str, str]]:
        """The ids and kinds of the events that a reader with a cursor gets, up to what the session shows now."""
        newest = self.view(name)["cursor"]
        with self.serving.client() as client:
            path = f"/api/sessions/{self.shown.names[name]}/events"
            with client.stream("GET", path, headers={"Last-Event-ID": cursor}) as answer:
                found, fields = [], {}
                for line in answer.iter_lines():
                    field, _, value = line.partition(":")
                    fields[field] = value.strip()
                    if not line:
                        found.append((fields.get("id", ""), fields.get("event", "")))
                    if found and found[-1][0] == newest:
                        return found
        raise AssertionError(f"the stream ended after {found}")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    home = Upgraded("killed", tmp_path_factory.mktemp("killed") / "home")
    with home.serving:
        home.serving.order("/api/admin/unpause")  # It was killed while paused.
        yield home


def answers(view: dict[str, Any]) -> list[str]:
    return [message["text"] for message in view["messages"] if message["role"] == "assistant"]


def said(view: dict[str, Any]) -> list[str]:
    return [message["text"] for message in view["messages"] if message["role"] == "user"]


@pytest.mark.parametrize("name", AT_REST)
def test_a_conversation_at_rest_is_as_it_was_and_stays_silent(killed: Upgraded, name: str) -> None:
    """A3, P1, P6: also one of which only the records are kept, one with a long output, one that is suspended."""
    before, after = dict(killed.shown.views[name]), killed.view(name)
    if name == "long":  # The API shows its beginning and its end.
        before["messages"] = [message for message in before["messages"] if message["role"] == "user"]
        after["messages"] = [message for message in after["messages"] if message["role"] == "user"]
    assert missing(before, after) == []


@pytest.mark.parametrize(("name", "last"), [("left", 40), ("counts", 60), ("worked", 100)])
def test_a_turn_that_was_interrupted_continues_where_it_stopped(killed: Upgraded, name: str, last: int) -> None:
    """R9, P3, P7: every number once and in order, in the same turn, also where the turn had been left."""
    view = killed.at_rest(name)
    assert answers(view) == [NUMBERS[last]]
    assert [(turn["outcome"], turn["attempt"], turn["rule"]) for turn in view["turns"]] == [("completed", 2, "R9")]
    assert [turn["id"] for turn in view["turns"]] == [turn["id"] for turn in killed.shown.views[name]["turns"]]


def test_a_tool_that_had_finished_is_not_run_again(killed: Upgraded) -> None:
    """P5"""
    killed.at_rest("worked")
    assert (killed.serving.home / "lines.txt").read_text() == "line\n"


def test_a_tool_that_was_at_work_is_said_to_have_an_unknown_outcome(killed: Upgraded) -> None:
    """P5, B10: it is not run again, and what it had put out is kept."""
    (answer,) = [message for message in killed.at_rest("works")["messages"] if message["role"] == "assistant"]
    (call,) = answer["tool_calls"]
    assert call["outcome"] == "unknown"
    log = killed.serving.log(killed.shown.names["works"])
    assert [event.body["text"] for event in log if event.event == "tool.output"] == ["begun\n"]
    assert "It is not known whether it finished" in answer["text"]


def test_messages_that_waited_are_answered_once_and_in_order(killed: Upgraded) -> None:
    """P1, C4: behind the turn that was interrupted."""
    view = killed.at_rest("queued")
    assert said(view) == ["count 60 0.1", "the second", "the third"]
    assert [text.splitlines()[0] for text in answers(view)] == [NUMBERS[60], "You said: the second", "You said: the third"]


def test_a_message_that_nobody_had_started_on_is_answered_and_known_when_it_comes_again(killed: Upgraded) -> None:
    """P1, P6: by the key that version 0.1 recorded."""
    again = killed.serving.post(killed.shown.names["unstarted"], "wait for me", client_id="unstarted-1")
    view = killed.at_rest("unstarted")
    assert again["message_id"] in [message["id"] for message in view["messages"]]
    assert said(view) == ["wait for me"] and len(answers(view)) == 1
    assert (
        killed.serving.post(killed.shown.names["rested"], "hello", client_id="hello-1")["message_id"]
        == (killed.shown.views["rested"]["messages"][0]["id"])
    )


def test_an_open_question_can_be_answered_and_its_turn_completes(killed: Upgraded) -> None:
    """R5: asked by version 0.1, answered here."""
    killed.serving.wait_for(killed.shown.names["asks"], state="waiting")
    question = killed.shown.views["asks"]["question"]
    killed.serving.order(f"/api/questions/{question['question_id']}", text="North")
    view = killed.at_rest("asks")
    assert answers(view) == ["Thank you. You answered: North"]
    assert [turn["outcome"] for turn in view["turns"]] == ["completed"]


def test_a_question_that_was_answered_before_the_kill_continues_by_itself(killed: Upgraded) -> None:
    """R5, P3: nobody had continued with the answer yet."""
    view = killed.at_rest("answered")
    assert answers(view) == ["Thank you. You answered: And then home."]
    assert [(turn["outcome"], turn["attempt"]) for turn in view["turns"]] == [("completed", 2)]


def test_a_stop_that_was_acknowledged_is_carried_out(killed: Upgraded) -> None:
    """R0"""
    assert [turn["outcome"] for turn in killed.at_rest("stopped")["turns"]] == ["cancelled"]


def test_a_deleted_conversation_can_be_brought_back(killed: Upgraded) -> None:
    session_id = killed.shown.names["deleted"]
    with killed.serving.client() as client:
        assert client.get(f"/api/sessions/{session_id}").status_code == 410
        assert client.post(f"/api/sessions/{session_id}/undelete", json={}).status_code == 200
    assert said(killed.serving.session(session_id)) == ["not for everybody"]


def test_a_suspended_conversation_is_left_for_a_new_one_and_can_be_taken_back(killed: Upgraded) -> None:
    """R1"""
    session_id = killed.shown.names["suspended"]
    posted = killed.serving.post(session_id, "hello again")
    assert posted["session_id"] != session_id
    killed.serving.wait_for(posted["session_id"])
    assert killed.serving.post(posted["session_id"], "/resume")["session_id"] == session_id
    assert not killed.serving.session(session_id)["suspended"]


@pytest.mark.parametrize("name", ["counts", "asks", "queued", "rested"])
def test_a_reader_that_comes_with_a_cursor_of_version_0_1_gets_what_followed(killed: Upgraded, name: str) -> None:
    """P7: from the middle exactly the events that came next then, and from the end only what came since."""
    ids = [event["id"] for event in killed.shown.events[name]]
    middle = len(ids) // 2
    followed = [(event["id"], event["event"]) for event in killed.shown.events[name][middle + 1 :]]
    assert killed.after(name, ids[middle])[: len(followed)] == followed
    killed.serving.post(killed.shown.names[name], "/status")
    assert not {id_ for id_, _ in killed.after(name, ids[-1])} & set(ids)


def test_a_reader_whose_cursor_lies_before_pruned_events_is_given_the_conversation_as_it_is(killed: Upgraded) -> None:
    """P7: nothing is left out without a word. What follows without a gap may come first."""
    ids = [event["id"] for event in killed.shown.events["pruned"]]
    cursor = ids[len(ids) // 2]
    *followed, last = killed.after("pruned", cursor)
    assert last == (killed.view("pruned")["cursor"], "snapshot")
    log, _, seq = cursor.rpartition(".")
    assert [id_ for id_, _ in followed] == [f"{log}.{int(seq) + number}" for number in range(1, len(followed) + 1)]


def test_a_home_that_was_stopped_continues_too(tmp_path: Path) -> None:
    """R9, R5, P1: after an orderly stop, with a turn that it interrupted, a message behind it and a question."""
    home = Upgraded("stopped", tmp_path / "home")
    with home.serving:
        view = home.at_rest("counts")
        assert [text.splitlines()[0] for text in answers(view)] == [NUMBERS[60], "You said: the second"]
        home.serving.wait_for(home.shown.names["asks"], state="waiting")
        home.serving.post(home.shown.names["asks"], "East")
        assert answers(home.at_rest("asks")) == ["Thank you. You answered: East"]
        assert missing(home.shown.views["rested"], home.view("rested")) == []
        home.serving.stop()
    # The next start finds nothing left to do.
    with home.serving:
        assert answers(home.view("counts")) == answers(view)


def test_a_successor_refuses_to_take_over_from_version_0_1_and_leaves_its_home_alone(tmp_path: Path) -> None:
    """C25: in the words in which version 0.1 hands over. It hears why, and what to do instead."""
    home = tmp_path / "home"
    unpack("stopped", home)
    before = {path.name: path.read_bytes() for path in home.iterdir() if path.is_file()}
    ours, theirs = socket.socketpair()
    with ours, theirs, socket.create_server(("127.0.0.1", 0)) as listener, (home / "serving.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        descriptors = {"listener": listener.fileno(), "lock": lock.fileno(), "wire": theirs.fileno(), "front": None}
        known = {"schema": 4, "owner": "o_old", "database": {"token": 5, "files": {"holdfast.db": [1, 2]}}}
        successor = subprocess.Popen(
            command(home, "serve"),
            env=environment(HOLDFAST_SUCCESSION=json.dumps(descriptors | known)),
            pass_fds=(listener.fileno(), lock.fileno(), theirs.fileno()),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        heard = json.loads(ours.makefile().readline())
        assert "schema 4" in heard["failed"] and "`holdfast stop`, then `holdfast serve`" in heard["failed"]
        assert successor.wait(30) == 78
    left = {path.name: path.read_bytes() for path in home.iterdir() if path.is_file() and path.name not in ("serving.lock", "holdfast.log")}
    assert left == before, "what version 0.1 has open is as it was"


def test_a_hand_over_from_version_0_1_is_refused_and_its_process_continues(tmp_path: Path) -> None:
    """C25: its code takes what this version writes for damage, so one upgrades by a stop and a start. The answer says so."""
    packed = subprocess.run(["git", "archive", LAST_REVISION, "src"], cwd=ROOT, capture_output=True)
    if packed.returncode:
        pytest.skip(f"this checkout has no revision {LAST_REVISION}, the last of version 0.1")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(tmp_path / "0.1", filter="data")
    code = tmp_path / "code"
    code.symlink_to(tmp_path / "0.1")
    with Serving(tmp_path / "home", variables={"PYTHONPATH": str(code / "src")}) as serving:
        session_id = running(serving, "count 60 0.1")
        pid = serving.pid
        code.unlink()
        code.symlink_to(ROOT)  # An upgrade in place.
        with serving.client() as client:
            answer = client.post("/api/admin/restart", json={})
        assert answer.status_code == 409 and "holdfast stop" in answer.json()["error"]["message"], answer.text
        assert serving.pid == pid
        assert holdfast(serving.home, "send", "new", "count 3 0").out == "1 2 3\n", "the new command line talks to it until then"
        view = serving.wait_for(session_id)
        assert answers(view) == [NUMBERS[60]] and [turn["attempt"] for turn in view["turns"]] == [1]
        serving.stop()
        serving.start()
        assert serving.pid != pid
        assert missing(view, serving.session(session_id)) == []
