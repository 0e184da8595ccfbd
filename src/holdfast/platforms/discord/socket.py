"""One connection to Discord's gateway: its frames, its heartbeat, and how it ends. It knows nothing of what the events mean.

There is no task for the heartbeat: it is sent by the task that waits for the next frame. While the store is out of reach nobody waits,
Discord hangs up, and the session is resumed from what is stored.
"""

import random
import time
from collections import deque
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import aiohttp
import msgspec
import structlog

from holdfast.core.chat_errors import LoggedOut
from holdfast.platforms.discord.errors import INTENT_REFUSED, TOKEN_REFUSED
from holdfast.platforms.discord.wire import Wire

HELLO_S = 20.0
# Any code but 1000 and 1001, with which Discord would forget the session.
LEAVING = 4000
AT_HAND_S = 0.001

log = structlog.get_logger()


class Op(IntEnum):
    DISPATCH = 0
    HEARTBEAT = 1
    IDENTIFY = 2
    RESUME = 6
    RECONNECT = 7
    INVALID_SESSION = 9
    HELLO = 10
    HEARTBEAT_ACK = 11


class Dropped(Exception):
    """The connection is over; the session can be resumed."""


class Forgotten(Exception):
    """Discord does not know the session any more, so nothing can be resumed."""


class Frame(msgspec.Struct, frozen=True):
    """As it came. `d` is not read yet."""

    op: int
    d: msgspec.Raw = msgspec.Raw(b"null")
    s: int | None = None
    t: str | None = None


class _Hello(msgspec.Struct, frozen=True):
    heartbeat_interval: float


# Codes of a close that an operator has to act on, and what to tell them.
_LOGGED_OUT = {
    4004: TOKEN_REFUSED,
    4010: "Discord refuses the shard. This is a bug in Holdfast.",
    4011: "The bot is in more servers than one connection may serve. Holdfast does not split an account; remove it from some.",
    4012: "Discord no longer speaks the version of its gateway that Holdfast does. Upgrade Holdfast.",
    4013: "Discord does not know what Holdfast asks to be told. Upgrade Holdfast.",
    4014: INTENT_REFUSED,
}
_FORGOTTEN = (4003, 4007, 4009)


class Socket:
    """Made by `open`. `seq`: the number of the last event that came."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self._ws = ws
        self._every_s = self._beat_at = 0.0
        self._answered = True
        self._held: deque[Frame] = deque()
        self.seq: int | None = None

    @staticmethod
    async def open(wire: Wire, url: str) -> "Socket":
        """Raises `Unanswered`, `Dropped`, `LoggedOut`."""
        made = Socket(await wire.socket(url))
        try:
            hello = await made._take(HELLO_S)
            if hello is None or hello.op != Op.HELLO:
                raise Dropped("Discord's gateway did not greet")
            made._every_s = msgspec.json.decode(hello.d, type=_Hello).heartbeat_interval / 1000
        except BaseException:
            await made.close()
            raise
        # The first one early and at random, so that not all bots of the world beat at once after an outage.
        made._beat_at = time.monotonic() + made._every_s * random.random()
        return made

    async def say(self, op: Op, what: Mapping[str, Any] | int | None) -> None:
        try:
            await self._ws.send_bytes(msgspec.json.encode({"op": op, "d": what}))
        except (aiohttp.ClientError, OSError) as error:
            raise Dropped(type(error).__name__) from None

    async def next(self, within_s: float) -> Frame | None:
        """The next event; None if none came. Raises `Dropped`, `Forgotten`, `LoggedOut`."""
        until = time.monotonic() + within_s
        while True:
            await self._beat()
            if self._held:
                return self._held.popleft()
            left_s = until - time.monotonic()
            if left_s <= 0:
                return None
            frame = await self._take(min(left_s, max(AT_HAND_S, self._beat_at - time.monotonic())))
            if frame is not None and (event := await self._heed(frame)) is not None:
                return event

    def unread(self, frame: Frame) -> None:
        """It is the next one again."""
        self._held.appendleft(frame)

    async def keep_up(self) -> None:
        """Takes what has come, for later, so that the connection lives while something else is done."""
        while (frame := await self._take(AT_HAND_S)) is not None:
            if (event := await self._heed(frame)) is not None:
                self._held.append(event)
        await self._beat()

    async def close(self) -> None:
        await self._ws.close(code=LEAVING)

    async def _beat(self) -> None:
        if time.monotonic() < self._beat_at:
            return
        self._beat_at = time.monotonic() + self._every_s
        if not self._answered:
            await self.keep_up()  # Nobody may have looked for a while.
        if not self._answered:
            raise Dropped("Discord's gateway no longer answers")
        self._answered = False
        await self.say(Op.HEARTBEAT, self.seq)

    async def _heed(self, frame: Frame) -> Frame | None:
        """Does what the gateway asks for; gives the frame if it is an event."""
        match frame.op:
            case Op.DISPATCH:
                self.seq = frame.s if frame.s is not None else self.seq
                return frame
            case Op.HEARTBEAT:
                self._beat_at, self._answered = 0.0, True
            case Op.HEARTBEAT_ACK:
                self._answered = True
            case Op.RECONNECT:
                raise Dropped("Discord asks to connect again")
            case Op.INVALID_SESSION:
                raise Dropped("Discord asks to resume again") if frame.d == b"true" else Forgotten("the session is invalid")
        return None

    async def _take(self, within_s: float) -> Frame | None:
        """None if nothing came in time."""
        try:
            message = await self._ws.receive(within_s)
        except TimeoutError:
            return None
        if message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
            try:
                return msgspec.json.decode(message.data, type=Frame)
            except msgspec.DecodeError:
                log.warning("a frame of the gateway cannot be read", start=str(message.data[:200]))
                return Frame(op=-1)
        raise _end(message.data if message.type is aiohttp.WSMsgType.CLOSE else self._ws.close_code)


def _end(code: int | None) -> Exception:
    if code in _LOGGED_OUT:
        return LoggedOut(_LOGGED_OUT[code])
    if code in _FORGOTTEN:
        return Forgotten(f"closed with {code}")
    return Dropped(f"closed with {code}")
