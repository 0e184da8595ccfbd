"""Everything that happens on an account, from where the store says on: by RESUME, or, where Discord has forgotten the session, by a new one
and the history.
"""

import asyncio
import random
import sys
import time
from collections.abc import AsyncGenerator

import msgspec
import structlog

from holdfast.core.errors import Unavailable
from holdfast.platforms.discord import cursor as cursors
from holdfast.platforms.discord import events, snowflakes
from holdfast.platforms.discord.backlog import Backlog
from holdfast.platforms.discord.channels import Channels
from holdfast.platforms.discord.cursor import Cursor
from holdfast.platforms.discord.errors import Unanswered
from holdfast.platforms.discord.events import Event
from holdfast.platforms.discord.reads import Reads
from holdfast.platforms.discord.socket import Dropped, Forgotten, Frame, Op, Socket
from holdfast.platforms.discord.unplaced import Unplaced
from holdfast.platforms.discord.wire import Wire
from holdfast.ports.platforms import Batch

READY_S = 30.0
# How often it is said that all is well, and where we are, when nothing happens.
BEAT_S = 15.0
# Logins are counted by the day, and beyond the last one Discord takes the token away: so many are left for a person who sets it up.
KEPT_LOGINS = 20
MOST_WAIT_S, MOST_LIMITED_S = 60.0, 600.0

log = structlog.get_logger()


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """`again_s`: how long to wait before a login after a session was refused, at random between the two. `login_s`: between two logins.
    `rest_s`: before what Discord failed to give of the history is asked for again.
    """

    again_s: tuple[float, float] = (1.0, 5.0)
    login_s: float = 5.5
    rest_s: float = 60.0


class _Started(msgspec.Struct, frozen=True):
    session_id: str
    resume_gateway_url: str


class Receiving:
    """`intents`: what to be told; may be changed before the next session."""

    def __init__(self, wire: Wire, *, intents: int, people: tuple[str, ...], pace: Pace) -> None:
        self._wire, self.intents, self._pace = wire, intents, pace
        self._reads = Reads(wire)
        self._channels = Channels(self._reads)
        self._backlog = Backlog(self._reads, self._channels, people)
        self._unplaced = Unplaced(self._channels)
        self._ahead: Cursor | None = None  # Where the account will be read from once nothing waits.
        self._failures = 0
        self._logged_in_at = -3600.0

    async def follow(self, cursor: str | None) -> AsyncGenerator[Batch, None]:
        """A batch is stored before the next one is asked for, so what is yielded is where to resume from."""
        at = cursors.read(cursor)
        while True:
            self._unplaced.rewind()
            self._ahead = None
            try:
                socket, at = await self._enter(at)
            except (Dropped, Forgotten, Unanswered) as error:
                raise self._failed(error) from None
            try:
                yield Batch(cursor=str(at))
                missed = self._backlog.since(at, socket.keep_up)
                stored_at = missed_at = time.monotonic()
                while True:
                    if at.gap and time.monotonic() >= missed_at:
                        async for found in missed:
                            yield Batch(updates=found)
                            await socket.keep_up()
                        if self._backlog.settled():
                            at, self._ahead = at.filled(), self._ahead.filled() if self._ahead is not None else None
                        yield Batch(cursor=str(at))
                        missed, missed_at = self._backlog.rest(socket.keep_up), time.monotonic() + self._pace.rest_s
                    frame = await socket.next(self._unplaced.patience_s(min(BEAT_S, self._pace.rest_s) if at.gap else BEAT_S))
                    batch, at = await self._batch(frame, at)
                    if batch.updates or time.monotonic() - stored_at >= BEAT_S:
                        yield batch
                        self._failures, stored_at = 0, time.monotonic()
            except Dropped as error:
                if self._failures:
                    raise self._failed(error) from None
                self._failures += 1
                log.info("connecting to the gateway again", error=str(error))
            except Forgotten as error:
                log.info("the gateway has forgotten the session", error=str(error))
                at = at.forgotten()
            finally:
                await socket.close()

    def _failed(self, error: Exception) -> Unavailable:
        self._failures += 1
        wait_s = min(MOST_WAIT_S, 2.0 ** min(self._failures, 10)) * (0.5 + random.random() / 2)
        return Unavailable(f"Discord's gateway cannot be reached ({error}).", retry_after_s=wait_s)

    async def _batch(self, frame: Frame | None, at: Cursor) -> tuple[Batch, Cursor]:
        """What a frame tells, and what has waited until now. While something waits the cursor stays before it, so that it is not lost with
        this process.
        """
        ahead, found, interaction = self._ahead or at, await self._unplaced.late(), None
        if frame is not None:
            ahead = ahead.at(frame.s)
            if frame.t in events.KINDS and (event := await self._unplaced.placed(Event(frame.t, frame.d))) is not None:
                found.append(event)
                interaction = events.interaction(frame.d) if frame.t == "INTERACTION_CREATE" else None
        for event in found:
            about = events.about(event.t, event.d)
            if about is not None and event.t in ("MESSAGE_CREATE", "INTERACTION_CREATE"):
                ahead = ahead.saw(about.id, about.channel if about.private else None)
        self._ahead = ahead if self._unplaced else None
        at = at if self._unplaced else ahead
        cursor = None if self._unplaced else str(at)
        return Batch(updates=tuple(events.stored(event) for event in found), cursor=cursor, ticket=interaction), at

    # into a session

    async def _enter(self, at: Cursor) -> tuple[Socket, Cursor]:
        """Resumes, or logs in. Raises `Dropped`, `Forgotten`, `Unanswered`, `LoggedOut`, `Unavailable`."""
        if at.session and at.intents == self.intents:
            try:
                return await self._resume(at), at
            except Forgotten as error:
                log.info("the session cannot be resumed; what it would have told is read from the history", why=str(error))
                at = at.forgotten()
                await asyncio.sleep(random.uniform(*self._pace.again_s))
        return await self._log_in(at)

    async def _resume(self, at: Cursor) -> Socket:
        socket = await Socket.open(self._wire, at.url)
        try:
            socket.seq = at.seq
            await socket.say(Op.RESUME, {"token": self._wire.token, "session_id": at.session, "seq": at.seq})
            first = await socket.next(READY_S)
            if first is None:
                raise Dropped("Discord does not resume the session")
            socket.unread(first)
        except BaseException:
            await socket.close()
            raise
        return socket

    async def _log_in(self, at: Cursor) -> tuple[Socket, Cursor]:
        url = await self._gateway()
        now = snowflakes.at(self._wire.server_s)
        direct = await self._backlog.private(at.direct)
        await asyncio.sleep(max(0.0, self._logged_in_at + self._pace.login_s - time.monotonic()))
        socket = await Socket.open(self._wire, url)
        try:
            self._logged_in_at = time.monotonic()
            await socket.say(Op.IDENTIFY, introduction(self._wire.token, self.intents))
            ready = await socket.next(READY_S)
            if ready is None or ready.t != "READY":
                raise Dropped("Discord does not begin a session")
            started = msgspec.json.decode(ready.d, type=_Started)
        except BaseException:
            await socket.close()
            raise
        self._unplaced.forget()
        session, url = started.session_id, started.resume_gateway_url
        return socket, at.entered(session, url, ready.s or 0, intents=self.intents, direct=direct, now=now)

    async def _gateway(self) -> str:
        """Its address, if another login is allowed."""
        found = await self._reads.get("/gateway/bot")
        limit = found.get("session_start_limit") or {}
        if limit.get("remaining", KEPT_LOGINS + 1) <= KEPT_LOGINS:
            raise Unavailable(
                f"Discord allows only {limit['remaining']} more logins of this bot for now. Holdfast waits, because Discord takes the token"
                " away after the last one.",
                retry_after_s=min(MOST_LIMITED_S, limit.get("reset_after", 0) / 1000),
            )
        return str(found["url"])


def introduction(token: str, intents: int) -> dict[str, object]:
    properties = {"os": sys.platform, "browser": "holdfast", "device": "holdfast"}
    return {"token": token, "intents": intents, "properties": properties, "large_threshold": 50}
