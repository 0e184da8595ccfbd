"""kill -9 at random moments of a turn with a model, against a real process, a real model server and real commands."""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.models import ModelProcess, asking
from tests.e2e.serving import Serving, complete_a_turn
from tests.fakes.models.script import Reply, Script, call, text

ROUNDS = 20
AT_ONCE = 4
WIRES = ("chat", "responses", "anthropic")


def _add(line: str) -> dict[str, str]:
    return {"command": f"echo {line} >> lines-$HOLDFAST_SESSION_ID.txt; sleep 0.1; echo wrote {line}"}


SCRIPT = Script(
    by="steps",
    replies=(
        Reply(say=(*text("I ", "write ", "both."), call("terminal", _add("one")), call("terminal", _add("two"))), delay_s=0.02),
        Reply(say=text("Both ", "are ", "written."), delay_s=0.02),
    ),
)


@pytest.fixture
def servers(tmp_path: Path) -> Any:
    with (
        ModelProcess(tmp_path / "chat", SCRIPT, wire="chat") as chat,
        ModelProcess(tmp_path / "responses", SCRIPT, wire="responses") as responses,
        ModelProcess(tmp_path / "anthropic", SCRIPT, wire="anthropic") as anthropic,
    ):
        yield {"chat": chat, "responses": responses, "anthropic": anthropic}


def test_no_kill_makes_a_command_of_a_model_run_twice_and_every_turn_ends_whole(tmp_path: Path, servers: dict[str, ModelProcess]) -> None:
    """P4, P5, P6, B10: twenty kills, on all three wires. Each has a home of its own: after several deaths on one, a start waits before it
    resumes anything.
    """
    seed = random.randrange(10**9)

    def play(number: int, wire: str) -> None:
        home = tmp_path / f"home-{number}"
        with asking(home, servers[wire], model=f"{wire}:test", tools_folder=str(home / "work"), tools_shared="true") as serving:
            complete_a_turn(serving)
            try:
                _play(serving, random.Random(seed + number))
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, round {number} on {wire}: {error}") from error

    with ThreadPoolExecutor(AT_ONCE) as sides:
        list(sides.map(play, range(ROUNDS), islice(cycle(WIRES), ROUNDS)))


def _play(serving: Serving, chance: random.Random) -> None:
    session_id = serving.new_session()
    serving.post(session_id, "Write both.", client_id="c")
    time.sleep(chance.uniform(0.0, 0.7))
    serving.kill()
    serving.start()
    session = serving.wait_for(session_id)
    assert [turn["outcome"] for turn in session["turns"]] == ["completed"]
    [answer] = [message for message in session["messages"] if message["role"] == "assistant"]
    assert answer["text"] == "Both are written." and answer["status"] == "complete"
    file = serving.home / "work" / f"lines-{session_id}.txt"
    lines = file.read_text().split() if file.exists() else []
    assert len(lines) == len(set(lines)), f"done twice: {lines}"
    assert [each["outcome"] for each in answer["tool_calls"] if each["outcome"] not in ("done", "unknown")] == []
    for each, line in zip(answer["tool_calls"], ("one", "two"), strict=True):
        if each["outcome"] == "done":
            assert line in lines and f"wrote {line}" in each["result"]
