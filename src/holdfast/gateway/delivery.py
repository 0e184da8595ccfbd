"""Sends what is owed to chats: intent before the send, outcome after it, and an honest label where nobody can know (P4)."""

import asyncio

import structlog

from holdfast.core import delivery, keys
from holdfast.core.delivery import DUE, IN_FLIGHT, MAX_TRIES, REPEAT_LABEL, DeliveryState
from holdfast.core.errors import Refused, Unavailable
from holdfast.core.events import DeliveryChanged
from holdfast.gateway.tasks import Tasks, heard
from holdfast.ports import Clock, Delivery, Platform, Receipt, Store

POLL_S = 1.0
SEND_TIMEOUT_S = 60.0
AT_ONCE = 100

log = structlog.get_logger()


class Deliveries:
    def __init__(self, *, store: Store, clock: Clock, platforms: dict[str, Platform], tasks: Tasks) -> None:
        self._store, self._clock, self._platforms, self._tasks = store, clock, platforms, tasks
        self._busy: set[str] = set()
        self._news = asyncio.Event()
        self._unsubscribe = store.subscribe(self._news.set)

    def close(self) -> None:
        self._unsubscribe()

    async def run(self) -> None:
        await self._find_lost()
        while True:
            self._news.clear()
            try:
                await self._look()
            except Unavailable as error:
                log.warning("the outbox cannot be read", error=str(error))
            await heard(self._news, POLL_S)

    async def _find_lost(self) -> None:
        """What was in flight when an earlier process died: nobody knows whether it arrived."""
        for owed in await self._store.deliveries(states=IN_FLIGHT, now=2**62, limit=10**6):
            await self._move(owed, "lost")

    async def _look(self) -> None:
        """Starts the oldest reply of each session that is due; the order within a session is kept."""
        sessions: set[str] = set()
        for owed in await self._store.deliveries(states=DUE, now=self._clock.now(), limit=AT_ONCE):
            platform = self._platforms.get(keys.parse(owed.session_key).platform)
            if platform is None or owed.session_id in self._busy or owed.session_id in sessions:
                continue  # A platform that is not here now may come back: the outbox waits.
            sessions.add(owed.session_id)
            self._busy.add(owed.session_id)
            self._tasks.spawn(self._deliver(owed, platform), name=f"deliver {owed.delivery_id}")

    async def _deliver(self, owed: Delivery, platform: Platform) -> None:
        try:
            if owed.state is DeliveryState.UNKNOWN:
                await self._deliver_unknown(owed, platform)
            else:
                await self._send(owed, platform, "send", owed.text)
        finally:
            self._busy.discard(owed.session_id)
            self._news.set()

    async def _deliver_unknown(self, owed: Delivery, platform: Platform) -> None:
        if not platform.reconciles:
            await self._send(owed, platform, "repeat", REPEAT_LABEL + owed.text)
            return
        try:
            found = await platform.find(owed.delivery_id, owed.session_key)
        except Unavailable as error:
            await self._record(owed, owed.state, owed.state, error=str(error), retry=True)
            return
        await self._move(owed, "found" if found else "not found", receipt=found)

    async def _send(self, owed: Delivery, platform: Platform, happened: str, text: str) -> None:
        sending = delivery.after(owed.state, happened)
        if not await self._record(owed, owed.state, sending, tries=owed.tries + 1):
            return
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                receipt = await platform.send(owed.delivery_id, owed.session_key, text)
        except Unavailable as error:
            given_up = owed.tries + 1 >= MAX_TRIES
            after = delivery.after(sending, "give up" if given_up else "failed")
            await self._record(owed, sending, after, tries=owed.tries + 1, error=str(error), retry=True)
        except Refused as error:
            await self._record(owed, sending, delivery.after(sending, "give up"), tries=owed.tries + 1, error=str(error))
        except TimeoutError:
            await self._record(owed, sending, delivery.after(sending, "lost"), tries=owed.tries + 1, error="no answer in time")
        else:
            done = self._record(owed, sending, delivery.after(sending, "receipt"), tries=owed.tries + 1, receipt=receipt)
            await self._tasks.finish(done, name=f"receipt {owed.delivery_id}")

    async def _move(self, owed: Delivery, happened: str, receipt: Receipt | None = None) -> None:
        await self._record(owed, owed.state, delivery.after(owed.state, happened), receipt=receipt)

    async def _record(
        self,
        owed: Delivery,
        expect: DeliveryState,
        state: DeliveryState,
        *,
        tries: int | None = None,
        receipt: Receipt | None = None,
        error: str | None = None,
        retry: bool = False,
    ) -> bool:
        now = self._clock.now()
        tries = owed.tries if tries is None else tries
        change = DeliveryChanged(
            delivery_id=owed.delivery_id,
            state=state,
            tries=tries,
            receipt=receipt.message if receipt else None,
            retry_at=now + delivery.retry_delay_ms(tries) if retry else 0,
            error=error,
        )
        return await self._store.record_delivery(owed.session_id, change, expect=expect, at=now)
