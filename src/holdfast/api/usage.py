"""What models used, as `GET /api/usage` and `holdfast usage` show it."""

from collections.abc import Iterable

import msgspec

from holdfast.api import views
from holdfast.core import usage
from holdfast.core.usage import DaySpent, Spent


class DayUsageView(msgspec.Struct, kw_only=True):
    """A date where the gateway runs. `turns`: how many asked a model on that day, without those of conversations that were removed."""

    day: str
    turns: int
    usage: views.UsageView


class SenderUsageView(msgspec.Struct, kw_only=True):
    """`sender`: null for conversations that were removed."""

    sender: str | None
    turns: int
    usage: views.UsageView


class UsageReport(msgspec.Struct, kw_only=True):
    """Since `since`: day by day, oldest first, days without any left out; for each person, who used most first; and in all."""

    since: str
    days: list[DayUsageView]
    senders: list[SenderUsageView]
    total: views.UsageView


def report(since: str, by_sender: Iterable[DaySpent]) -> UsageReport:
    """From what each person used on each day."""
    days: dict[str, DaySpent] = {}
    senders: dict[str, DaySpent] = {}
    total = usage.NOTHING
    for each in by_sender:
        _add(days, each.day, each)
        _add(senders, each.sender or "", each)
        total += each.spent
    most_first = sorted(senders.items(), key=lambda pair: (-_weight(pair[1].spent), pair[0]))
    return UsageReport(
        since=since,
        days=[DayUsageView(day=day, turns=sums.turns, usage=views.usage(sums.spent)) for day, sums in sorted(days.items())],
        senders=[SenderUsageView(sender=name or None, turns=sums.turns, usage=views.usage(sums.spent)) for name, sums in most_first],
        total=views.usage(total),
    )


def _add(sums: dict[str, DaySpent], name: str, each: DaySpent) -> None:
    known = sums.get(name)
    spent, turns = (each.spent, each.turns) if known is None else (known.spent + each.spent, known.turns + each.turns)
    sums[name] = DaySpent(day=each.day, spent=spent, turns=turns)


def _weight(spent: Spent) -> int:
    return spent.tokens
