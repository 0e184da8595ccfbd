"""Which bytes there are, and who names them."""

from collections.abc import Sequence

from holdfast.ports.blobs import Blob, BlobUsage, Upload
from holdfast.store import blobs
from holdfast.store.port.base import OverLines


class Blobs(OverLines):
    async def put_blob(self, blob: Blob, *, at: int, instead_of: str | None = None) -> Blob:
        return await self._lines.write(blobs.put_blob, blob, at, instead_of)

    async def put_upload(self, upload: Upload, *, dedup_key: str | None, at: int) -> Upload:
        return await self._lines.write(blobs.put_upload, upload, dedup_key, at)

    async def uploads(self, attachment_ids: Sequence[str]) -> list[Upload]:
        return await self._lines.read(blobs.uploads, tuple(attachment_ids))

    async def blob(self, digest: str) -> Blob:
        return await self._lines.read(blobs.visible, digest)

    async def collect_blobs(self, *, now: int, limit: int) -> list[str]:
        return await self._lines.write(blobs.collect, now, limit) if await self._lines.read(blobs.anything_due, now) else []

    async def unnamed(self, files: Sequence[str]) -> list[str]:
        return await self._lines.read(blobs.unnamed, tuple(files))

    async def blob_usage(self) -> BlobUsage:
        return await self._lines.read(blobs.usage)
