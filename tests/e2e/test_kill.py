"""kill -9 at random moments, against a real process, over real HTTP."""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.e2e.serving import Reader, Seen, Serving, complete_a_turn, wait_until

ROUNDS = 20
AT_ONCE = 4
LAST = 60
NUMBERS = " ".join(str(number) for number in range(1, LAST + 1))


def rounds(tmp_path: Path, play: object) -> None:
    """Twenty rounds, four at a time; a failure names its seed. Each has a home of its own: after several deaths on one, a start waits
    before it resumes anything.
    """
    seed = random.randrange(10**9)

    def side(number: int) -> None:
        for turn in range(ROUNDS // AT_ONCE):
            name = seed + number * 1000 + turn
            with Serving(tmp_path / f"home-{number}-{turn}") as serving:
                complete_a_turn(serving)
                try:
                    play(serving, random.Random(name))  # type: ignore[operator]
                except AssertionError as error:
                    raise AssertionError(f"seed {name}: {error}") from error

    with ThreadPoolExecutor(AT_ONCE) as sides:
        list(sides.map(side, range(AT_ONCE)))


def text_of(seen: list[Seen]) -> str:
    """What a reader that follows the offsets has on its screen in the end."""
    text = ""
    for item in seen:
        if item.event == "text":
            body = item.body
            text = text[: body["offset"]] + body["text"]
    return text


def test_a_counted_answer_is_whole_whatever_kills_the_server_in_the_middle(tmp_path: Path) -> None:
    """P1, P2, P3, P7, R9: one answer, every number once and in order, every piece that was seen is still in the log, one turn."""

    def play(serving: Serving, chance: random.Random) -> None:
        session_id = serving.new_session()
        reader = Reader(serving, session_id).start()
        posted = serving.post(session_id, f"count {LAST} 0.05", client_id=str(chance.random()))
        kills = chance.choice((1, 2))
        for _ in range(kills):
            time.sleep(chance.uniform(0.0, 1.4))
            serving.kill()
            serving.start()
        session = serving.wait_for(session_id)
        seen = reader.stop()
        answers = [message for message in session["messages"] if message["role"] == "assistant"]
        assert [answer["text"] for answer in answers] == [NUMBERS]
        assert [turn["outcome"] for turn in session["turns"]] == ["completed"]
        assert [message["id"] for message in session["messages"] if message["role"] == "user"] == [posted["message_id"]]
        log = serving.log(session_id)
        assert [item.seq for item in log] == list(range(1, len(log) + 1))
        assert set(seen) <= set(log), f"seen and gone: {set(seen) - set(log)}"
        assert text_of(log) == NUMBERS
        cuts = [item for item in log if item.event == "turn.interrupted"]
        resumed = [item.body for item in log if item.event == "turn.resumed"]
        assert len(cuts) <= kills and [body["rule"] for body in resumed] == ["R9"] * len(cuts)
        assert session["turns"][0]["attempt"] == 1 + len(cuts)
        assert not session["resume_pending"] and session["interrupted_restarts"] == 0

    rounds(tmp_path, play)


def test_a_command_runs_once_or_its_outcome_is_said_to_be_unknown(tmp_path: Path) -> None:
    """P5, B10: a line is appended at most once, whatever moment the server is killed in."""

    def play(serving: Serving, chance: random.Random) -> None:
        session_id = serving.new_session()
        lines = serving.folder / f"{session_id}.txt"
        serving.post(session_id, f"run sleep 0.2; echo line >> {lines}; sleep 0.2")
        for _ in range(chance.choice((1, 2))):
            time.sleep(chance.uniform(0.0, 0.6))
            serving.kill()
            serving.start()
        session = serving.wait_for(session_id)
        written = lines.read_text().count("line") if lines.exists() else 0
        answer = next(message for message in session["messages"] if message["role"] == "assistant")
        (call,) = answer["tool_calls"]
        assert written <= 1
        if call["outcome"] == "unknown":
            told = "The command was interrupted. It is not known whether it finished, and it was not run again."
            assert answer["text"].startswith(told) and "the user" not in answer["text"]
        else:
            assert (call["outcome"], written) == ("done", 1)

    rounds(tmp_path, play)


def test_a_stop_that_was_acknowledged_is_final(tmp_path: Path) -> None:
    """R0, A21: killed right after the stop was acknowledged, the turn is cancelled and no start revives it."""
    with Serving(tmp_path / "home") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "hang")
        serving.wait_for(session_id, state="running")
        with serving.client() as client:
            assert client.post(f"/api/sessions/{session_id}/stop", json={}).status_code == 202
        serving.kill()
        serving.start()
        session = serving.wait_for(session_id)
        assert [turn["outcome"] for turn in session["turns"]] == ["cancelled"]
        serving.kill()
        serving.start()
        assert serving.session(session_id)["turns"] == session["turns"]


def test_a_question_outlives_the_process_and_its_answer_continues_the_turn(tmp_path: Path) -> None:
    """R5: asked, killed, answered as the next message; the same turn goes on."""
    with Serving(tmp_path / "home") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "ask What is your name?")
        serving.wait_for(session_id, state="waiting")
        serving.kill()
        serving.start()
        assert serving.session(session_id)["questions"][0]["text"] == "What is your name?"
        serving.post(session_id, "Ada")
        session = serving.wait_for(session_id)
        assert len(session["turns"]) == 1 and session["turns"][0]["attempt"] == 2
        assert session["messages"][-1]["text"] == "Thank you. You answered: Ada"


def test_messages_accepted_before_a_kill_are_all_answered_after_it_in_order(tmp_path: Path) -> None:
    """P1, C4: the queue is on disk."""
    with Serving(tmp_path / "home") as serving:
        session_id = serving.new_session()
        for number in range(5):
            serving.post(session_id, f"message {number}" if number else "count 8 0.05")
        serving.kill()
        serving.start()
        session = serving.wait_for(session_id)
        texts = [message["text"] for message in session["messages"] if message["role"] == "assistant"]
        assert texts[0] == "1 2 3 4 5 6 7 8"
        assert [text.splitlines()[0] for text in texts[1:]] == [f"You said: message {number}" for number in range(1, 5)]
        assert [turn["generation"] for turn in session["turns"]] == [1, 2, 3, 4, 5]


def test_a_session_that_three_restarts_cut_is_suspended_and_the_next_message_starts_anew(tmp_path: Path) -> None:
    """R2, A14, A17: it is told, others go on, and the answer to the post names the new session."""
    with Serving(tmp_path / "home") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "hang")
        for attempt in (1, 2, 3):
            wait_until(lambda attempt=attempt: [turn["attempt"] for turn in serving.session(session_id)["turns"]] == [attempt])  # type: ignore[misc]
            serving.kill()
            serving.start()
        session = serving.wait_for(session_id)
        assert session["suspended"] and session["turns"][0]["outcome"] == "set_aside" and session["turns"][0]["rule"] == "R2"
        posted = serving.post(session_id, "hello again")
        assert posted["session_id"] != session_id
        fresh = serving.wait_for(posted["session_id"])
        assert fresh["was_auto_reset"] and fresh["auto_reset_reason"] == "suspended"
        assert fresh["session_key"] == session["session_key"]
        assert (session["title"], fresh["title"]) == ("hang", "hang (2)")
        assert session["messages"][-1]["text"] == (
            "3 restarts in a row interrupted this conversation, so it is suspended. "
            "Send /resume to continue it, or a message to start a new conversation."
        )
        assert serving.post(posted["session_id"], "/resume")["session_id"] == session_id
        wait_until(lambda: [turn["state"] for turn in serving.session(session_id)["turns"]] == ["ended", "running"])
        assert serving.session(session_id)["current"] and not serving.session(session_id)["suspended"]


def test_sessions_at_rest_stay_silent_after_a_kill(tmp_path: Path) -> None:
    """E5, P6."""
    with Serving(tmp_path / "home") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "hello")
        serving.wait_for(session_id)
        before, log = serving.session(session_id), serving.log(session_id)
        for _ in range(2):
            serving.kill()
            serving.start()
        complete_a_turn(serving)
        assert serving.session(session_id) == before and serving.log(session_id) == log
