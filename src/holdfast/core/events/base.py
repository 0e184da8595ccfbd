"""What every event is, and what those are that hold content."""

from typing import ClassVar

import msgspec

from holdfast.core import content
from holdfast.core.content import Content, Part


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all bodies. `kind` is the event's public name and never changes meaning."""

    kind: ClassVar[str]
    stream: ClassVar[bool] = False
    says: ClassVar[bool] = False  # It holds content.

    @property
    def move(self) -> str:
        """What it is called in the table of turns."""
        return self.kind


class Says(Event, frozen=True):
    """Base of the bodies that hold content. Stored as `text`: a string, or a list of parts."""

    says = True
    content: Content = msgspec.field(name="text")

    @property
    def text(self) -> str:
        return content.text(self.content)

    @property
    def parts(self) -> tuple[Part, ...]:
        return content.parts(self.content)
