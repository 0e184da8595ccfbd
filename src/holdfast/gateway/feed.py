"""Live readers: one reader of all changes per process, handed out by session. What it hands out is durable (P7)."""

import asyncio
from collections.abc import Callable, Iterable
from itertools import chain

import structlog

from holdfast.core.errors import Unavailable
from holdfast.core.events import Logged, SessionDeleted
from holdfast.gateway.tasks import Alarm, heard
from holdfast.ports.log import Cursor
from holdfast.ports.store import Store

POLL_S = 1.0
APART_S = 0.003  # About what it takes a process to welcome a reader.
DELETED = "deleted"
MAX_BEHIND_BYTES = 4 * 1024 * 1024

log = structlog.get_logger()


class Frame:
    """An event, and what it was made into once for all its readers."""

    __slots__ = ("data", "logged", "seq")

    def __init__(self, logged: Logged, data: bytes) -> None:
        self.logged, self.seq, self.data = logged, logged.seq, data


class Watcher:
    """One reader of one session. A reader that falls too far behind is cut off; it comes back with its cursor."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.slow = False
        self.ended: str | None = None
        self._frames: list[Frame] = []
        self._size = 0
        self._news = False
        self._waiter: asyncio.Future[None] | None = None
        self._patience = Alarm(self._wake)

    def give(self, frames: list[Frame], size: int) -> None:
        self._size += size
        if self._size > MAX_BEHIND_BYTES:
            self.slow = True
            self._frames.clear()
        else:
            self._frames += frames
        self._tell()

    def end(self, reason: str) -> None:
        self.ended = reason
        self._tell()

    async def next(self, timeout_s: float) -> list[Frame]:
        """What came since the last call; empty after the timeout, or when the reader is cut off or ended."""
        if not self._news:
            self._waiter = asyncio.get_running_loop().create_future()
            self._patience.set(timeout_s)
            try:
                await self._waiter
            finally:
                self._waiter = None
                self._patience.clear()
        self._news = False
        frames, self._frames, self._size = self._frames, [], 0
        return frames

    def close(self) -> None:
        self._patience.close()

    def _tell(self) -> None:
        self._news = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class ListWatcher:
    """One reader of the list: which sessions have changed, and up to which place in the store."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.ended: str | None = None
        self._changed: dict[str, None] = {}
        self._news = asyncio.Event()

    def give(self, session_ids: Iterable[str], cursor: Cursor) -> None:
        self.cursor = cursor
        self._changed.update(dict.fromkeys(session_ids))
        if self._changed:
            self._news.set()

    def end(self, reason: str) -> None:
        self.ended = reason
        self._news.set()

    async def next(self, timeout_s: float) -> list[str]:
        """Those that changed since the last call; empty after the timeout, or when it has ended."""
        if not self._news.is_set() and not await heard(self._news, timeout_s):
            return []
        self._news.clear()
        changed, self._changed = self._changed, {}
        return list(changed)


class Feed:
    """Watch first, then read up to where the watch began: nothing falls between."""

    def __init__(self, store: Store, encode: Callable[[Logged], bytes]) -> None:
        self._store, self._encode = store, encode
        self._watchers: dict[str, list[Watcher]] = {}
        self._lists: list[ListWatcher] = []
        self._news = asyncio.Event()
        self._joining = asyncio.Lock()
        self._cursor: Cursor | None = None
        self._behind: dict[str, int] = {}  # By session that is watched: the last event that was handed out.
        self._closed: str | None = None
        self._unsubscribe = store.subscribe(self.hint)

    def hint(self) -> None:
        if self._watchers or self._lists:
            self._news.set()

    @property
    def readers(self) -> int:
        return sum(len(watchers) for watchers in self._watchers.values())

    @property
    def tabs(self) -> int:
        """Pages that are open: each reads the list."""
        return len(self._lists)

    async def watch(self, session_id: str, *, after: int) -> Watcher:
        """Gives every event of the session that is stored after this returns, and some from before, but none up to `after`. Leave it with
        `leave`.
        """
        watcher = Watcher(session_id)
        async with self._joining:  # Only the first of several that come at once may set where the watch begins.
            await self._begin()
            if self._closed:
                watcher.end(self._closed)
            else:
                self._watchers.setdefault(session_id, []).append(watcher)
                self._behind.setdefault(session_id, after)
        return watcher

    async def watch_list(self) -> ListWatcher:
        """Tells of every session that changes after this returns. Leave it with `leave_list`."""
        async with self._joining:
            await self._begin()
            assert self._cursor is not None
            watcher = ListWatcher(self._cursor)
            if self._closed:
                watcher.end(self._closed)
            else:
                self._lists.append(watcher)
        return watcher

    def leave_list(self, watcher: ListWatcher) -> None:
        if watcher in self._lists:
            self._lists.remove(watcher)

    async def _begin(self) -> None:
        """Nobody watches yet: from now on somebody does."""
        if not self._watchers and not self._lists:
            self._cursor = (await self._store.changes(None)).cursor

    def leave(self, watcher: Watcher) -> None:
        watcher.close()
        watchers = self._watchers.get(watcher.session_id, [])
        if watcher in watchers:
            watchers.remove(watcher)
            if not watchers:
                del self._watchers[watcher.session_id], self._behind[watcher.session_id]

    def end(self, reason: str) -> None:
        """Every reader is told that the server closes on purpose."""
        self._closed = reason
        for reader in self._readers():
            reader.end(reason)

    async def send_away(self, reason: str) -> None:
        """As `end`, one after the other: where they go, all of them at once would wait for each other. New ones are ended at once."""
        self._closed = reason
        for reader in self._readers():
            reader.end(reason)
            await asyncio.sleep(APART_S)

    def _readers(self) -> "list[Watcher | ListWatcher]":
        return [*chain.from_iterable(self._watchers.values()), *self._lists]

    async def run(self) -> None:
        """Follows the log while anyone watches. A lost hint costs a second, never an event."""
        while True:
            await heard(self._news, POLL_S)
            self._news.clear()
            try:
                while (self._watchers or self._lists) and await self._hand_out():
                    pass
            except Unavailable as error:
                log.warning("the log cannot be followed", error=str(error))

    async def _hand_out(self) -> bool:
        """One page of the log; true when there may be more."""
        behind = dict(self._behind)
        changes = await self._store.changes(self._cursor, behind=behind, make=self._encode)
        # Somebody may have begun to watch a session that changed while this was read. Then it is read once more from the same place, for
        # them too; those who were there get what was found, however many others come one after the other.
        again = any(session_id in self._watchers and session_id not in behind for session_id in changes.newest)
        made = changes.page.made
        if not again:
            self._cursor = changes.cursor
            for listing in self._lists:
                listing.give(changes.newest, changes.cursor)
        frames: dict[str, list[Frame]] = {}
        deleted: set[str] = set()
        for item in changes.page:
            if item.session_id in self._watchers:
                if item.kind == SessionDeleted.kind:
                    deleted.add(item.session_id)
                self._behind[item.session_id] = item.seq
                data = made.get((item.session_id, item.seq)) or self._encode(item)
                frames.setdefault(item.session_id, []).append(Frame(item, data))
        for session_id, new in frames.items():
            size = sum(len(frame.data) for frame in new)
            for watcher in self._watchers.get(session_id, ()):
                watcher.give(new, size)
                if session_id in deleted:
                    watcher.end(DELETED)
        return changes.more or again

    def close(self) -> None:
        self._unsubscribe()
