"""Turns: their leases, their events, what was spooled of them."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from holdfast.core import events as e
from holdfast.core.blame import Interruption
from holdfast.core.journals import Late, Limits, Sight
from holdfast.core.limits import Bounds
from holdfast.core.plans.causes import Cause
from holdfast.core.plans.start import StartedTurn
from holdfast.core.plans.wait import Waiting
from holdfast.core.sessions import Lease, Session
from holdfast.core.spools import Spooled
from holdfast.ports.journals import Journal, Shipped
from holdfast.ports.turns import StreamItem
from holdfast.store import reads
from holdfast.store.port.base import OverLines
from holdfast.store.work import journals, questions, streams, turns

T = TypeVar("T")
# With these a turn gives up more than it takes: they are tried even when the disk is full.
ENDINGS = (e.TurnEnded, e.TurnInterrupted, Interruption, e.ToolFinished)


class Turns(OverLines):
    async def start_turn(
        self,
        session_id: str,
        *,
        owner: int,
        turn_id: str,
        at: int,
        trial: bool = False,
        safe: bool = False,
        bounds: Bounds | None = None,
    ) -> StartedTurn | None:
        return await self._lines.write(turns.start_turn, session_id, owner, turn_id, at, trial, safe, bounds)

    async def take_turn(
        self,
        session_id: str,
        *,
        owner: int,
        turn_id: str,
        epoch: int,
        events: Sequence[e.Event | Interruption],
        at: int,
        seq: int | None = None,
    ) -> StartedTurn:
        return await self._lines.write(turns.take_turn, session_id, owner, turn_id, epoch, tuple(events), at, seq)

    async def append_turn(
        self,
        lease: Lease,
        *,
        turn_id: str,
        attempt: int,
        position: int,
        events: Sequence[e.Event | Interruption],
        at: int,
        before: Sequence[Spooled] = (),
    ) -> int:
        ends = False
        for event in events:
            if isinstance(event, ENDINGS):
                ends = True
        arguments = (lease, turn_id, attempt, position, tuple(events), at)
        if before:
            return await self._after(before, turns.append_turn, arguments)
        return await self._lines.write(turns.append_turn, *arguments, when_full=ends, waits=False)

    async def wait_turn(
        self,
        lease: Lease,
        *,
        turn_id: str,
        attempt: int,
        position: int,
        asking: tuple[str, ...],
        at: int,
        before: Sequence[Spooled] = (),
    ) -> tuple[Waiting, int]:
        arguments = (lease, turn_id, attempt, position, asking, at)
        if before:
            return await self._after(before, questions.wait_turn, arguments)
        return await self._lines.write(questions.wait_turn, *arguments, waits=False)

    async def take_causes(
        self,
        lease: Lease,
        *,
        turn_id: str,
        attempt: int,
        position: int,
        step: int,
        offset: int,
        at: int,
        before: Sequence[Spooled] = (),
    ) -> tuple[tuple[Cause, ...], int]:
        arguments = (lease, turn_id, attempt, position, step, offset, at)
        if before:
            return await self._after(before, questions.take_causes, arguments)
        return await self._lines.write(questions.take_causes, *arguments, waits=False)

    async def _after(self, before: Sequence[Spooled], run: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        """What was spooled exists on disk already: storing it frees more than it takes."""
        lease, turn_id = arguments[:2]
        return await self._lines.write(journals.after_spooled, lease, turn_id, tuple(before), run, arguments, when_full=True, waits=False)

    async def append_streams(self, items: Sequence[StreamItem], *, at: int) -> list[int | Exception]:
        return await self._lines.write(streams.append_streams, tuple(items), at, waits=False)

    async def writable(self) -> None:
        await self._lines.writable()

    async def ship(self, journal: Journal, events: Sequence[Spooled], sight: Sight, *, limits: Limits, at: int) -> Shipped:
        return await self._lines.write(journals.ship, journal, tuple(events), sight, limits, at, when_full=True)

    async def late_journals(self, *, limit: int) -> list[Late]:
        return await self._lines.read(journals.late_journals, limit)

    async def journal(self, turn_id: str, epoch: int) -> Late | None:
        return await self._lines.read(journals.journal, turn_id, epoch)

    async def session_of_turn(self, turn_id: str) -> str | None:
        return await self._lines.read(journals.session_of_turn, turn_id)

    async def pass_trial(self, lease: Lease, *, turn_id: str, at: int) -> bool:
        return await self._lines.write(turns.pass_trial, lease, turn_id, at)

    async def await_trial(self, session_id: str, *, turn_id: str, aged_ms: int, at: int) -> bool:
        return await self._lines.write(turns.await_trial, session_id, turn_id, aged_ms, at)

    async def leave_turn(self, session_id: str, *, turn_id: str, left: e.TurnLeft, at: int) -> bool:
        return await self._lines.write(turns.leave_turn, session_id, turn_id, left, at)

    async def undecided(self) -> list[Session]:
        return await self._lines.read(reads.undecided)

    async def open_turns(self, *, apart_from: int) -> list[Session]:
        return await self._lines.read(reads.open_turns, apart_from)

    async def waiting_lanes(self, *, limit: int, safe: bool = False) -> list[str]:
        return await self._lines.read(reads.waiting_lanes, limit, safe)
