"""What a row of the bench found: summaries of samples, and figures that meet their goal or miss it."""

import math
from collections.abc import Sequence

import msgspec


class Summary(msgspec.Struct, frozen=True):
    """The samples of one repeat. A rate, a total or a ratio is a summary of one sample."""

    count: int
    min: float
    p50: float
    p99: float
    p999: float
    max: float


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest sample that at least this share of the samples does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def summary(samples: Sequence[float]) -> Summary:
    ordered = sorted(samples)
    if not ordered:
        raise ValueError("A figure needs at least one sample.")
    return Summary(len(ordered), ordered[0], quantile(ordered, 0.5), quantile(ordered, 0.99), quantile(ordered, 0.999), ordered[-1])


def middle(values: Sequence[float]) -> float:
    """The median over the repeats."""
    return quantile(sorted(values), 0.5)


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """`judged` names the statistic that is compared with the goal: its median over the repeats is `value`. Without a goal `met` is None."""

    label: str
    unit: str
    repeats: list[Summary]
    judged: str = "p50"
    value: float
    goal: str = ""
    met: bool | None = None


def plain(label: str, unit: str, repeats: Sequence[Sequence[float]], *, judged: str = "p50") -> Figure:
    """A figure that explains another one and has no goal of its own."""
    summaries = [summary(samples) for samples in repeats]
    value = middle([getattr(each, judged) for each in summaries])
    return Figure(label=label, unit=unit, repeats=summaries, judged=judged, value=value)


def at_most(label: str, unit: str, repeats: Sequence[Sequence[float]], limit: float, *, judged: str = "p50", goal: str = "") -> Figure:
    return _judged(plain(label, unit, repeats, judged=judged), "<=", limit, goal)


def at_least(label: str, unit: str, repeats: Sequence[Sequence[float]], limit: float, *, goal: str = "") -> Figure:
    return _judged(plain(label, unit, repeats), ">=", limit, goal)


def _judged(figure: Figure, sign: str, limit: float, goal: str) -> Figure:
    met = figure.value <= limit if sign == "<=" else figure.value >= limit
    statistic = "" if all(each.count == 1 for each in figure.repeats) else f"{NAMES[figure.judged]} "
    return msgspec.structs.replace(figure, met=met, goal=goal or f"{statistic}{sign} {shown(limit)}")


NAMES = {"p50": "p50", "p99": "p99", "p999": "p99.9", "max": "max", "min": "min"}


def shown(value: float) -> str:
    """A number as people read it: three digits that matter, thousands set apart."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:.2f}M"
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"


class Skipped(Exception):
    """A row cannot be measured here; the message says why."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one row. `floors` are those of the repeats that count, `thrown_away` how many repeats did not."""

    name: str
    what: str
    peer: str
    figures: list[Figure]
    floors: list[Summary]
    thrown_away: int
    moved: float
    took_s: float
    notes: list[str]
    error: str | None = None

    @property
    def missed(self) -> bool:
        return self.error is not None or any(figure.met is False for figure in self.figures)
