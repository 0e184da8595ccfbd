"""Reading the log: events, conversations, and what changed."""

from collections.abc import Callable, Mapping
from typing import NewType, Protocol

import msgspec

from holdfast.core.events import Logged, Page
from holdfast.core.sessions import Session
from holdfast.core.transcript import Transcript

# An event made ready to be sent.
Make = Callable[[Logged], bytes]
# A place in all that was stored, as its store names it. It says nothing to anybody else, and outlives no process.
Cursor = NewType("Cursor", str)
NOTHING: Mapping[str, int] = {}


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """`newest`: by session, the newest sequence that was found. `page`: the events that were asked for, in order within each session.
    `more`: others may follow at once.
    """

    cursor: Cursor
    newest: dict[str, int] = {}
    page: Page = msgspec.field(default_factory=Page)
    more: bool = False


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

    async def transcript(self, session: Session, *, known: Transcript | None = None, whole: bool = True) -> Transcript:
        """The conversation: the records of turns that are over, and every event of the one that is open. It is at least as new as
        `session`. Neither the event loop nor another reader waits for it, however long it is. `known`: an earlier one of this log, which
        nobody else uses; only what is new is read and added to it. If this raises or is cancelled, it is of no use any more. Not `whole`:
        it may begin where the newest turn, and what an agent is given of those before it, can be known from (`ContextCompacted.recall`).
        """

    async def changes(self, cursor: Cursor | None, *, behind: Mapping[str, int] = NOTHING, make: Make | None = None) -> Changes:
        """Which sessions changed since the cursor, by any process; without a cursor nothing, and the cursor of this moment. In the same
        read: the events of the sessions in `behind` with a sequence above the one named there, as many and as made ready as `events`
        gives them. Reading on behind the cursor gives the rest: no event that is stored after a cursor was given is missed.
        """

    def subscribe(self, heard: Callable[[], None]) -> Callable[[], None]:
        """`heard` is called on the event loop after commits of this process. Gives the way to unsubscribe."""
