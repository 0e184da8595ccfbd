"""Events of channels that Discord fails to describe now. An event does not say whether its channel is a thread, so it waits until Discord
does; events of other channels do not wait for it (P8)."""

import time

import msgspec
import structlog

from holdfast.core.chat_errors import Limited
from holdfast.core.errors import Unavailable
from holdfast.platforms.discord import events
from holdfast.platforms.discord.channels import Channels
from holdfast.platforms.discord.events import Event

# How long to wait before a channel is asked for again, at first and at most, and for how long it is asked for at all.
AGAIN_S, MOST_AGAIN_S, MOST_TRIED_S = 2.0, 60.0, 3600.0

log = structlog.get_logger()


class _Channel(msgspec.Struct, kw_only=True):
    waiting: list[Event]
    private: bool
    since: float
    again_at: float
    wait_s: float


class Unplaced:
    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._waiting: dict[str, _Channel] = {}
        self._since: dict[str, float] = {}  # Of channels whose events come again.

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def rewind(self) -> None:
        """What waits comes again, because the cursor stayed before it. Since when it waits is kept: however often the connection ends, it
        does not wait for ever.
        """
        self._since |= {name: channel.since for name, channel in self._waiting.items()}
        self._waiting.clear()

    def forget(self) -> None:
        """What waited does not come again; the history has it."""
        self._since.clear()
        self._waiting.clear()

    def patience_s(self, wait_s: float) -> float:
        """How long the next event may be waited for, so that a channel is asked for in time."""
        return max(0.0, min([wait_s, *(channel.again_at - time.monotonic() for channel in self._waiting.values())]))

    async def placed(self, event: Event) -> Event | None:
        """The event with its place; None if it waits, as does whatever follows it in its channel. Raises `Limited` for the whole account,
        `LoggedOut`.
        """
        about = events.about(event.t, event.d)
        if about is None:
            return event
        if about.channel in self._waiting:
            self._waiting[about.channel].waiting.append(event)
            return None
        try:
            where = await self._channels.where(about.channel, private=about.private)
        except Unavailable as error:
            _is_the_channels(error)
            now = time.monotonic()
            since = self._since.pop(about.channel, now)
            self._waiting[about.channel] = _Channel(
                waiting=[event], private=about.private, since=since, again_at=now + AGAIN_S, wait_s=AGAIN_S
            )
            log.warning("what is written in a channel waits until Discord describes the channel", channel=about.channel, error=str(error))
            return None
        self._since.pop(about.channel, None)
        return msgspec.structs.replace(event, where=where)

    async def late(self) -> list[Event]:
        """What has waited in a channel and need not wait any more, in its order. After too long it is passed on as it came, so that an
        operator sees it. Asks for one channel, the one that has waited longest: in between, the connection is kept alive.
        """
        due = [(channel.again_at, name) for name, channel in self._waiting.items() if channel.again_at <= time.monotonic()]
        if not due:
            return []
        name, where = min(due)[1], None
        channel = self._waiting[name]
        try:
            where = await self._channels.where(name, private=channel.private)
        except Unavailable as error:
            _is_the_channels(error)
            now = time.monotonic()
            if now - channel.since < MOST_TRIED_S:
                channel.again_at, channel.wait_s = now + channel.wait_s, min(2 * channel.wait_s, MOST_AGAIN_S)
                return []
            log.error("what was written in a channel is given up", channel=name, events=len(channel.waiting), error=str(error))
        del self._waiting[name]
        return [msgspec.structs.replace(event, where=where) for event in channel.waiting]


def _is_the_channels(error: Unavailable) -> None:
    """It is not one channel that fails where the whole account has to wait."""
    if isinstance(error, Limited) and error.account:
        raise error
