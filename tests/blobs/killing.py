"""A process that dies at every step of the life of a blob: `python -m tests.blobs.killing FOLDER`.

Each life has a home of its own, `FOLDER/<step>`, and kills itself (SIGKILL, no `finally`) right before that step: an effect on a file, or a
transaction of the store. What was acknowledged until then stands in `FOLDER/<step>/acknowledged`, a line each. The last life is whole.
"""

import asyncio
import contextlib
import fcntl
import itertools
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from holdfast.blobs import FOLDER, Blobs, Folder
from holdfast.core.blobs import UNUSED_FOR_MS
from holdfast.process.system import RandomIds
from tests.conformance.backends import NOW, SqliteBackend
from tests.conformance.steps import new_session, say

# What is sent, kept, deleted, forgotten.
SENT, DELETED, FORGOTTEN = bytes(range(256)) * 2500, b"deleted" * 1000, b"forgotten" * 1000
DAY = UNUSED_FOR_MS
EFFECTS = ("open", "write", "fsync", "rename", "unlink")


class Hands:
    """A clock that stands where it was put."""

    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> int:
        return self.at

    def monotonic(self) -> float:
        return self.at / 1000

    def offset_s(self, at: int) -> int:
        return 0


class Fate:
    """Counts steps and ends the process before the one at which it is to die. `armed` from where the story begins."""

    def __init__(self, last: int) -> None:
        self._last, self._step = last, 0
        self.armed = False

    def step(self) -> None:
        self._step += self.armed
        if self.armed and self._step == self._last:
            os.kill(os.getpid(), signal.SIGKILL)

    def over(self, module: Any, name: str) -> None:
        inner: Callable[..., Any] = getattr(module, name)

        def before(*arguments: Any, **named: Any) -> Any:
            self.step()
            return inner(*arguments, **named)

        setattr(module, name, before)


class Rows:
    """The store, each of whose methods is a step."""

    def __init__(self, store: Any, fate: Fate) -> None:
        self._store, self._fate = store, fate

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self._store, name)

        async def stepped(*arguments: Any, **named: Any) -> Any:
            self._fate.step()
            value = await inner(*arguments, **named)
            self._fate.step()
            return value

        return stepped


async def inline(run: Callable[..., Any], *arguments: Any) -> Any:
    return run(*arguments)


async def pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), 300_000):
        yield data[start : start + 300_000]


async def live(home: Path, fate: Fate, acknowledge: Callable[[str], None]) -> None:
    """An upload that is sent, one that is sent and deleted with its conversation, one that nobody sends; and what removes the last two."""
    clock = Hands()
    async with SqliteBackend(home).opened() as opened:
        store: Any = Rows(opened, fate)
        blobs = Blobs(folder=Folder(home / FOLDER, leave_free=0), rows=store, clock=clock, ids=RandomIds(), elsewhere=inline)
        for session_id in ("kept", "deleted"):
            await new_session(opened, session_id)
        fate.armed = True
        for what, data in (("sent", SENT), ("deleted", DELETED), ("forgotten", FORGOTTEN)):
            upload, _ = await blobs.upload(pieces(data), name=what, media_type="text/plain", client_id=what)
            acknowledge(f"uploaded {what} {upload.attachment_id}")
            if what != "forgotten":
                await say(store, "kept" if what == "sent" else what, (upload.part,), message_id=f"m.{what}", key=what)
                acknowledge(f"said {what}")
        await store.delete_session("deleted", by="owner", until=NOW, at=NOW)
        while await store.purge(now=NOW + 61_000, steps=10):
            pass
        clock.at = NOW + 61_000
        await blobs.collect()
        acknowledge("purged deleted")
        # The same bytes come again while what is left of them is removed.
        clock.at = NOW + DAY
        await blobs.collect()
        acknowledge("collected forgotten")
        upload, _ = await blobs.upload(pieces(FORGOTTEN), name="again", media_type="text/plain", client_id="again")
        acknowledge(f"uploaded again {upload.attachment_id}")
        await say(store, "kept", (upload.part,), message_id="m.again", key="again")
        acknowledge("said again")
        await blobs.sweep()


def one_life(home: Path, last: int) -> None:
    home.mkdir()
    log = os.open(home / "acknowledged", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    write = os.write
    fate = Fate(last)
    for name in EFFECTS:
        fate.over(os, name)
    fate.over(fcntl, "flock")
    asyncio.run(live(home, fate, lambda line: print_to(log, line, write)))


def print_to(log: int, line: str, write: Callable[[int, bytes], int]) -> None:
    write(log, f"{line}\n".encode())


def main(folder: Path) -> None:
    SqliteBackend(folder)  # So that the schema is made once, before the first fork.
    for last in itertools.count(1):
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                one_life(folder / str(last), last)
                os._exit(0)
            os._exit(1)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
