"""Schedules."""

from holdfast.core import events as e
from holdfast.core.plans.schedules import Fired
from holdfast.core.reminders import Zones
from holdfast.core.schedules import Due, Schedule
from holdfast.ports.schedules import DueSchedules
from holdfast.store.port.base import OverLines
from holdfast.store.work import schedules


class Schedules(OverLines):
    async def schedules(self, session_key: str | None = None) -> list[Schedule]:
        return await self._lines.read(schedules.listed, session_key)

    async def add_schedule(self, session_id: str, added: e.ScheduleAdded, *, limit: int, at: int) -> Schedule:
        return await self._lines.write(schedules.add_schedule, session_id, added, limit, at)

    async def made_schedule(self, dedup_key: str, text: str) -> Schedule | None:
        return await self._lines.write(schedules.made_schedule, dedup_key, text)

    async def remove_schedule(self, schedule_id: str, *, by: str, at: int) -> Schedule:
        return await self._lines.write(schedules.remove_schedule, schedule_id, by, at)

    async def pause_schedule(self, schedule_id: str, *, by: str, at: int) -> Schedule:
        return await self._lines.write(schedules.pause_schedule, schedule_id, by, at)

    async def continue_schedule(self, schedule_id: str, *, zones: Zones, by: str, at: int) -> Schedule:
        return await self._lines.write(schedules.continue_schedule, schedule_id, zones, by, at)

    async def due_schedules(self, *, now: int, limit: int) -> DueSchedules:
        return await self._lines.read(schedules.due, now, limit)

    async def fire_schedule(self, schedule: Schedule, due: Due, *, when: str, fresh: tuple[str, str], at: int) -> Fired | None:
        return await self._lines.write(
            schedules.fire_schedule, schedule.session_id, schedule.schedule_id, schedule.due_at, due, when, fresh, at
        )
