"""The other process: `python -m tests.conformance.worker BACKEND PLACE JOB ARGUMENTS`. Answers are lines of JSON.

A line is written only after the store acknowledged what it tells of.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from holdfast.core.errors import StaleEpoch
from holdfast.core.events import encode
from holdfast.core.journals import Found, Limits, Sight
from holdfast.core.spools import Spooled
from holdfast.ports.journals import Journal
from holdfast.ports.store import Store
from tests.conformance.backends import BACKENDS
from tests.conformance.steps import NOW, append, new_owner, running, say, text


def tell(answer: Any) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


async def append_for_ever(store: Store, *, name: str, turns: int) -> None:
    """Each turn writes a piece at a time; what is told was acknowledged."""
    owner = await new_owner(store, name)

    async def write(number: int) -> None:
        turn = await running(store, f"{name}{number}", f"{name}t{number}", owner=owner)
        while True:
            turn = await append(store, turn, text(f"piece {turn.position}", turn.position))
            tell([turn.lease.session_id, turn.position])

    await asyncio.gather(*(write(number) for number in range(turns)))


async def write_many(store: Store, *, name: str, sessions: list[str], count: int) -> None:
    """Messages to sessions that others write to as well, and pieces of turns of its own."""
    owner = await new_owner(store, name)

    async def messages(session_id: str) -> None:
        for number in range(count):
            message_id = f"{name}.{session_id}.{number}"
            await say(store, session_id, message_id, message_id=message_id, max_waiting=10**6)
            tell(["message", session_id, message_id])

    async def pieces(number: int) -> None:
        turn = await running(store, f"{name}{number}", f"{name}t{number}", owner=owner)
        for _ in range(count):
            turn = await append(store, turn, text("x", turn.position))
            tell(["piece", turn.lease.session_id, turn.position])

    await asyncio.gather(*map(messages, sessions), *map(pieces, range(3)))


async def race_starts(store: Store, *, name: str, sessions: list[str]) -> None:
    """Tries to start a turn in each session."""
    owner = await new_owner(store, name)
    for session_id in sessions:
        if await store.start_turn(session_id, owner=owner, turn_id=f"{name}.{session_id}", at=NOW):
            tell(session_id)


async def race_takes(store: Store, *, name: str, turns: list[tuple[str, str, int]]) -> None:
    """Tries to take each turn from its former owner."""
    owner = await new_owner(store, name)
    for session_id, turn_id, epoch in turns:
        try:
            taken = await store.take_turn(session_id, owner=owner, turn_id=turn_id, epoch=epoch, events=[], at=NOW)
        except StaleEpoch:
            continue
        await append(store, taken, text(f"from {name}"))
        tell(session_id)


async def race_ships(store: Store, *, journals: list[tuple[str, str, int, int, bool]], pieces: int) -> None:
    """Ships the same pieces of each journal as the other process."""
    for session_id, turn_id, epoch, position, _ in journals:
        items = [Spooled(position + n, 1, NOW, "text", encode(text(str(n), n))) for n in range(pieces)]
        sight = Sight(found=Found.WHOLE)
        shipped = await store.ship(Journal(session_id, turn_id, epoch), items, sight, limits=Limits(), at=NOW)
        tell([session_id, shipped.new])


JOBS = {job.__name__: job for job in (append_for_ever, write_many, race_starts, race_takes, race_ships)}


async def main(backend: str, place: str, job: str, arguments: str) -> None:
    async with BACKENDS[backend](Path(place)).opened() as store:
        tell("ready")
        await asyncio.to_thread(sys.stdin.readline)
        await JOBS[job](store, **json.loads(arguments))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
