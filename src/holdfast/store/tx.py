"""What an operation may do with its transaction. Engines implement it; nothing above it knows which one it runs on."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from holdfast.core.events import Event
from holdfast.core.plans.repeats import Known
from holdfast.core.redaction import Secrets
from holdfast.core.sessions import Session
from holdfast.store.heads import Head
from holdfast.store.rows import Change


class Touched(NamedTuple):
    """Sessions with something new, the next mark, and whether there may be more behind it."""

    mark: int
    sessions: list[int]
    more: bool


class Tx(Protocol):
    """One transaction, synchronous. A head that changed is written when the operation is over, or before the next `query` or `execute`,
    so that each of them sees everything that came before it.

    `secrets` are replaced in everything that is appended. `unreadable` is what a statement raises where stored pages cannot be read.
    """

    secrets: Secrets

    @property
    def unreadable(self) -> type[Exception]: ...

    def query(self, sql: str, *values: Any) -> list[Any]:
        """All rows, at once: no cursor stays open."""

    def execute(self, sql: str, *values: Any) -> int:
        """A change. Gives how many rows it changed."""

    def write(self, sql: str, *values: Any) -> list[Any]:
        """A change that has nothing to do with heads, and does not wait for theirs. Gives the rows it returns."""

    def write_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """As `write`, once for each row."""

    def page(self, sql: str, *values: Any) -> list[Any]:
        """Rows of the log (`queries.EVENT`), until their bodies make up a page."""

    def insert(self, rows: Sequence[tuple[Any, ...]]) -> int:
        """Adds rows to the log (`queries.INSERT`), up to the first one whose place is taken. Gives how many."""

    def session(self, session_id: str) -> Session:
        """Raises `NotFound`; `Deleted` if it is purged."""

    def known(self, dedup_key: str) -> Known | None:
        """What was stored under this key before."""

    def head(self, session: int) -> Head:
        """Where a session's log stands, with what this operation has appended to it."""

    def new_session(self) -> int:
        """A number that no session has or had."""

    def event_at(self, session: int, seq: int) -> Event:
        """`Damaged` where there is none that reads."""

    def append(self, head: Head, event: Event, at: int, *, in_turn: bool) -> None:
        """Writes an event behind the head, and everything that follows from it."""

    def apply(self, head: Head, changes: Iterable[Change]) -> None:
        """Changes rows, and has the head written."""

    def sessions_since(self, mark: int, limit: int, *, records: bool = False) -> Touched:
        """Sessions that changed since a mark, going by at most `limit` events; by their records alone, if asked so. 0 is the mark of the
        beginning.
        """

    def index(self, session: int, seq: int, text: str) -> None:
        """Makes the words of an event searchable."""

    def search(self, query: str) -> list[int]:
        """Sessions with all the words of a query, the last of which may still be growing."""

    def finds(self, query: str, session: int | None = None) -> Iterator[tuple[int, int]]:
        """Events with all the words of a query, the newest first, each with its session; those of one, if it is given. Read as far as they
        are asked for.
        """

    def unindex(self, session: int, first: int, last: int) -> None:
        """The events of these sequences are no longer found."""

    def size(self) -> int:
        """How many bytes the store takes up, without what is free in it."""
