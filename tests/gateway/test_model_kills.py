"""A turn with a model and two calls that must not be made twice, killed before and after every commit, on all three wires. What the calls
do is done to files.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.agents.instructions import Instructions
from holdfast.agents.model import ModelAgent
from holdfast.core import events as e
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.ports.models import ModelSettings
from holdfast.ports.tools import ToolContext, ToolResult
from holdfast.tools.plain import PlainTool
from tests.fakes.loop import Crash
from tests.fakes.models.in_process import WIRES, WiredModel
from tests.fakes.models.script import Reply, Script, call, text, thought
from tests.gateway import gateways
from tests.gateway.gateways import Life

SCRIPT = Script(
    replies=(
        Reply(say=(*thought("Both at once."), *text("I write ", "both."), call("write", {"line": "one"}), call("write", {"line": "two"}))),
        Reply(say=(*text("One question."), call("ask_user", {"question": "Is that all?"}))),
        Reply(say=text("Both are ", "written.")),
    )
)
# Of one wire: 72 in all.
LEAST_POINTS = 24
MOST_POINTS = 200


class Write(PlainTool):
    """Adds a line to a file, which nobody can take back."""

    name = "write"
    description = "Adds a line to the file."
    schema = {"type": "object", "properties": {"line": {"type": "string"}}, "required": ["line"]}  # noqa: RUF012

    def __init__(self, file: Path) -> None:
        self._file = file

    def effect(self, arguments: dict[str, Any]) -> Effect:
        return Effect.UNSAFE

    def confined(self, arguments: dict[str, Any]) -> bool:
        return True  # So that nobody has to approve it.

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        with self._file.open("a") as file:
            file.write(f"{arguments['line']}\n")
        return ToolResult(ToolOutcome.DONE, f"wrote {arguments['line']}")


class Kills:
    """One wire, one home after the other, each with one death. `unknown`: how many calls were told as unknown, over all."""

    def __init__(self, folder: Path, wire: str) -> None:
        self._folder, self._wire = folder, wire
        self.points = self.unknown = self.lost = 0

    def play(self, moment: str, commit: int) -> bool:
        """Whether there was such a commit to die at."""
        folder = self._folder / f"{moment}-{commit}"
        folder.mkdir()
        file, model = folder / "lines.txt", WiredModel(self._wire, SCRIPT)
        with gateways.home(folder) as home:
            home.tools = lambda: {"write": Write(file)}  # type: ignore[method-assign]
            home.agent = _agent(model, folder)
            life = home.start()
            page = life.open_page()
            life.commits, life.dies = 0, (moment, commit)
            try:
                _talk(life, page)
            except Crash:
                life = home.start()
                _talk(life, page)  # Its sender does not know what was accepted, and sends it again.
            self._check(life, page, file, model)
            died = len(home.lives) > 1
            self.points += died
            return died

    def _check(self, life: Life, page: str, file: Path, model: WiredModel) -> None:
        turn, events = life.turn(page), life.events(page)
        assert life.outcomes(page) == ["completed"] and life.answers(page) == ["Both are written."]
        done = file.read_text().split() if file.exists() else []
        assert len(done) == len(set(done)), f"done twice: {done}"
        started = [item.event.call_id for item in events if isinstance(item.event, e.ToolStarted)]
        finished = {item.event.call_id: item.event for item in events if isinstance(item.event, e.ToolFinished)}
        assert started == [f"{turn.id}.0.1", f"{turn.id}.0.2", f"{turn.id}.1.1"] and sorted(finished) == started[:2]
        steps = [item.event.step for item in events if isinstance(item.event, e.ModelResponded)]
        assert steps == [0, 1, 2]
        asked = [item.kind for item in events if item.kind in ("question.asked", "question.answered")]
        assert asked == ["question.asked", "question.answered"] and "Yes, all." in json.dumps(model.requests[-1])
        for line, call_id in zip(("one", "two"), started, strict=False):
            outcome, told = finished[call_id].outcome, json.dumps(model.requests[-1])
            assert outcome in (ToolOutcome.DONE, ToolOutcome.UNKNOWN)
            if outcome is ToolOutcome.DONE:
                assert line in done and f"wrote {line}" in told
            else:
                assert told.count("[outcome unknown]") >= 1, "the model was not told"
                self.unknown += 1
                self.lost += line not in done


def _talk(life: Life, page: str) -> None:
    life.post(page, "Write both.", client_id="c")
    life.rest(page)
    if life.session(page).state == "waiting":
        life.post(page, "Yes, all.", client_id="d")
        life.rest(page)


def _agent(model: WiredModel, folder: Path) -> Callable[[Life], ModelAgent]:
    async def read(digest: str) -> bytes:
        raise AssertionError(digest)

    return lambda life: ModelAgent(
        models=lambda chosen: ("test:test",),
        client=lambda name: model,
        instructions=Instructions(home=folder, clock=life.clock, folder=lambda session_id, chosen: folder),
        settings=lambda model: ModelSettings(),
        read=read,
        clock=life.clock,
    )


@pytest.mark.parametrize("wire", WIRES)
def test_a_kill_before_or_after_any_commit_doubles_nothing_and_every_turn_ends_whole(tmp_path: Path, wire: str) -> None:
    """P4, P5, P6, R5, B10: and a call of which nobody knows what it did is told as unknown, never made again."""
    kills = Kills(tmp_path, wire)
    for commit in range(1, MOST_POINTS):
        died = [kills.play(moment, commit) for moment in ("before", "after")]
        if not any(died):
            break
    assert kills.points >= LEAST_POINTS, f"only {kills.points} moments to die at"
    assert kills.unknown >= 2 and 0 < kills.lost < kills.unknown, "no death fell between a call's start and its result"
