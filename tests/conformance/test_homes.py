"""Homes that version 0.1 left, upgraded: everything that was said is there, and means what it meant (A3, P1, P7)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from holdfast.api import conversation
from holdfast.api import events as api_events
from holdfast.core.events import Logged
from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState
from holdfast.store import SqliteStore, open_store
from tests.conformance.backends import SqliteBackend, quick_place
from tests.homes import CHATS, NAMES, Shown, missing, unpack

anyio = pytest.mark.anyio
every_home = pytest.mark.parametrize("name", (*NAMES, CHATS))


@asynccontextmanager
async def upgraded(name: str) -> AsyncIterator[tuple[SqliteStore, Shown]]:
    with quick_place() as home:
        shown = unpack(name, home)
        store = await open_store(home, now=lambda: 0, reserve_bytes=4096)
        try:
            yield store, shown
        finally:
            await store.aclose()


def as_sent(value: Any) -> Any:
    return json.decode(json.encode(value))


async def view(store: SqliteStore, session: Session) -> dict[str, Any]:
    """The session as version 0.1 showed it without its gateway: a turn whose process is dead is interrupted."""
    transcript = await store.transcript(session)
    seen: dict[str, Any] = as_sent(conversation.session(session, transcript, conversation.WHOLE))
    if session.turn_state is TurnState.RUNNING:
        seen["state"] = seen["turns"][-1]["state"] = "interrupted"
    return seen


@anyio
@every_home
async def test_every_conversation_is_shown_as_version_0_1_showed_it(name: str) -> None:
    """A3, P1: messages, calls with their output, turns with their outcomes, the flags of the session, its cursor."""
    async with upgraded(name) as (store, shown):
        for label, before in shown.views.items():
            after = await view(store, await store.session(shown.names[label]))
            assert missing(before, after) == [], label
            asked = [before["question"]] if before["question"] else []
            assert missing([question["text"] for question in asked], open_questions(after)) == [], label


def open_questions(seen: dict[str, Any]) -> list[str]:
    return [question["text"] for question in seen["questions"]]


@anyio
@every_home
async def test_every_event_stands_where_it_stood_and_says_what_it_said(name: str) -> None:
    """P7: a cursor of version 0.1 leads to the event that followed it then."""
    async with upgraded(name) as (store, shown):
        for label, before in shown.events.items():
            session = await store.session(shown.names[label])
            after = [
                {"id": f"{session.log}.{item.seq}", "event": item.event.kind, "data": api_events.data(item)}
                for item in await everything(store, session.session_id)
            ]
            assert missing(before, as_sent(after)) == [], label


async def everything(store: SqliteStore, session_id: str) -> list[Logged]:
    found: list[Logged] = []
    while page := await store.events(session_id, after=found[-1].seq if found else 0, limit=1000):
        found += page
    return found


@anyio
@every_home
async def test_the_upgraded_catalog_is_the_one_the_log_gives(name: str) -> None:
    """A3: what was derived by version 0.1 and upgraded, and what is derived now from its log, is the same."""
    with quick_place() as home:
        unpack(name, home)
        backend = SqliteBackend(home)
        async with backend.opened():
            upgraded = backend.catalog()
        backend.rebuild()
        assert backend.catalog() == upgraded


def test_no_folder_of_a_machine_is_in_a_home_that_is_kept_here(tmp_path: Path) -> None:
    for name in (*NAMES, CHATS):
        unpack(name, tmp_path / name)
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or not any(folder in path.read_bytes() for folder in (b"/tmp/", b"/work/", b"/root/", b"/var/"))
