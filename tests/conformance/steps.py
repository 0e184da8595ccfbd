"""Short words for what tests do with a store over and over. They speak to the port alone."""

import itertools
import os
from collections.abc import Sequence
from typing import Any

import anyio

from holdfast.core import events as e
from holdfast.core.blame import Interruption
from holdfast.core.content import Content
from holdfast.core.delivery import DUE
from holdfast.core.events import Event, Logged
from holdfast.core.plans.accept import Accepted
from holdfast.core.plans.start import StartedTurn
from holdfast.core.sessions import Session
from holdfast.core.turns import Outcome
from holdfast.ports.inbox import Terms
from holdfast.ports.log import Cursor
from holdfast.ports.outbox import Delivery
from holdfast.ports.owners import Owner
from holdfast.ports.store import Store

NOW = 1_700_000_000_000
ENDED = e.TurnEnded(outcome=Outcome.COMPLETED)
CUT = e.TurnInterrupted(reason="crash", restarts=1)
LEFT = e.TurnLeft(rule="R7", why="interrupted by a crash 5 s earlier")
CHAT = "agent:main:chat:dm:7"
ANSWER = e.MessageWritten(message_id="t1.answer", role="assistant", content="done")

_counter = itertools.count(1)


async def new_owner(store: Store, name: str = "me") -> int:
    return await store.register_owner(Owner(name=name, pid=1, started_at=NOW, boot_id="boot"))


async def new_session(
    store: Store, session_id: str = "s1", *, key: str | None = None, at: int = NOW, title: str | None = "A title"
) -> Session:
    key = key or f"agent:main:web:page:{session_id}"
    return await store.create_session(session_id=session_id, session_key=key, log=f"l{session_id}", at=at, title=title)


async def say(
    store: Store, session_id: str = "s1", text: Content = "hello", *, key: str | None = None, at: int = NOW, **more: Any
) -> Accepted:
    """A person writes."""
    message_id = more.pop("message_id", None) or f"m{os.getpid()}.{next(_counter)}"
    fresh = more.pop("fresh", (f"{message_id}.s", f"{message_id}.l"))
    terms = {name: more.pop(name) for name in Terms.__struct_fields__ if name in more}
    message = e.MessageAccepted(**{"message_id": message_id, "content": text, "dedup_key": key, **more})
    return await store.accept(session_id, message, Terms(**{"fresh": fresh, "max_waiting": 100, **terms}), at=at)


async def running(
    store: Store, session_id: str = "s1", turn_id: str = "t1", *, owner: int | None = None, key: str | None = None
) -> StartedTurn:
    """A session with a turn that has just started."""
    owner = await new_owner(store) if owner is None else owner
    await new_session(store, session_id, key=key)
    await say(store, session_id)
    return await start(store, session_id, turn_id, owner=owner)


async def rested(store: Store, session_id: str = "s1", *, key: str | None = None, at: int = NOW) -> None:
    """A session whose only turn is over."""
    turn = await running(store, session_id, f"{session_id}.t", key=key)
    await append(store, turn, ENDED, at=at)


async def left(store: Store, session_id: str = "s1", turn_id: str = "t1", *events: Event, key: str | None = None) -> StartedTurn:
    """A session whose turn was cut, after these events, and left. The lease is the one it had."""
    turn = await running(store, session_id, turn_id, key=key)
    return await append(store, turn, *events, CUT, LEFT)


async def start(store: Store, session_id: str, turn_id: str, *, owner: int) -> StartedTurn:
    started = await store.start_turn(session_id, owner=owner, turn_id=turn_id, at=NOW)
    assert started is not None
    return started


async def append(store: Store, turn: StartedTurn, *events: Event | Interruption, at: int = NOW) -> StartedTurn:
    """The turn as it stands afterwards."""
    position = await store.append_turn(turn.lease, turn_id=turn.turn_id, attempt=turn.attempt, position=turn.position, events=events, at=at)
    attempt = next((event.attempt for event in reversed(events) if isinstance(event, e.TurnResumed)), turn.attempt)
    return StartedTurn(turn.lease, turn.turn_id, attempt, position)


def text(piece: str, offset: int = 0) -> e.Text:
    return e.Text(offset=offset, text=piece)


def question(question_id: str = "q1", expires_at: int = NOW + 1000, call_id: str = "c1") -> e.QuestionAsked:
    return e.QuestionAsked(question_id=question_id, call_id=call_id, content="Which one?", expires_at=expires_at)


async def whole_log(store: Store, session_id: str = "s1", *, page: int = 1000) -> list[Logged]:
    logged: list[Logged] = []
    while found := await store.events(session_id, after=logged[-1].seq if logged else 0, limit=page):
        logged += found
    return logged


async def bodies(store: Store, session_id: str = "s1") -> list[Event]:
    return [item.event for item in await whole_log(store, session_id)]


async def notices(store: Store, session_id: str = "s1") -> list[e.MessageWritten]:
    return [event for event in await bodies(store, session_id) if isinstance(event, e.MessageWritten) and event.role == "notice"]


async def pauses(store: Store, *, since: int = 0, now: int = NOW) -> list[tuple[str, int, int | None, bool]]:
    """Who paused the home, from when until when, and whether the pause holds."""
    return [(each.holder, each.since, each.ended_at, each.holds) for each in await store.pauses(since=since, now=now)]


async def owed(store: Store) -> list[Delivery]:
    return await store.deliveries(states=DUE, now=2**50, limit=100)


async def so_far(store: Store) -> Cursor:
    """Two that are alike mean that nothing was written between them."""
    return (await store.changes(None)).cursor


def kinds(logged: Sequence[Logged]) -> list[str]:
    return [item.kind for item in logged]


async def well_again(store: Store) -> None:
    """Waits until nothing is wrong with it any more."""
    with anyio.fail_after(60):
        while store.degraded:  # noqa: ASYNC110 - the store has no event for it
            await anyio.sleep(0.005)
