"""Conversations from the running gateway or, without one, from the store of the home folder. Both return the same shapes."""

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
    """At most 100 summaries, newest first, and where the next page begins. `state` is one that the API can filter by."""
    limit, named = min(limit, MAX_PAGE), "true" if archived else None
    return _either(
        home,
        lambda client: client.get("/api/sessions", query=query, archived=named, state=state, limit=limit, before=before),
        lambda store: offline.summaries(store, query=query, archived=archived, state=state, limit=limit, before=before),
    )


def usage(home: Path, days: int) -> dict[str, Any]:
    """What models used in so many days up to today."""
    return _either(home, lambda client: client.get("/api/usage", days=days), lambda store: offline.usage(store, days))


def schedules(home: Path, key_or_id: str | None) -> dict[str, Any]:
    """All schedules, or those of the key of a conversation."""

    def online(client: Client) -> dict[str, Any]:
        found: dict[str, Any] = client.get("/api/schedules", session=session_id(home, key_or_id) if key_or_id else None)
        return found

    return _either(home, online, lambda store: offline.schedules(store, key_or_id))


def processes(home: Path, key_or_id: str | None) -> dict[str, Any]:
    """Background processes that run, or all of a conversation."""

    def online(client: Client) -> dict[str, Any]:
        found: dict[str, Any] = client.get("/api/processes", session=session_id(home, key_or_id) if key_or_id else None)
        return found

    return _either(home, online, lambda store: offline.processes(store, key_or_id))


def view(home: Path, key_or_id: str) -> dict[str, Any]:
    """A session with all its messages. Of a long conversation the gateway shows the newest page; the store has all of it."""
    found = _either(home, lambda client: client.session(session_id(home, key_or_id)), lambda store: offline.view(store, key_or_id))
    if found["earlier"] is None:
        return found
    return offline.read(home, lambda store, _: offline.view(store, key_or_id))


def events(home: Path, key_or_id: str) -> list[dict[str, Any]]:
    """A session's log up to now. The stream shows a snapshot where pieces were pruned; the store still has the records."""
    found = _either(home, lambda client: _streamed(client, session_id(home, key_or_id)), lambda store: offline.events(store, key_or_id))
    if any(event["event"] == "snapshot" for event in found):
        return offline.read(home, lambda store, _: offline.events(store, key_or_id))
    return found


def session_id(home: Path, key_or_id: str) -> str:
    """The API takes whole ids only. Keys, and beginnings of ids, are looked up in the store while the gateway runs."""
    if WHOLE_ID.fullmatch(key_or_id):
        return key_or_id
    try:
        return offline.read(home, lambda store, _: offline.resolve(store, key_or_id))
    except (offline.NothingHere, offline.Unreadable):
        if ":" in key_or_id or key_or_id == offline.LAST:
            raise
        return key_or_id  # The gateway may know it.


def order(home: Path, key_or_id: str, what: str) -> Response:
    """Tells the running gateway to do something with a conversation. Raises `NotRunning`."""
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
