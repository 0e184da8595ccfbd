"""The conversations of a home folder without its gateway: read through the store's own port, and never changed.

Returns the same shapes as the HTTP API, so that a command need not know where they come from.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from msgspec import to_builtins

from holdfast.api import conversation, views
from holdfast.api import usage as reports
from holdfast.api.events import data
from holdfast.api.processes import ProcessesView
from holdfast.api.schedules import SchedulesView, schedule
from holdfast.cli.options import home
from holdfast.cli.terminal.layout import cut, one_line
from holdfast.core import usage as spending
from holdfast.core.errors import Deleted, NotFound, Refused, Unavailable
from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState
from holdfast.locks import OwnerLocks
from holdfast.ports.desk import NOTHING
from holdfast.store import SqliteStore
from holdfast.store.sqlite.connection import SCHEMA_VERSION
from holdfast.store.sqlite.inspection import ReadingLines, schema_version
from holdfast.store.sqlite.store import DATABASE

T = TypeVar("T")
PAGE = 1000
LAST = "last"
PREFIX = "s_"
CANDIDATES = 4
TITLE = 30


class NothingHere(Refused):
    code = "nothing_here"

    def __init__(self, home: Path) -> None:
        super().__init__(f"There are no conversations in {home}: it has no database yet. Is --home right? `holdfast serve` creates one.")


class Unreadable(Unavailable):
    code = "unreadable"

    def __init__(self, path: Path, cause: Unavailable) -> None:
        self.why = str(cause).removeprefix("The store failed: ").rstrip(".")
        super().__init__(f"{path} cannot be read: {self.why}. `holdfast doctor` says what to do.")


class NoSuchConversation(Refused):
    code = "not_found"

    def __init__(self, name: str) -> None:
        what = "are no conversations yet" if name == LAST else f"is no conversation {name!r} here"
        super().__init__(f"There {what}. `holdfast sessions` lists them.")


class Ambiguous(Refused):
    code = "ambiguous"

    def __init__(self, name: str, found: list[Session]) -> None:
        listed = ", ".join(
            f"{each.session_id} ({cut(one_line(each.title), TITLE)})" if each.title else each.session_id for each in found[:CANDIDATES]
        )
        more = " and others" if len(found) > CANDIDATES else ""
        super().__init__(f"Several conversations begin with {name!r}: {listed}{more}. Write more of the id.")


def read(folder: Path, use: Callable[[SqliteStore, ReadingLines], Awaitable[T]]) -> T:
    """What `use` returns from the store. Works while a gateway runs; changes nothing. Raises `NothingHere`, `Unreadable`."""
    path = folder / DATABASE
    if not path.is_file():
        raise NothingHere(folder)

    async def opened() -> T:
        lines = ReadingLines(path)
        try:
            await _check_schema(lines, path)
            return await use(SqliteStore(lines, now=lambda: 0), lines)
        except Unavailable as error:
            raise Unreadable(path, error) from error
        finally:
            await lines.aclose()

    return asyncio.run(opened())


async def _check_schema(lines: ReadingLines, path: Path) -> None:
    found = await lines.read(schema_version)
    if found > SCHEMA_VERSION:
        raise Refused(f"{path} has schema {found}; this Holdfast knows up to {SCHEMA_VERSION}. Use the newer Holdfast that wrote it.")
    if found < SCHEMA_VERSION:
        raise Refused(f"{path} has schema {found}, but this Holdfast needs {SCHEMA_VERSION}. `holdfast serve` upgrades it.")


async def resolve(store: SqliteStore, name: str) -> str:
    """The id of the conversation that `name` means: a session key (its current conversation), an id, the beginning of an id with or
    without its `s_`, or `last` (the one that changed last). Raises `NoSuchConversation`, `Ambiguous`.
    """
    if name == LAST:
        newest = (await store.sessions(limit=1)).sessions
        if not newest:
            raise NoSuchConversation(name)
        return newest[0].session_id
    current = await store.current_session(name)
    if current is not None:
        return current.session_id
    try:
        return (await store.session(name)).session_id
    except Deleted:
        raise
    except NotFound:
        pass
    for prefix in (name, PREFIX + name):
        found = await store.named(prefix, limit=CANDIDATES + 1)
        if len(found) > 1:
            raise Ambiguous(name, found)
        if found:
            return found[0].session_id
    raise NoSuchConversation(name)


async def _living(store: SqliteStore, key_or_id: str) -> Session:
    session = await store.session(await resolve(store, key_or_id))
    if session.deleted:
        raise Deleted(session.session_id, undoable=True)
    return session


async def summaries(store: SqliteStore, *, query: str, limit: int, before: str | None, archived: bool, state: str | None) -> dict[str, Any]:
    page = await store.sessions(limit=limit, before=before, query=query, archived=archived, state=state)
    glances = await store.glances([session.session_id for session in page.sessions])
    living = await _owners_alive(store)
    listed = [(session, views.listed(session, glances.get(session.session_id, NOTHING))) for session in page.sessions]
    return {"sessions": [_told(view, session, living) for session, view in listed], "next": page.next}


async def _owners_alive(store: SqliteStore) -> set[int]:
    """The owners whose process is alive. Turns of other owners were interrupted, even if that is not recorded yet."""
    locks = OwnerLocks(home())
    return {owner.id for owner in await store.owners() if locks.alive(owner.name)}


def _is_interrupted(session: Session, living: set[int]) -> bool:
    return session.turn_state is TurnState.RUNNING and session.owner not in living


async def view(store: SqliteStore, key_or_id: str) -> dict[str, Any]:
    session = await _living(store, key_or_id)
    transcript = await store.transcript(session)
    living = await _owners_alive(store)
    if _is_interrupted(session, living):
        transcript.turns[-1].state = TurnState.INTERRUPTED
    schedules = await store.schedules(session.session_key)
    return _told(conversation.session(session, transcript, conversation.WHOLE, schedules=schedules), session, living)


async def schedules(store: SqliteStore, key_or_id: str | None) -> dict[str, Any]:
    found = await store.schedules((await _living(store, key_or_id)).session_key if key_or_id else None)
    told: dict[str, Any] = to_builtins(SchedulesView([schedule(each) for each in found]))
    return told


async def processes(store: SqliteStore, key_or_id: str | None) -> dict[str, Any]:
    found = await store.processes((await _living(store, key_or_id)).session_id) if key_or_id else await store.running_processes()
    told: dict[str, Any] = to_builtins(ProcessesView([conversation.process(each) for each in found]))
    return told


async def usage(store: SqliteStore, days: int) -> dict[str, Any]:
    since = spending.days_before(f"{datetime.now():%Y-%m-%d}", days)
    models, sessions = await store.spent_by_model(since=since), await store.spent_by_session(since=since, limit=spending.MOST_SPENDERS)
    told: dict[str, Any] = to_builtins(reports.report(since, await store.spent_by_day(since=since), models, sessions))
    return told


async def events(store: SqliteStore, key_or_id: str) -> list[dict[str, Any]]:
    """The log of a session, as its event stream shows it."""
    session = await _living(store, key_or_id)
    found: list[dict[str, Any]] = []
    after = 0
    while page := await store.events(session.session_id, after=after, limit=PAGE):
        found += [{"id": f"{session.log}.{item.seq}", "event": item.event.kind, "data": data(item)} for item in page]
        after = page[-1].seq
    return found


def _told(view: views.SummaryView, session: Session, living: set[int]) -> dict[str, Any]:
    if _is_interrupted(session, living):
        view.state = "interrupted"
    told: dict[str, Any] = to_builtins(view)
    return told
