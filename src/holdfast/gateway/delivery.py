"""Sends what is owed to chats: intent before the send, outcome after it, and an honest label where nobody can know (P4)."""

import asyncio

import structlog

from holdfast.core import delivery, keys
from holdfast.core.content import Content
from holdfast.core.delivery import DUE, IN_FLIGHT, MAX_TRIES, DeliveryState
from holdfast.core.errors import Refused, Unavailable
from holdfast.core.events import DeliveryChanged
from holdfast.gateway.host import Host
from holdfast.gateway.tasks import heard
from holdfast.ports.outbox import Delivery
from holdfast.ports.platforms import Platform, Receipt
from holdfast.ports.store import Store

POLL_S = 1.0
SEND_TIMEOUT_S = 60.0
AT_ONCE = 100
MOST_AT_ONCE = 100 * AT_ONCE
ANY_TIME = 2**62

log = structlog.get_logger()


class Deliveries:
    def __init__(self, *, store: Store, host: Host, platforms: dict[str, Platform]) -> None:
        self._store, self._clock, self._platforms, self._tasks = store, host.clock, platforms, host.tasks
        self._owner, self._liveness = host.owner, host.liveness
        self._busy: set[str] = set()
        # Chats that another process, which is alive, still sends to: until it is over, their next reply waits.
        self._elsewhere: set[str] = set()
        # By chat: the monotonic time before which its next reply is not tried again. The wall clock may jump.
        self._not_before: dict[str, float] = {}
        self._open = True
        self._news = asyncio.Event()
        self._one_done = asyncio.Event()
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
        if not self._platforms:
            return  # Pages read the log; only chats are owed anything.
        looked = False
        while True:
            self._news.clear()
            try:
                if self._elsewhere or not looked:
                    await self._find_lost()
                    looked = True
                await self._look()
            except Unavailable as error:
                log.warning("the outbox cannot be read", error=str(error))
            await heard(self._news, POLL_S)

    async def tried(self) -> None:
        """Returns when everything that is due has been tried, and nothing is under way."""
        # A send may also be started by `run` while this one looks.
        while self._busy or await self._look() or self._busy:
            self._one_done.clear()
            await self._one_done.wait()

    async def _find_lost(self) -> None:
        """What was in flight when its sender died: nobody knows whether it arrived. Of what another process is sending it will say so."""
        in_flight = await self._store.deliveries(states=IN_FLIGHT, now=ANY_TIME, limit=10**6)
        theirs = [owed for owed in in_flight if owed.owner != self._owner]
        names = {owner.id: owner.name for owner in await self._store.owners()} if theirs else {}
        living = {owner for owner, name in names.items() if self._liveness.alive(name)}
        self._elsewhere = {owed.session_key for owed in theirs if owed.owner in living}
        for owed in theirs:
            if owed.owner not in living:
                await self._record(owed, owed.state, delivery.after(owed.state, "lost"))

    async def _look(self) -> int:
        """Starts the oldest reply of each chat, if it is due: the order within a chat is kept. Gives how many it started."""
        limit = AT_ONCE
        while self._open:
            page = await self._store.deliveries(states=DUE, now=ANY_TIME, limit=limit)
            started = self._start(page)
            # Replies that must wait, or whose platform is not here, must not hold up those behind them.
            if started or len(page) < limit or limit >= MOST_AT_ONCE:
                return started
            limit *= 10
        return 0

    def _start(self, page: list[Delivery]) -> int:
        started, now = 0, self._clock.monotonic()
        chats: set[str] = set()
        for owed in page if self._open else ():
            platform = self._platforms.get(keys.parse(owed.session_key).platform)
            chat = owed.session_key
            first = chat not in chats
            chats.add(chat)
            if platform is None or not first or chat in self._busy or chat in self._elsewhere or self._not_before.get(chat, now) > now:
                continue  # A platform that is not here now may come back: the outbox waits.
            self._busy.add(chat)
            self._tasks.spawn(self._deliver(owed, platform), name=f"deliver {owed.delivery_id}")
            started += 1
        return started

    async def _deliver(self, owed: Delivery, platform: Platform) -> None:
        self._not_before.pop(owed.session_key, None)
        try:
            if owed.state is DeliveryState.UNKNOWN:
                await self._deliver_unknown(owed, platform)
            else:
                await self._send(owed, platform, "send", owed.content)
        except Unavailable as error:
            log.warning("delivery waits for the store", delivery=owed.delivery_id, error=str(error))
            self._wait(owed, error.retry_after_s)
        finally:
            self._busy.discard(owed.session_key)
            self._news.set()
            self._one_done.set()

    def _wait(self, owed: Delivery, seconds: float) -> None:
        self._not_before[owed.session_key] = self._clock.monotonic() + seconds

    async def _deliver_unknown(self, owed: Delivery, platform: Platform) -> None:
        if not platform.reconciles:
            if owed.tries >= MAX_TRIES:
                await self._record(owed, owed.state, delivery.after(owed.state, "give up"), error="its outcome is unknown, again and again")
            else:
                await self._send(owed, platform, "repeat", delivery.repeated(owed.content))
            return
        try:
            found = await platform.find(owed.delivery_id, owed.session_key)
        except Exception as error:  # The platform's boundary: what could not be asked is asked again.
            log.warning("delivery cannot be looked up", delivery=owed.delivery_id, error=str(error))
            self._wait(owed, delivery.retry_delay_ms(owed.tries) / 1000)
            return
        await self._record(owed, owed.state, delivery.after(owed.state, "found" if found else "not found"), receipt=found)

    async def _send(self, owed: Delivery, platform: Platform, happened: str, content: Content) -> None:
        sending, tries = delivery.after(owed.state, happened), owed.tries + 1
        if not await self._record(owed, owed.state, sending, tries=tries):
            return
        receipt, problem = None, None
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                receipt = await platform.send(owed.delivery_id, owed.session_key, content, anchor=owed.anchor)
            after = delivery.after(sending, "receipt")
        except Unavailable as error:
            after, problem = delivery.after(sending, "give up" if tries >= MAX_TRIES else "failed"), str(error)
        except Refused as error:
            after, problem = delivery.after(sending, "give up"), str(error)
        except TimeoutError:
            after, problem = delivery.after(sending, "lost"), "no answer in time"
        except Exception as error:  # The platform's boundary: whatever it is, nobody knows whether it arrived.
            after, problem = delivery.after(sending, "lost"), f"{type(error).__name__}: {error}"
        if problem is not None:
            log.warning("send failed", delivery=owed.delivery_id, state=after, error=problem)
        if after in DUE:  # One that was given up holds up nothing behind it.
            self._wait(owed, delivery.retry_delay_ms(tries) / 1000)
        outcome = self._insist(owed, sending, after, tries=tries, receipt=receipt, error=problem)
        await self._tasks.finish(outcome, name=f"outcome of {owed.delivery_id}")

    async def _insist(
        self, owed: Delivery, expect: DeliveryState, state: DeliveryState, *, tries: int, receipt: Receipt | None, error: str | None
    ) -> None:
        """The outcome of a send is tried until it is on record: what is not recorded will be sent again."""
        while True:
            try:
                await self._record(owed, expect, state, tries=tries, receipt=receipt, error=error)
                return
            except Unavailable as problem:
                await asyncio.sleep(problem.retry_after_s)

    async def _record(
        self,
        owed: Delivery,
        expect: DeliveryState,
        state: DeliveryState,
        *,
        tries: int | None = None,
        receipt: Receipt | None = None,
        error: str | None = None,
    ) -> bool:
        now = self._clock.now()
        tries = owed.tries if tries is None else tries
        change = DeliveryChanged(
            delivery_id=owed.delivery_id,
            state=state,
            tries=tries,
            receipt=receipt.message if receipt else None,
            retry_at=now + delivery.retry_delay_ms(tries) if error is not None and state in DUE else 0,
            error=error,
            owner=self._owner if state in IN_FLIGHT else None,
        )
        return await self._store.record_delivery(owed.session_id, change, expect=expect, at=now)
