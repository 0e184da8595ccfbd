"""What an operator chose for the time after a crash, and what of it is counted."""

from datetime import UTC, datetime
from pathlib import Path

from tests.e2e.serving import Serving, wait_until

COUNT = "count 40 0.05"
NUMBERS = " ".join(str(number) for number in range(1, 41))


def begun(serving: Serving, text: str, state: str = "running") -> str:
    session_id = serving.new_session()
    serving.post(session_id, text)
    serving.wait_for(session_id, state=state)
    return session_id


def again(serving: Serving) -> None:
    serving.kill()
    serving.start()


def taken_up(serving: Serving, session_id: str, attempt: int) -> None:
    """Until the last turn is in this attempt and nobody's leftover."""
    wait_until(lambda: [(turn["state"], turn["attempt"]) for turn in serving.session(session_id)["turns"]][-1:] == [("running", attempt)])


def test_with_the_policy_suspend_what_was_active_before_a_crash_is_suspended(tmp_path: Path) -> None:
    """A16, R1, A20: one that is pending already is left, an empty one is not touched, what waited is refused with its words, and the next
    message starts anew."""
    with Serving(tmp_path / "home", crash_policy="suspend", auto_resume="false") as serving:
        pending = begun(serving, COUNT)
        assert serving.stop() == 75
        serving.start()
        running, ended, empty = begun(serving, "hang"), begun(serving, "hello", "idle"), serving.new_session()
        serving.post(running, "and this")
        again(serving)

        wait_until(lambda: serving.session(running)["turns"][0]["rule"] == "R1")
        session = serving.session(running)
        assert session["suspended"] and not session["resume_pending"] and session["turns"][0]["attempt"] == 1
        assert next(message["status"] for message in session["messages"] if message["text"] == "and this") == "refused"
        assert serving.session(ended)["suspended"] and not serving.session(empty)["suspended"]
        left = serving.session(pending)
        assert (left["suspended"], left["resume_pending"], left["resume_reason"]) == (False, True, "shutdown_timeout")

        posted = serving.post(running, "hello")
        fresh = serving.wait_for(posted["session_id"])
        assert posted["session_id"] != running and (fresh["was_auto_reset"], fresh["auto_reset_reason"]) == (True, "suspended")


def test_with_the_policy_suspend_a_stop_on_purpose_suspends_nothing(tmp_path: Path) -> None:
    """A16: a turn that a shutdown cut is resumed as always."""
    with Serving(tmp_path / "home", crash_policy="suspend") as serving:
        session_id = begun(serving, COUNT)
        assert serving.stop() == 75
        serving.start()
        session = serving.wait_for(session_id)
        assert not session["suspended"] and session["messages"][-1]["text"] == NUMBERS


def test_with_the_window_over_nothing_is_suspended(tmp_path: Path) -> None:
    """A16: a session that was quiet for longer than the window before the crash is not active."""
    with Serving(tmp_path / "home", crash_policy="suspend", crash_window_s="0") as serving:
        early, last = begun(serving, "hello", "idle"), begun(serving, "hello", "idle")
        again(serving)
        assert (serving.session(early)["suspended"], serving.session(last)["suspended"]) == (False, True)


def test_by_default_only_a_turn_that_was_really_running_is_touched(tmp_path: Path) -> None:
    """A16: marked with the reason `crash`, and resumed; a session at rest beside it has not one event more."""
    with Serving(tmp_path / "home") as serving:
        quiet, cut = begun(serving, "hello", "idle"), begun(serving, COUNT)
        before = serving.log(quiet)
        again(serving)
        session = serving.wait_for(cut)
        (row,) = (message for message in session["messages"] if message["role"] == "interruption")
        assert (row["reason"], row["rule"], session["suspended"]) == ("crash", "R9", False)
        assert serving.log(quiet) == before


def test_with_automatic_resume_off_a_message_goes_on_from_the_cut_turn(tmp_path: Path) -> None:
    """A23, R7, A9, A13: left pending over two starts, marked once; the message gets a turn of its own, finished work stays, an open call is
    closed, and only the completed turn takes the mark away."""
    with Serving(tmp_path / "home", auto_resume="false") as serving:
        lines = serving.folder / "lines.txt"
        session_id = begun(serving, f"run echo line >> {lines}; sleep 300")
        wait_until(lines.exists)
        again(serving)
        held = serving.wait_for(session_id, state="interrupted")
        wait_until(lambda: serving.session(session_id)["turns"][0]["rule"] == "R7")
        again(serving)
        still = serving.session(session_id)
        assert (still["resume_pending"], still["resume_reason"]) == (True, "crash")
        assert still["last_resume_marked_at"] == held["last_resume_marked_at"] and still["interrupted_restarts"] == 1

        assert serving.post(session_id, "what became of it?")["session_id"] == session_id
        session = serving.wait_for(session_id)
        assert [(turn["outcome"], turn["rule"]) for turn in session["turns"]] == [("set_aside", "R7"), ("completed", None)]
        (call,) = next(message["tool_calls"] for message in session["messages"] if message["role"] == "assistant")
        assert call["outcome"] == "unknown" and lines.read_text() == "line\n"
        assert not session["resume_pending"] and not session["was_auto_reset"] and session["interrupted_restarts"] == 0
        assert session["messages"][-1]["text"].startswith("You said: what became of it?\n")


def test_a_turn_killed_twice_completes_and_its_count_begins_anew(tmp_path: Path) -> None:
    """A17, A18: counted in the transaction that finds it cut, back to 0 when it completes; the next two kills do not add up to three."""
    with Serving(tmp_path / "home") as serving:
        session_id = begun(serving, COUNT)
        for count in (1, 2):
            again(serving)
            taken_up(serving, session_id, attempt=count + 1)
            assert serving.session(session_id)["interrupted_restarts"] == count
        session = serving.wait_for(session_id)
        assert session["messages"][-1]["text"] == NUMBERS and session["turns"][0]["attempt"] == 3
        assert (session["interrupted_restarts"], session["resume_pending"], session["last_resume_marked_at"]) == (0, False, None)
        cuts = [item.body["restarts"] for item in serving.log(session_id) if item.event == "turn.interrupted"]
        assert cuts == [1, 2]
        serving.post(session_id, COUNT)
        for attempt in (1, 2):
            taken_up(serving, session_id, attempt=attempt)
            again(serving)
        session = serving.wait_for(session_id)
        assert not session["suspended"] and [turn["outcome"] for turn in session["turns"]] == ["completed", "completed"]


def test_a_turn_older_than_the_window_is_set_aside_and_told_once(tmp_path: Path) -> None:
    """R6: nothing of it is lost, no later start speaks of it again, and its user's next message is answered."""
    with Serving(tmp_path / "home", resume_window_s="0.5") as serving:
        session_id = begun(serving, "hang")
        wait_until(lambda: any(item.event == "text" for item in serving.log(session_id)))
        last_sign = datetime.fromisoformat(serving.log(session_id)[-1].body["at"])
        wait_until(lambda: (datetime.now(UTC) - last_sign).total_seconds() > 0.5)
        again(serving)
        session = serving.wait_for(session_id)
        assert (session["turns"][0]["outcome"], session["turns"][0]["rule"]) == ("set_aside", "R6")
        assert sum(message["role"] == "notice" for message in session["messages"]) == 1
        log = serving.log(session_id)
        again(serving)
        begun(serving, "hello", "idle")
        assert serving.log(session_id) == log
        serving.post(session_id, "hello")
        assert serving.wait_for(session_id)["turns"][1]["outcome"] == "completed"


def test_a_stop_while_a_resumed_turn_runs_ends_it_for_good(tmp_path: Path) -> None:
    """B12, R0, A21: the mark is gone, and no later start takes it up."""
    with Serving(tmp_path / "home") as serving:
        session_id = begun(serving, "hang")
        again(serving)
        taken_up(serving, session_id, attempt=2)
        serving.order(f"/api/sessions/{session_id}/stop")
        session = serving.wait_for(session_id)
        assert session["turns"][0]["outcome"] == "cancelled" and not session["resume_pending"] and not session["suspended"]
        log = serving.log(session_id)
        again(serving)
        begun(serving, "hello", "idle")
        assert serving.log(session_id) == log
