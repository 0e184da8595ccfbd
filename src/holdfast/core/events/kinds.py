"""Every kind of event by its name, how an event is written down, and what of it readers get."""

from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.core import content
from holdfast.core.content import BytesPart
from holdfast.core.events import calls, deliveries, journals, messages, processes, questions, schedules, sessions, steps, titles, turns
from holdfast.core.events.base import Event, Says

# Fields of records that are the store's own affair, and those that the place of the event in the log already says.
_HIDDEN = frozenset(
    {"dedup_key", "log", "owner", "epoch", "attempt", "died", "blamed_for", "blocks", "calls", "since", "elicited", "recital"}
    | {"buttons", "fold", "begun"}
)


class Unknown(Event, frozen=True):
    """Stands for an event of a later version: whole, and left alone. It is made by readers and never stored."""

    kind = "unknown"
    name: str


class Damaged(Event, frozen=True):
    """Stands where a stored event could not be read. It is made by readers and never stored."""

    kind = "damaged"
    reason: str


SUBJECTS = (sessions, titles, messages, schedules, processes, turns, steps, calls, questions, deliveries, journals)
# Every event of these modules that has a kind is one, so that a new one is named in its module alone.
KINDS: dict[str, type[Event]] = {
    event.kind: event
    for subject in SUBJECTS
    for event in vars(subject).values()
    if isinstance(event, type) and issubclass(event, Event) and hasattr(event, "kind")
} | {Damaged.kind: Damaged}

_encoder = msgspec.json.Encoder()
_decoders = {kind: msgspec.json.Decoder(body) for kind, body in KINDS.items()}


def encode(event: Event) -> bytes:
    return _encoder.encode(event)


def decode(kind: str, body: bytes) -> Event:
    """The event a stored body stands for; `Unknown` for one of a later version, `Damaged` for one that no longer reads."""
    decoder = _decoders.get(kind)
    if decoder is None:
        return Unknown(name=kind)
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return Damaged(reason=f"its body does not read: {error}")


def attached(event: Event) -> tuple[BytesPart, ...]:
    """The parts of its content that name blobs."""
    return content.attached(event.content) if isinstance(event, Says | calls.ToolFinished) else ()


def public(event: Event, *, in_turn: bool) -> Iterator[tuple[str, Any]]:
    """The fields of an event that readers get, with their values. `in_turn`: its place already names the turn."""
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if name == "content":
            yield "result" if isinstance(event, calls.ToolFinished) else "text", content.text(value)
            if not isinstance(value, str):
                yield "parts", value
        elif name == "pieces":  # How they are worded is between us and the platform.
            yield name, len(value)
        elif name not in _HIDDEN and value is not msgspec.UNSET and not (in_turn and name == "turn_id"):
            yield name, value
