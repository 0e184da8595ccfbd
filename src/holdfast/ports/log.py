"""Reading the log: events, conversations, and what changed."""

from collections.abc import Callable
from typing import Protocol

from holdfast.core.events import Logged, Page
from holdfast.core.sessions import Session
from holdfast.core.transcript import Transcript

# An event made ready to be sent.
Make = Callable[[Logged], bytes]


class Log(Protocol):
    """The log, read only. Every method keeps to the contract of `ports.store`."""

    async def events(self, session_id: str, *, after: int, limit: int, make: Make | None = None) -> Page:
        """Events with a sequence above `after`, in order: at most `limit`, at most a thousand, and no more than it takes to make up
        `PAGE_BYTES`. What `make` makes of the large ones is given with them; it runs in another thread. One that fails its checksum,
        cannot be read or is missing is given as `Damaged`, in its place, and put into quarantine once. Pruned stream events are simply
        not there.
        """

    async def records(self, session_id: str, *, after: int, limit: int) -> Page:
        """As `events`, without stream events. Where a record is missing altogether, nothing stands for it."""

    async def transcript(self, session: Session) -> Transcript:
        """The conversation: the records of turns that are over, and every event of the one that is open. It is at least as new as
        `session`. Neither the event loop nor another reader waits for it, however long it is.
        """

    async def tail(self, *, after_id: int, limit: int, make: Make | None = None) -> Page:
        """Events of all sessions, of every process, in the order of commits, above a global id; as many as `events` gives. One that is
        too damaged to tell whose it is belongs to the session "".
        """

    async def last_id(self) -> int:
        """The global id of the newest event; 0 in an empty store."""

    def subscribe(self, heard: Callable[[], None]) -> Callable[[], None]:
        """`heard` is called on the event loop after commits of this process. Gives the way to unsubscribe."""
