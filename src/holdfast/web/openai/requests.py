"""What the headers of a request say."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

from holdfast.core.errors import BadInput
from holdfast.web.access import Grant
from holdfast.web.endpoints import Request
from holdfast.web.openai import conversations
from holdfast.web.openai.asking import Asked

# The longest name of a conversation, and the longest Idempotency-Key.
LONGEST = 200
# How many digits the length of a short body has at most.
SHORT_LENGTH = 5
_SESSION = re.compile(r"s_\w{1,100}", re.ASCII)


def grant(request: Request) -> Grant:
    assert request.grant is not None  # No endpoint of the door is open.
    return request.grant


async def asked(request: Request, parse: Callable[[Any], Asked]) -> Asked:
    """What the body says. A long one is not gone through on the event loop."""
    if len(request.headers.get(b"content-length", b"")) <= SHORT_LENGTH:
        return parse(request.body)
    return await asyncio.to_thread(parse, request.body)


def read(
    request: Request,
    *,
    door: str,
    asked: Asked,
    model: str | None,
    session_id: str | None = None,
    recites: bool = True,
    after: str | None = None,
) -> conversations.Request:
    """`session_id`: named in the body, which wins over the header."""
    named = _header(request, b"x-holdfast-session") if session_id is None else None
    if named is not None and _SESSION.fullmatch(named):
        session_id, named = named, None
    return conversations.Request(
        door=door,
        asked=asked,
        model=model,
        session_id=session_id,
        lane=named,
        recites=recites,
        after=after,
        key=_header(request, b"idempotency-key"),
        again=request.headers.get(b"x-stainless-retry-count", b"0") not in (b"", b"0"),
    )


def _header(request: Request, name: bytes) -> str | None:
    value = request.headers.get(name, b"").decode("latin-1").strip()
    if len(value) > LONGEST:
        raise BadInput(f"The header {name.decode()} is longer than {LONGEST} characters. Use a shorter name.")
    return value or None
