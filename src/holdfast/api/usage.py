"""What models used, as `GET /api/usage` and `holdfast usage` show it."""

from collections.abc import Iterable, Sequence

import msgspec

from holdfast.api import views
from holdfast.core import usage
from holdfast.core.usage import DaySpent, ModelSpent, SessionSpent


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


class ModelUsageView(msgspec.Struct, kw_only=True):
    """`model`: null for conversations that were removed."""

    model: str | None
    turns: int
    usage: views.UsageView


class RowView(msgspec.Struct, kw_only=True):
    """What one model used on one day."""

    day: str
    model: str | None
    turns: int
    usage: views.UsageView


class ConversationUsageView(msgspec.Struct, kw_only=True):
    session_id: str
    title: str | None
    turns: int
    usage: views.UsageView


class UsageReport(msgspec.Struct, kw_only=True):
    """Since `since`: day by day, oldest first, days without any left out; for each person, each model and the conversations that used most,
    who used most first; by day and model (`rows`); and in all.
    """

    since: str
    days: list[DayUsageView]
    senders: list[SenderUsageView]
    models: list[ModelUsageView]
    rows: list[RowView]
    conversations: list[ConversationUsageView]
    total: views.UsageView


def report(
    since: str, by_sender: Iterable[DaySpent], by_model: Sequence[ModelSpent] = (), by_session: Iterable[SessionSpent] = ()
) -> UsageReport:
    """From what each person and each model used on each day."""
    days: dict[str, DaySpent] = {}
    senders: dict[str, DaySpent] = {}
    total = usage.NOTHING
    for each in by_sender:
        _add(days, each.day, each)
        _add(senders, each.sender or "", each)
        total += each.spent
    models: dict[str, DaySpent] = {}
    for row in by_model:
        _add(models, row.model or "", DaySpent(day=row.day, spent=row.spent, turns=row.turns))
    return UsageReport(
        since=since,
        days=[DayUsageView(day=day, turns=sums.turns, usage=views.usage(sums.spent)) for day, sums in sorted(days.items())],
        senders=[
            SenderUsageView(sender=name or None, turns=sums.turns, usage=views.usage(sums.spent)) for name, sums in _most_first(senders)
        ],
        models=[ModelUsageView(model=name or None, turns=sums.turns, usage=views.usage(sums.spent)) for name, sums in _most_first(models)],
        rows=[RowView(day=row.day, model=row.model, turns=row.turns, usage=views.usage(row.spent)) for row in by_model],
        conversations=[
            ConversationUsageView(session_id=each.session_id, title=each.title, turns=each.turns, usage=views.usage(each.spent))
            for each in by_session
        ],
        total=views.usage(total),
    )


def _add(sums: dict[str, DaySpent], name: str, each: DaySpent) -> None:
    known = sums.get(name)
    spent, turns = (each.spent, each.turns) if known is None else (known.spent + each.spent, known.turns + each.turns)
    sums[name] = DaySpent(day=each.day, spent=spent, turns=turns)


def _most_first(sums: dict[str, DaySpent]) -> list[tuple[str, DaySpent]]:
    return sorted(sums.items(), key=lambda pair: (-pair[1].spent.tokens, pair[0]))
