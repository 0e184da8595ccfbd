"""Sends what is owed to chats: intent before the send, outcome after it, and an honest label where nobody can know (P4). In order within a
chat or thread, side by side across them."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
import structlog

from holdfast.core import content, delivery, keys
from holdfast.core.chat_errors import LoggedOut, PlaceGone
from holdfast.core.delivery import DUE, IN_FLIGHT, DeliveryState, NotOver, Settle
from holdfast.core.errors import NotFound, Refused, Unavailable
from holdfast.core.events import DeliveryChanged
from holdfast.core.inbound import Echo
from holdfast.core.pacing import What
from holdfast.core.places import Spot
from holdfast.core.plans import deliver
from holdfast.core.plans.deliver import Live
from holdfast.core.rich import Rich
from holdfast.gateway.host import Host
from holdfast.gateway.links import Link
from holdfast.gateway.pauses import Pauses
from holdfast.gateway.sending import Outcome, Sender
from holdfast.gateway.tally import Tally
from holdfast.gateway.tasks import heard
from holdfast.ports.blobs import Files
from holdfast.ports.outbox import Delivery
from holdfast.ports.platforms import OutFile, Outgoing, Receipt
from holdfast.ports.store import Store

POLL_S = 1.0
AT_ONCE = 100
MOST_AT_ONCE = 100 * AT_ONCE
# So many of the oldest are looked at first: usually one of them may go. After a look at many more there is a pause.
FIRST, PAUSE_S = 20, 0.25
ANY_TIME = 2**62
LIVE_WAIT_S = 0.2
FIRST_WORDS = 200
AT_ONCE_S = 0.001
DOUBTS_S = 5.0

log = structlog.get_logger()


class Deliveries:
    def __init__(self, *, store: Store, host: Host, links: dict[str, Link], files: Files, tally: Tally) -> None:
        self._store, self._clock, self._links, self._tasks = store, host.clock, links, host.tasks
        self._owner, self._liveness, self._files, self._tally = host.owner, host.liveness, files, tally
        self._sender = Sender(store)
        self._busy: set[Spot] = set()
        self._looks: list[set[Spot]] = []
        # Where another process, which is alive, still sends to: until that is over, what comes next there waits.
        self._elsewhere: set[Spot] = set()
        self._pauses = Pauses(host.clock)
        self._open, self._looked_at_many = True, False
        self._news = asyncio.Event()
        self._one_done = asyncio.Event()
        self._looked = asyncio.Event()
        self._unsubscribe = store.subscribe(self._news.set)

    def close(self) -> None:
        """No send starts from now on; those under way go on."""
        self._open = False
        self._unsubscribe()

    def hold(self) -> None:
        """As `close`, until it is released."""
        self._open = False

    def release(self) -> None:
        self._open = True
        self._news.set()

    async def run(self) -> None:
        if not self._links:
            return  # Pages read the log; only chats are owed anything.
        while True:
            self._news.clear()
            wait_s = POLL_S
            try:
                if self._elsewhere or not self._looked.is_set():
                    await self._find_lost()
                    self._looked.set()
                # However much is owed, nothing can go while every account waits for its turn.
                soon_s = self._all_wait_s() or (await self._look())[1]
                wait_s = min(POLL_S, soon_s) if soon_s else POLL_S
            except Unavailable as error:
                log.warning("the outbox cannot be read", error=str(error))
            await heard(self._news, wait_s)
            if self._looked_at_many:
                await asyncio.sleep(PAUSE_S)

    def _all_wait_s(self) -> float:
        return min((link.account_wait_s for link in self._links.values() if link.sends), default=0.0)

    async def tried(self) -> None:
        """Returns when everything that is due has been tried, and nothing is under way."""
        while True:
            started, soon_s = await self._look()
            if self._busy or started:
                self._one_done.clear()
                await self._one_done.wait()
            elif soon_s:
                await asyncio.sleep(soon_s)
            else:
                return

    async def doubts_settled(self, link: Link) -> None:
        """What an earlier process left in doubt is settled first, where the platform can be asked: what people write next may be the answer
        to a question that they have seen. Returns when that is done, or has taken too long.
        """
        await self._looked.wait()
        until = self._clock.monotonic() + DOUBTS_S
        while link.platform.capabilities.finds and self._clock.monotonic() < until:
            doubtful = await self._store.deliveries(states=[DeliveryState.UNKNOWN], now=ANY_TIME, limit=AT_ONCE)
            if not any(owed.place.platform == link.name for owed in doubtful):
                return
            await asyncio.sleep(LIVE_WAIT_S)

    def take(self, spot: Spot) -> bool:
        """Lets somebody else send the next message there; false while one is under way, or may be. Give it back with `leave`."""
        if not self._open or spot in self._busy or spot in self._elsewhere:
            return False
        self._busy.add(spot)
        return True

    def leave(self, spot: Spot) -> None:
        self._busy.discard(spot)
        for touched in self._looks:
            touched.add(spot)
        self._news.set()
        self._one_done.set()

    async def _find_lost(self) -> None:
        """What was in flight when its sender died: nobody knows whether it arrived. Of what another process is sending it will say so."""
        in_flight = await self._store.deliveries(states=IN_FLIGHT, now=ANY_TIME, limit=10**6)
        in_flight += [live for live in await self._store.live_deliveries() if live.state in IN_FLIGHT]
        theirs = [owed for owed in in_flight if owed.owner != self._owner]
        names = {owner.id: owner.name for owner in await self._store.owners()} if theirs else {}
        living = {owner for owner, name in names.items() if self._liveness.alive(name)}
        self._elsewhere = {owed.place.spot for owed in theirs if owed.owner in living}
        for owed in theirs:
            if owed.owner not in living:
                happened = "edit lost" if owed.target is not None else "lost"
                await self._record(owed, delivery.after(owed.state, happened))

    async def _look(self) -> tuple[int, float]:
        """Starts the oldest message of each chat, if it is due: the order within a chat is kept. Gives how many it started, and how soon
        the next may be that only waits for its turn; 0 if there is none.
        """
        limit = FIRST
        while self._open:
            self._looked_at_many = limit > AT_ONCE
            # What was under way while this is read may have moved on since.
            touched = set(self._busy)
            self._looks.append(touched)
            try:
                sends = [name for name, link in self._links.items() if link.sends]
                page = await self._store.deliveries(states=DUE, now=ANY_TIME, limit=limit, platforms=sends)
            finally:
                self._looks = [each for each in self._looks if each is not touched]
            started, soon_s = self._start(page, touched)
            # Replies that must wait must not hold up those behind them.
            if started or len(page) < limit or limit >= MOST_AT_ONCE:
                return started, soon_s
            limit *= 10
        return 0, 0.0

    def _start(self, page: list[Delivery], touched: set[Spot]) -> tuple[int, float]:
        started, soon_s = 0, 0.0
        spots: set[Spot] = set()
        for owed in page if self._open else ():
            spot = owed.place.spot
            first = spot not in spots
            spots.add(spot)
            link = self._links.get(spot.platform)
            if link is None or not link.sends or not first or spot in self._busy or spot in self._elsewhere:
                continue  # A platform that is not here now may come back: the outbox waits.
            if spot in touched:
                soon_s = AT_ONCE_S
                continue
            if self._pauses.holds(owed):
                continue
            wait_s = link.wait_s(owed.place, What.FINAL)
            if wait_s > 0:
                soon_s = min(soon_s or wait_s, wait_s)
                continue
            self._busy.add(spot)
            link.take(owed.place)
            self._tasks.spawn(self._deliver(owed, link), name=f"deliver {owed.delivery_id}")
            started += 1
        return started, soon_s

    async def _deliver(self, owed: Delivery, link: Link) -> None:
        sent = False
        try:
            sent = await self._move_on(owed, link)
        except Unavailable as error:
            log.warning("delivery waits for the store", delivery=owed.delivery_id, error=str(error))
            await asyncio.sleep(error.retry_after_s)
        except NotFound as error:
            log.info("nothing is owed any more", delivery=owed.delivery_id, error=str(error))
        except Exception:  # It is reported as every task that fails, and the message tried again after a pause, ever more rarely.
            self._pauses.failed(owed)
            raise
        finally:
            if not sent:
                link.give_back(owed.place)
            self.leave(owed.place.spot)

    async def _move_on(self, owed: Delivery, link: Link) -> bool:
        """Whether a message was sent."""
        if (why := link.is_closed(owed.place.spot)) is not None:
            await self._record(owed, delivery.after(owed.state, "give up"), error=why)
            return False
        if owed.state is DeliveryState.UNKNOWN:
            return await self._settle(owed, link)
        if not owed.planned and await self._plan(owed, link):
            return False
        return await self._send(owed, link, "send")

    # in which pieces

    async def _plan(self, owed: Delivery, link: Link) -> bool:
        """Whether there is more to do before it can be sent: it is sent in pieces, or into messages that show it already."""
        platform, live = link.platform, list[Live]()
        if owed.turn_id is not None and owed.role == deliver.ANSWER:
            live = await self._store.live_messages(owed.session_id, owed.turn_id, before=owed.seq)
        if any(one.state in IN_FLIGHT for one in live):
            await asyncio.sleep(LIVE_WAIT_S)
            return True
        unknown = [one for one in live if one.state is DeliveryState.UNKNOWN]
        if unknown and not await self._settle_live(owed, unknown, link):
            return True
        planned = deliver.planned(owed.delivery_id, owed.content, platform.capabilities, platform.size, live)
        if planned is None:
            return False
        await self._store.plan_delivery(owed.session_id, planned, at=self._clock.now())
        return True

    async def _settle_live(self, owed: Delivery, unknown: list[Live], link: Link) -> bool:
        """Whether all is known that can be known of messages which may show the answer."""
        done = True
        for one in unknown:
            row = (await self._store.delivery(one.delivery_id))[0]
            match await self.settle_live(row, deliver.words(owed.content, None), link):
                case Settle.SAME_KEY:
                    done = False
                case Settle.ASK | Settle.WAIT:
                    await asyncio.sleep(LIVE_WAIT_S)
                    done = False
        return done

    async def settle_live(self, row: Delivery, text: Rich, link: Link) -> Settle | None:
        """Nobody knows whether a message arrived that shows an answer. Gives what was done: None if it is known now, `Settle.SAME_KEY` if
        it was sent again and may be known, `Settle.ASK` and `Settle.WAIT` if it has to be settled later.
        """
        way = Settle.WAIT if self._pauses.holds(row) else await self._look_up(row, link)
        if way is Settle.SAME_KEY:
            await self._send_live_again(row, text, link)
        return way

    async def _send_live_again(self, row: Delivery, text: Rich, link: Link) -> None:
        """Under its first key: if it is there already, the platform says which message it is."""
        sending = delivery.after(row.state, "same key")
        if await self._record(row, sending, tries=row.tries + 1):
            first = text.cut(0, min(len(text.text), FIRST_WORDS))
            outcome = await self._sender.send(link, Outgoing(place=row.place, key=delivery.key(row.delivery_id), text=first))
            happened = {"receipt": "opened", "give up": "give up"}.get(outcome.happened, "lost")
            after, retry_s = delivery.after(sending, happened), outcome.retry_s or delivery.retry_delay_ms(row.tries) / 1000
            wait_s = retry_s if happened == "lost" else 0.0
            record = partial(self._record, row, after, expect=sending, tries=row.tries + 1, wait_s=wait_s)
            recorded = _until_recorded(partial(record, receipt=outcome.receipt, error=outcome.error))
            await self._tasks.finish(recorded, name=f"outcome of {row.delivery_id}")

    async def forget_live(self, row: Delivery, link: Link) -> None:
        """Nobody knows whether a message arrived that showed an answer, and there is none that it could become."""
        if self._pauses.holds(row):
            return
        if await self._look_up(row, link) not in (None, Settle.ASK):
            await self._record(row, delivery.after(row.state, "give up"), error="nobody knows whether it arrived")

    # one message

    async def _look_up(self, owed: Delivery, link: Link) -> Settle | None:
        """Asks the platform, where it can be asked, whether a message arrived. Gives what is left to do: None if the doubt is settled,
        `Settle.ASK` if the platform could not tell and is asked again later.
        """
        ago = self._clock.now() - owed.tried_at
        settle = partial(
            delivery.settle,
            link.platform.capabilities,
            tries=owed.tries,
            tried_ms_ago=ago,
            works_ms=link.works_ms,
            sure_ms=link.complete_ms,
        )
        if (way := settle()) is not Settle.ASK:
            return way
        try:
            found = await link.platform.find(delivery.key(owed.delivery_id, owed.part), link.native(owed.place))
        except PlaceGone as error:
            await link.close(self._store, owed.place.spot, str(error))
            await self._record(owed, delivery.after(owed.state, "give up"), error=str(error))
            return None
        except Exception as error:  # The platform's boundary: everything is an outcome.
            log.warning("delivery cannot be looked up", delivery=owed.delivery_id, error=f"{type(error).__name__}: {error}")
            if isinstance(error, Refused) and not isinstance(error, LoggedOut):
                return settle(refused=True)
            await self._record(owed, owed.state, error=str(error), wait_s=delivery.ask_delay_ms(ago) / 1000)
            return Settle.ASK
        await self._answered(owed, found)
        return None

    async def _answered(self, owed: Delivery, found: Receipt | None) -> None:
        if owed.live:
            happened = "opened" if found else "give up"
        else:
            happened = "found" if found else "not found"
        await self._record(owed, delivery.after(owed.state, happened), receipt=found)

    async def _settle(self, owed: Delivery, link: Link) -> bool:
        """It may have arrived. Whether it was sent again."""
        match await self._look_up(owed, link):
            case Settle.SAME_KEY:
                return await self._send(owed, link, "same key")
            case Settle.WAIT:
                await asyncio.sleep(LIVE_WAIT_S)
            case Settle.REPEAT:
                return await self._send(owed, link, "repeat")
            case Settle.GIVE_UP:
                await self._record(owed, delivery.after(owed.state, "give up"), error="its outcome is unknown, again and again")
        return False

    async def echo(self, link: Link, echo: Echo) -> None:
        """A message of our own came back: if nobody knew whether it had arrived, now it is known."""
        if echo.key is None:
            return
        doubtful = [DeliveryState.UNKNOWN, *IN_FLIGHT]
        rows = await self._store.deliveries(states=doubtful, now=ANY_TIME, limit=MOST_AT_ONCE) + await self._store.live_deliveries()
        for owed in rows:
            if delivery.key(owed.delivery_id, owed.part) == echo.key and owed.state is DeliveryState.UNKNOWN:
                happened = "opened" if owed.live else "found"
                await self._record(owed, delivery.after(owed.state, happened), receipt=Receipt(echo.message))
                self._news.set()

    async def decide(self, delivery_id: str, action: str) -> list[Delivery]:
        """An operator's word: "retry", "drop" or "sent". Gives the pieces as they are then. Raises `NotFound`, `NotOver`."""
        rows = await self._store.delivery(delivery_id)
        if not rows:
            raise NotFound("delivery", delivery_id)
        link = self._links.get(rows[0].place.platform)
        if link is not None and action == "retry":
            await link.reopen(self._store, rows[0].place.chat)
        moved = 0
        for owed in rows:
            state = delivery.by_operator(owed.state, action)
            if state is not None:
                error = delivery.DROPPED if state is DeliveryState.DEAD else None
                moved += await self._record(owed, state, tries=0 if action == "retry" else None, error=error, receipt=_receipt(owed))
        if not moved:
            raise NotOver(delivery_id, rows[0].state, action)
        self._news.set()
        return await self._store.delivery(delivery_id)

    async def _send(self, owed: Delivery, link: Link, happened: str) -> bool:
        """Whether it was tried."""
        sending, tries = delivery.after(owed.state, happened), owed.tries + 1
        try:
            message = await self._message(owed, link, repeat=happened == "repeat")
        except Refused as error:
            await self._record(owed, delivery.after(owed.state, "give up"), error=str(error))
            return False
        except OSError as error:
            await self._cannot_read(owed, error)
            return False
        self._pauses.works(owed)
        if not await self._record(owed, sending, tries=tries):
            return False
        if owed.target is not None and happened == "send":
            outcome = await self._sender.edit(link, owed.target, message, paid=True)
            if outcome.happened == "gone" and link.platform.capabilities.removes:
                # It may still show a part of what is now sent whole.
                await self._sender.remove(link, owed.place, owed.target)
        else:
            outcome = await self._sender.send(link, message, paid=True)
        await self._tasks.finish(self._insist(owed, sending, outcome, tries), name=f"outcome of {owed.delivery_id}")
        return True

    async def _cannot_read(self, owed: Delivery, error: OSError) -> None:
        """The disk may give the file later. Each time counts as a try of what surely did not arrive."""
        log.warning("a file that is owed cannot be read", delivery=owed.delivery_id, part=owed.part, error=str(error))
        pending = owed.state is DeliveryState.PENDING
        tries = owed.tries + 1 if pending else owed.tries
        over = pending and delivery.gives_up(tries=tries, age_ms=self._clock.now() - owed.written_at)
        state = delivery.after(owed.state, "give up") if over else owed.state
        words = f"The file cannot be read: {error}"
        await self._record(owed, state, tries=tries, error=words, wait_s=0.0 if over else delivery.retry_delay_ms(tries) / 1000)

    async def _message(self, owed: Delivery, link: Link, *, repeat: bool) -> Outgoing:
        piece, age_ms = owed.piece, self._clock.now() - owed.written_at
        repeat = repeat or (piece is not None and piece.repeat)
        before = delivery.words_before(repeat=repeat, age_ms=age_ms)
        last = owed.part == owed.parts - 1
        can = link.platform.capabilities
        made = Outgoing(
            place=owed.place,
            key=delivery.key(owed.delivery_id, owed.part),
            buttons=owed.buttons[: can.choices] if last and can.buttons else (),
        )
        if piece is not None and piece.file is not None:
            part = content.attached(owed.content)[piece.file]
            data = await self._files.read(part.blob)
            file = OutFile(name=part.name or part.blob[:8], media_type=part.media_type, data=data)
            return msgspec.structs.replace(made, file=file, text=Rich(before.strip()))
        text = deliver.words(owed.content, piece)
        return msgspec.structs.replace(made, text=text.after(before) if before else text)

    async def _insist(self, owed: Delivery, sending: DeliveryState, outcome: Outcome, tries: int) -> None:
        happened, anew = outcome.happened, False
        if happened == "gone":
            happened, anew = "edit lost", True
        if happened == "failed" and delivery.gives_up(tries=tries, age_ms=self._clock.now() - owed.written_at):
            happened = "give up"
        after = delivery.after(sending, happened)
        if outcome.error is not None:
            log.warning("send failed", delivery=owed.delivery_id, part=owed.part, state=after, error=outcome.error)
        wait_s = outcome.retry_s if outcome.retry_s is not None else delivery.retry_delay_ms(tries) / 1000
        wait_s = wait_s if after in DUE and not anew else 0.0
        record = partial(self._record, owed, after, expect=sending, tries=tries, anew=anew, wait_s=wait_s)
        await _until_recorded(partial(record, receipt=outcome.receipt, error=outcome.error))

    async def _record(
        self,
        owed: Delivery,
        state: DeliveryState,
        *,
        expect: DeliveryState | None = None,
        tries: int | None = None,
        receipt: Receipt | None = None,
        error: str | None = None,
        anew: bool = False,
        wait_s: float = 0.0,
    ) -> bool:
        now = self._clock.now()
        retry_at = now + int(1000 * wait_s) if wait_s else 0
        if retry_at:
            self._pauses.stored(owed, retry_at, wait_s)
        change = DeliveryChanged(
            delivery_id=owed.delivery_id,
            part=owed.part,
            state=state,
            tries=owed.tries if tries is None else tries,
            receipt=receipt.message if receipt else None,
            retry_at=retry_at,
            error=error,
            owner=self._owner if state in IN_FLIGHT else None,
            anew=anew,
        )
        moved = await self._store.record_delivery(owed.session_id, change, expect=expect or owed.state, at=now)
        if moved and state is DeliveryState.SENT:
            self._tally.delivered(keys.parse(owed.session_key).platform)
        return moved


async def _until_recorded(record: Callable[[], Awaitable[bool]]) -> None:
    """The outcome of a send is tried until it is on record: what is not recorded stays in flight, or is sent again."""
    while True:
        try:
            await record()
            return
        except Unavailable as problem:
            await asyncio.sleep(problem.retry_after_s)


def _receipt(owed: Delivery) -> Receipt | None:
    return Receipt(owed.receipt) if owed.receipt is not None else None
