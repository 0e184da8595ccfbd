"""A spool as bytes: what a turn's process has to record while the store cannot be written, in frames that prove themselves.

A spool begins with a header that says whose it is; events follow, each with its place in the turn; a seal says that nothing more will come.
Reading never raises for what a kill or a power cut can leave: a frame that was not written whole, at the end, does not count. Damage in
the middle is reported, and what stands behind it is still found.
"""

import itertools
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from holdfast.core.errors import Unavailable
from holdfast.core.events import Event, ToolFinished, decode

FORMAT = 1
# No JSON text holds a zero byte, so that this is rarely found inside a frame.
MARK = b"\0HF\x01"
_HEAD = len(MARK) + 8
MOST_FRAME = 16 * 1024 * 1024

TURN_BYTES = 8 * 1024 * 1024
# The last part of a spool is kept for results: an effect that has happened must be written down even when no more text can be.
FOR_RESULTS = 512 * 1024

STRANGE = "it belongs to another turn than its name says"


class Header(msgspec.Struct, frozen=True, kw_only=True, tag="spool"):
    """Whose spool it is: `owner` is the name of the process that writes it, `epoch` that of the lease it writes under."""

    session_id: str
    turn_id: str
    epoch: int
    owner: str
    format: int = FORMAT

    @property
    def stream_id(self) -> str:
        return stream_id(self.turn_id, self.epoch)


class Spooled(msgspec.Struct, frozen=True, tag="event"):
    """An event that has its place in the turn and no sequence yet. `body` as it will be stored, without secrets."""

    position: int
    attempt: int
    at: int
    kind: str
    body: bytes

    @property
    def event(self) -> Event:
        return decode(self.kind, self.body)

    @property
    def size(self) -> int:
        return len(self.body) + 64


class Sealed(msgspec.Struct, frozen=True, tag="seal"):
    """Nothing follows."""


class Contents(NamedTuple):
    """`torn`: how many bytes at the end are no whole frame. `damaged`: how many stretches in the middle could not be read."""

    header: Header
    events: tuple[Spooled, ...]
    sealed: bool
    torn: int
    damaged: int


class Unreadable(Unavailable):
    """A spool of which not even the header can be read now."""

    code = "spool_unreadable"

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"The journal {name} cannot be read: {why}.")
        self.why = why


class Gone(Unavailable):
    """A spool that was seen a moment ago. Whoever removed it had stored all of it, or its session is deleted."""

    code = "spool_gone"

    def __init__(self, name: str) -> None:
        super().__init__(f"The journal {name} is no longer in the spool: all of it is stored, or its conversation was deleted.")


def stream_id(turn_id: str, epoch: int) -> str:
    """The name of what one lease wrote of a turn, and of the file that holds what is not stored of it yet."""
    return f"{turn_id}.{epoch}"


def parse_stream_id(name: str) -> tuple[str, int] | None:
    turn_id, dot, epoch = name.rpartition(".")
    return (turn_id, int(epoch)) if turn_id and dot and epoch.isascii() and epoch.isdigit() else None


def is_place(owner: str, name: str) -> bool:
    """Whether a spool may have this place: not outside the folder of spools, no matter who wrote its name."""
    plain = bool(owner) and not owner.startswith(".") and not set("/\0") & set(owner + name)
    return plain and parse_stream_id(name) is not None


def may_hold(events: Iterable[object]) -> bool:
    """Only pieces of a running turn, and results, may go into a spool. Everything else waits for the store."""
    return all(isinstance(event, Event) and (event.stream or isinstance(event, ToolFinished)) for event in events)


def has_room(size: int, more: int, *, most: int, results: bool) -> bool:
    """Whether a spool of this size takes so many more bytes. `results`: there are results among them."""
    return size + more <= (most if results else most - min(FOR_RESULTS, most // 8))


_Frame = Header | Spooled | Sealed
_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[_Frame] = msgspec.msgpack.Decoder(_Frame)


def frame(content: _Frame) -> bytes:
    payload = _encoder.encode(content)
    length = len(payload).to_bytes(4, "little")
    return MARK + length + zlib.crc32(length + payload).to_bytes(4, "little") + payload


def frames(contents: Sequence[_Frame]) -> bytes:
    return b"".join(map(frame, contents))


def read(data: bytes, name: str) -> Contents:
    """Raises `Unreadable` where the bytes do not say whose they are."""
    found = list(_found(data))
    if not found or found[0].start > 0 or not isinstance(found[0].content, Header):
        raise Unreadable(name, "its beginning is damaged" if data else "it is empty")
    header = found[0].content
    if header.format != FORMAT:
        raise Unreadable(name, "a later version of Holdfast wrote it")
    gaps = sum(after.start > before.end for before, after in itertools.pairwise(found))
    return Contents(
        header=header,
        events=tuple(each.content for each in found if isinstance(each.content, Spooled)),
        sealed=isinstance(found[-1].content, Sealed),
        torn=len(data) - found[-1].end,
        damaged=gaps,
    )


def read_file(data: bytes, *, owner: str, name: str) -> Contents:
    """As `read`, of a file in the folder of this owner. Raises `Unreadable` also where it holds something else than its place says."""
    contents = read(data, name)
    if (contents.header.owner, contents.header.stream_id) != (owner, name):
        raise Unreadable(name, STRANGE)
    return contents


class _Found(NamedTuple):
    start: int
    end: int
    content: _Frame


def _found(data: bytes) -> Iterator[_Found]:
    """Every frame that proves itself, in order. Behind one that does not, the next is looked for by its mark."""
    at = 0
    while (start := data.find(MARK, at)) >= 0:
        end = _end(data, start)
        content = None if end is None else _content(data[start + _HEAD : end])
        if end is None or content is None:
            at = start + 1
        else:
            yield _Found(start, end, content)
            at = end


def _end(data: bytes, start: int) -> int | None:
    """Where the frame ends that begins here, if its checksum holds."""
    length = data[start + len(MARK) : start + len(MARK) + 4]
    end = start + _HEAD + int.from_bytes(length, "little")
    if end > len(data) or end - start > MOST_FRAME:
        return None
    stored = int.from_bytes(data[start + len(MARK) + 4 : start + _HEAD], "little")
    return end if zlib.crc32(length + data[start + _HEAD : end]) == stored else None


def _content(payload: bytes) -> _Frame | None:
    try:
        return _decoder.decode(payload)
    except msgspec.MsgspecError:
        return None
