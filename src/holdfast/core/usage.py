"""What models have used and cost, summed up: of a turn, a conversation, a day, or a person. Money is in millionths of a US dollar."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from holdfast.core.events import ContextCompacted, ModelResponded, TitleMade, ToolFinished, Usage


# So many conversations are listed, those that used most.
MOST_SPENDERS = 20


class Spent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`cached` and `stored` are parts of `input`, `thought` of `output`. `unpriced`: how many of the requests have no known price; `cost`
    is that of the others.
    """

    requests: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    stored: int = 0
    thought: int = 0
    cost: int = 0
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        return self.input + self.output

    @property
    def known_cost(self) -> int | None:
        """None where no request has a known price."""
        return None if self.requests and self.unpriced == self.requests else self.cost

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})


class DaySpent(msgspec.Struct, frozen=True, kw_only=True):
    """`turns`: how many of them asked a model on that day. `sender`: whose they were, None if that is not known."""

    day: str
    spent: Spent
    turns: int = 0
    sender: str | None = None


class ModelSpent(msgspec.Struct, frozen=True, kw_only=True):
    """`model`: which one was asked on that day, None if that is not known."""

    day: str
    model: str | None
    spent: Spent
    turns: int = 0


class SessionSpent(msgspec.Struct, frozen=True, kw_only=True):
    session_id: str
    title: str | None
    spent: Spent
    turns: int = 0


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What was spent up to now: by a turn, by its session, by everybody on a day, and by one person on that day, in so many turns
    (`sender_turns`, apart from this one).
    """

    turn: Spent = Spent()
    session: Spent = Spent()
    day: Spent = Spent()
    sender: Spent = Spent()
    sender_turns: int = 0


NOTHING = Spent()


def of(event: "ModelResponded | ContextCompacted") -> Spent:
    """What one request has used. A summary that no model wrote used nothing, and what is copied was counted where it was made."""
    if event.copied or (event.kind == "context.compacted" and not event.model):
        return NOTHING
    return _request(event.usage, event.cost)


def of_call(event: "ToolFinished") -> Spent:
    """Most calls ask no model."""
    return NOTHING if event.used is None else _request(event.used.usage, event.used.cost)


def of_title(event: "TitleMade") -> Spent:
    """Where no model responded, nothing."""
    return NOTHING if event.usage is None else _request(event.usage, event.cost)


def _request(usage: "Usage", cost: int | None) -> Spent:
    return Spent(
        requests=1,
        input=usage.input,
        output=usage.output,
        cached=usage.cached,
        stored=usage.stored,
        thought=usage.thought,
        cost=cost or 0,
        unpriced=int(cost is None),
    )


def day(at: int, offset_s: int = 0) -> str:
    """The date of a time in milliseconds, where clocks are ahead of UTC by so much."""
    return f"{datetime.fromtimestamp(at / 1000, UTC) + timedelta(seconds=offset_s):%Y-%m-%d}"


def days_before(today: str, count: int) -> str:
    """The first of so many days that end today."""
    return f"{datetime.strptime(today, '%Y-%m-%d') - timedelta(days=count - 1):%Y-%m-%d}"
