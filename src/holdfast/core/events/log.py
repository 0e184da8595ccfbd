"""An event in its place in the log, a page of them, and the checksum of what is stored."""

import zlib
from collections.abc import Iterable

import msgspec

from holdfast.core.events.base import Event
from holdfast.core.events.kinds import decode


class Logged(msgspec.Struct, frozen=True):
    """An event in its place in the log: the session's, without gaps. `epoch`: of the lease it was written under,
    None in what version 0.1 wrote; positions count within it.
    """

    session_id: str
    seq: int
    turn_id: str | None
    attempt: int
    position: int
    kind: str
    at: int
    body: bytes
    epoch: int | None = None
    stream: bool = False

    @property
    def event(self) -> Event:
        return decode(self.kind, self.body)


# A page of events ends once the bodies in it make up this much: what is done with a page takes a few milliseconds, whatever is in it.
PAGE_BYTES = 256 * 1024
LARGE_BYTES = 32 * 1024


class Page(list[Logged]):
    """Events in the order of the log. `more`: others may follow. `made`: what was made of the large ones, by session and
    sequence.
    """

    def __init__(self, logged: Iterable[Logged] = (), *, more: bool = False) -> None:
        super().__init__(logged)
        self.more = more
        self.made: dict[tuple[str, int], bytes] = {}


def checksum(
    session: int,
    seq: int,
    turn: str | None,
    attempt: int,
    position: int,
    kind: str,
    at: int,
    body: bytes,
    epoch: int | None = None,
    stream: int = 0,
) -> int:
    """Covers every stored column, so that a flipped bit in any of them is found. Without an epoch: as version 0.1 made it."""
    if epoch is None:
        return zlib.crc32(f"{session}|{seq}|{turn}|{attempt}|{position}|{kind}|{at}".encode() + body)
    return zlib.crc32(f"{session}|{seq}|{turn}|{attempt}|{position}|{kind}|{at}|{epoch}|{stream}".encode() + body)
