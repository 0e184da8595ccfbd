"""The conversations that turns of this process ended with last, so that the next turn of each reads only what is new."""

from collections import OrderedDict
from collections.abc import Callable

from holdfast.core.sessions import Session
from holdfast.core.transcript import Transcript
from holdfast.ports.log import Log

MOST_EVENTS = 50_000
KEPT_S = 600.0


class Recollections:
    """A transcript is handed out to one reader at a time, and folded from the log as always: keeping it saves reading, and decides nothing.
    `most_events`: how many events all of them together may have been folded from. `monotonic`: the clock they grow old by. Not `whole`:
    no more is read than the newest turn and its agent need.
    """

    def __init__(self, log: Log, monotonic: Callable[[], float], *, whole: bool, most_events: int = MOST_EVENTS) -> None:
        self._log, self._monotonic, self._whole, self._most_events = log, monotonic, whole, most_events
        self._kept: OrderedDict[str, tuple[float, str, Transcript]] = OrderedDict()
        self._events = 0

    async def read(self, session: Session) -> Transcript:
        """The conversation, at least as new as `session`."""
        _, log, known = self._kept.get(session.session_id) or (0.0, "", None)
        self._drop(session.session_id)
        return await self._log.transcript(session, known=known if log == session.log else None, whole=self._whole)

    def keep(self, session: Session, transcript: Transcript) -> None:
        """Its reader is done with it."""
        self._drop(session.session_id)
        self._kept[session.session_id] = self._monotonic(), session.log, transcript
        self._events += transcript.seq - transcript.behind
        while self._events > self._most_events:
            self._drop(next(iter(self._kept)))

    def tidy(self) -> None:
        """Drops what nobody has asked for in a while: conversations that rest, and those that were deleted."""
        before = self._monotonic() - KEPT_S
        for session_id in [session_id for session_id, (since, _, _) in self._kept.items() if since <= before]:
            self._drop(session_id)

    def _drop(self, session_id: str) -> None:
        if kept := self._kept.pop(session_id, None):
            self._events -= kept[2].seq - kept[2].behind
