"""What a running turn does now, as its newest events say."""

from collections.abc import Iterable
from typing import NamedTuple

from holdfast.core.events import Logged, ModelResponded, ToolFinished, ToolStarted, TurnResumed, TurnStarted

TOOL, MODEL = "tool", "model"


class Phase(NamedTuple):
    """`name`: of the tool that runs. `since`: when it began; 0 where the events do not reach back so far."""

    kind: str
    name: str | None
    since: int


def phase(newest: Iterable[Logged]) -> Phase:
    """`newest`: the events of the turn, the newest first. A call that has started and not finished, else the model."""
    finished: set[str] = set()
    since = 0
    for item in newest:
        match event := item.event:
            case ToolFinished():
                finished.add(event.call_id)
                since = since or item.at
            case ToolStarted() if event.call_id not in finished:
                return Phase(TOOL, event.name, item.at)
            case TurnStarted() | TurnResumed() | ModelResponded():
                since = since or item.at
    return Phase(MODEL, None, since)
