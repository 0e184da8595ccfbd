"""What reaches a running attempt from outside, by one way: one reader per process, and one queue of values per attempt."""

import asyncio
from enum import StrEnum

import msgspec
import structlog

from holdfast.core.errors import BlobMissing, Conflict, NotFound, Refused, StoreFull, StoreGone, Unavailable
from holdfast.core.sessions import Session
from holdfast.ports.sessions import Sessions

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
    take.
    """

    def __init__(self) -> None:
        self.halted: Halted | None = None
        self.queued = False
        self._ends = asyncio.Event()

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

    def tell(self, session: Session) -> None:
        """What the session's row says of a stop, a suspension or its inbox."""
        self.queued = self.queued or session.queued > 0
        if session.stop_requested or session.suspended:
            self.halt(Halt.STOP if session.stop_requested else Halt.SUSPENDED)


class Newsroom:
    """The one reader. Whichever process stored something, the attempt it is for hears of it here."""

    def __init__(self, store: Sessions) -> None:
        self._store = store
        self._followed: dict[str, tuple[str, News]] = {}
        self._due: dict[str, None] = {}
        self._hinted = asyncio.Event()

    def follow(self, session_id: str, turn_id: str, news: News) -> None:
        """From now on the news of this session go to the attempt of this turn. One who reads the session after this, and tells the attempt
        what its row says, has missed nothing.
        """
        self._followed[session_id] = turn_id, news

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
                    await self._read(session_id)
                except NotFound:
                    pass  # It was purged; its attempt finds out when it writes.
                except Unavailable as error:
                    log.warning("news cannot be read yet", session=session_id, error=str(error))
                    asyncio.get_running_loop().call_later(error.retry_after_s, self.hint, session_id)

    async def _read(self, session_id: str) -> None:
        session = await self._store.session(session_id)
        turn_id, news = self._followed.get(session_id, (None, None))
        if news is not None and session.turn_id == turn_id:
            news.tell(session)
