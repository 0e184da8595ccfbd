"""Stopping, suspending and resuming conversations from the command line, and safe mode, beside a real gateway that is really killed."""

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.e2e.command_line import holdfast, is_one_sentence
from tests.e2e.serving import Serving, wait_until

TOOL = "run echo $$ > {file}; trap '' TERM; sleep 300"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One gateway for the tests that leave it as it was."""
    with Serving(tmp_path_factory.mktemp("shared") / "home") as running:
        yield running


def _by_http(serving: Serving, session_id: str) -> int:
    with serving.client() as client:
        answer = client.post(f"/api/sessions/{session_id}/stop", json={})
    assert answer.status_code == 202, answer.text
    return int(answer.json()["queued"])


def _by_command(serving: Serving, session_id: str) -> int:
    said = holdfast(serving.home, "stop", session_id)
    assert said.code == 0 and f"Stopped the turn of {session_id}" in said.out, said
    return int(said.out.partition("). ")[2].split()[0])


def until_attempt(serving: Serving, session_id: str, attempt: int) -> None:
    wait_until(lambda: serving.session(session_id)["turns"][0]["attempt"] == attempt)


def stopped_within_s(serving: Serving, session_id: str) -> float:
    """From the record of the stop to the end of the turn."""
    times = {seen.event: datetime.fromisoformat(seen.body["at"]) for seen in reversed(serving.log(session_id))}
    return (times["turn.ended"] - times["stop.requested"]).total_seconds()


# stopping a turn


@pytest.mark.parametrize("stop", [_by_http, _by_command])
def test_a_stop_ends_a_turn_whose_tool_runs_and_keeps_what_waits(
    shared: Serving, tmp_path: Path, stop: Callable[[Serving, str], int]
) -> None:
    """A21: also a tool that does not listen; its process group is killed."""
    session_id, file = shared.new_session(), shared.folder / tmp_path.name
    shared.post(session_id, TOOL.format(file=file))
    wait_until(lambda: file.exists() and file.read_text().strip().isdigit())
    process = shared.tool(int(file.read_text()))
    for text in ("count 2 0", "count 3 0"):
        shared.post(session_id, text)
    assert stop(shared, session_id) == 2
    wait_until(lambda: shared.session(session_id)["turns"][0]["state"] == "ended")
    assert stopped_within_s(shared, session_id) < 5
    wait_until(lambda: not process.is_running())
    session = shared.wait_for(session_id)
    assert [turn["outcome"] for turn in session["turns"]] == ["cancelled", "completed", "completed"]
    assert [message["text"] for message in session["messages"] if message["role"] == "assistant"][1:] == ["1 2", "1 2 3"]
    assert not session["suspended"] and not session["resume_pending"]


def test_a_turn_is_stopped_by_the_key_of_its_session(shared: Serving) -> None:
    """A21."""
    session_id = shared.new_session()
    shared.post(session_id, "hang")
    shared.wait_for(session_id, state="running")
    said = holdfast(shared.home, "stop", f"agent:main:web:page:{session_id}")
    assert said.code == 0 and "answered next" not in said.out
    assert shared.session(session_id)["turns"][0]["outcome"] == "cancelled"
    said = holdfast(shared.home, "stop", session_id)
    assert said.code == 1 and is_one_sentence(said.err) and "nothing to stop" in said.err
    assert holdfast(shared.home, "status").code == 0, "the gateway goes on"


# suspending and resuming


def test_a_suspended_conversation_is_left_for_a_new_one_and_taken_back(shared: Serving) -> None:
    """A14."""
    session_id = shared.new_session()
    shared.post(session_id, "count 60 0.05")
    shared.wait_for(session_id, state="running")
    said = holdfast(shared.home, "suspend", session_id)
    assert said.code == 0 and said.out.startswith(f"Suspended {session_id}. Its turn was interrupted and does not continue by itself.")
    wait_until(lambda: bool(shared.session(session_id)["left"]))
    listed = holdfast(shared.home, "sessions", "--state", "suspended").out
    assert session_id in listed and "by a suspension" in listed
    assert "1 conversation" in holdfast(shared.home, "status").out

    said = holdfast(shared.home, "send", session_id, "count 2 0")
    assert (said.code, said.out) == (0, "1 2\n") and "because the previous one was suspended" in said.err
    shown = holdfast(shared.home, "show", session_id)
    for words in ("suspended: the next message starts a new conversation", "why: left: rule R1, ", "an earlier conversation"):
        assert words in shown.out, words
    assert "started because the previous one was suspended" in holdfast(shared.home, "show", f"agent:main:web:page:{session_id}").out

    said = holdfast(shared.home, "resume", session_id)
    assert said.code == 0 and "The interrupted work continues" in said.out
    session = shared.wait_for(session_id)
    assert session["messages"][-1]["text"] == " ".join(str(number) for number in range(1, 61))
    assert "resumed: rule R9, " in holdfast(shared.home, "show", session_id).out
    said = holdfast(shared.home, "resume", session_id)
    assert said.code == 0 and "There is nothing to resume" in said.out
    assert holdfast(shared.home, "sessions", "--state", "suspended").out == "No conversation matches.\n"


def test_a_conversation_that_is_not_there_is_named(shared: Serving) -> None:
    for words in (["stop", "s_nothing"], ["resume", "s_nothing"], ["suspend", "agent:main:web:page:x"]):
        said = holdfast(shared.home, *words)
        assert said.code == 1 and is_one_sentence(said.err) and words[1] in said.err


def test_commands_to_the_gateway_can_be_sent_from_here(shared: Serving) -> None:
    """A22."""
    session_id = holdfast(shared.home, "send", "new", "count 2 0", "--json").json["session_id"]
    said = holdfast(shared.home, "send", session_id, "/status")
    assert (said.code, said.out) == (0, "This conversation is idle.\n")
    begun = holdfast(shared.home, "send", session_id, "/new", "--json").json
    assert begun["outcome"] == "command" and begun["session_id"] != session_id and "/resume 1" in begun["text"]
    assert shared.session(begun["session_id"])["current"]


# safe mode


def test_safe_mode_is_entered_shown_and_left(tmp_path: Path) -> None:
    """B14, A17, P8: three starts in a row died, and the session that three restarts cut is suspended, whose last death is not counted."""
    with Serving(tmp_path / "home") as serving:
        stuck, cut = serving.new_session(), serving.new_session()
        serving.post(stuck, "hang")
        serving.wait_for(stuck, state="running")
        for attempt in (2, 3):
            serving.kill()
            serving.start()
            until_attempt(serving, stuck, attempt)
        serving.kill()
        serving.start()
        wait_until(lambda: bool(serving.session(stuck)["suspended"]))
        serving.post(cut, "count 40 0.05")
        serving.wait_for(cut, state="running")
        serving.kill()
        serving.start()
        wait_until(lambda: bool(serving.session(cut)["left"]) and bool(serving.session(stuck)["suspended"]))

        status = holdfast(serving.home, "status", "--json").json
        assert (status["safe_mode"], status["suspended"], status["pending"]) == (True, 1, 1)
        shown = holdfast(serving.home, "status").out
        assert "safe mode  on" in shown and "holdfast resume --all" in shown and "--state pending" in shown and "--state suspended" in shown
        checks = {check["check"]: check["state"] for check in holdfast(serving.home, "doctor", "--json").json["checks"]}
        assert checks["safe mode"] == "warn"
        assert "interrupted by a crash" in holdfast(serving.home, "sessions", "--state", "pending").out
        assert "by a crash" in holdfast(serving.home, "sessions", "--state", "suspended").out
        assert "interrupted by 3 restarts in a row" in holdfast(serving.home, "show", stuck).out
        assert "left: rule R7, interrupted by a crash" in holdfast(serving.home, "show", cut).out

        said = holdfast(serving.home, "resume", "--all")
        assert said.code == 0 and "Safe mode is over. 1 conversation is pending; what happens next is decided now" in said.out
        session = serving.wait_for(cut)
        assert session["messages"][-1]["text"] == " ".join(str(number) for number in range(1, 41))
        status = holdfast(serving.home, "status", "--json").json
        assert (status["safe_mode"], status["suspended"], status["pending"]) == (False, 1, 0)
        assert "not in safe mode" in holdfast(serving.home, "resume", "--all").out
        assert "safe mode" not in holdfast(serving.home, "status").out

        said = holdfast(serving.home, "resume", stuck)
        assert said.code == 0 and said.out.startswith(f"Resumed {stuck}. The interrupted work continues;")
        assert [turn["outcome"] for turn in serving.wait_for(stuck, state="running")["turns"]] == ["set_aside", None]


def test_without_automatic_resume_a_cut_conversation_is_resumed_by_name(tmp_path: Path) -> None:
    """R7: it is pending until a human goes on from it."""
    with Serving(tmp_path / "home", auto_resume="false") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "count 40 0.05")
        serving.wait_for(session_id, state="running")
        serving.kill()
        serving.start()
        wait_until(lambda: bool(serving.session(session_id)["left"]))
        said = holdfast(serving.home, "resume", "--all")
        assert said.code == 0 and "not in safe mode" in said.out and "1 conversation is pending" in said.out
        assert serving.session(session_id)["left"]
        assert "The interrupted work continues" in holdfast(serving.home, "resume", session_id).out
        session = serving.wait_for(session_id)
        assert session["messages"][-1]["text"] == " ".join(str(number) for number in range(1, 41))
