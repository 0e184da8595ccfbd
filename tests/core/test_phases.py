"""What a running turn does now, by its newest events."""

import pytest

from holdfast.core import events as e
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.events import Event, Logged, encode
from holdfast.core.phases import Phase, phase

BEGAN = e.TurnStarted(generation=1, attempt=1, cause="message", causes=("m",), owner=1, epoch=1)
AGAIN = e.TurnResumed(attempt=2, rule="R9", reason="crash")
TEXT = e.Text(offset=0, text="x")


def call(name: str) -> Event:
    return e.ToolStarted(call_id=name, name=name, arguments={}, effect=Effect.PURE)


def done(name: str) -> Event:
    return e.ToolFinished(call_id=name, outcome=ToolOutcome.DONE, content="x")


@pytest.mark.parametrize(
    ("events", "found"),
    (
        ((), Phase("model", None, 0)),
        ((TEXT,), Phase("model", None, 0)),
        ((BEGAN,), Phase("model", None, 10)),
        ((BEGAN, TEXT, AGAIN, TEXT), Phase("model", None, 30)),
        ((BEGAN, call("look")), Phase("tool", "look", 20)),
        ((BEGAN, call("look"), TEXT), Phase("tool", "look", 20)),
        ((BEGAN, call("look"), done("look")), Phase("model", None, 30)),
        ((BEGAN, call("look"), call("act"), done("act")), Phase("tool", "look", 20)),
        ((BEGAN, call("look"), call("act"), done("look")), Phase("tool", "act", 30)),
        ((BEGAN, call("look"), done("look"), TEXT), Phase("model", None, 30)),
        ((BEGAN, call("look"), call("act"), done("look"), done("act")), Phase("model", None, 50)),
    ),
)
def test_a_turn_is_in_the_call_that_has_not_finished_or_else_at_the_model(events: tuple[Event, ...], found: Phase) -> None:
    """`events`: in their order; each is ten milliseconds later than the one before it."""
    log = [
        Logged(session_id="s", seq=seq, turn_id="t", attempt=1, position=seq, kind=event.kind, at=10 * seq, body=encode(event))
        for seq, event in enumerate(events, 1)
    ]
    assert phase(reversed(log)) == found
