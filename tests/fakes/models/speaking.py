"""What the wires of the fake servers share."""

import re
from collections.abc import Iterator
from typing import Any, Protocol

import msgspec

from tests.fakes.models.script import Reply, Say

PIECES = 3
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


class Refused(Exception):
    """The request is wrong, as the real server would say. `error`: the body to refuse it with."""

    def __init__(self, status: int, error: dict[str, Any]) -> None:
        super().__init__(str(error))
        self.status, self.error = status, error


class Speech(Protocol):
    path: str

    def events(self, reply: Reply, number: int) -> list[bytes]:
        """The reply as events of the wire. `number`: of the request, for ids."""

    def steps(self, body: dict[str, Any]) -> int:
        """How many responses of a model the history holds."""

    def check(self, body: dict[str, Any]) -> None:
        """Refuses what the real server would refuse."""

    def too_long(self) -> Refused: ...


def encoded(data: Any, event: str | None = None) -> bytes:
    named = f"event: {event}\n" if event else ""
    return named.encode() + b"data: " + (data.encode() if isinstance(data, str) else msgspec.json.encode(data)) + b"\n\n"


def pieces(written: str) -> list[str]:
    """The arguments of a call as they are streamed. Nothing at all is one empty piece."""
    size = max(1, -(-len(written) // PIECES))
    return [written[start : start + size] for start in range(0, len(written), size)] or [""]


def fragments(calls: list[Say], *, interleave: bool) -> Iterator[tuple[int, str]]:
    """(which call, the next piece of its arguments), one call after the other or in turns."""
    written = [pieces(each.written) for each in calls]
    if not interleave:
        yield from ((index, piece) for index, each in enumerate(written) for piece in each)
        return
    for place in range(max(map(len, written), default=0)):
        yield from ((index, each[place]) for index, each in enumerate(written) if place < len(each))


def call_id(say: Say, number: int, index: int) -> str:
    return say.id or f"call_{number}_{index}"
