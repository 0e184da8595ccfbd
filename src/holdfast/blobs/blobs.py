"""Putting bytes into blobs, reading them, and removing what nothing names. Bytes are on disk before a row names them, and a row is gone
before its file is: a kill at any moment leaves at worst a file too many, which the next sweep removes.
"""

import asyncio
import os
from collections.abc import AsyncIterable, Awaitable, Callable
from typing import Any, Protocol, TypeVar

import structlog

from holdfast.blobs.folder import Folder, Making, Stored
from holdfast.core.blobs import OCTETS
from holdfast.core.errors import BlobLost, StoreFull, Unavailable
from holdfast.core.redaction import NO_SECRETS, Secrets
from holdfast.ports.blobs import Blob, BlobRows, Upload
from holdfast.ports.process import Clock, Ids

T = TypeVar("T")
WRITTEN_AT_ONCE = 256 * 1024
COLLECT_S = 5.0
COLLECTED_AT_ONCE = 100
SWEEP_S = 3600.0
SWEPT_AT_ONCE = 500
# Of a process with few open files.
MOST_OPEN = 24

log = structlog.get_logger()


class Elsewhere(Protocol):
    """Runs a function where it holds up nobody, as `asyncio.to_thread` does."""

    def __call__(self, run: Callable[..., T], /, *arguments: Any) -> Awaitable[T]: ...


class Reading:
    """An open blob. If it is removed while open, it can still be read to its end."""

    def __init__(self, blob: Blob, descriptor: int, elsewhere: Elsewhere, on_close: Callable[[], None]) -> None:
        self.blob, self._descriptor, self._elsewhere, self._on_close = blob, descriptor, elsewhere, on_close

    async def read(self, offset: int, size: int) -> bytes:
        data = await self._elsewhere(os.pread, self._descriptor, size, offset)
        if not data and size:
            raise BlobLost(self.blob.digest)
        return data

    def close(self) -> None:
        os.close(self._descriptor)
        self._on_close()


class TooManyOpen(Unavailable):
    """Every file that is written or read is an open one of this process, for as long as its client likes."""

    code = "too_many_attachments"

    def __init__(self) -> None:
        super().__init__("Too many attachments are being sent and received. Try again in a few seconds.", retry_after_s=5.0)


class Blobs:
    """`most_open`: how many are written and read at once. `secrets` are replaced in what is written."""

    def __init__(
        self,
        *,
        folder: Folder,
        rows: BlobRows,
        clock: Clock,
        ids: Ids,
        elsewhere: Elsewhere = asyncio.to_thread,
        most_open: int = MOST_OPEN,
        secrets: Secrets = NO_SECRETS,
    ) -> None:
        self._folder, self._rows, self._clock, self._ids, self._elsewhere = folder, rows, clock, ids, elsewhere
        self._most_open, self._open, self._secrets = most_open, 0, secrets

    async def put(self, chunks: AsyncIterable[bytes], *, media_type: str) -> Blob:
        """Durable and named by a row once this returns. Whatever `chunks` raises leaves nothing behind. Raises `StoreFull`,
        `TooManyOpen`.
        """
        self._opens()
        making = self._folder.begin()
        close = making.discard
        try:
            stored = await self._write(making, chunks)
            close = making.release  # A row may name the file from now on, also where writing the row seems to have failed.
            kept = await self._name(stored, media_type)
            if kept.file != stored.file:
                close = making.discard
            return kept
        except StoreFull:  # Then nothing was written, and the room is needed.
            close = making.discard
            raise
        finally:
            try:
                await asyncio.shield(self._elsewhere(close))
            finally:
                self._closed()

    def _opens(self) -> None:
        if self._open >= self._most_open:
            raise TooManyOpen
        self._open += 1

    def _closed(self) -> None:
        self._open -= 1

    async def _write(self, making: Making, chunks: AsyncIterable[bytes]) -> Stored:
        waiting: list[bytes] = []
        size, clean = 0, self._secrets.bytes_stream()
        async for given in chunks:
            chunk = clean.add(given)
            waiting.append(chunk)
            size += len(chunk)
            if size >= WRITTEN_AT_ONCE:
                await self._elsewhere(making.write, b"".join(waiting))
                waiting, size = [], 0
        await self._elsewhere(making.write, b"".join(waiting) + clean.end())
        return await self._elsewhere(making.finish)

    async def _name(self, stored: Stored, media_type: str) -> Blob:
        blob = Blob(digest=stored.digest, size=stored.size, media_type=media_type, file=stored.file)
        kept = await self._rows.put_blob(blob, at=self._clock.now())
        if kept.file == blob.file or await self._elsewhere(self._folder.holds, kept.file, kept.size):
            return kept
        log.warning("the file of a blob was missing and is replaced", digest=kept.digest, file=kept.file)
        return await self._rows.put_blob(blob, at=self._clock.now(), instead_of=kept.file)

    async def upload(self, chunks: AsyncIterable[bytes], *, name: str, media_type: str, client_id: str | None) -> tuple[Upload, bool]:
        """Bytes for a message to come, and whether they are new: the same `client_id` again with the same bytes, name and type gives the
        first upload. Raises `DuplicateOtherContent`, `StoreFull`.
        """
        name = self._secrets.text(name)
        media_type = OCTETS if self._secrets.holds(media_type) else media_type
        blob = await self.put(chunks, media_type=media_type)
        new = Upload(attachment_id=self._ids.new("a"), digest=blob.digest, size=blob.size, media_type=media_type, name=name)
        kept = await self._rows.put_upload(new, dedup_key=client_id, at=self._clock.now())
        return kept, kept.attachment_id == new.attachment_id

    async def open(self, digest: str) -> Reading:
        """Of a blob that a visible session names. The caller closes it. Raises `NotFound`, `BlobLost`, `TooManyOpen`."""
        blob = await self._rows.blob(digest)
        self._opens()
        try:
            descriptor = self._folder.open(blob.file, blob.size)
            if descriptor is None:
                raise BlobLost(digest)
        except BaseException:
            self._closed()
            raise
        return Reading(blob, descriptor, self._elsewhere, self._closed)

    async def read(self, digest: str) -> bytes:
        """All of a blob. Waits while too many are open. Raises `NotFound`, `BlobLost`."""
        while True:
            try:
                reading = await self.open(digest)
            except TooManyOpen as error:
                await asyncio.sleep(error.retry_after_s)
                continue
            try:
                return await reading.read(0, reading.blob.size)
            finally:
                reading.close()

    async def keep(self) -> None:
        """Collects and sweeps for as long as it runs. Any number of processes may do so at once."""
        sweep_at = self._clock.monotonic()
        while True:
            try:
                if self._clock.monotonic() >= sweep_at:
                    sweep_at = self._clock.monotonic() + SWEEP_S
                    await self.sweep()
                while await self.collect():
                    pass
            except Unavailable as error:
                log.warning("blobs that nothing names cannot be removed yet", error=str(error))
            await asyncio.sleep(COLLECT_S)

    async def collect(self) -> int:
        """Removes some of the blobs that nothing names, the rows before the files. Gives how many."""
        files = await self._rows.collect_blobs(now=self._clock.now(), limit=COLLECTED_AT_ONCE)
        await self._elsewhere(self._folder.remove, files)
        if files:
            log.info("removed blobs that nothing names", count=len(files))
        return len(files)

    async def sweep(self) -> int:
        """Removes files that no row names and that nobody is writing: what a kill left. Gives how many."""
        names = await self._elsewhere(self._folder.names)
        removed = 0
        for start in range(0, len(names), SWEPT_AT_ONCE):
            unnamed = await self._rows.unnamed(names[start : start + SWEPT_AT_ONCE])
            if unnamed:
                removed += await self._sweep(unnamed)
        if removed:
            log.info("removed files that no blob names", count=removed)
        return removed

    async def _sweep(self, candidates: list[str]) -> int:
        """Only under its lock is it known of a file that nobody is about to name it."""
        locks = self._folder.locked(candidates)
        try:
            left = await self._rows.unnamed(await self._elsewhere(locks.take))
            await self._elsewhere(self._folder.remove, left)
            return len(left)
        finally:
            await asyncio.shield(self._elsewhere(locks.release))
