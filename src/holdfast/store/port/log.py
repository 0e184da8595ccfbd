"""The log of a session, and the conversation folded from it."""

import asyncio
from collections.abc import Callable

from holdfast.core import events as e
from holdfast.core.sessions import Session
from holdfast.core.transcript import Transcript
from holdfast.ports.log import Make
from holdfast.store import reads
from holdfast.store.lines import Lines
from holdfast.store.port.base import OverLines


class Log(OverLines):
    def __init__(self, lines: Lines, *, now: Callable[[], int]) -> None:
        super().__init__(lines, now=now)
        self._folding = asyncio.Lock()

    async def events(self, session_id: str, *, after: int, limit: int, make: Make | None = None) -> e.Page:
        return await self._checked(*await self._lines.read(reads.events, session_id, after, limit, False, make))

    async def records(self, session_id: str, *, after: int, limit: int) -> e.Page:
        return await self._checked(*await self._lines.read(reads.events, session_id, after, limit, True))

    async def transcript(self, session: Session, *, known: Transcript | None = None) -> Transcript:
        transcript = known or Transcript()
        over = session.turn_seq - 1 if session.open_turn else session.seq
        more: int | None = transcript.seq
        while more is not None and more < over:
            more = await self._fold(transcript, session.session_id, more, over, True)
        more = max(over, transcript.seq) if session.open_turn else None
        while more is not None:
            more = await self._fold(transcript, session.session_id, more, None, False)
        return transcript

    async def _fold(self, transcript: Transcript, session_id: str, after: int, until: int | None, records: bool) -> int | None:
        """A slice of it, where reading is done. Conversations that are read at the same time take turns, so that a thread is left for
        everybody who wants to know something short, and the event loop gets its share of the processor between two slices.
        """
        async with self._folding:
            more, found = await self._lines.read(reads.fold, transcript, session_id, after, until, records)
        return await self._checked(more, found)

    def subscribe(self, heard: Callable[[], None]) -> Callable[[], None]:
        return self._lines.subscribe(heard)
