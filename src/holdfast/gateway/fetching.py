"""Files that people send in chats: fetched from their platform and stored before the message that they belong to."""

import asyncio
from collections.abc import Sequence

import structlog

from holdfast.core import content, notices
from holdfast.core.content import BytesPart
from holdfast.core.errors import Refused, StoreFull, Unavailable
from holdfast.core.inbound import RemoteFile
from holdfast.gateway.links import Link
from holdfast.ports.blobs import Files

# Waits between the tries. After the last one the message is accepted without the file, and says so.
WAITS_S = (1.0, 3.0, 10.0, 30.0)
FETCH_TIMEOUT_S = 120.0

log = structlog.get_logger()


class Fetching:
    def __init__(self, files: Files) -> None:
        self._files = files

    async def fetch(self, link: Link, wanted: Sequence[RemoteFile]) -> tuple[tuple[BytesPart, ...], list[str]]:
        """What was stored, and for each that could not be, a line that says so."""
        stored: list[BytesPart] = []
        missing: list[str] = []
        for file in wanted:
            try:
                stored.append(await self._fetch(link, file))
            except Refused as error:
                missing.append(notices.not_fetched(file.name, str(error)))
            except Exception as error:  # The platform's boundary: a file that does not come must not keep its message back.
                log.warning("a file could not be fetched", platform=link.name, file=file.name, error=f"{type(error).__name__}: {error}")
                missing.append(notices.not_fetched(file.name, "the platform did not deliver it"))
        return tuple(stored), missing

    async def _fetch(self, link: Link, file: RemoteFile) -> BytesPart:
        most = link.platform.capabilities.bytes_in
        if file.size is not None and file.size > most:
            raise Refused(f"it is larger than {notices.megabytes(most)}, the most that this platform gives us")
        for wait_s in (*WAITS_S, None):
            try:
                async with asyncio.timeout(FETCH_TIMEOUT_S):
                    blob = await self._files.put(link.platform.fetch(file), media_type=file.media_type)
                return content.bytes_part(blob=blob.digest, size=blob.size, media_type=file.media_type, name=file.name)
            except StoreFull:
                raise
            except (Unavailable, TimeoutError, OSError) as error:
                if wait_s is None:
                    raise
                log.info("a file will be fetched again", platform=link.name, file=file.name, error=str(error))
                await asyncio.sleep(wait_s)
        raise AssertionError("unreachable")
