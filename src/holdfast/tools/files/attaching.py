"""Giving the user a file: its bytes become a blob, and the result names it."""

import mimetypes
import os
from collections.abc import AsyncIterator
from typing import Any

from holdfast.beneath import Beneath
from holdfast.core.content import TextPart, bytes_part
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.errors import BadInput
from holdfast.ports.blobs import Put
from holdfast.ports.tools import ToolContext, ToolResult
from holdfast.tools.files.roots import PATH, WORK, FileTool, Roots, failed, in_thread, why

CHUNK = 256 * 1024
UNKNOWN = "application/octet-stream"


class AttachFile(FileTool):
    """Running it twice stores the same bytes under the same name."""

    name = "attach_file"
    description = "Gives the user a file of the working folder with your answer."
    schema: dict[str, Any] = {  # noqa: RUF012 - nobody changes a schema.
        "type": "object",
        "properties": {"path": PATH, "name": {"type": "string", "description": "The name the user sees; the file's own if left out."}},
        "required": ["path"],
        "additionalProperties": False,
    }

    def __init__(self, roots: Roots, put: Put, *, most_bytes: int) -> None:
        super().__init__(roots)
        self._put, self._most_bytes = put, most_bytes

    def effect(self, arguments: dict[str, Any]) -> Effect:
        return Effect.IDEMPOTENT

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        path = str(arguments.get("path", ""))
        name = os.path.basename(str(arguments.get("name") or path)) or "file"
        try:
            opened = await in_thread(self._open, self._roots.beneath(WORK, path, context), path)
        except BadInput as error:
            return failed(str(error))
        except OSError as error:
            return failed(why(error, path))
        media_type = mimetypes.guess_type(name)[0] or UNKNOWN
        try:
            blob = await self._put(_chunks(opened, self._most_bytes), media_type=media_type)
        finally:
            os.close(opened)
        part = bytes_part(blob=blob.digest, size=blob.size, media_type=media_type, name=name)
        return ToolResult(ToolOutcome.DONE, (TextPart(f"{name} ({blob.size:,} bytes) is attached."), part))

    def _open(self, beneath: Beneath, path: str) -> int:
        opened = beneath.open_file(path)
        if (size := os.fstat(opened).st_size) > self._most_bytes:
            os.close(opened)
            raise BadInput(f"{path!r} is too large to be attached: {size:,} bytes, and at most {self._most_bytes:,} are allowed.")
        return opened


async def _chunks(opened: int, most: int) -> AsyncIterator[bytes]:
    """No more than was allowed, though it may grow while it is read."""
    at = 0
    while at < most and (chunk := await in_thread(os.pread, opened, min(CHUNK, most - at), at)):
        yield chunk
        at += len(chunk)
