"""Tool calls: their start, their output, their result."""

from typing import Any

import msgspec

from holdfast.core import content
from holdfast.core.content import Content, Part
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.events.base import Event
from holdfast.core.events.steps import Usage


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


class Used(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the one request to a model used that a call made, such as for a transcript. The fields are those of `ModelResponded`."""

    usage: Usage = Usage()
    cost: int | None = None
    provider: str = ""
    model: str = ""
    day: str | None = None
    sender: str | None = None


class ToolFinished(Event, frozen=True):
    """`used`: by a model that the call asked, None if it asked none."""

    kind = "tool.finished"
    says = True
    call_id: str
    outcome: ToolOutcome
    content: Content = msgspec.field(name="result")
    used: Used | None = None

    @property
    def result(self) -> str:
        return content.text(self.content)

    @property
    def parts(self) -> tuple[Part, ...]:
        return content.parts(self.content)
