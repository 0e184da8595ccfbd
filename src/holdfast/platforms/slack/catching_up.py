"""Asks for what came while nobody was there: one request at a time, as slowly as Slack wants it. A chat that cannot be read holds up no
other, and is tried again until it can be.
"""

import time
from collections import deque
from collections.abc import Iterable, Sequence

import structlog

from holdfast.core.chat_errors import Limited
from holdfast.core.errors import Unavailable
from holdfast.platforms.slack.backlog import Gap
from holdfast.platforms.slack.history import History

# So many requests are made at once; the rest as often as Slack allows.
AT_ONCE, PAUSE_S = 20, 2.0
# Once nothing is left but chats that could not be read: at first, and at last.
AGAIN_S, MOST_S = 2.0, 60.0

log = structlog.get_logger()


class CatchUp:
    """`heard_until`: older messages are known, wherever they were written."""

    def __init__(self, history: History, gaps: Iterable[Gap], *, heard_until: str) -> None:
        self._history, self._heard_until = history, heard_until
        self._gaps, self._failed = deque(gaps), deque[Gap]()
        self._known = {(gap.channel, gap.thread) for gap in self._gaps}
        self._asked, self._ask_at, self._again_s = 0, time.monotonic(), AGAIN_S

    @property
    def done(self) -> bool:
        return not self._gaps and not self._failed

    @property
    def wait_s(self) -> float:
        """Until the next request."""
        return max(0.0, self._ask_at - time.monotonic())

    async def ask(self) -> Sequence[bytes]:
        """Makes the next request, and gives what it found. Raises `LoggedOut`."""
        if not self._gaps:
            self._gaps, self._failed = self._failed, self._gaps
        self._asked += 1
        wait_s = PAUSE_S if self._asked >= AT_ONCE else 0.0
        try:
            return await self._fill()
        except Limited as error:
            wait_s = max(wait_s, error.retry_after_s)
        except Unavailable as error:
            self._put_off(self._gaps[0].channel, error)
            if not self._gaps:
                wait_s, self._again_s = max(wait_s, self._again_s), min(2 * self._again_s, MOST_S)
        finally:
            self._ask_at = time.monotonic() + wait_s
        return ()

    def _put_off(self, chat: str, error: Unavailable) -> None:
        """All that is to be asked for there, so that its order holds."""
        log.warning("a chat cannot be read yet", platform="slack", chat=chat, error=str(error))
        self._failed.extend(gap for gap in self._gaps if gap.channel == chat)
        self._gaps = deque(gap for gap in self._gaps if gap.channel != chat)

    async def _fill(self) -> Sequence[bytes]:
        found = await self._history.since(self._gaps[0], self._heard_until)
        self._gaps.popleft()
        self._gaps.extendleft(reversed(found.instead))
        for gap in found.threads:
            if (gap.channel, gap.thread) not in self._known:  # Otherwise it is asked for from where it was left.
                self._known.add((gap.channel, gap.thread))
                self._gaps.append(gap)
        return found.updates
