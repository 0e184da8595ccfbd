"""The words of a recording. Not offered to models: their agent calls it for recordings that a model does not take, so that the transcript
is on record and is not made again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.history import TRANSCRIBE
from holdfast.ports.models import Busy, Transcriber, Transcript
from holdfast.ports.tools import ToolContext, ToolResult
from holdfast.tools.plain import PlainTool

# The most that the providers take.
MOST_BYTES = 25_000_000
# Before it is tried again; a provider may ask for more, but no turn waits longer than that for a transcript.
WAITS_S, MOST_WAIT_S = (1.0, 5.0), 30.0
NOBODY = "The model does not take it, and no transcriber is configured (agent.transcriber)."
SILENCE = "(no words were recognised)"


class Transcribe(PlainTool):
    """`read`: the bytes of a blob."""

    name = TRANSCRIBE
    description = "Gives the words of a recording."
    schema: dict[str, Any] = {  # noqa: RUF012 - nobody changes a schema.
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "blob": {"type": "string"},
            "media_type": {"type": "string"},
            "size": {"type": "integer"},
        },
        "required": ["name", "blob", "media_type", "size"],
        "additionalProperties": False,
    }

    def __init__(self, transcriber: Transcriber | None, read: Callable[[str], Awaitable[bytes]]) -> None:
        self._transcriber, self._read = transcriber, read

    def effect(self, arguments: dict[str, Any]) -> Effect:
        return Effect.PURE

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        if self._transcriber is None:
            return ToolResult(ToolOutcome.FAILED, NOBODY)
        if arguments["size"] > MOST_BYTES:
            told = f"It is too large for a transcriber: {arguments['size']:,} bytes, and at most {MOST_BYTES:,} are allowed."
            return ToolResult(ToolOutcome.FAILED, told)
        recording = await self._read(arguments["blob"])
        heard = await self._words(self._transcriber, recording, arguments)
        return ToolResult(ToolOutcome.DONE, heard.text or SILENCE, used=heard.used)

    async def _words(self, transcriber: Transcriber, recording: bytes, arguments: dict[str, Any]) -> Transcript:
        """Raises a `ModelError` if the provider is busy for too long, or refuses."""
        waits = iter(WAITS_S)
        while True:
            try:
                return await transcriber.words(recording, name=arguments["name"], media_type=arguments["media_type"])
            except Busy as error:
                wait_s, asked_s = next(waits, None), error.retry_after_s or 0
                if wait_s is None or asked_s > MOST_WAIT_S:
                    raise
            await asyncio.sleep(max(wait_s, asked_s))
