"""What a model is asked for the title of a session, and what comes of it."""

from holdfast.core.events.base import Event
from holdfast.core.events.steps import Usage


class TitleAsked(Event, frozen=True):
    """A model is about to be asked for a title, from what was said in this turn. `owner`: by which process. `tries`: how often by now."""

    kind = "title.asked"
    turn_id: str
    owner: int
    tries: int = 1


class TitleMade(Event, frozen=True):
    """What came of it. `title`: the one that the session has from here on; `problem`: why it keeps the one it had. `usage`, `cost`, `day`
    and `sender`: as those of a response.
    """

    kind = "title.made"
    turn_id: str
    title: str | None = None
    problem: str | None = None
    tries: int = 1
    usage: Usage | None = None
    cost: int | None = None
    provider: str = ""
    model: str = ""
    day: str | None = None
    sender: str | None = None
