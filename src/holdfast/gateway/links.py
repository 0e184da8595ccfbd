"""The platforms as this process is connected to them: whose account it is, whether it works, what its chats are called now, and how much
may be sent. What a platform says of that is stored however often the store fails: the outcome of a send waits for it."""

import asyncio
from functools import partial

import msgspec
import structlog

from holdfast.core import pacing
from holdfast.core.chat_errors import Limited
from holdfast.core.pacing import Bucket, What
from holdfast.core.places import Place, Spot
from holdfast.core.rights import Policy
from holdfast.gateway.tasks import insist
from holdfast.ports.platforms import Account, Platform
from holdfast.ports.process import Clock
from holdfast.ports.updates import Updates

# A stored request to be quiet is obeyed for at most this long: the clock may have been set back.
MOST_QUIET_S = 600.0
MOST_CHATS = 2000
LOG_IN_AGAIN_S = 60.0

log = structlog.get_logger()


class Link:
    """One platform. `ready` once the account is known. `problem`: what keeps it from working now, in words. `waiting`: how many updates are
    stored and not yet part of a conversation. `state`: `connecting`, `connected`, `away` or `refused` (it does not accept our credentials),
    `since` a time. `updated_at`: when people's words last came; `retry_at`: when it is tried again; `failed`: when and why it last failed.
    """

    def __init__(self, platform: Platform, policy: Policy, clock: Clock) -> None:
        self.platform, self.policy, self.name, self._clock = platform, policy, platform.name, clock
        self.account: Account | None = None
        self.ready = asyncio.Event()
        self.problem: str | None = None
        self.state, self.since = "connecting", clock.now()
        self.updated_at: int | None = None
        self.retry_at: int | None = None
        self.failed: tuple[int, str] | None = None
        self.logged_out_until = 0.0
        self.waiting = 0
        self.refused = 0
        self.closed: dict[Spot, str] = {}
        self._names: dict[str, str] = {}
        self._heard_at: float | None = None
        self._worked_at: float | None = None
        self._bucket = pacing.of_account(platform.capabilities.rates, clock.monotonic())
        self._chats: dict[str, Bucket] = {}
        self._muted: set[str] = set()  # Chats in which we may not write for now.
        self._live_after = 0.0

    @property
    def id(self) -> str:
        """By which the store knows the account."""
        return f"{self.name}:{self.account.id if self.account else ''}"

    async def connect(self, store: Updates) -> None:
        self.account = await self.platform.connect()
        self._names = await store.chat_names(self.id)
        self.closed = {dead.spot: dead.why for dead in await store.dead_places() if dead.spot.platform == self.name}
        quiet_s = min(MOST_QUIET_S, (await store.quiet_until(self.id) - self._clock.now()) / 1000)
        if quiet_s > 0:
            self._bucket = self._bucket.quiet(self._clock.monotonic() + quiet_s)
        self.works()
        self.ready.set()

    def works(self) -> None:
        if self.problem is not None:
            log.info("platform works again", platform=self.name)
        self.problem, self.logged_out_until = None, 0.0
        if self._worked_at is None:
            self._worked_at = self._clock.monotonic()
        self._became("connected")

    def fails(self, why: str, *, retry_after_s: float) -> None:
        if why != self.problem:
            log.warning("platform is out of reach", platform=self.name, error=why)
        self.problem, self._heard_at, self._worked_at = why, None, None
        self._became("away", why, retry_after_s)

    def log_out(self, why: str) -> None:
        """The platform does not accept our credentials: nothing is sent until it has been asked again."""
        if self.logged_out_until == 0.0:
            log.error("the platform refuses the credentials: replace them and restart", platform=self.name, error=why)
        self.problem, self._worked_at, self.logged_out_until = why, None, self._clock.monotonic() + LOG_IN_AGAIN_S
        self._became("refused", why, LOG_IN_AGAIN_S)

    def _became(self, state: str, why: str | None = None, retry_after_s: float = 0.0) -> None:
        now = self._clock.now()
        if state != self.state:
            self.state, self.since = state, now
        self.retry_at = None if why is None else now + int(1000 * retry_after_s)
        if why is not None:
            self.failed = (now, why)

    @property
    def sends(self) -> bool:
        return self.ready.is_set() and self._clock.monotonic() >= self.logged_out_until

    @property
    def works_ms(self) -> int:
        """For how long it has worked; 0 while it does not."""
        return 0 if self._worked_at is None else int(1000 * (self._clock.monotonic() - self._worked_at))

    # what has been received

    def heard(self, *, all_done: bool) -> None:
        """A batch is stored. `all_done`: everything before it is part of conversations."""
        self._heard_at = self._heard_at or self._clock.monotonic()
        if not all_done:
            self.updated_at = self._clock.now()

    @property
    def complete_ms(self) -> int:
        """For how long everything that came has been taken in, so that an echo of ours would be known."""
        if self._heard_at is None or self.waiting:
            return 0
        return int(1000 * (self._clock.monotonic() - self._heard_at))

    # names of chats

    def native(self, place: Place) -> Place:
        """As the platform calls it now."""
        now = self._names.get(place.chat)
        return place if now is None else msgspec.structs.replace(place, chat=now)

    def kept(self, chat: str) -> str:
        """The name under which a chat is kept that the platform calls so."""
        return next((kept for kept, now in self._names.items() if now == chat), chat)

    async def move(self, store: Updates, *, was: str, now: str) -> None:
        async def keep() -> None:
            if await store.move_chat(self.id, was=was, now=now):
                log.info("a chat moved", platform=self.name, was=was, now=now)
            self._names = await store.chat_names(self.id)

        await insist(keep)

    # chats in which nothing arrives

    def is_closed(self, spot: Spot) -> str | None:
        """Why nothing arrives there, if so."""
        return self.closed.get(spot) or self.closed.get(Spot(spot.platform, spot.chat))

    async def close(self, store: Updates, spot: Spot, why: str) -> None:
        log.warning("nothing arrives in a chat any more", platform=self.name, chat=spot.chat, thread=spot.thread, why=why)
        await insist(partial(store.close_place, spot, why=why, at=self._clock.now()))
        self.closed[spot] = why

    async def reopen(self, store: Updates, chat: str) -> None:
        if any(spot.chat == chat for spot in self.closed):
            await store.reopen_place(self.name, chat)
            self.closed = {spot: why for spot, why in self.closed.items() if spot.chat != chat}

    # how much may be sent

    def wait_s(self, place: Place, what: What) -> float:
        now = self._clock.monotonic()
        wait_s = pacing.wait_s(self.platform.capabilities.rates, self._bucket, self._chat(place), what, now)
        return max(wait_s, self._live_after - now) if what is What.LIVE else wait_s

    @property
    def account_wait_s(self) -> float:
        """How long nothing at all may go."""
        return self._bucket.wait_s(self._clock.monotonic())

    def take(self, place: Place) -> None:
        """For one request, before anything else may look how much is left. It is made later (`use`), or not at all (`give_back`)."""
        now = self._clock.monotonic()
        self._bucket, self._chats[place.chat] = self._bucket.reserved(now), self._chat(place).reserved(now)
        if len(self._chats) > MOST_CHATS:
            self._chats = {chat: bucket for chat, bucket in self._chats.items() if not bucket.untouched(now)}

    def use(self, place: Place) -> None:
        """The request for which it was taken is made now."""
        now = self._clock.monotonic()
        self._bucket, self._chats[place.chat] = self._bucket.used(now), self._chat(place).used(now)

    def give_back(self, place: Place) -> None:
        """What was taken was not needed."""
        self._bucket, self._chats[place.chat] = self._bucket.given_back(), self._chat(place).given_back()

    async def limited(self, store: Updates, place: Place, error: Limited) -> None:
        until = self._clock.monotonic() + error.retry_after_s
        log.warning("the platform asks to wait", platform=self.name, chat=place.chat, wait_s=error.retry_after_s, account=error.account)
        if error.account:
            self._bucket = self._bucket.quiet(until)
            await insist(partial(store.quiet, self.id, until=self._clock.now() + int(1000 * error.retry_after_s)))
        elif error.edits:
            self._live_after = max(self._live_after, until)
        else:
            self._chats[place.chat] = self._chat(place).quiet(until)

    def mute(self, place: Place, wait_s: float, why: str) -> None:
        """We may not write in a chat for now."""
        if place.chat not in self._muted:
            log.warning("we may not write in a chat", platform=self.name, chat=place.chat, why=why)
            self._muted.add(place.chat)
        self._chats[place.chat] = self._chat(place).quiet(self._clock.monotonic() + wait_s)

    def arrived(self, place: Place) -> None:
        """Something of ours is in a chat."""
        if place.chat in self._muted:
            log.info("we may write in a chat again", platform=self.name, chat=place.chat)
            self._muted.discard(place.chat)

    def _chat(self, place: Place) -> Bucket:
        found = self._chats.get(place.chat)
        return found or pacing.of_chat(self.platform.capabilities.rates, shared=place.shared, now=self._clock.monotonic())
