"""What the readers of all wires share: the text as it was said, and calls from what a model wrote as their arguments."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from holdfast.core.events import ProposedCall
from holdfast.ports.agents import Response
from holdfast.ports.models import ModelError, Piece, TextPiece

# The error for a refusal that came within the stream: the decoded event in.
Refusal = Callable[[object], ModelError]
SHOWN = 200
TOO_LATE = "The answer reached its length limit while this call was being written, so it was not run. Send it again, shorter."


class Reader(Protocol):
    """Puts one response together. `finished`: the provider's own mark of its end has come; `last`: nothing more of interest comes."""

    finished: bool
    last: bool

    def feed(self, event: dict[str, Any]) -> Sequence[Piece]:
        """Takes one event. Raises a `ModelError` if the event tells of one."""

    def read(self) -> Response:
        """The response, without the names of wire, provider and model. Only once it is finished."""


class Said:
    """The text of a response, piece by piece, with an empty line where something else stood between two texts."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._apart = False

    def add(self, text: str) -> tuple[TextPiece, ...]:
        if not text:
            return ()
        if self._apart:
            self._apart = False
            if self._pieces and not self._pieces[-1].endswith("\n"):
                text = f"\n\n{text}"
        self._pieces.append(text)
        return (TextPiece(text),)

    def part(self) -> None:
        """What comes next stands apart from what was said."""
        self._apart = True

    def read(self) -> str:
        return "".join(self._pieces)


def proposed(name: str, written: str) -> ProposedCall:
    """A call from its arguments as the model wrote them. None at all: no arguments."""
    if not name:
        return ProposedCall(name="", arguments={}, problem="The call names no tool.")
    if not written.strip():
        return ProposedCall(name=name, arguments={})
    try:
        arguments = msgspec.json.decode(written)
    except msgspec.DecodeError as error:
        return ProposedCall(name=name, arguments={}, problem=_malformed(f"are not JSON ({error})", written))
    if not isinstance(arguments, dict):
        return ProposedCall(name=name, arguments={}, problem=_malformed("are no JSON object", written))
    return ProposedCall(name=name, arguments=arguments)


def settled(calls: Sequence[ProposedCall], finish: str) -> tuple[tuple[ProposedCall, ...], str]:
    """The calls and the reason for the end, which counts for less than the calls. If there was no room left, the last call is not whole."""
    if not calls:
        return (), "end" if finish == "calls" else finish
    if finish == "length":
        last = msgspec.structs.replace(calls[-1], problem=TOO_LATE)
        return (*calls[:-1], last), finish
    return tuple(calls), "calls" if finish == "end" else finish


def _malformed(what: str, written: str) -> str:
    shown = written if len(written) <= SHOWN else f"{written[:SHOWN]} ..."
    return f"The arguments {what}: {shown}"


def count(usage: object, *names: str) -> int:
    """A number of tokens in a report of usage, 0 where it is not told."""
    for name in names:
        usage = usage.get(name) if isinstance(usage, dict) else None
    return usage if isinstance(usage, int) else 0
