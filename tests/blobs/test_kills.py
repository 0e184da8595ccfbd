"""Killed at every step of an upload, of a message with an attachment, of a purge and of a collection: what is named is there and whole, and
nothing else stays beyond its time (P1, P7, A28). `tests/blobs/killing.py` dies; here its homes are looked at."""
# ruff: noqa: ASYNC240 - nothing else runs during these tests.

import asyncio
import contextlib
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from holdfast.blobs import FOLDER, Blobs, Folder
from holdfast.core import events as e
from holdfast.core.errors import Deleted
from holdfast.ports.store import Store
from holdfast.process.system import RandomIds
from holdfast.store.sqlite.connection import connect, fetch
from holdfast.store.sqlite.store import DATABASE
from tests.blobs.killing import DAY, DELETED, FORGOTTEN, SENT, Hands, pieces
from tests.conformance.backends import NOW, ROOT, SqliteBackend, quick_place
from tests.conformance.steps import bodies, say

BYTES = {"sent": SENT, "deleted": DELETED, "forgotten": FORGOTTEN, "again": FORGOTTEN}
# Fewer steps than this mean that the story was not told to its end.
LEAST_STEPS = 60


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def named(home: Path) -> dict[str, str]:
    """The files that rows name, by digest."""
    db = connect(home / DATABASE)
    try:
        return dict(fetch(db, "SELECT digest, file FROM blob"))
    finally:
        db.close()


def files(home: Path) -> list[str]:
    return sorted(os.listdir(home / FOLDER)) if (home / FOLDER).is_dir() else []


def check_whole(home: Path) -> None:
    for name, file in named(home).items():
        assert digest((home / FOLDER / file).read_bytes()) == name


async def look(home: Path) -> None:
    """As the next start does, and then a day later."""
    lines = (home / "acknowledged").read_text().splitlines()
    done = {tuple(line.split()[:2]) for line in lines}
    ids = {line.split()[1]: line.split()[2] for line in lines if line.startswith("uploaded")}
    clock = Hands()
    check_whole(home)
    async with SqliteBackend(home).opened() as store:
        blobs = Blobs(folder=Folder(home / FOLDER, leave_free=0), rows=store, clock=clock, ids=RandomIds())
        await blobs.sweep()
        assert files(home) == sorted(named(home).values()), "a file that no row names is left"
        being_removed = {"deleted": ("uploaded", "forgotten") in done, "forgotten": ("purged", "deleted") in done}
        for what, attachment_id in ids.items():
            if not being_removed.get(what):
                [upload] = await store.uploads([attachment_id])
                assert upload.digest == digest(BYTES[what]) and upload.digest in named(home)
        for what in ("sent", "again"):
            if ("said", what) in done:
                assert f"m.{what}" in await said(store)
                assert await read(blobs, BYTES[what]) == BYTES[what]
        if ("purged", "deleted") in done:
            assert DELETED[:1000] not in b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
        await again(home, store, blobs, clock, done)
    check_whole(home)


async def said(store: Store) -> list[str]:
    return [event.message_id for event in await bodies(store, "kept") if isinstance(event, e.MessageAccepted)]


async def read(blobs: Blobs, data: bytes) -> bytes:
    reading = await blobs.open(digest(data))
    try:
        return await reading.read(0, len(data) + 1)
    finally:
        reading.close()


async def again(home: Path, store: Store, blobs: Blobs, clock: Hands, done: set[tuple[str, ...]]) -> None:
    """Requests without an answer are sent again, and what was not finished is finished: then only what conversations name is left."""
    upload, _ = await blobs.upload(pieces(SENT), name="sent", media_type="text/plain", client_id="sent")
    sent = await say(store, "kept", (upload.part,), message_id="m.second", key="sent")
    assert sent.message_id in ("m.sent", "m.second") and (("said", "sent") not in done or sent.duplicate)
    with contextlib.suppress(Deleted):
        await store.delete_session("deleted", by="owner", until=NOW, at=NOW)
    while await store.purge(now=NOW + 61_000, steps=10):
        pass
    clock.at = NOW + 3 * DAY
    while await blobs.collect():
        pass
    await blobs.sweep()
    left = {name.partition("-")[0] for name in files(home)}
    assert left == {digest(SENT)} | ({digest(FORGOTTEN)} if "m.again" in await said(store) else set())


def test_killed_at_every_step_what_is_named_is_whole_and_nothing_else_stays() -> None:
    """P1, P7, A28"""
    with quick_place() as folder:
        story = subprocess.run(
            [sys.executable, "-m", "tests.blobs.killing", str(folder)], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=500
        )
        assert story.returncode == 0
        homes = sorted((path for path in folder.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
        assert len(homes) > LEAST_STEPS
        for home in homes:
            try:
                asyncio.run(look(home))
            except AssertionError as error:
                raise AssertionError(f"killed before step {home.name}, after {(home / 'acknowledged').read_text().split()}") from error
