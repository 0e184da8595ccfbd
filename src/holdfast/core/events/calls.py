"""Tool calls: their start, their output, their result."""

from typing import Any

import msgspec

from holdfast.core import content
from holdfast.core.content import Content, Part
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.events.base import Event


class ToolStarted(Event, frozen=True):
    """`offset`: how much of the step's text stands before the call. `key`: what the tool is given to make a repetition harmless.
    `approval`: the question whose answer allowed it, used up by this; `place`: where it works then, as that answer was for.
    """

    kind = "tool.started"
    call_id: str
    name: str
    arguments: dict[str, Any]
    effect: Effect
    step: int = 0
    offset: int = 0
    key: str | None = None
    approval: str | None = None
    place: str | None = None


class ToolOutput(Event, frozen=True):
    """`omitted`: how many characters of the output, just before `text`, are not in the log."""

    kind = "tool.output"
    stream = True
    call_id: str
    text: str
    omitted: int = 0
    step: int = 0


class ToolFinished(Event, frozen=True):
    kind = "tool.finished"
    says = True
    call_id: str
    outcome: ToolOutcome
    content: Content = msgspec.field(name="result")

    @property
    def result(self) -> str:
        return content.text(self.content)

    @property
    def parts(self) -> tuple[Part, ...]:
        return content.parts(self.content)
