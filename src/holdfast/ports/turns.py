"""The turns of a store: who may write one, and how it is written."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from holdfast.core.blame import Interruption
from holdfast.core.events import Event, TurnLeft
from holdfast.core.limits import Bounds
from holdfast.core.plans.causes import Cause
from holdfast.core.plans.start import StartedTurn
from holdfast.core.plans.wait import Waiting
from holdfast.core.sessions import Lease, Session
from holdfast.core.spools import Spooled


class StreamItem(msgspec.Struct, frozen=True):
    """Stream events of one turn for a shared write."""

    lease: Lease
    turn_id: str
    attempt: int
    position: int
    events: tuple[Event, ...]


class Turns(Protocol):
    """Turns under leases. Every method keeps to the contract of `ports.store`."""

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
        """Takes the oldest cause that waits, message or not, and starts its turn, on `trial` or not: lease, generation + 1,
        `turn.started`, the content of the cause, in one transaction. Causes before it that belong to an earlier turn are dropped. An
        interrupted turn that was left ends there as set aside, and the session stays pending. None when nothing waits, a turn is still
        open, or this owner was told to stop; what waits in a session that is suspended or no longer its key's current one is refused, and
        its senders are told once. `safe`: only what a person said starts a turn; other causes wait (B14). `bounds`: a cause whose
        sender may have no more turns today is refused, its sender is told, and the next one is looked at.
        """

    async def take_turn(
        self,
        session_id: str,
        *,
        owner: int,
        turn_id: str,
        epoch: int,
        events: Sequence[Event | Interruption],
        at: int,
        seq: int | None = None,
    ) -> StartedTurn:
        """Takes the lease of an open turn from the holder of `epoch`, and records `events` under the new one, as `append_turn` does. The
        caller must know that the former owner is gone. `seq`: where its session's log must still stand, for events that were
        decided by what was there: people may have answered, stopped or resumed it since. Raises `StaleEpoch` when somebody was faster,
        `StalePosition` when only the log has grown, `ToldToStop` when this owner was told to stop.
        """

    async def append_turn(
        self,
        lease: Lease,
        *,
        turn_id: str,
        attempt: int,
        position: int,
        events: Sequence[Event | Interruption],
        at: int,
        before: Sequence[Spooled] = (),
    ) -> int:
        """Appends to a turn and gives the new position. `before`: what was spooled under this lease, up to `position`; it enters the log
        first, in the same transaction. Here, in `append_streams`, `wait_turn` and `take_causes` a caller does not wait for another program
        that holds the database: `StoreAway` comes after about a second, and nothing was written.

        Raises `StaleEpoch`, `StalePosition`, `PositionGap`. A `TurnResumed` among the events begins the next attempt. Once a stop is on
        record it is refused with `StaleEpoch`, and so is every end of an interrupted turn but `cancelled`; a running turn that ends by
        itself then ends as cancelled. `TurnEnded` and `TurnLeft` release the lease. An `Interruption` becomes `TurnInterrupted`, counted
        on from what the session has in this transaction; one found after a death releases the lease, too. A session that these events
        suspend refuses the messages that wait in it, and their senders are told once. A `ToolStarted` that names an approval uses it up;
        unless that was given, for this very call, and is unused, nothing is written and `ApprovalVoid` raised.
        """

    async def pass_trial(self, lease: Lease, *, turn_id: str, at: int) -> bool:
        """Records that a turn which runs on trial has lived for long enough, and sets its session's count of restarts to 0. False, and
        nothing changed, when it is no longer there or not on trial.
        """

    async def await_trial(self, session_id: str, *, turn_id: str, aged_ms: int, at: int) -> bool:
        """Records that an interrupted turn still waits for its trial, and how old it was when it began to. False when it waits no more."""

    async def leave_turn(self, session_id: str, *, turn_id: str, left: TurnLeft, at: int) -> bool:
        """Records that a turn which no process holds, waiting or already left, stays so. False when it is no longer there. A question
        whose delivery was given up is owed to its chat again.
        """

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
        """Ends an attempt that can do nothing more until people answer: records `turn.waiting` with the questions of its turn that are
        open in this transaction, which releases the lease. `asking`: the calls that wait for an answer, as far as the attempt knows.
        Writes nothing where one of them is answered, one has expired, or a stop is on record. Gives what it found, and the position.
        `before` as in `append_turn`, which also says what is refused.
        """

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
        """Takes the waiting messages that are meant to steer into a running turn: each is recorded as taken, and waits no more. Gives
        them, oldest first, and the position. `before` as in `append_turn`, which also says what is refused.
        """

    async def append_streams(self, items: Sequence[StreamItem], *, at: int) -> list[int | Exception]:
        """Stream events of many turns in one write: for each the new position, or why it was refused, as `append_turn`
        would raise it. One refusal does not touch the rest.
        """

    async def open_turns(self, *, apart_from: int) -> list[Session]:
        """Sessions whose turn somebody must look after: answered, interrupted, or running; the oldest message first. Left out are those
        that simply run under the owner `apart_from`, neither stopped nor suspended, and those that were left and have no news.
        """

    async def undecided(self) -> list[Session]:
        """Further sessions to decide about at start-up: turns that were left, waiting turns about which nothing was decided yet, and
        sessions marked resume-pending that have no open turn. The oldest message first.
        """

    async def waiting_lanes(self, *, limit: int, safe: bool = False) -> list[str]:
        """Sessions with a waiting cause and no open turn, the oldest cause first. `safe`: only those in which a person said something."""
