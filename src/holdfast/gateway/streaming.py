"""Shows answers in chats while they are being written: one message, edited within the budget, continued by whichever process holds the
platform (B11). It follows the log like any reader, so it does not matter which process runs the turn. What is left of it when the turn is
over becomes the answer, or is taken away (E1)."""

import asyncio

import structlog

from holdfast.core import delivery, live, pacing
from holdfast.core.delivery import IN_FLIGHT, DeliveryState, Settle
from holdfast.core.errors import NotFound, Unavailable
from holdfast.core.events import DeliveryChanged, DeliveryOpened
from holdfast.core.live import Manners, Seen
from holdfast.core.messages import answer_id
from holdfast.core.pacing import What
from holdfast.core.places import Place, place
from holdfast.core.rich import Rich
from holdfast.core.sessions import Session
from holdfast.core.transcript import Transcript
from holdfast.core.turns import TurnState
from holdfast.gateway.delivery import Deliveries
from holdfast.gateway.feed import Feed, Watcher
from holdfast.gateway.host import Host
from holdfast.gateway.links import Link
from holdfast.gateway.sending import Outcome, Sender
from holdfast.gateway.tasks import heard, insist
from holdfast.ports.outbox import Delivery
from holdfast.ports.platforms import Outgoing
from holdfast.ports.store import Store

POLL_S = 1.0
GAP_S = 0.25
AGAIN_S = 5.0
SETTLE_S = 1.0
PAGE = 1000

log = structlog.get_logger()


class _Message:
    """One that shows an answer, or the next part of it. `shown`: None while it is not known what it shows."""

    def __init__(self, delivery_id: str, receipt: str, shown: Rich | None = None) -> None:
        self.delivery_id, self.receipt, self.shown = delivery_id, receipt, shown


class _Writing:
    """An answer that is being written. `doubtful`: messages of which nobody knows yet whether they arrived. `ended`: nobody can know that,
    or one of its messages could not be edited, so it is shown no more until it is whole; `unfit`: such messages, as long as they stand
    there.
    """

    def __init__(self, session: Session, link: Link, where: Place, anchor: str | None) -> None:
        self.session, self.link, self.place, self.anchor = session, link, where, anchor
        self.turn_id = session.turn_id or ""
        self.transcript = Transcript()
        self.messages: list[_Message] = []
        self.unfit: list[tuple[_Message, str | None]] = []
        self.ended = False
        self.doubtful: list[str] = []
        self.edit_at = self.open_at = self.type_at = self.settle_at = 0.0

    @property
    def runs(self) -> bool:
        turns = self.transcript.turns
        return not turns or (turns[-1].id == self.turn_id and turns[-1].state is TurnState.RUNNING)


class Streams:
    def __init__(self, *, store: Store, host: Host, links: dict[str, Link], deliveries: Deliveries, feed: Feed, manners: Manners) -> None:
        self._store, self._host, self._clock, self._tasks = store, host, host.clock, host.tasks
        self._links = {name: link for name, link in links.items() if link.platform.capabilities.edits}
        self._deliveries, self._feed, self._manners = deliveries, feed, manners
        self._sender = Sender(store)
        self._writing: dict[str, asyncio.Task[None]] = {}
        self._not_before: dict[str, float] = {}
        self._quiet: set[str] = set()  # Messages of turns that wait, which show no more than was said.
        self._open = True
        self._news = asyncio.Event()
        self._unsubscribe = store.subscribe(self._news.set)

    def close(self) -> None:
        self._open = False
        self._unsubscribe()

    async def hold(self) -> None:
        """Another process shows what there is to show. Returns when nothing is under way here."""
        self._open = False
        writing = list(self._writing.values())
        if writing:
            await asyncio.wait(writing)

    def release(self) -> None:
        self._open = True
        self._news.set()

    async def run(self) -> None:
        if not self._links:
            return
        while True:
            self._news.clear()
            try:
                if self._open:
                    await self._look()
            except Unavailable as error:
                log.warning("answers cannot be followed", error=str(error))
            await asyncio.sleep(GAP_S)
            await heard(self._news, POLL_S)

    async def _look(self) -> None:
        """Follows each turn that runs for a chat, and puts away what is left of those that do not."""
        for session in await self._store.open_turns(apart_from=0):
            where = place(session.session_key)
            link = self._links.get(where.platform)
            if link is None or not link.sends or session.turn_state is not TurnState.RUNNING or not session.turn_id:
                continue
            if session.session_id not in self._writing:
                task = self._tasks.spawn(self._follow(session, link), name=f"show {session.turn_id}")
                self._writing[session.session_id] = task
        for row in await self._store.live_deliveries():
            link = self._links.get(row.place.platform)
            if link is not None and link.sends and row.session_id not in self._writing and row.state not in IN_FLIGHT:
                try:
                    await self._put_away(row, link)
                except NotFound as error:
                    log.info("what showed an answer is deleted with its conversation", delivery=row.delivery_id, error=str(error))

    # a turn that runs

    async def _follow(self, session: Session, link: Link) -> None:
        try:
            anchor = await self._store.reply_anchor(session.session_id)
            writing = _Writing(session, link, place(session.session_key, anchor), anchor)
            watcher = await self._feed.watch(session.session_id, after=session.turn_seq - 1)
            try:
                await self._catch_up(writing)
                await self._take_up(writing)
                while self._open and writing.runs and watcher.ended is None and not watcher.slow:
                    await self._show(writing)
                    await self._hear(writing, watcher)
            finally:
                self._feed.leave(watcher)
        except (Unavailable, NotFound) as error:
            log.info("an answer is not followed for now", session=session.session_id, error=str(error))
        finally:
            del self._writing[session.session_id]
            self._news.set()

    async def _catch_up(self, writing: _Writing) -> None:
        after = writing.session.turn_seq - 1
        while page := await self._store.events(writing.session.session_id, after=after, limit=PAGE):
            writing.transcript.extend(page)
            writing.ended = writing.ended or live.ended(writing.turn_id, [item.event for item in page])
            after = page[-1].seq
            if not page.more:
                return

    async def _take_up(self, writing: _Writing) -> None:
        """What an earlier process, or an earlier attempt, has opened is continued here, unless something else stands below it."""
        known = {message.delivery_id for message in writing.messages} | {message.delivery_id for message, _ in writing.unfit}
        writing.doubtful = []
        for one in await self._store.live_messages(writing.session.session_id, writing.turn_id):
            if one.state in (DeliveryState.UNKNOWN, *IN_FLIGHT):
                writing.doubtful.append(one.delivery_id)
            elif one.receipt is not None and not one.followed and one.delivery_id not in known:
                writing.messages.append(_Message(one.delivery_id, one.receipt))

    async def _settle(self, writing: _Writing, text: Rich) -> None:
        """As long as nobody knows whether a message arrived, nothing else is shown: it is looked for, or sent again under its key."""
        link, spot, now = writing.link, writing.place.spot, self._clock.monotonic()
        if now < writing.settle_at or link.wait_s(writing.place, What.LIVE) > 0 or not self._deliveries.take(spot):
            return
        writing.settle_at = now + SETTLE_S
        try:
            for delivery_id in writing.doubtful:
                for row in await self._store.delivery(delivery_id):
                    if row.state is DeliveryState.UNKNOWN:
                        way = await self._deliveries.settle_live(row, text, link)
                        writing.ended = writing.ended or way in (Settle.REPEAT, Settle.GIVE_UP)
        finally:
            self._deliveries.leave(spot)
        await self._take_up(writing)

    async def _hear(self, writing: _Writing, watcher: Watcher) -> None:
        for frame in await watcher.next(self._next_s(writing)):
            if frame.seq > writing.transcript.seq:
                writing.transcript.apply(frame.logged)

    def _next_s(self, writing: _Writing) -> float:
        return min(POLL_S, max(GAP_S, writing.edit_at - self._clock.monotonic()))

    def _seen(self, writing: _Writing) -> Seen:
        turn = writing.transcript.turns[-1] if writing.transcript.turns else None
        ran_ms = max(0, self._clock.now() - turn.started_at) if turn else 0
        calls = [call for call in writing.transcript.calls if call.outcome is None]
        return Seen(text=writing.transcript.answer_text, calls=calls, ran_s=ran_ms / 1000)

    async def _show(self, writing: _Writing) -> None:
        """At most one request. An edit that failed is made good by the next."""
        seen, link, now = self._seen(writing), writing.link, self._clock.monotonic()
        can = link.platform.capabilities
        if writing.ended:
            await self._clear_away(writing)
            return await self._type(writing)
        if not writing.messages and not writing.doubtful and not live.opens(seen, self._manners):
            return await self._type(writing)
        if now < writing.edit_at or link.wait_s(writing.place, What.LIVE) > 0 or link.is_closed(writing.place.spot):
            return
        parts = live.parts(seen, self._manners, can, link.platform.size)
        if writing.doubtful:
            return await self._settle(writing, parts[min(len(writing.messages), len(parts) - 1)])
        for number, part in enumerate(parts):
            if number >= len(writing.messages):
                return await self._open_message(writing, part)
            if writing.messages[number].shown != part:
                return await self._edit(writing, writing.messages[number], part)

    async def _type(self, writing: _Writing) -> None:
        now, every_s = self._clock.monotonic(), writing.link.platform.capabilities.typing_s
        if every_s and now >= writing.type_at:
            writing.type_at = now + every_s
            try:
                await writing.link.platform.typing(writing.link.native(writing.place))
            except Exception as error:  # The platform's boundary: a courtesy.
                log.debug("typing was not shown", platform=writing.link.name, error=str(error))

    async def _open_message(self, writing: _Writing, text: Rich) -> None:
        """On record before it is sent; its id is on record before it is edited."""
        link, spot, now = writing.link, writing.place.spot, self._clock.monotonic()
        if now < writing.open_at or not self._deliveries.take(spot):
            return
        link.take(writing.place)  # Before anything is awaited: others look how much is left meanwhile.
        sent = False
        try:
            name = f"{writing.turn_id}.{self._host.ids.new(live.LIVE)}"
            opened = DeliveryOpened(delivery_id=name, turn_id=writing.turn_id, owner=self._host.owner, anchor=writing.anchor)
            if not await self._store.open_delivery(writing.session.session_id, opened, at=self._clock.now()):
                return
            sent = True
            outcome = await self._sender.send(link, Outgoing(place=writing.place, key=delivery.key(name), text=text), paid=True)
            await self._tasks.finish(self._opened(writing, name, text, outcome), name=f"outcome of {name}")
        finally:
            if not sent:
                link.give_back(writing.place)
            self._deliveries.leave(spot)

    async def _opened(self, writing: _Writing, name: str, text: Rich, outcome: Outcome) -> None:
        happened = {"receipt": "opened", "lost": "lost"}.get(outcome.happened, "give up")
        state = delivery.after(DeliveryState.SENDING, happened)
        message = outcome.receipt.message if outcome.receipt else None
        change = DeliveryChanged(delivery_id=name, state=state, tries=1, receipt=message, error=outcome.error)
        await self._insist(writing.session.session_id, change, expect=DeliveryState.SENDING)
        now = self._clock.monotonic()
        if message is not None:
            writing.messages.append(_Message(name, message, text))
            writing.edit_at = now + self._every_s(writing)
        else:
            writing.open_at = now + (outcome.retry_s or AGAIN_S)
            writing.doubtful += [name] if happened == "lost" else []

    async def _edit(self, writing: _Writing, message: _Message, text: Rich) -> None:
        writing.edit_at = self._clock.monotonic() + self._every_s(writing)
        outcome = await self._change(writing.link, writing.place, message.delivery_id, message.receipt, text)
        if outcome is None:
            return
        if outcome.happened == "receipt":
            message.shown = text
        elif outcome.happened in ("gone", "give up"):
            writing.ended = True
            writing.messages.remove(message)
            writing.unfit.append((message, outcome.error))
            await self._clear_away(writing)
        elif outcome.retry_s:
            writing.edit_at = self._clock.monotonic() + outcome.retry_s

    async def _clear_away(self, writing: _Writing) -> None:
        """What shows a part of the answer and cannot show the rest goes, where it can. If that fails until the answer is whole, the answer
        takes it away.
        """
        for message, error in list(writing.unfit) if self._clock.monotonic() >= writing.edit_at else ():
            if writing.link.platform.capabilities.removes:
                outcome = await self._change(writing.link, writing.place, message.delivery_id, message.receipt, None)
                if outcome is None:
                    return
                if outcome.happened in ("failed", "edit lost"):
                    writing.edit_at = self._clock.monotonic() + (outcome.retry_s or AGAIN_S)
                    return
            writing.unfit.remove((message, error))
            await self._closed(writing.session.session_id, message.delivery_id, message.receipt, error=error)

    async def _change(self, link: Link, where: Place, delivery_id: str, receipt: str, text: Rich | None) -> Outcome | None:
        """Edits a message, or takes it away where there is no text. Nothing else is sent there meanwhile, and none that has become the
        answer is touched: then, while something else is under way, and while the budget is spent, None.
        """
        if link.wait_s(where, What.LIVE) > 0 or not self._deliveries.take(where.spot):
            return None
        link.take(where)
        sent = False
        try:
            rows = await self._store.delivery(delivery_id)
            if not rows or rows[0].state is not DeliveryState.LIVE:
                return None
            sent = True
            if text is None:
                return await self._sender.remove(link, where, receipt, paid=True)
            return await self._sender.edit(link, receipt, Outgoing(place=where, key=delivery.key(delivery_id), text=text), paid=True)
        finally:
            if not sent:
                link.give_back(where)
            self._deliveries.leave(where.spot)

    def _every_s(self, writing: _Writing) -> float:
        rates = writing.link.platform.capabilities.rates
        return pacing.edit_every_s(rates, shared=writing.place.shared, writing=len(self._writing))

    # what is left of a turn that does not run

    async def _put_away(self, row: Delivery, link: Link) -> None:
        """While the turn waits, the message shows what was said, and nothing more. Once it is over and its answer has arrived elsewhere, or
        there is none, the message goes.
        """
        if self._clock.monotonic() < self._not_before.get(row.delivery_id, 0.0):
            return
        session = await self._session(row.session_id)
        if session is not None and session.turn_id == row.turn_id and session.open_turn:
            at_rest = session.left or session.turn_state is TurnState.WAITING
            if at_rest and row.delivery_id not in self._quiet and row.state is DeliveryState.LIVE and row.receipt is not None:
                await self._settle_words(row, row.receipt, session, link)
            return
        answer = await self._store.delivery(answer_id(row.turn_id or ""))
        if any(part.state not in (DeliveryState.SENT, DeliveryState.DEAD) for part in answer):
            return
        if row.state is DeliveryState.UNKNOWN:
            return await self._deliveries.forget_live(row, link)
        await self._remove(row, link)

    async def _session(self, session_id: str) -> Session | None:
        try:
            return await self._store.session(session_id)
        except NotFound:
            return None

    async def _settle_words(self, row: Delivery, receipt: str, session: Session, link: Link) -> None:
        writing = _Writing(session, link, row.place, row.anchor)
        await self._catch_up(writing)
        rows = [one for one in await self._store.live_messages(row.session_id, writing.turn_id) if one.state is DeliveryState.LIVE]
        number = next((number for number, one in enumerate(rows) if one.delivery_id == row.delivery_id), 0)
        said = Seen(text=writing.transcript.answer_text, calls=(), ran_s=0.0)
        shown = live.parts(said, self._manners, link.platform.capabilities, link.platform.size) if said.text.strip() else []
        if number >= len(shown):
            return await self._remove(row, link)
        outcome = await self._change(link, row.place, row.delivery_id, receipt, shown[number])
        if outcome is None:
            return
        if outcome.happened in ("gone", "give up"):
            await self._remove(row, link, error=outcome.error)
        elif outcome.happened == "receipt":
            self._quiet.add(row.delivery_id)
        else:
            self._not_before[row.delivery_id] = self._clock.monotonic() + (outcome.retry_s or AGAIN_S)

    async def _remove(self, row: Delivery, link: Link, *, error: str | None = None) -> None:
        if link.platform.capabilities.removes and row.receipt is not None:
            outcome = await self._change(link, row.place, row.delivery_id, row.receipt, None)
            if outcome is None:
                return
            if outcome.happened in ("failed", "edit lost"):
                self._not_before[row.delivery_id] = self._clock.monotonic() + (outcome.retry_s or AGAIN_S)
                return
        await self._closed(row.session_id, row.delivery_id, row.receipt, error=error)

    async def _closed(self, session_id: str, delivery_id: str, receipt: str | None, *, error: str | None = None) -> None:
        state = delivery.after(DeliveryState.LIVE, "closed")
        change = DeliveryChanged(delivery_id=delivery_id, state=state, tries=1, receipt=receipt, error=error)
        await self._insist(session_id, change, expect=DeliveryState.LIVE)
        self._quiet.discard(delivery_id)
        self._not_before.pop(delivery_id, None)

    async def _insist(self, session_id: str, change: DeliveryChanged, *, expect: DeliveryState) -> None:
        async def record() -> None:
            await self._store.record_delivery(session_id, change, expect=expect, at=self._clock.now())

        await insist(record)
