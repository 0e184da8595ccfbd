"""Schedules of a real gateway: killed around the due time, handed over in it, and asked for from the command line."""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.e2e.command_line import holdfast, is_one_sentence
from tests.e2e.serving import Serving, complete_a_turn, hand_over, wait_until

HOMES, ROUNDS = 3, 3
AHEAD_S = 1.0


def plan(serving: Serving, session_id: str, text: str, *, ahead_s: float = AHEAD_S) -> float:
    """Gives when it is due, on our monotonic clock."""
    while True:
        due, at = datetime.now(UTC) + timedelta(seconds=ahead_s), time.monotonic() + ahead_s
        with serving.client() as client:
            made = client.post("/api/schedules", json={"session_id": session_id, "text": text, "at": due.isoformat()})
        if made.status_code == 201:
            return at
        assert "already over" in made.text, made.text  # This machine is slower than that.
        ahead_s *= 2


def ended(serving: Serving, session_id: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def over() -> bool:
        found.update(serving.session(session_id))
        return bool(found["turns"]) and found["turns"][0]["state"] == "ended" and found["state"] == "idle"

    wait_until(over)
    return found


def is_one_turn_of_a_schedule(session: dict[str, Any]) -> None:
    assert [(turn["cause"], turn["outcome"]) for turn in session["turns"]] == [("schedule", "completed")]
    assert [message["role"] for message in session["messages"] if message["role"] in ("user", "cause")] == ["cause"]
    for row in session["messages"]:
        if row["role"] == "interruption":
            assert row["decision"].endswith("(started by a schedule)")
    assert session["schedules"] == []


def test_killed_around_its_time_a_schedule_starts_exactly_one_turn(tmp_path: Path) -> None:
    """P6, E8, P5: killed before, in or after the moment, with a command that must not run twice."""
    seed = random.randrange(10**9)

    def side(number: int) -> None:
        with Serving(tmp_path / f"home-{number}") as serving:
            complete_a_turn(serving)
            for turn in range(ROUNDS):
                chance = random.Random(seed + 100 * number + turn)
                session_id = serving.new_session()
                lines = serving.folder / f"{session_id}.txt"
                due = plan(serving, session_id, f"run sleep 0.1; echo line >> {lines}; sleep 0.1")
                time.sleep(max(0.0, due + chance.uniform(-0.15, 0.45) - time.monotonic()))
                serving.kill()
                serving.start()
                session = ended(serving, session_id)
                try:
                    is_one_turn_of_a_schedule(session)
                    assert (lines.read_text().count("line") if lines.exists() else 0) <= 1
                except AssertionError as error:
                    raise AssertionError(f"seed {seed}, home {number}, round {turn}: {error}") from error

    with ThreadPoolExecutor(HOMES) as sides:
        list(sides.map(side, range(HOMES)))


def test_handed_over_at_its_time_a_schedule_starts_one_turn(tmp_path: Path) -> None:
    """P6, C24: both processes live around the moment, and one of them records it."""
    with Serving(tmp_path / "home") as serving:
        complete_a_turn(serving)
        sessions = [serving.new_session() for _ in range(6)]
        for number, session_id in enumerate(sessions):
            plan(serving, session_id, "count 3", ahead_s=AHEAD_S + 0.3 * number)
        hand_over(serving)
        for session_id in sessions:
            is_one_turn_of_a_schedule(ended(serving, session_id))


def test_the_command_line_plans_lists_and_removes(tmp_path: Path) -> None:
    with Serving(tmp_path / "home", time_zone="Europe/Berlin") as serving:
        home, session_id = serving.home, serving.new_session()
        said = holdfast(home, "schedules")
        assert said.code == 0 and said.out.startswith("Nothing is scheduled.")
        made = holdfast(home, "schedules", "add", session_id, "every weekday 8:00", "count", "3", "--missed", "skip", "--json").json
        assert (made["text"], made["cron"], made["time_zone"], made["missed"]) == ("count 3", "0 8 * * 1-5", "Europe/Berlin", "skip")
        said = holdfast(home, "schedules", "add", "last", "in 2 days", "say", "hello")
        assert said.code == 0 and said.out.startswith("Scheduled once, ") and "holdfast schedules remove c_" in said.out
        wrong = holdfast(home, "schedules", "add", session_id, "some day", "x")
        assert wrong.code == 1 and is_one_sentence(wrong.err) and "does not begin with a time" in wrong.err
        listed = holdfast(home, "schedules", "--json").json["schedules"]
        table = holdfast(home, "schedules", "--session", session_id).out
        assert len(listed) == 2 and "every weekday at 08:00 (Europe/Berlin)" in table
        shown = holdfast(home, "show", session_id)
        assert "@  " in shown.out and made["schedule_id"] in shown.out
        said = holdfast(home, "schedules", "remove", made["schedule_id"])
        assert (said.code, said.out) == (0, f"Removed {made['schedule_id']}: count 3\n")
        assert holdfast(home, "schedules", "remove", made["schedule_id"]).code == 1
        serving.kill()
        offline = holdfast(home, "schedules", "--json").json["schedules"]
        assert [each["schedule_id"] for each in offline] == [each["schedule_id"] for each in listed if each["cron"] is None]
        assert holdfast(home, "schedules", "add", session_id, "in 1 hour", "x").code == 1
