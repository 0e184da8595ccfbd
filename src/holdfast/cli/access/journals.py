"""The spools of a home folder, for those who look at them or ship them without its gateway. Shipping is a write like that of any other
process: it is safe while a gateway runs, and what is stored already changes nothing.
"""

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Any

from holdfast.api.times import rfc3339
from holdfast.cli.access import offline
from holdfast.core import journals
from holdfast.core.errors import Deleted, NotFound
from holdfast.core.journals import Fate, Limits
from holdfast.core.spools import Contents, Gone, Unreadable
from holdfast.locks import OwnerLocks
from holdfast.ports.journals import Journal
from holdfast.ports.spool import SpoolFile
from holdfast.spool import FOLDER, FolderSpool
from holdfast.store import SqliteStore, open_store

MOST_LATE = 1000


def found(home: Path) -> list[dict[str, Any]]:
    """Every spool, and what can be read of it."""
    spool, locks = FolderSpool(home), OwnerLocks(home)
    told = (_told(spool, file, running=locks.alive(file.owner)) for file in spool.look().files)
    return [each for each in told if each is not None]


def hidden(home: Path) -> list[dict[str, Any]]:
    """The folders of spools that cannot be listed."""
    return [{"folder": str(home / FOLDER / (each.owner or "")), "problem": each.why} for each in FolderSpool(home).look().hidden]


def _told(spool: FolderSpool, file: SpoolFile, *, running: bool) -> dict[str, Any] | None:
    """None if it was stored while we looked."""
    told: dict[str, Any] = {
        "stream_id": file.name,
        "owner": file.owner,
        "running": running,
        "bytes": file.size,
        "changed_at": rfc3339(file.changed_at),
        "session_id": None,
        "events": 0,
        "sealed": False,
        "torn": 0,
        "damaged": 0,
        "problem": None,
    }
    try:
        contents = spool.read_now(file)
    except Gone:
        return None
    except Unreadable as error:
        return told | {"problem": error.why}
    read = {"sealed": contents.sealed, "torn": contents.torn, "damaged": contents.damaged}
    return told | read | {"session_id": contents.header.session_id, "events": len(contents.events)}


def events(home: Path, stream_id: str) -> list[dict[str, Any]]:
    """What is in one spool, in order. Raises `NotFound`, `Gone`, `Unreadable`."""
    spool = FolderSpool(home)
    for file in spool.look().files:
        if file.name == stream_id:
            contents = spool.read_now(file)
            return [
                {
                    "position": item.position,
                    "attempt": item.attempt,
                    "at": rfc3339(item.at),
                    "event": item.kind,
                    "data": item.body.decode("utf-8", "replace"),
                }
                for item in contents.events
            ]
    raise NotFound("journal", stream_id)


def late(home: Path) -> list[dict[str, Any]]:
    """The journals that conversations still wait for."""

    async def read(store: SqliteStore, _: object) -> list[dict[str, Any]]:
        return [
            {
                "stream_id": each.stream_id,
                "session_id": each.session_id,
                "tries": each.tries,
                "first_seen": rfc3339(each.first_seen),
            }
            for each in await store.late_journals(limit=MOST_LATE)
        ]

    try:
        return offline.read(home, read)
    except offline.NothingHere:
        return []


def ship(home: Path, limits: Limits) -> list[dict[str, Any]]:
    """Stores what dead processes left in their spools; for each, what became of it. Raises `StoreAway` while the database is locked."""
    offline.read(home, _nothing)  # It must be a database of this version.

    async def opened() -> list[dict[str, Any]]:
        store = await open_store(home, now=_now)
        try:
            spool, locks = FolderSpool(home), OwnerLocks(home)
            return [await _ship(store, spool, file, limits, running=locks.alive(file.owner)) for file in spool.look().files]
        finally:
            await store.aclose()

    return asyncio.run(opened())


async def _nothing(store: SqliteStore, _: object) -> None: ...


async def _ship(store: SqliteStore, spool: FolderSpool, file: SpoolFile, limits: Limits, *, running: bool) -> dict[str, Any]:
    told: dict[str, Any] = {"stream_id": file.name, "stored": 0, "late": False, "kept": True, "problem": None}
    if running:
        return told | {"problem": "its process is running and stores it by itself"}
    try:
        contents = spool.read_now(file)
    except Gone:
        return told | {"kept": False}  # Another process has stored it.
    except Unreadable as error:
        return told | {"problem": error.why}
    sight, refusal = journals.sight(contents, size=file.size, settled=True), None
    journal = Journal(contents.header.session_id, file.turn_id, file.epoch)
    try:
        shipped = await store.ship(journal, contents.events, sight, limits=limits, at=_now())
        told |= {"stored": shipped.new, "late": shipped.late}
    except NotFound as error:
        refusal = error
        told["problem"] = "its conversation was deleted" if isinstance(error, Deleted) else str(error)
    return told | await _after(spool, file, contents, journals.fate(sight.found, refusal))


async def _after(spool: FolderSpool, file: SpoolFile, contents: Contents, fate: Fate) -> dict[str, Any]:
    if fate is Fate.DONE:
        spool.remove_now(file.owner, file.name)
        return {"kept": False}
    if fate is not Fate.DAMAGED:
        return {}
    if not contents.sealed:
        with contextlib.suppress(Gone):
            await spool.seal(file)
    return {"problem": "part of it is damaged"}


def _now() -> int:
    return time.time_ns() // 1_000_000
