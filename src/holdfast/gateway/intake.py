"""From a platform's update to the store: stored as it came, with the place to read on from, and acknowledged after (P1). What it means is
looked into from there; whatever dies in between, the next process does it."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import structlog

from holdfast.core import inbound
from holdfast.core.chat_errors import LoggedOut, Unreadable
from holdfast.core.errors import NotFound, Unavailable
from holdfast.core.inbound import Inbound, Message
from holdfast.gateway.delivery import Deliveries
from holdfast.gateway.host import Host
from holdfast.gateway.links import LOG_IN_AGAIN_S, Link
from holdfast.gateway.meaning import Meaning
from holdfast.gateway.tasks import heard, insist
from holdfast.ports.platforms import Batch, Hooked
from holdfast.ports.store import Store
from holdfast.ports.updates import StoredUpdate

POLL_S = 1.0
PAGE = 200
# So many updates are looked into at once, of as many chats.
MOST = 1000
ALBUM_S = 1.0
FAILED_S = 5.0

log = structlog.get_logger()


class _Update(NamedTuple):
    """`problem`: why it cannot be translated."""

    stored: StoredUpdate
    found: Sequence[Inbound] = ()
    problem: str | None = None

    @property
    def chat(self) -> str:
        return inbound.chat_of(self.found[0]) if self.found else ""

    @property
    def album(self) -> str | None:
        return self.found[0].album if len(self.found) == 1 and isinstance(self.found[0], Message) else None


class _Chat:
    """What one chat has sent and nobody has looked into yet."""

    def __init__(self) -> None:
        self.waiting: deque[_Update] = deque()
        self.news = asyncio.Event()


class Intake:
    def __init__(self, *, store: Store, host: Host, meaning: Meaning, deliveries: Deliveries, links: dict[str, Link]) -> None:
        self._store, self._clock, self._tasks, self._meaning = store, host.clock, host.tasks, meaning
        self._deliveries, self._links = deliveries, links
        self._news: dict[str, asyncio.Event] = {name: asyncio.Event() for name in links}

    # from the platform to the store

    async def follow(self, link: Link) -> None:
        """Takes what comes, in order. What was not stored is not acknowledged; the platform brings it again."""
        while True:
            try:
                if not link.ready.is_set() or link.problem is not None:
                    await link.connect(self._store)
                    await self._offer(link)
                async for batch in link.platform.receive(await self._store.cursor(link.id)):
                    await self._keep(link, batch)
                    await link.platform.acknowledge(batch)
                    link.works()
                    link.heard(all_done=not batch.updates)
                return
            except LoggedOut as error:
                link.log_out(str(error))
                await asyncio.sleep(LOG_IN_AGAIN_S)
            except Unavailable as error:
                link.fails(str(error), retry_after_s=error.retry_after_s)
                await asyncio.sleep(error.retry_after_s)
            except Exception as error:  # The platform's boundary: one that fails must not take the others with it.
                link.fails(f"{type(error).__name__}: {error}", retry_after_s=FAILED_S)
                log.error("platform failed", platform=link.name, exc_info=error)
                await asyncio.sleep(FAILED_S)

    async def _keep(self, link: Link, batch: Batch) -> None:
        while batch.updates or batch.cursor is not None:
            try:
                await self._store.take_updates(link.id, batch.updates, cursor=batch.cursor, at=self._clock.now())
                self._news[link.name].set()
                return
            except Unavailable as error:
                log.warning("updates cannot be stored yet", platform=link.name, error=str(error))
                await asyncio.sleep(error.retry_after_s)

    async def _offer(self, link: Link) -> None:
        self._tasks.spawn(self._meaning.offer_commands(link), name=f"commands {link.name}")

    async def hooked(self, name: str, headers: Mapping[str, str], body: bytes) -> Hooked:
        """A request of the platform itself; stored once this returns. Raises `NotFound`, `Refused`, `Unavailable`."""
        link = self._links.get(name)
        if link is None:
            raise NotFound("platform", name)
        found = link.platform.hooked(headers, body)
        if not link.ready.is_set():
            raise Unavailable("The platform is not connected yet.")
        if found.updates:
            await self._store.take_updates(link.id, found.updates, cursor=None, at=self._clock.now())
            self._news[name].set()
        return found

    # from the store to conversations

    async def work(self, link: Link) -> None:
        """Looks into what is stored: in order within a chat, side by side across them."""
        await link.ready.wait()
        await insist(partial(self._deliveries.doubts_settled, link))
        news, chats, after = self._news[link.name], dict[str, _Chat](), 0
        mine: set[asyncio.Task[None]] = set()
        try:
            while True:
                news.clear()
                await self._meaning.forget_early()
                page: list[StoredUpdate] = []
                if link.waiting < MOST:
                    try:
                        page = await self._store.updates(link.id, after=after, limit=PAGE)
                    except Unavailable as error:
                        log.warning("updates cannot be read", platform=link.name, error=str(error))
                for stored in page:
                    after = stored.id
                    link.waiting += 1
                    update = _read(link, stored)
                    if update.chat not in chats:
                        chats[update.chat] = _Chat()
                        task = self._tasks.spawn(self._drain(link, chats, update.chat), name=f"updates of {link.name} {update.chat}")
                        mine.add(task)
                        task.add_done_callback(mine.discard)
                    chats[update.chat].waiting.append(update)
                    chats[update.chat].news.set()
                if len(page) < PAGE:
                    await heard(news, POLL_S)
        finally:
            for task in tuple(mine):
                task.cancel()
            link.waiting = 0

    async def _drain(self, link: Link, chats: dict[str, _Chat], name: str) -> None:
        chat = chats[name]
        while chat.waiting:
            together = [chat.waiting.popleft()]
            await self._gather_album(chat, together)
            await self._look_into(link, together)
            link.waiting -= len(together)
        del chats[name]

    async def _gather_album(self, chat: _Chat, together: list[_Update]) -> None:
        """What was sent together is one message: waits a moment for the rest of it."""
        album = together[0].album
        while album is not None:
            while chat.waiting and chat.waiting[0].album == album:
                together.append(chat.waiting.popleft())
            chat.news.clear()
            if chat.waiting or not await heard(chat.news, ALBUM_S):
                return

    async def _look_into(self, link: Link, together: list[_Update]) -> None:
        """It has led to whatever it leads to, or is refused for good, when this returns; or it stays stored, for what is still to come."""
        refused = together[0].problem
        while refused is None:
            try:
                if not await self._meaning.act(link, [one for update in together for one in update.found], together[0].stored):
                    return
                break
            except Unavailable as error:
                log.warning("an update cannot be stored yet", platform=link.name, error=str(error))
                await asyncio.sleep(error.retry_after_s)
            except LoggedOut as error:  # It waits until an operator has replaced the credentials.
                log.warning("an update cannot be handled yet", platform=link.name, error=str(error))
                await asyncio.sleep(LOG_IN_AGAIN_S)
            except Exception as error:  # The boundary: one update that fails must not hold up its chat for ever (P8).
                refused = f"{type(error).__name__}: {error}"
                log.error("an update could not be handled", platform=link.name, exc_info=error)
        if refused is not None:
            link.refused += 1
            log.warning("update refused", platform=link.name, updates=[update.stored.id for update in together], error=refused)
        for update in together:
            await insist(partial(self._store.settle_update, update.stored.id, refused=refused))


def _read(link: Link, stored: StoredUpdate) -> _Update:
    """What it means. One that cannot be translated is refused, and holds up nobody."""
    try:
        return _Update(stored, link.platform.read(stored.body))
    except Exception as error:  # The platform's boundary: an update may hold anything.
        why = str(error) if isinstance(error, Unreadable) else f"{type(error).__name__}: {error}"
        return _Update(stored, problem=why)
