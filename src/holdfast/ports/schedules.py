"""What starts turns at certain times, as the store keeps it."""

from typing import Protocol

import msgspec

from holdfast.core.events import ScheduleAdded
from holdfast.core.plans.schedules import Fired
from holdfast.core.reminders import Zones
from holdfast.core.schedules import Due, Schedule


class DueSchedules(msgspec.Struct, frozen=True):
    """`found`: those of which a time has come, and those whose next time a clock that ran ahead has set. `next_at`: when the next one is
    due after these.
    """

    found: tuple[Schedule, ...]
    next_at: int | None


class Schedules(Protocol):
    """Every method keeps to the contract of `ports.store`. A schedule stands in the log of the session in which it was made. It belongs to
    that session's key and starts turns in the key's current session; while the session in whose log it stands is deleted it does not exist.
    """

    async def schedules(self, session_key: str | None = None) -> list[Schedule]:
        """Those of a key, or all of them, the next one that is due first."""

    async def add_schedule(self, session_id: str, added: ScheduleAdded, *, limit: int, at: int) -> Schedule:
        """Into the log of its key's current session. Repeating a dedup key with the same text changes nothing and gives the first one; with
        another text it raises `DuplicateOtherContent`. Raises `NotFound`, `TooManySchedules` where its key has `limit` of them.
        """

    async def made_schedule(self, dedup_key: str, text: str) -> Schedule | None:
        """The one that was made under this key; None if none was. A request that is repeated late may name a time that is over by then.
        Raises `NotFound` for one that is over or was removed, `DuplicateOtherContent`.
        """

    async def remove_schedule(self, schedule_id: str, *, by: str, at: int) -> Schedule:
        """Takes one back, and gives what it was. A cause that it has recorded stays. Raises `NotFound`."""

    async def pause_schedule(self, schedule_id: str, *, by: str, at: int) -> Schedule:
        """From now on none of its times is due. A cause that it has recorded stays. Repeating it changes nothing. Raises `NotFound`."""

    async def continue_schedule(self, schedule_id: str, *, zones: Zones, by: str, at: int) -> Schedule:
        """Continues a paused one with its first time after `at`; what came while it was paused is skipped. Repeating it changes nothing.
        Raises `NotFound`, and `ScheduleOver` where no time is left. `zones`: a time zone by its name.
        """

    async def due_schedules(self, *, now: int, limit: int) -> DueSchedules:
        """Paused ones are never due."""

    async def fire_schedule(self, schedule: Schedule, due: Due, *, when: str, fresh: tuple[str, str], at: int) -> Fired | None:
        """A time has come: records it with the next one and, in the same transaction, a cause in the inbox of the key's current session.
        None, and nothing changed, if the schedule is not due when the caller believes: another process was faster, or it was removed or
        paused.
        One time is told once, also if a clock that was set back brings it again. No cause is recorded while one of an earlier time waits,
        or in a suspended session, whose people are told the first time. Where the key's current session is deleted a new one (`fresh`:
        session id, log name) begins. `when`: the time in words.
        """
