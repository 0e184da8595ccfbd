"""Reads the log for one response: from where its message came on, page by page and then as it grows. Reads only: a reader that leaves
changes nothing for the turn that it watched.
"""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from holdfast.core.answering import Answering
from holdfast.core.errors import NotFound
from holdfast.core.events import Logged, Page
from holdfast.core.pieces import Piece
from holdfast.core.recitals import Recited
from holdfast.gateway.feed import DELETED, Watcher
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.tasks import Tasks
from holdfast.web.access import Access, Grant
from holdfast.web.openai.delivered import Delivered
from holdfast.web.stream import Timing

PAGE = 1000
# So many events at once are not gone through on the event loop.
MANY = 100
# The first records of a session are read along: they say why it is a new one.
FIRST = 5
GONE, SIGNED_OUT = "gone", "signed_out"


class Means(msgspec.Struct, frozen=True):
    """With what every reader of this process reads."""

    gateway: Gateway
    access: Access
    tasks: Tasks
    timing: Timing
    delivered: Delivered


class Ended(Exception):
    """Nothing more can be read here. `reason`: as an event stream says it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def beginning(recited: Recited) -> int:
    """Behind which event to read: before the turn that was open then, or else before the message."""
    if recited.turn_seq:
        return recited.turn_seq - 1
    return 0 if recited.seq <= FIRST else recited.seq - 1


async def read(
    gateway: Gateway,
    recited: Recited,
    answering: Answering,
    take: Callable[[list[Piece]], None] = lambda pieces: None,
    *,
    records: bool = False,
) -> Answering:
    """As far as it has come; `take` is given what each event gave. `records`: without what may be pruned."""
    fetch = gateway.store.records if records else gateway.store.events
    after, more = beginning(recited), True
    while more and not answering.over:
        page = await fetch(recited.session_id, after=after, limit=PAGE)
        if len(page) < MANY:
            _fold(page, answering, take)
        else:
            await asyncio.to_thread(_fold, page, answering, take)
        after, more = page[-1].seq if page else after, page.more
    return answering


def _fold(page: Page, answering: Answering, take: Callable[[list[Piece]], None]) -> None:
    for item in page:
        take(answering.apply(item))


class Following:
    """One reader, watching while it is entered."""

    def __init__(self, means: Means, grant: Grant, recited: Recited) -> None:
        self._means, self._grant, self._recited = means, grant, recited
        self._seq = beginning(recited)
        self._behind = True  # The store has more than was given.
        self._last_look = False
        self._watcher: Watcher | None = None
        self._forget: Callable[[], None] = lambda: None

    async def __aenter__(self) -> "Following":
        await self._watch()
        self._forget = self._means.access.watch(self._grant, lambda: self._end(SIGNED_OUT))
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._forget()
        if self._watcher is not None:
            self._means.gateway.feed.leave(self._watcher)

    async def _watch(self) -> None:
        feed, before = self._means.gateway.feed, self._watcher
        session = await self._means.gateway.session(self._recited.session_id)
        watcher = self._watcher = await feed.watch(session.session_id, after=session.seq)
        if before is not None:
            feed.leave(before)
            watcher.ended = before.ended

    async def _watch_again(self) -> None:
        try:
            await self._watch()
        except NotFound as error:
            raise Ended(DELETED) from error

    def leave(self) -> None:
        """The client is gone."""
        self._end(GONE)

    def _end(self, reason: str) -> None:
        if self._watcher is not None:
            self._watcher.end(reason)

    async def next(self) -> Sequence[Logged]:
        """The events that follow, in order. An empty list: for now there are no more. Raises `Ended`, once all that is stored was given."""
        while True:
            watcher = self._watching
            self._check(watcher)
            if self._behind:
                page = await self._stored()
                self._behind = page.more
                if page:
                    return page
            if watcher.ended is not None:
                if self._last_look:
                    raise Ended(watcher.ended)
                self._last_look = self._behind = True
                continue
            fresh = [frame.logged for frame in await watcher.next(self._means.timing.heartbeat_s) if frame.seq > self._seq]
            if watcher.slow:  # More came at once than is kept for a reader. The store has it.
                await self._watch_again()
            self._behind = watcher.slow or (bool(fresh) and fresh[0].seq != self._seq + 1)
            if fresh and not self._behind:
                self._seq = fresh[-1].seq
                return fresh
            if not self._behind and watcher.ended is None:
                return ()

    @property
    def _watching(self) -> Watcher:
        assert self._watcher is not None
        return self._watcher

    def _check(self, watcher: Watcher) -> None:
        if watcher.ended in (GONE, SIGNED_OUT):
            raise Ended(str(watcher.ended))
        if not self._means.access.good(self._grant):
            raise Ended(SIGNED_OUT)

    async def _stored(self) -> Page:
        page = await self._behind_last(PAGE)
        if page:
            self._seq = page[-1].seq
        return page

    async def caught_up(self) -> bool:
        """Nothing is stored behind what was given. Raises `Ended`."""
        return not await self._behind_last(1)

    async def _behind_last(self, limit: int) -> Page:
        try:
            return await self._means.gateway.store.events(self._recited.session_id, after=self._seq, limit=limit)
        except NotFound as error:
            raise Ended(DELETED) from error
