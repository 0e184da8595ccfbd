"""Where each conversation was left, so that the next process can ask for what came since: Slack repeats itself for some minutes only. This
is the cursor of the account, and the store keeps it.
"""

import contextlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from holdfast.core.chat_errors import Unreadable
from holdfast.platforms.slack import reading
from holdfast.platforms.slack.reading import Me

MOST = 300
# Asked for at every start: somebody may be waiting there. The rest only after an absence that Slack's repeats do not cover.
NEWEST = 10
ABSENCE_S = 60.0
# Messages may come in another order than they were written; one that is asked for again is known by its key.
OVERLAP_S = 60.0
# So far back is looked where a cursor cannot be read.
UNKNOWN_S = 24 * 3600.0
# So old may the cursor be that is stored: far less than what is asked for again.
OLD_S = 10.0
_TS = re.compile(r"\d+(\.\d+)?")


class Gap(msgspec.Struct, frozen=True):
    """What to ask for: a chat, or one thread of it, after `oldest` and before `latest`. `kind`: of the chat, in Slack's word."""

    channel: str
    oldest: str
    kind: str = ""
    thread: str | None = None
    latest: str | None = None


class _Left(msgspec.Struct, frozen=True, array_like=True):
    ts: str
    kind: str


class _Cursor(msgspec.Struct, frozen=True):
    at: float = 0.0
    left: dict[str, _Left] = {}


class Backlog:
    """What is kept: the newest message that was seen in each chat, and in each thread that we take part in (`chat|thread`). `complete`:
    everything has been asked for that came since; until then the cursor stays where it was.
    """

    def __init__(self, cursor: str | None, now: float, absence_s: float = ABSENCE_S) -> None:
        found = _Cursor(at=now - UNKNOWN_S)
        with contextlib.suppress(msgspec.DecodeError):  # Of a version that wrote it in another way.
            found = msgspec.json.decode(cursor or "{}", type=_Cursor)
        self._at, self._left = found.at, dict(found.left)
        self._stored_at, self._changed = 0.0, True
        self.was_away = cursor is not None and not 0 <= now - found.at < absence_s
        self.complete = cursor is None

    def gaps(self) -> list[Gap]:
        """The newest first: somebody may be waiting there."""
        newest = sorted(self._left.items(), key=lambda item: item[1].ts, reverse=True)
        return [_gap(name, left) for name, left in (newest if self.was_away else newest[:NEWEST])]

    @property
    def heard_until(self) -> str:
        """What is older was heard, wherever it was written."""
        return f"{max(0.0, self._at - OVERLAP_S):.6f}"

    def unknown(self, chats: Iterable[Mapping[str, Any]]) -> list[Gap]:
        """Chats of which nothing was seen yet: somebody may have opened one while nobody was there."""
        missing = [chat for chat in chats if chat["id"] not in self._left]
        since = self.heard_until
        return [Gap(chat["id"], since, "im" if chat.get("is_im") else "mpim" if chat.get("is_mpim") else "channel") for chat in missing]

    def note(self, update: bytes, me: Me) -> None:
        """Something came. Whether it can be read is judged by others."""
        if not self.complete:
            return
        with contextlib.suppress(msgspec.DecodeError, Unreadable, KeyError, TypeError, AttributeError, ValueError):
            found = reading.decoded(update)
            event = (found["payload"] if found.get("type") == "events_api" else found)["event"]
            channel, ts, thread = str(event["channel"]), str(event["ts"]), event.get("thread_ts")
            name = channel if thread in (None, ts) else f"{channel}|{thread}"
            if _TS.fullmatch(ts) and (name == channel or name in self._left or reading.is_ours(event, me)):
                self._see(name, ts, str(event.get("channel_type") or ""))

    def _see(self, name: str, ts: str, kind: str) -> None:
        self._changed = self._changed or name not in self._left
        before = self._left.get(name, _Left("", ""))
        self._left[name] = _Left(max(ts, before.ts), kind or before.kind)
        if len(self._left) > MOST:
            newest = sorted(self._left.items(), key=lambda item: item[1].ts)[-MOST * 2 // 3 :]
            self._left = dict(newest)

    def finish(self) -> None:
        """Everything has been asked for."""
        self._changed = self._changed or not self.complete
        self.complete = True

    def cursor(self, now: float) -> str | None:
        """None while the one that is stored will do: it is written with messages, and may be long."""
        if not self._changed and 0 <= now - self._stored_at < OLD_S:
            return None
        self._stored_at, self._changed = now, False
        return msgspec.json.encode(_Cursor(at=now if self.complete else self._at, left=self._left)).decode()


def _gap(name: str, left: _Left) -> Gap:
    channel, _, thread = name.partition("|")
    return Gap(channel, f"{max(0.0, float(left.ts) - OVERLAP_S):.6f}", left.kind, thread or None)
