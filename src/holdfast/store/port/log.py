"""The log of a session, and the conversation folded from it."""

from collections.abc import Callable

from holdfast.core import events as e
from holdfast.core.sessions import Session
from holdfast.core.transcript import Transcript
from holdfast.ports.log import Make
from holdfast.store import reads
from holdfast.store.port.base import OverLines


class Log(OverLines):
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
        """A page of it, where reading is done: a conversation that is long keeps neither the event loop nor other readers waiting."""
        return await self._checked(*await self._lines.read(reads.fold, transcript, session_id, after, until, records))

    def subscribe(self, heard: Callable[[], None]) -> Callable[[], None]:
        return self._lines.subscribe(heard)
