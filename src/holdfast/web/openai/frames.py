"""Server-sent events as clients of the door read them."""

from typing import Any

import msgspec

from holdfast.web.frames import one_line

DONE = b"data: [DONE]\n\n"
_to_json = msgspec.json.Encoder().encode


def frame(data: Any, name: str | None = None) -> bytes:
    body = one_line(_to_json(data))
    return b"data: %b\n\n" % body if name is None else b"event: %b\ndata: %b\n\n" % (name.encode(), body)
