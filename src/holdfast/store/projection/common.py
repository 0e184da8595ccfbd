"""What the projections of several subjects share."""

from collections.abc import Callable
from typing import Any

from holdfast.core import events as e
from holdfast.store.heads import Head
from holdfast.store.rows import Change, Insert

THIS = "id = ?"
KEY_OF = "session_key = (SELECT session_key FROM session WHERE id = ?)"
REMEMBERED = Insert("dedup", "dedup_key", "digest", "session", "ref")


def remember(key: str | None, content: bytes, head: Head, ref: str) -> list[Change]:
    return [] if key is None else [(REMEMBERED, (key, content, head.session, ref))]


Rows = dict[type[e.Event], Callable[[Head, Any, int, bool], list[Change]]]
