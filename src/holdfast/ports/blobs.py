"""The rows that name blobs, and what was uploaded but is in no message yet."""

from collections.abc import AsyncIterable, Awaitable, Sequence
from typing import Protocol

import msgspec

from holdfast.core.content import BytesPart, bytes_part


class Blob(msgspec.Struct, frozen=True, kw_only=True):
    """`file`: its name in the folder of blobs."""

    digest: str
    size: int
    media_type: str
    file: str


class Put(Protocol):
    """Stores bytes: durable and named by a row once this returns."""

    def __call__(self, chunks: AsyncIterable[bytes], *, media_type: str) -> Awaitable[Blob]: ...


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes with the name and type under which they were sent."""

    attachment_id: str
    digest: str
    size: int
    media_type: str
    name: str

    @property
    def part(self) -> BytesPart:
        """As content names it."""
        return bytes_part(blob=self.digest, size=self.size, media_type=self.media_type, name=self.name)


class BlobUsage(msgspec.Struct, frozen=True):
    count: int
    bytes: int


class BlobRows(Protocol):
    """Which blobs there are and what names them. Every method keeps to the contract of `ports.store`.

    Whatever writes content that names a blob requires its row, in the same transaction, and raises `BlobMissing` where there is none: the
    caller puts the bytes again. What a session names stays for as long as the session's log does.
    """

    async def put_blob(self, blob: Blob, *, at: int, instead_of: str | None = None) -> Blob:
        """Names a file that is on disk already. Gives the row that counts: of bytes that are known it is the one that was there, and it is
        kept from now on as if it were new; only where that names the file `instead_of`, it names this one from now on.
        """

    async def put_upload(self, upload: Upload, *, dedup_key: str | None, at: int) -> Upload:
        """Keeps the blob for a day, for a message to come. The same key with the same upload again gives the first one; with another one it
        raises `DuplicateOtherContent`. Raises `BlobMissing`.
        """

    async def uploads(self, attachment_ids: Sequence[str]) -> list[Upload]:
        """In this order. Raises `AttachmentGone` for one that is not there."""

    async def blob(self, digest: str) -> Blob:
        """One that a session names which is not deleted. Raises `NotFound`."""

    async def collect_blobs(self, *, now: int, limit: int) -> list[str]:
        """Removes the rows of up to `limit` blobs that nothing names and nobody put within a day, and uploads of that age that are in no
        message. Of what a purged session alone named, at once. Gives the files that they named: nothing names those again.
        """

    async def unnamed(self, files: Sequence[str]) -> list[str]:
        """Those of the files that no row names."""

    async def blob_usage(self) -> BlobUsage: ...


class Files(Protocol):
    """The bytes themselves."""

    async def read(self, digest: str) -> bytes:
        """Raises `NotFound`, `BlobLost`."""

    async def put(self, chunks: AsyncIterable[bytes], *, media_type: str) -> Blob:
        """Durable and named by a row once this returns. Whatever `chunks` raises leaves nothing behind. Raises `Unavailable`."""
