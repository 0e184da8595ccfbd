"""Events as they go over the wire: one server-sent event each, made once for all its readers.

A frame leaves out the log's name, which the stored event does not know: it begins behind it, and `join` puts the name in front of each.
Making a frame never fails: it runs where all sessions' readers are served, and one bad event must not hold the rest (P8).
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.api import events
from holdfast.api.times import rfc3339
from holdfast.core.events import KINDS, Logged

HEARTBEAT = b":\n\n"
_STREAM = frozenset(kind for kind, event in KINDS.items() if event.stream)
_to_json = msgspec.json.Encoder().encode


def encode(logged: Logged) -> bytes:
    """Pieces of running turns are spliced together from bytes, because there are many; records are put into their public form."""
    kind, body, beginning = logged.kind, logged.body, _beginning(logged)
    if kind not in _STREAM or body[:1] != b"{" or b"\n" in body or b"\r" in body:
        kind, body = logged.event.kind, _to_json(events.fields(logged))
    elif kind in events.STEPPED and body[1:2] == b'"' and b'"step":' not in body:  # A quote within a text is escaped.
        beginning += b'"step":0,'
    data = beginning + body[1:] if body != b"{}" else beginning[:-1] + b"}"
    if b"\xe2\x80" in data or b"\xc2\x85" in data:
        data = one_line(data)
    return b".%d\nevent: %b\ndata: %b\n\n" % (logged.seq, kind.encode(), data)


def join(log: str, frames: Iterable[bytes]) -> bytes:
    """Whole server-sent events out of the frames of one session."""
    return (b"id: %b" % log.encode()).join((b"", *frames))


def snapshot(log: str, seq: int, view: Any) -> bytes:
    return b"id: %b.%d\nevent: snapshot\ndata: %b\n\n" % (log.encode(), seq, one_line(_to_json(view)))


def channel(name: str, value: Any) -> bytes:
    """An event that belongs to no log: it has no id, so that a reader's cursor stays that of its session."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), one_line(_to_json(value)))


def end(reason: str) -> bytes:
    return b"event: end\ndata: %b\n\n" % _to_json({"reason": reason})


def _beginning(logged: Logged) -> bytes:
    """The beginning of the object: when, and where in which turn. It ends in a comma."""
    at = b'"%b"' % rfc3339(logged.at).encode() if logged.at else b"null"  # A damaged event has lost its time.
    if logged.turn_id is None:
        return b'{"at":%b,' % at
    return b'{"at":%b,"turn_id":%b,"attempt":%d,"position":%d,' % (at, _to_json(logged.turn_id), logged.attempt, logged.position)


def one_line(data: bytes) -> bytes:
    """JSON without the characters that the format allows in a line and some readers take for its end."""
    return data.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029").replace(b"\xc2\x85", b"\\u0085")
