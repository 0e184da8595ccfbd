"""Databases with a past, made quickly through the store itself: many sessions, many messages, turns whose process died."""

import asyncio
import itertools
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
import uvloop

from holdfast.core.events import Logged, MessageAccepted, MessageWritten, Text, TurnEnded, TurnResumed
from holdfast.core.plans.start import StartedTurn
from holdfast.core.turns import Outcome, TurnState
from holdfast.ports.inbox import Terms
from holdfast.ports.owners import Owner
from holdfast.store import SqliteStore, open_store
from holdfast.store.sqlite.connection import connect, fetch
from holdfast.store.sqlite.store import DATABASE

T = TypeVar("T")
NO_LIMIT = 10**9
AT_ONCE = 200
INDEX_PAGE = 5000

_random = random.Random(20)
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"

# From the most common one to the rarest.
WORDS = ["".join(parts) for parts in itertools.product(("ba", "ke", "li", "mo", "nu", "ra", "se", "to", "vi", "zu"), repeat=4)]
_random.shuffle(WORDS)


def now() -> int:
    return time.time_ns() // 1_000_000


def new_id(prefix: str) -> str:
    return f"{prefix}_" + "".join(_random.choices(_ALPHABET, k=16))


def words(count: int) -> str:
    """Text in which a few words are common and most are rare, as in any language."""
    return " ".join(WORDS[int(len(WORDS) ** _random.random()) - 1] for _ in range(count))


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[SqliteStore]:
    home.mkdir(exist_ok=True)  # noqa: ASYNC240 - nothing else runs yet.
    store = await open_store(home, now=now)
    try:
        yield store
    finally:
        await store.aclose()


async def each(items: Iterable[T], work: Callable[[T], Awaitable[None]], *, at_once: int = AT_ONCE) -> None:
    """Many at once, so that they share their commits."""
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    await asyncio.gather(*(worker() for _ in range(at_once)))


async def new_session(store: SqliteStore, title: str | None = None) -> str:
    session_id = new_id("s")
    await store.create_session(
        session_id=session_id, session_key=f"agent:main:web:page:{session_id}", log=new_id("l"), at=now(), title=title
    )
    return session_id


async def new_owner(store: SqliteStore, name: str) -> int:
    return await store.register_owner(Owner(name=name, pid=1, started_at=0, boot_id="bench"))


async def accept(store: SqliteStore, session_id: str, text: str) -> None:
    message = MessageAccepted(message_id=new_id("m"), content=text, dedup_key=f"message|{session_id}|{new_id('c')}")
    await store.accept(session_id, message, Terms(fresh=("", ""), max_waiting=NO_LIMIT), at=now())


async def running_turn(store: SqliteStore, session_id: str, owner: int, text: str = "hello") -> StartedTurn:
    await accept(store, session_id, text)
    started = await store.start_turn(session_id, owner=owner, turn_id=new_id("t"), at=now())
    assert started is not None
    return started


async def whole_turn(store: SqliteStore, session_id: str, owner: int) -> None:
    """A message and its answer."""
    started = await running_turn(store, session_id, owner, words(30))
    answer = MessageWritten(message_id=f"{started.turn_id}.answer", role="assistant", content=words(60))
    await store.append_turn(
        started.lease,
        turn_id=started.turn_id,
        attempt=started.attempt,
        position=started.position,
        events=[answer, TurnEnded(outcome=Outcome.COMPLETED)],
        at=now(),
    )


def make_big(home: Path, *, sessions: int, messages: int) -> None:
    """Sessions with their share of the messages, all of them searchable."""

    async def make() -> None:
        async with opened(home) as store:
            owner = await new_owner(store, "o_prepared")

            async def one(number: int) -> None:
                session_id = await new_session(store, title=f"{words(3)} {number}")
                for _ in range(messages // sessions // 2):
                    await whole_turn(store, session_id, owner)

            await each(range(sessions), one)
            while await store.index_search(limit=INDEX_PAGE):
                pass

    uvloop.run(make())


def long_conversation(home: Path, *, messages: int) -> str:
    """One session with so many messages, half of them answers."""

    async def make() -> str:
        async with opened(home) as store:
            owner = await new_owner(store, new_id("o"))
            session_id = await new_session(store, title="a long conversation")
            for _ in range(messages // 2):
                await whole_turn(store, session_id, owner)
            return session_id

    return uvloop.run(make())


class CutTurns(msgspec.Struct, frozen=True):
    """Their sessions, by the age of the message that began each turn, oldest first; and how many events there were."""

    sessions: list[str]
    events: int = 0


def cut_turns(home: Path, *, turns: int, text: str) -> CutTurns:
    """New turns of as many sessions, left running by a process that is gone. How old a session is says nothing of how old its turn is."""

    async def make() -> CutTurns:
        async with opened(home) as store:
            owner = await new_owner(store, "o_gone")
            found: list[str] = []
            before = None
            while len(found) < turns:
                page = await store.sessions(limit=100, before=before)
                found += [session.session_id for session in page.sessions]
                if page.next is None:
                    break
                before = page.next
            cut = _random.sample(found, min(turns, len(found)))
            for session_id in cut:
                await accept(store, session_id, text)

            async def one(session_id: str) -> None:
                started = await store.start_turn(session_id, owner=owner, turn_id=new_id("t"), at=now())
                assert started is not None
                await store.append_turn(
                    started.lease,
                    turn_id=started.turn_id,
                    attempt=started.attempt,
                    position=started.position,
                    events=[Text(offset=0, text="1 2 3")],
                    at=now(),
                )

            await each(_random.sample(cut, len(cut)), one)
            return CutTurns(cut)

    cut = uvloop.run(make())
    return CutTurns(cut.sessions, len(log(home)))


def resumed(home: Path, since: int) -> list[str]:
    """The sessions whose turns were resumed after so many events, in that order."""
    return [item.session_id for item in log(home)[since:] if item.kind == TurnResumed.kind]


def log(home: Path) -> list[Logged]:
    """Everything that is stored, in the order of commits."""
    db = connect(home / DATABASE)
    rows = fetch(
        db,
        "SELECT s.session_id, e.seq, e.turn, e.attempt, e.position, e.kind, e.at, e.body, e.epoch, e.stream"
        " FROM event e JOIN session s ON s.id = e.session ORDER BY e.id",
    )
    db.close()
    return [Logged(*row) for row in rows]


def left_pending(home: Path) -> int:
    """How many turns a stop has cut, and put on record as to be resumed."""

    async def count() -> int:
        async with opened(home) as store:
            cut = await store.open_turns(apart_from=0)
        return sum(each.turn_state is TurnState.INTERRUPTED and each.resume_reason == "shutdown_timeout" for each in cut)

    return uvloop.run(count())


def long_stream(home: Path, *, events: int) -> str:
    """A session whose one open turn has streamed this many events; gives its id."""

    async def make() -> str:
        async with opened(home) as store:
            session_id = await new_session(store)
            owner = await new_owner(store, "o_streamed")
            started = await running_turn(store, session_id, owner)
            position, text = started.position, 0
            while text < events:
                pieces = [Text(offset=5 * number, text="word ") for number in range(text, min(text + 500, events))]
                position = await store.append_turn(
                    started.lease, turn_id=started.turn_id, attempt=started.attempt, position=position, events=pieces, at=now()
                )
                text += len(pieces)
            await store.append_turn(
                started.lease,
                turn_id=started.turn_id,
                attempt=started.attempt,
                position=position,
                events=[
                    MessageWritten(message_id=f"{started.turn_id}.answer", role="assistant", content="word " * events),
                    TurnEnded(outcome=Outcome.COMPLETED),
                ],
                at=now(),
            )
            return session_id

    return uvloop.run(make())
