"""Conversations from wherever they can be had: the running gateway, or else the store of the home folder. Both give the same shapes."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from holdfast.cli.access import offline
from holdfast.cli.access.client import Client, Response, Unreachable, connect
from holdfast.cli.access.running import NotRunning
from holdfast.store import SqliteStore

T = TypeVar("T")
MAX_PAGE = 100
WHOLE_ID = re.compile(r"s_[a-z0-9]{16}")


def page(home: Path, *, query: str, archived: bool, state: str | None, limit: int, before: str | None) -> dict[str, Any]:
    """Summaries, newest first, at most 100 of them, and where the next page begins. `state` is one the list itself knows."""
    limit, named = min(limit, MAX_PAGE), "true" if archived else None
    return _either(
        home,
        lambda client: client.get("/api/sessions", query=query, archived=named, state=state, limit=limit, before=before),
        lambda store: offline.summaries(store, query=query, archived=archived, state=state, limit=limit, before=before),
    )


def view(home: Path, key_or_id: str) -> dict[str, Any]:
    """A session, whole. The gateway gives the newest page of a long conversation; the store has all of it."""
    found = _either(home, lambda client: client.session(session_id(home, key_or_id)), lambda store: offline.view(store, key_or_id))
    if found["earlier"] is None:
        return found
    return offline.read(home, lambda store, _: offline.view(store, key_or_id))


def events(home: Path, key_or_id: str) -> list[dict[str, Any]]:
    """A session's log up to now. The stream gives a snapshot in place of what was pruned; the store still has the records."""
    found = _either(home, lambda client: _streamed(client, session_id(home, key_or_id)), lambda store: offline.events(store, key_or_id))
    if any(event["event"] == "snapshot" for event in found):
        return offline.read(home, lambda store, _: offline.events(store, key_or_id))
    return found


def session_id(home: Path, key_or_id: str) -> str:
    """HTTP knows whole ids only. What a key points at now, and which ids begin alike, is read from the store while the gateway runs."""
    if WHOLE_ID.fullmatch(key_or_id):
        return key_or_id
    try:
        return offline.read(home, lambda store, _: offline.resolve(store, key_or_id))
    except (offline.NothingHere, offline.Unreadable):
        if ":" in key_or_id or key_or_id == offline.LAST:
            raise
        return key_or_id  # The gateway knows better what is there.


def order(home: Path, key_or_id: str, what: str) -> Response:
    """Has the running gateway do something with a conversation. Raises `NotRunning`."""
    client = connect(home)
    return client.order(session_id(home, key_or_id), what)


def _either(home: Path, online: Callable[[Client], T], from_store: Callable[[SqliteStore], Awaitable[T]]) -> T:
    try:
        return online(connect(home))
    except (NotRunning, Unreachable):
        return offline.read(home, lambda store, _: from_store(store))


def _streamed(client: Client, session_id: str) -> list[dict[str, Any]]:
    until = _seq(client.session(session_id)["cursor"])
    found: list[dict[str, Any]] = []
    if until == 0:
        return found
    for event in client.events(session_id, after="0"):
        found.append(event._asdict())
        if _seq(event.id) >= until:
            break
    return found


def _seq(cursor: str) -> int:
    return int(cursor.rpartition(".")[2])
