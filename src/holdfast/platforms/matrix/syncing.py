"""What is new on a homeserver, as updates that need nobody to be understood: gaps in what a sync shows are filled, and an event is given
the one that it replies or reacts to. It reads no event further than it has to; one of an unknown form is passed on as it came.
"""

import json
import time
from collections import Counter, deque
from collections.abc import Awaitable, Iterable
from typing import Any, TypeVar

import msgspec

from holdfast.platforms.matrix.errors import Answer, Unanswered
from holdfast.platforms.matrix.reading import KINDS, Me, Update, relation, replied_to
from holdfast.platforms.matrix.wire import REQUEST_S, Wire

# The most that servers give at once.
PAGE = 100
# How far back to look for the invitation to a room that was joined.
MOST_PAGES_BEFORE_JOIN = 10
# How often the server may fail to answer the same question about an event or a room.
MOST_TRIES = 5
# For how long it may fail to give a part of a room's history, and how long to wait before it is asked again, at first and at most.
MOST_GAP_S = 3600.0
GAP_AGAIN_S, MOST_GAP_AGAIN_S = 2.0, 60.0
# In the place of events that could not be read, so that an operator sees it.
GAP = "A part of the room's history could not be read from the homeserver."
_MEMBERS = {"lazy_load_members": True, "include_redundant_members": True}
_NOTHING: dict[str, list[str]] = {"types": []}
# For an account that was never read: only where it stands, and who invites it.
START_FILTER = json.dumps({"room": {"timeline": {"limit": 1, **_NOTHING}, "state": _NOTHING, "ephemeral": _NOTHING}, "presence": _NOTHING})

T = TypeVar("T")


class News(msgspec.Struct, frozen=True):
    """`token`: from where the next sync reads."""

    updates: tuple[bytes, ...]
    token: str


class _Gap(msgspec.Struct, kw_only=True):
    """What a sync left out of a room: from `before` back to `until`; without it, to the invitation. `known`: events that it did show.
    `later`: the updates that stand behind it in the room, which wait for it.
    """

    room: str
    before: str
    until: str | None
    known: frozenset[str]
    newer_than: int
    wait_s: float
    again_at: float = 0.0
    later: list[bytes] = []


class Sync:
    """Which rooms are private chats is kept by the server, for all clients of the account."""

    def __init__(self, wire: Wire, page: int = PAGE) -> None:
        self._wire, self._page = wire, page
        timeline = {"limit": page, "types": list(KINDS), **_MEMBERS}
        room = {"timeline": timeline, "state": {"types": ["m.room.member"], **_MEMBERS}, "ephemeral": _NOTHING, "account_data": _NOTHING}
        self._filter = json.dumps({"room": room, "presence": _NOTHING, "account_data": {"types": ["m.direct"]}})
        self._gap_filter = json.dumps(timeline)
        self._me = Me(user="")
        self._direct: dict[str, list[str]] = {}
        self._known: dict[str, frozenset[str]] = {}  # Who else is in a room, until somebody comes or goes.
        self._failures: Counter[str] = Counter()
        self._gaps: dict[str, deque[_Gap]] = {}  # By room, in its order.
        self._failing_since: dict[str, float] = {}  # By room.

    async def begin(self, me: Me) -> None:
        self._me = me
        try:
            self._direct = _direct(await self._wire.call("GET", "user", me.user, "account_data", "m.direct"))
        except Answer as error:
            if error.status != 404:
                raise
            self._direct = {}

    def rewind(self) -> None:
        """The next sync begins where a stored token says: whatever was left out since then is left out again."""
        self._gaps.clear()

    @property
    def complete(self) -> bool:
        """Whether nothing is missing of what was read; until then no token may be stored."""
        return not self._gaps

    def patience_s(self, wait_s: float) -> float:
        """How long the next sync may wait, so that a gap is asked for in time."""
        return max(0.0, min([wait_s, *(gaps[0].again_at - time.monotonic() for gaps in self._gaps.values())]))

    async def start(self) -> News:
        """For an account that was never read: what is older than this means nothing to us, except that somebody invites it."""
        found = await self._wire.call("GET", "sync", query={"filter": START_FILTER, "timeout": "0"}, timeout_s=4 * REQUEST_S)
        return News(tuple(_invitations(found)), found["next_batch"])

    async def next(self, since: str | None, *, wait_s: float, newer_than: int = 0) -> News:
        """`since` None gives the last of each room. `newer_than`: in milliseconds of the server's clock; what is older is left out."""
        query = {"filter": self._filter, "timeout": str(int(1000 * wait_s))} | ({"since": since} if since is not None else {})
        found = await self._wire.call("GET", "sync", query=query, timeout_s=wait_s + 2 * REQUEST_S)
        for event in _events(found.get("account_data")):
            if _dict(event).get("type") == "m.direct":
                self._direct = _direct(event.get("content"))
        rooms, updates = _dict(found.get("rooms")), _invitations(found)
        for room, shown in _dict(rooms.get("join")).items():
            updates += await self._room(room, _dict(shown), since, newer_than)
        for room, shown in _dict(rooms.get("leave")).items():
            updates += await self._room(room, _dict(shown), None, newer_than)
        self._failures.clear()
        return News(tuple(updates), found["next_batch"])

    async def _room(self, room: str, shown: dict[str, Any], since: str | None, newer_than: int) -> list[bytes]:
        timeline = _dict(shown.get("timeline"))
        events = _events(timeline)
        members = [*_events(shown.get("state")), *events]
        before = timeline.get("prev_batch") if timeline.get("limited") else None
        joined = any(self._joins(event) for event in events)
        if before is not None and (since is not None or joined):
            known, until = frozenset(_id(event) for event in events), None if joined else since
            gap = _Gap(room=room, before=before, until=until, known=known, newer_than=newer_than, wait_s=GAP_AGAIN_S)
            if room in self._gaps:
                self._gaps[room].append(gap)
            elif (found := await self._filled(gap)) is not None:
                events, members = [*found[0], *events], [*found[1], *members]
        self._forget_members(room, events)
        if joined:
            events = self._since_invited(events)
            await self._settle_direct(room, events)
        updates = await self._updates(room, events, members, newer_than, joined=joined)
        if room in self._gaps:  # What was said later must not be heard earlier.
            self._gaps[room][-1].later += updates
            return []
        return updates

    async def _updates(self, room: str, events: list[Any], members: list[Any], newer_than: int, *, joined: bool = False) -> list[bytes]:
        names = _names(members)
        moves = await self._moves(room, events, joined=joined)
        return moves + [await self._update(room, event, names) for event in events if _at(event, newer_than) >= newer_than]

    # what a sync leaves out

    async def late(self) -> list[bytes]:
        """What a sync left out and the server gives only now, and what waited for it. One gap at a time, because the next sync must not
        wait for many, and the one that has waited longest, so that every room gets its turn (P8).
        """
        now = time.monotonic()
        due = (gaps[0] for gaps in self._gaps.values() if gaps[0].again_at <= now)
        gap = min(due, key=lambda one: one.again_at, default=None)
        found = await self._filled(gap) if gap is not None else None
        if gap is None or found is None:
            return []
        events, members = found
        if gap.until is None and events != [GAP]:
            invited = [place for place, event in enumerate(events) if self._invites(event)]
            events = events[invited[-1] + 1 :] if invited else []
        self._forget_members(gap.room, events)
        return [*await self._updates(gap.room, events, members, gap.newer_than), *gap.later]

    async def _filled(self, gap: _Gap) -> tuple[list[Any], list[Any]] | None:
        """Its events and who wrote them. None while the server fails to give them: then it stays open, for an hour at most."""
        try:
            found = await self._history(gap)
        except (Answer, Unanswered) as error:
            if isinstance(error, Answer) and error.status in (401, 429):  # Nothing can be asked for now.
                raise
            now = time.monotonic()
            lasts_s = now - self._failing_since.setdefault(gap.room, now)
            if (isinstance(error, Unanswered) or error.status >= 500) and lasts_s < MOST_GAP_S:
                gap.again_at, gap.wait_s = now + gap.wait_s, min(2 * gap.wait_s, MOST_GAP_AGAIN_S)
                if gap.room not in self._gaps:
                    self._gaps[gap.room] = deque((gap,))
                return None
            found = [GAP], []
        else:
            self._failing_since.pop(gap.room, None)
        gaps = self._gaps.get(gap.room)
        if gaps:
            gaps.popleft()
        if not gaps:
            self._gaps.pop(gap.room, None)
            self._failing_since.pop(gap.room, None)
        return found

    async def _history(self, gap: _Gap) -> tuple[list[Any], list[Any]]:
        """What stands between two syncs, in order, and who wrote it."""
        room, before, until, known = gap.room, gap.before, gap.until, set(gap.known)
        pages: list[Any] = []
        members: list[Any] = []
        for number in range(10**6):
            query = {"dir": "b", "from": before, "limit": str(self._page), "filter": self._gap_filter}
            page = await self._wire.call("GET", "rooms", room, "messages", query=query | ({"to": until} if until is not None else {}))
            found = page.get("chunk") or []
            members += page.get("state") or ()
            pages += [event for event in found if _id(event) not in known]
            known |= {_id(event) for event in found}
            end = page.get("end")
            invited = until is None and any(self._invites(event) for event in found)
            if end is None or end == before or invited or (until is None and number + 1 >= MOST_PAGES_BEFORE_JOIN):
                break
            before = end
        return pages[::-1], members

    def _since_invited(self, events: list[Any]) -> list[Any]:
        """Of a room that was joined: what was said since we were invited. Older words were not meant for us."""
        joined = max(place for place, event in enumerate(events) if self._joins(event))
        invited = [place for place, event in enumerate(events[:joined]) if self._invites(event)]
        return events[invited[-1] + 1 if invited else joined :]

    def _invites(self, event: Any) -> bool:
        return self._becomes(event, "invite")

    def _joins(self, event: Any) -> bool:
        """Whether we enter a room; a new name of ours looks much like it."""
        return self._becomes(event, "join") and _before(event).get("membership") != "join"

    def _becomes(self, event: Any, membership: str) -> bool:
        if not isinstance(event, dict) or event.get("type") != "m.room.member" or event.get("state_key") != self._me.user:
            return False
        return _dict(event.get("content")).get("membership") == membership

    # rooms that were replaced

    async def _moves(self, room: str, events: Iterable[Any], *, joined: bool) -> list[bytes]:
        """Which room continues which. Anybody can make a room that names another one, so both have to name each other. Whichever of them is
        seen last tells: usually the new one, which cannot be read before it is entered.
        """
        found: list[tuple[str, str]] = []
        for event in events:
            if _dict(event).get("type") == "m.room.tombstone":
                new = _dict(event.get("content")).get("replacement_room")
                if isinstance(new, str) and await self._predecessor(new) == room:
                    found.append((room, new))
        if joined and (old := await self._predecessor(room)) is not None:
            left = await self._tried(f"tombstone {old}", self._wire.call("GET", "rooms", old, "state", "m.room.tombstone"))
            if _dict(left).get("replacement_room") == room:
                found.append((old, room))
        return [msgspec.json.encode(Update(room=new, replaces=old)) for old, new in found]

    async def _predecessor(self, room: str) -> str | None:
        made = await self._tried(f"create {room}", self._wire.call("GET", "rooms", room, "state", "m.room.create"))
        found = _dict(_dict(made).get("predecessor")).get("room_id")
        return found if isinstance(found, str) else None

    # which rooms are private chats

    async def _settle_direct(self, room: str, events: Iterable[Any]) -> None:
        """A room is a private chat if we were invited to one, and nobody else is there. That is decided once, when we enter it, and kept by
        the server for every process.
        """
        if self._is_direct(room) or not any(_before(event).get("is_direct") for event in events if self._joins(event)):
            return
        others = await self._others(room)
        if len(others) == 1:
            direct = self._direct | {min(others): [*self._direct.get(min(others), []), room]}
            await self._tried(f"direct {room}", self._wire.call("PUT", "user", self._me.user, "account_data", "m.direct", body=direct))
            self._direct = direct

    def _is_direct(self, room: str) -> bool:
        return any(room in rooms for rooms in self._direct.values())

    def _forget_members(self, room: str, events: Iterable[Any]) -> None:
        """Somebody came or went, or the server did not say who is there."""
        if not self._known.get(room) or any(_dict(event).get("type") == "m.room.member" for event in events):
            self._known.pop(room, None)

    async def _others(self, room: str) -> frozenset[str]:
        """Who else is in a room now; nobody where the server does not say."""
        if room not in self._known:
            found = await self._tried(f"members {room}", self._wire.call("GET", "rooms", room, "joined_members"))
            self._known[room] = frozenset(_dict(_dict(found).get("joined"))) - {self._me.user}
        return self._known[room]

    # one event

    async def _update(self, room: str, event: Any, names: dict[str, str]) -> bytes:
        if not isinstance(event, dict):
            return msgspec.json.encode(Update(room=room, event=event))
        sender, direct = event.get("sender"), self._is_direct(room)
        return msgspec.json.encode(
            Update(
                room=room,
                event=event,
                direct=direct,
                alone=direct or (event.get("type") == "m.room.message" and sender != self._me.user and len(await self._others(room)) == 1),
                name=names.get(sender, "") if isinstance(sender, str) else "",
                related=await self._related(room, event),
            )
        )

    async def _related(self, room: str, event: dict[str, Any]) -> dict[str, Any] | None:
        """The event that somebody else replies or reacts to; None if there is none, or it is gone."""
        if event.get("sender") == self._me.user or not isinstance(event.get("content"), dict):
            return None
        try:
            kind = relation(event) if event.get("type") == "m.reaction" else None
            wanted = kind[1] if kind is not None else replied_to(event)
        except (AttributeError, KeyError, TypeError):  # Of an unknown form: said where it is read.
            return None
        if wanted is None:
            return None
        found = await self._tried(f"event {wanted}", self._wire.call("GET", "rooms", room, "event", wanted))
        return found if isinstance(found, dict) else None

    async def _tried(self, name: str, work: Awaitable[T]) -> T | None:
        """What is asked for besides a sync. None where the server refuses it, or fails again and again: one room that it cannot read must
        not hold up the others for ever (P8).
        """
        try:
            return await work
        except Answer as error:
            if error.status in (401, 429):  # Nothing can be asked for now.
                raise
            if error.status >= 500 and self._fails(name):
                raise
        except Unanswered:
            if self._fails(name):
                raise
        return None

    def _fails(self, name: str) -> bool:
        """Whether it is worth another try."""
        self._failures[name] += 1
        return self._failures[name] < MOST_TRIES


def _invitations(found: dict[str, Any]) -> list[bytes]:
    invites = _dict(_dict(found.get("rooms")).get("invite"))
    return [msgspec.json.encode(Update(room=room, invited=_events(_dict(shown).get("invite_state")))) for room, shown in invites.items()]


def _direct(content: Any) -> dict[str, list[str]]:
    return {user: [str(room) for room in rooms] for user, rooms in _dict(content).items() if isinstance(rooms, list)}


def _names(events: Iterable[Any]) -> dict[str, str]:
    found = {}
    for event in events:
        if isinstance(event, dict) and event.get("type") == "m.room.member" and isinstance(event.get("state_key"), str):
            found[event["state_key"]] = str(_dict(event.get("content")).get("displayname") or "")
    return found


def _before(event: dict[str, Any]) -> dict[str, Any]:
    """What a state event replaced."""
    return _dict(_dict(event.get("unsigned")).get("prev_content"))


def _events(part: Any) -> list[Any]:
    found = _dict(part).get("events")
    return found if isinstance(found, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _at(event: Any, otherwise: int) -> int:
    """When it was sent, by the clock of its sender's server."""
    found = _dict(event).get("origin_server_ts")
    return found if isinstance(found, int) else otherwise


def _id(event: Any) -> str:
    return str(_dict(event).get("event_id", ""))
