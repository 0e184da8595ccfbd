"""The log of a session, and the conversation folded from it."""

import asyncio
import contextlib
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

    async def transcript(self, session: Session, *, known: Transcript | None = None, whole: bool = True) -> Transcript:
        if known is None and not whole and session.generation > 1:
            short = await self._read_on(Transcript(await self._lines.read(reads.recall, session.session_id)), session)
            if short.complete:
                return short
        return await self._read_on(known or Transcript(), session)

    async def _read_on(self, transcript: Transcript, session: Session) -> Transcript:
        """Long ones that are read at the same time take turns, so that a thread is left for short reads, and the event loop gets its share
        of the processor between two slices.
        """
        in_turn = self._folding if session.seq - transcript.seq > reads.FOLD_ROWS else contextlib.nullcontext()

        async def fold(after: int, until: int | None, records: bool) -> int | None:
            async with in_turn:
                given = await self._lines.read(reads.fold, transcript, session.session_id, after, until, records)
            return await self._checked(*given)

        over = session.turn_seq - 1 if session.open_turn else session.seq
        more: int | None = transcript.seq
        while more is not None and more < over:
            more = await fold(more, over, True)
        more = max(over, transcript.seq) if session.open_turn else None
        while more is not None:
            more = await fold(more, None, False)
        return transcript

    def subscribe(self, heard: Callable[[], None]) -> Callable[[], None]:
        return self._lines.subscribe(heard)
