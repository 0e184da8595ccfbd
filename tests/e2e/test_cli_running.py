"""The command line beside a real gateway: asking it, talking to it, stopping it, and what a death in the middle does to that."""

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command_line import command, environment, holdfast, is_one_sentence
from tests.e2e.serving import Serving, wait_until

NUMBERS = " ".join(str(number) for number in range(1, 41))


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    with Serving(tmp_path / "home") as running:
        yield running


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One gateway for the tests that leave it as it was."""
    with Serving(tmp_path_factory.mktemp("shared") / "home") as running:
        yield running


def test_status_asks_the_running_gateway(shared: Serving) -> None:
    assert shared.process is not None
    said = holdfast(shared.home, "status", "--json")
    assert said.code == 0
    assert {
        "running": True,
        "answers": True,
        "gateway_state": "running",
        "pid": shared.process.pid,
        "url": shared.url,
    }.items() <= said.json.items()
    said = holdfast(shared.home, "status")
    assert said.code == 0 and shared.url in said.out and "running" in said.out


def test_a_gateway_that_cannot_be_asked_is_known_from_its_file(serving: Serving) -> None:
    (serving.home / "token").unlink()
    said = holdfast(serving.home, "status", "--json")
    assert said.code == 0 and said.json["running"] and not said.json["answers"]
    assert "status file" in holdfast(serving.home, "status").err


def test_an_answer_goes_to_standard_output_alone(shared: Serving) -> None:
    said = holdfast(shared.home, "send", "new", "count 5 0")
    assert (said.code, said.out) == (0, "1 2 3 4 5\n")
    session_id = said.err.split()[1]
    assert said.err == f"Session {session_id}\n"
    said = holdfast(shared.home, "send", session_id, "-", given="run echo héllo\n")
    assert (said.code, said.out, said.err) == (0, "Done.\n", "terminal: echo héllo\n  héllo\n")
    view = holdfast(shared.home, "show", session_id).out
    assert "count 5 0" in view and "> terminal: echo héllo  done" in view


def test_a_question_is_printed_and_the_next_message_answers_it(shared: Serving) -> None:
    said = holdfast(shared.home, "send", "new", "ask What is your name?", "--json")
    assert said.code == 0 and said.json["outcome"] is None and said.json["question"] == "What is your name?"
    session_id = said.json["session_id"]
    assert "the agent asks" in holdfast(shared.home, "show", session_id).out
    said = holdfast(shared.home, "send", session_id, "Ada")
    assert (said.code, said.out, said.err) == (0, "Thank you. You answered: Ada\n", "")


def test_a_question_alone_is_what_standard_output_gets(shared: Serving) -> None:
    said = holdfast(shared.home, "send", "new", "ask Why?")
    assert (said.code, said.out) == (0, "Why?\n") and "Answer with" in said.err


def test_a_turn_that_fails_ends_with_1_and_says_why(shared: Serving) -> None:
    said = holdfast(shared.home, "send", "new", "fail")
    assert said.code == 1 and said.out == "" and "ended as failed: The demo agent failed" in said.err
    assert holdfast(shared.home, "send", "new", "fail", "--json").json["outcome"] == "failed"


def test_a_turn_that_is_stopped_ends_with_1(shared: Serving) -> None:
    session_id = shared.new_session()
    process = subprocess.Popen(
        command(shared.home, "send", session_id, "hang"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert process.stdout is not None and process.stderr is not None
    with process:
        assert process.stdout.read(7) == b"Hanging"
        with shared.client() as client:
            assert client.post(f"/api/sessions/{session_id}/stop", json={}).status_code == 202
        assert b"ended as cancelled" in process.stderr.read()
    assert process.returncode == 1


def test_waiting_ends_at_the_timeout_and_the_turn_goes_on(shared: Serving) -> None:
    session_id = shared.new_session()
    said = holdfast(shared.home, "send", session_id, "hang", "--timeout", "3")
    assert said.code == 1 and "No answer within 3 s" in said.err and session_id in said.err
    assert [session["session_id"] for session in holdfast(shared.home, "sessions", "--state", "running", "--json").json["sessions"]] == [
        session_id
    ]
    with shared.client() as client:
        client.post(f"/api/sessions/{session_id}/stop", json={})


def test_a_named_message_is_sent_once_however_often_it_is_tried(shared: Serving) -> None:
    first = holdfast(shared.home, "send", "new", "count 3 0", "--client-id", "once", "--json").json
    session_id = first["session_id"]
    again = holdfast(shared.home, "send", session_id, "count 3 0", "--client-id", "once", "--json").json
    assert again == first
    assert len(shared.session(session_id)["turns"]) == 1
    other = holdfast(shared.home, "send", session_id, "something else", "--client-id", "once")
    assert other.code == 1 and is_one_sentence(other.err) and "once" in other.err


def test_a_question_answered_long_ago_does_not_end_the_waiting(shared: Serving) -> None:
    """A message that is sent again is followed from the beginning of the log, past the question its turn had asked."""
    asked = holdfast(shared.home, "send", "new", "ask What?", "--client-id", "q", "--json").json
    holdfast(shared.home, "send", asked["session_id"], "That")
    again = holdfast(shared.home, "send", asked["session_id"], "ask What?", "--client-id", "q", "--json").json
    assert (again["outcome"], again["text"], again["question"]) == ("completed", "Thank you. You answered: That", None)


def test_without_waiting_it_returns_at_once(shared: Serving) -> None:
    said = holdfast(shared.home, "send", "new", "count 3 0", "--no-wait", "--json").json
    assert set(said) == {"session_id", "message_id"}
    assert shared.wait_for(said["session_id"])["messages"][-1]["text"] == "1 2 3"


def test_an_empty_text_is_refused(shared: Serving) -> None:
    for text, given in ((" ", ""), ("-", "\n")):
        said = holdfast(shared.home, "send", "new", text, given=given)
        assert said.code == 1 and is_one_sentence(said.err)


def test_a_session_that_is_not_there_is_said_so(shared: Serving) -> None:
    for words in (["show", "s_nothing"], ["send", "s_nothing", "hi"], ["send", "agent:main:web:page:x", "hi"], ["show", "../../status"]):
        said = holdfast(shared.home, *words)
        assert said.code == 1 and is_one_sentence(said.err) and words[1] in said.err


def test_a_key_stands_for_the_session_it_points_at(shared: Serving) -> None:
    session_id = shared.new_session()
    said = holdfast(shared.home, "send", f"agent:main:web:page:{session_id}", "count 2 0", "--json").json
    assert (said["session_id"], said["text"]) == (session_id, "1 2")


def test_the_doctor_and_a_backup_work_beside_it(shared: Serving, tmp_path: Path) -> None:
    holdfast(shared.home, "send", "new", "count 2 0")
    said = holdfast(shared.home, "doctor", "--json", HOLDFAST_PORT=str(shared.port)).json
    assert said["ok"]
    found = {check["check"]: check for check in said["checks"]}
    assert all(check["state"] == "ok" for name, check in found.items() if name != "sandbox"), found
    assert "our own process" in found["port"]["text"]
    assert holdfast(shared.home, "backup", str(tmp_path / "copy.db")).code == 0
    assert shared.new_session()


def test_a_second_gateway_on_the_same_home_is_refused(shared: Serving) -> None:
    said = holdfast(shared.home, "serve", "--port", "0")
    assert said.code != 0 and "already serves" in said.err and "Traceback" not in said.err
    assert holdfast(shared.home, "status").code == 0


# the same with and without it


def test_what_is_shown_does_not_depend_on_whether_the_gateway_runs(serving: Serving) -> None:
    session_id = holdfast(serving.home, "send", "new", "count 3 0", "--json").json["session_id"]
    holdfast(serving.home, "send", session_id, "run echo hi; sleep 0.1; echo there")
    holdfast(serving.home, "send", session_id, "fail")
    holdfast(serving.home, "send", session_id, "ask What?")
    cut = serving.new_session()
    serving.post(cut, "hang")
    serving.wait_for(cut, state="running")
    serving.post(cut, "too late")
    holdfast(serving.home, "send", cut, "/status")
    holdfast(serving.home, "suspend", cut)
    wait_until(lambda: bool(serving.session(cut)["left"]))
    again = holdfast(serving.home, "send", cut, "count 2 0", "--json").json["session_id"]
    reads = [["sessions"], ["sessions", "--state", "suspended"], ["sessions", "--state", "waiting"]]
    for each in (session_id, cut, again):
        reads += [["show", each], ["show", each, "--events"]]
    online = [holdfast(serving.home, *words, "--json").json for words in reads]
    assert serving.stop() == 75
    assert [holdfast(serving.home, *words, "--json").json for words in reads] == online


# death in the middle


def test_an_answer_is_whole_though_the_gateway_is_killed_and_comes_back_on_another_port(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Serving(home) as first:
        process = subprocess.Popen(
            command(home, "send", "new", "count 40 0.05"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        )
        assert process.stdout is not None and process.stderr is not None
        begin = process.stdout.read(5)
        first.kill()
        with process, Serving(home):
            out, err = begin + process.stdout.read(), process.stderr.read()
        assert process.returncode == 0, err
    assert out.decode() == NUMBERS + "\n"
    assert b"Interrupted by a crash.\nContinued (attempt 2).\n" in err


def test_an_answer_is_whole_though_the_gateway_is_stopped_and_started(serving: Serving) -> None:
    session_id = serving.new_session()
    words = command(serving.home, "send", session_id, "count 40 0.05", "--json")
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment()) as process:
        serving.wait_for(session_id, state="running")
        assert holdfast(serving.home, "stop").code == 0
        assert serving.stop() == 0
        serving.start()
        assert process.stdout is not None
        assert NUMBERS in process.stdout.read().decode()
    assert process.returncode == 0


# stopping


def test_stop_returns_when_the_process_is_gone(serving: Serving) -> None:
    assert serving.process is not None
    reaping = threading.Thread(target=serving.process.wait)
    reaping.start()
    said = holdfast(serving.home, "stop")
    reaping.join(10)
    assert said.code == 0 and f"process {serving.process.pid}" in said.out
    assert serving.process.returncode == 0
    said = holdfast(serving.home, "stop")
    assert said.code == 1 and is_one_sentence(said.err) and "its last state was stopped" in said.err


def test_a_replaced_token_counts_at_once_and_the_old_one_no_more(serving: Serving) -> None:
    with serving.client() as old:
        assert old.get("/api/sessions").status_code == 200
        assert "within a second" in holdfast(serving.home, "token", "rotate").err
        wait_until(lambda: old.get("/api/sessions").status_code == 401)
    assert holdfast(serving.home, "sessions").code == 0


def test_stop_works_though_the_token_does_not_fit(serving: Serving) -> None:
    """HTTP says no, so the signal does it."""
    real = (serving.home / "token").read_text()
    (serving.home / "token").unlink()
    assert holdfast(serving.home, "stop").code == 0
    (serving.home / "token").write_text(real)
    assert serving.stop() == 0


def test_a_dead_gateway_is_not_taken_for_a_running_one(serving: Serving) -> None:
    serving.kill()
    said = holdfast(serving.home, "status")
    assert said.code == 1 and "its last state was running" in said.out
    said = holdfast(serving.home, "send", "new", "hi")
    assert said.code == 1 and is_one_sentence(said.err) and "holdfast serve" in said.err
