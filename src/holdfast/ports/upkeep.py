"""The store as a whole: its size, its index, what is removed from it, and its end."""

from typing import Protocol

import msgspec


class Usage(msgspec.Struct, frozen=True):
    """How many bytes the store and its blobs take, how many sessions there are, and of how many deleted ones the content is still to be
    removed.
    """

    bytes: int
    sessions: int
    removing: int


class Counts(msgspec.Struct, frozen=True):
    sessions: int
    inbox: int
    outbox: int
    running: int
    suspended: int
    pending: int


class Commits(msgspec.Struct, frozen=True):
    """How many commits this process has made, and how many seconds they took together."""

    count: int = 0
    seconds: float = 0.0


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup could not copy. `lost`: blobs that conversations name, whose files are missing or damaged. `missed`: spools, and
    folders of spools, that cannot be read.
    """

    lost: int
    missed: int


class Upkeep(Protocol):
    """The whole. Every method keeps to the contract of `ports.store`."""

    async def counts(self) -> Counts: ...

    async def usage(self) -> Usage: ...

    async def index_search(self, *, limit: int) -> bool:
        """Puts some of the events that are not yet searchable into the index, at most `limit`, and of a long text its beginning. True when
        there may be more. No other write waits long for it.
        """

    async def prune_streams(self, *, before: int, at: int, limit: int) -> int:
        """Removes the stream events of up to `limit` sessions that rest since before a time, as a record; gives how many
        events went.
        """

    async def remove_oldest(self, *, before: int, limit: int, why: str, until: int, at: int) -> list[str]:
        """Deletes, by "retention", up to `limit` sessions whose last sign of life was before a time, the oldest first. Never one that is
        pinned, pending or queued, has an open turn, or owes a reply. Gives their ids.
        """

    async def purge(self, *, now: int, steps: int) -> bool:
        """Removes the content of deleted sessions whose time is over: from the log, the catalog, the quarantine, the search index and the
        write-ahead log. What stays of one is its id, its key, when and by whom it was deleted, and digests of its dedup keys. At
        most `steps` small transactions; killed after any of them, the next call continues. Gives whether there is more to do at once.
        """

    async def sign_out(self, sign_in: str, *, until: int, now: int) -> None:
        """A sign-in of a browser is over, `until` it would have ended by itself. Also when the disk is full."""

    async def signed_out(self, *, now: int) -> list[str]:
        """The sign-ins that were ended and have time left."""

    async def backup(self, path: str) -> Copied:
        """A consistent copy, with the bytes of all blobs and spools in it, also while others write."""

    @property
    def degraded(self) -> str | None:
        """None, or why nothing can be stored at the moment."""

    @property
    def commits(self) -> Commits: ...

    async def aclose(self) -> None:
        """What was accepted is written; everything later raises `StoreClosed`."""
