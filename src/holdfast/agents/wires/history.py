"""The history as every wire tells it: each step directly followed by one result for each of its calls, whatever the items look like."""

import hashlib
import re
from collections.abc import Iterator, Sequence

import msgspec

from holdfast.core.content import Content, TextPart, of, parts
from holdfast.core.effects import ToolOutcome
from holdfast.core.history import Call, Item, Result, Step, User

NO_RESULT = "There is no result of this call on record."
MARKS = {ToolOutcome.FAILED: "[failed]", ToolOutcome.UNKNOWN: "[outcome unknown]"}
UNNAMED, MOST_NAME = "unnamed", 64
_UNUSABLE = re.compile(r"[^A-Za-z0-9_-]")
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Told(msgspec.Struct, frozen=True):
    """A step and its results, one per call, in the order of the calls."""

    step: Step
    results: tuple[Result, ...]


def told(history: Sequence[Item]) -> Iterator[User | Told]:
    """A result whose call is not in the history any more is left out: providers refuse it."""
    results = {item.call_id: item for item in history if isinstance(item, Result)}
    for item in history:
        if isinstance(item, User):
            yield item
        elif isinstance(item, Step):
            yield Told(item, tuple(results.get(call.call_id) or _missing(call) for call in item.calls))


def content_of(result: Result) -> Content:
    """Its content with a mark in words where it did not succeed: not every wire has a field for that, and none for `unknown`."""
    mark = MARKS.get(result.outcome)
    if mark is None:
        return result.content
    return of((TextPart(mark), *parts(result.content))) if not isinstance(result.content, str) else f"{mark} {result.content}"


def call_id(ours: str) -> str:
    """An id of a call that every provider takes: the strictest wants nine letters or digits."""
    number = int.from_bytes(hashlib.sha256(ours.encode()).digest()[:8])
    return "".join(_DIGITS[number // 62**place % 62] for place in range(9))


def usable_ids(given: Sequence[str | None], calls: Sequence[Call]) -> list[str]:
    """The provider's own ids of a step's calls, or ours if one is missing or stands twice, as with some servers."""
    known = [each for each in given if each]
    return known if len(set(known)) == len(calls) else [call_id(call.call_id) for call in calls]


def usable_name(name: str) -> str:
    """The name of a call as every provider takes it back. A model may write any name; the strictest provider wants letters, digits, `_` and
    `-`, at most 64, the first no digit. One that it refuses in a history it would refuse in every later request.
    """
    plain = _UNUSABLE.sub("_", name)[:MOST_NAME] or UNNAMED
    return plain if plain[0].isalpha() or plain[0] == "_" else f"_{plain[: MOST_NAME - 1]}"


def _missing(call: Call) -> Result:
    return Result(call_id=call.call_id, name=call.name, outcome=ToolOutcome.UNKNOWN, content=NO_RESULT)
