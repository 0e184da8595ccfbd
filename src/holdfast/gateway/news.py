"""What reaches a running attempt from outside, by one way: one reader per process, and one place of news per attempt."""

import asyncio
from collections.abc import Sequence
from enum import StrEnum

import msgspec
import structlog

from holdfast.core.errors import BlobMissing, Conflict, NotFound, Refused, StoreFull, StoreGone, Unavailable
from holdfast.core.events import QuestionAnswered
from holdfast.core.sessions import Session
from holdfast.gateway.questions import Questions
from holdfast.ports.log import Log
from holdfast.ports.sessions import Sessions

PAGE = 200

log = structlog.get_logger()


class Halt(StrEnum):
    """Why a running attempt is ended from outside."""

    STOP = "stop"
    IDLE = "idle"
    GATEWAY = "gateway"
    LOST = "lost"
    STORE = "store"
    SUSPENDED = "suspended"
    UNSTORABLE = "unstorable"
    WAITING = "waiting"
    EXPIRED = "expired"


class Halted(msgspec.Struct, frozen=True):
    """The attempt ends. The agent hears `words` with its cancellation. `reason`: what an interruption is recorded with."""

    why: Halt
    words: str
    reason: str = "store_failed"


class News:
    """What one attempt has to hear. `halted`: the first reason to end it, which counts. `queued`: something waits in the inbox that it may
    take. `questions`: those it has asked, with the answers that came.
    """

    def __init__(self, newsroom: "Newsroom", session_id: str, turn_id: str) -> None:
        self.session_id, self.turn_id = session_id, turn_id
        self.halted: Halted | None = None
        self.queued = False
        self.questions = Questions()
        self._newsroom = newsroom
        self._ends = asyncio.Event()

    async def look(self) -> None:
        """Returns when everything has been told that was stored before this was called."""
        await self._newsroom.read_now(self)

    def halt(self, why: Halt, words: str | None = None, *, reason: str = "store_failed") -> None:
        if self.halted is None:
            self.halted = Halted(why, words or str(why), reason)
            self._ends.set()

    def lost(self, error: Exception) -> None:
        """The attempt cannot be written any more."""
        if isinstance(error, Refused | BlobMissing):  # It would be refused again.
            self.halt(Halt.UNSTORABLE, str(error))
        elif isinstance(error, Conflict):
            self.halt(Halt.LOST)
        else:
            self.halt(Halt.STORE, reason=error.code if isinstance(error, StoreFull | StoreGone) else "store_failed")

    async def end(self) -> None:
        """Returns when the attempt has to end."""
        await self._ends.wait()

    def tell(self, session: Session, answers: Sequence[QuestionAnswered] = ()) -> None:
        """What the session's row says of a stop, a suspension or its inbox, and what was answered: that first, because it came first."""
        self.questions.tell(answers)
        self.queued = self.queued or session.queued > 0
        if session.stop_requested or session.suspended:
            self.halt(Halt.STOP if session.stop_requested else Halt.SUSPENDED)


class Newsroom:
    """The one reader. Whichever process stored something, the attempt it is for hears of it here."""

    def __init__(self, store: Sessions, log: Log) -> None:
        self._store, self._log = store, log
        self._followed: dict[str, News] = {}
        self._due: dict[str, None] = {}
        self._hinted = asyncio.Event()

    def follow(self, session_id: str, turn_id: str) -> News:
        """From now on the news of this session go to the attempt of this turn. One who reads the session after this, and tells the attempt
        what its row says, has missed nothing.
        """
        news = self._followed[session_id] = News(self, session_id, turn_id)
        return news

    def leave(self, session_id: str) -> None:
        self._followed.pop(session_id, None)

    def hint(self, session_id: str) -> None:
        """Something of this session changed."""
        if session_id in self._followed:
            self._due[session_id] = None
            self._hinted.set()

    async def run(self) -> None:
        while True:
            await self._hinted.wait()
            self._hinted.clear()
            due, self._due = self._due, {}
            for session_id in due:
                try:
                    if news := self._followed.get(session_id):
                        await self._read(news)
                except Unavailable as error:
                    log.warning("news cannot be read yet", session=session_id, error=str(error))
                    asyncio.get_running_loop().call_later(error.retry_after_s, self.hint, session_id)

    async def read_now(self, news: News) -> None:
        while True:
            try:
                return await self._read(news)
            except Unavailable as error:
                await asyncio.sleep(error.retry_after_s)

    async def _read(self, news: News) -> None:
        try:
            session = await self._store.session(news.session_id)
            answers = await self._answers(news, session)
        except NotFound:
            return  # It was purged; its attempt finds out when it writes.
        if session.turn_id == news.turn_id:
            news.tell(session, answers)

    async def _answers(self, news: News, session: Session) -> list[QuestionAnswered]:
        """What was answered up to this row of the session, and perhaps later. An attempt that has asked nothing costs no read."""
        found: list[QuestionAnswered] = []
        after = news.questions.read_to
        while news.questions.asking and after < session.seq:
            page = await self._log.records(news.session_id, after=after, limit=PAGE)
            found += [event for item in page if item.kind == QuestionAnswered.kind and isinstance(event := item.event, QuestionAnswered)]
            after = page[-1].seq if page.more else session.seq
        news.questions.read_to = max(news.questions.read_to, after)
        return found
