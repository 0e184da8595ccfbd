"""The processes of a home, as the store knows them: who they are, how they start and end, and a pause of all their work."""

from typing import Protocol

import msgspec

from holdfast.core.process_id import ProcessId
from holdfast.core.shutdowns import Shutdown


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """One process. `id` is given by the store; `name` is also the name of its lock. `draining`: why it has begun to stop, as
    its running turns are told (`shutdown_timeout`, `restart_timeout`); set by `record_drain` alone. `told`: the stop that another process
    passed on to it; set by `tell_owners` alone.
    """

    id: int = 0
    name: str
    pid: int
    started_at: int
    boot_id: str
    socket: str | None = None
    draining: str | None = None
    told: Shutdown | None = None

    @property
    def process(self) -> ProcessId:
        return ProcessId(self.pid, self.started_at, self.boot_id)


class Pause(msgspec.Struct, frozen=True):
    """Somebody holds up the work of a home, until a time: no turn starts, and what is said is kept."""

    holder: str
    since: int
    until: int


class Owners(Protocol):
    """Owners, starts and pauses. Every method keeps to the contract of `ports.store`."""

    async def register_owner(self, owner: Owner) -> int:
        """The number under which this process holds leases. The same name again gives the same number; no
        number is ever given to another name.
        """

    async def owners(self) -> list[Owner]: ...

    async def record_start(self, owner: int, *, at: int, version: str | None = None) -> int:
        """This process begins to serve, in this `version`. Gives how many starts in a row before it died without an end, without a
        completed turn and without having been called sound; a death for which a session is suspended is left out. The same owner again
        changes nothing.
        """

    async def record_sound(self, owner: int) -> None:
        """This process has been healthy for long enough to be trusted."""

    async def deaths(self, *, before: int, since: int) -> int:
        """How many starts at or after a time, by owners before this one, have no end on record: neither a stop nor a hand-over."""

    async def record_drain(self, owner: int, *, reason: str) -> None:
        """This process begins to stop. Turns found running after its death were interrupted for this reason, not by a crash (C27)."""

    async def tell_owners(self, stop: Shutdown, *, by: int | None) -> None:
        """Passes a stop on to every owner other than `by`, joined with what each was told before. None of them starts or takes a turn
        after this (C28, C30).
        """

    async def record_end(self, owner: int, *, ended: bool = True, handed_over: bool = False) -> None:
        """This process ends on purpose; or, after all, does not. `handed_over`: it gives way to a successor, and may finish its turns."""

    async def running_by_owner(self) -> dict[int, int]:
        """How many turns each owner runs; those that run none are not in it."""

    async def last_end(self, *, apart_from: int) -> bool:
        """Whether the start before this one ended on purpose, or there was none."""

    async def forget_owner(self, owner: int) -> None:
        """Only for one that is dead and holds no lease any more; otherwise nothing happens."""


class Pauses(Protocol):
    """A pause of all the work of a home. Every method keeps to the contract of `ports.store`."""

    async def set_pause(self, pause: Pause | None) -> None:
        """Pauses the work of this home, or ends the pause; also for the process that serves next."""

    async def pause(self, *, now: int) -> Pause | None:
        """The pause that holds at that time."""
