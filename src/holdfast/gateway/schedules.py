"""Schedules, as people and agents ask for them, and the alarm that finds which of them is due."""

import asyncio

import structlog

from holdfast import time_zones
from holdfast.core import keys, reminders, schedules
from holdfast.core.errors import NotFound, Unavailable
from holdfast.core.events import ScheduleAdded
from holdfast.core.lifecycle import Work
from holdfast.core.reminders import When
from holdfast.core.schedules import NOT_ALLOWED, Due, Policy, Schedule, Timing
from holdfast.gateway.host import Host
from holdfast.gateway.lanes import Lanes
from holdfast.gateway.people import People
from holdfast.gateway.safe_mode import SafeMode
from holdfast.gateway.stage import Stage
from holdfast.gateway.tasks import heard
from holdfast.ports.schedules import Schedules

LOOK_S = 1.0
LOOKED_AT = 1000

log = structlog.get_logger()


class Wishes:
    """New schedules, checked against what an operator allows."""

    def __init__(self, host: Host, policy: Policy) -> None:
        self._clock, self._ids, self.policy = host.clock, host.ids, policy

    def read(self, words: str) -> tuple[Timing, str]:
        """The time at the beginning of some words, and the rest of them. Raises `BadInput`."""
        found = reminders.parse(words, now=self._clock.now(), zone=self.policy.time_zone, zones=time_zones.zone)
        return found.timing, found.text

    def timing(self, when: When) -> Timing:
        """Raises `BadInput`."""
        return reminders.timing(when, now=self._clock.now(), zone=self.policy.time_zone, zones=time_zones.zone)

    def made(self, text: str, timing: Timing, *, sender: str, missed: str | None = None, dedup_key: str | None = None) -> ScheduleAdded:
        """Raises `BadInput`."""
        return schedules.made(
            self._ids.new("c"),
            text,
            timing,
            now=self._clock.now(),
            zone=time_zones.zone(timing.time_zone),
            policy=self.policy,
            sender=sender,
            missed=missed,
            dedup_key=dedup_key,
        )


class Alarm:
    """One task of the process that serves. It sleeps until the next time, and never longer than a second: the wall clock may step, and
    another process may have added a schedule. What comes due while nothing may begin is found afterwards, as missed.
    """

    def __init__(
        self,
        *,
        store: Schedules,
        host: Host,
        stage: Stage,
        safe_mode: SafeMode,
        lanes: Lanes,
        platforms: frozenset[str],
        people: People,
    ) -> None:
        self._store, self._clock, self._ids, self._lanes = store, host.clock, host.ids, lanes
        self._stage, self._safe_mode, self._platforms, self._people = stage, safe_mode, platforms, people
        self._hinted = asyncio.Event()

    def hint(self) -> None:
        """There is a new schedule."""
        self._hinted.set()

    async def run(self) -> None:
        while True:
            self._hinted.clear()
            wait_s = LOOK_S
            try:
                if self._may_begin:
                    wait_s = await self._look()
            except Unavailable as error:
                log.warning("schedules cannot be looked at", error=str(error))
            await heard(self._hinted, wait_s)

    @property
    def _may_begin(self) -> bool:
        return self._stage.work is Work.ALL and not self._safe_mode.on

    async def _look(self) -> float:
        """Fires what is due; gives how long to sleep."""
        now = self._clock.now()
        due = await self._store.due_schedules(now=now, limit=LOOKED_AT)
        for schedule in due.found:
            if not self._may_begin:
                break
            await self._fire(schedule)
        until_s = LOOK_S if due.next_at is None else (due.next_at - self._clock.now()) / 1000
        return min(LOOK_S, max(0.0, until_s))

    async def _fire(self, schedule: Schedule) -> None:
        key, now = keys.parse(schedule.session_key), self._clock.now()
        if not key.on_page and key.platform not in self._platforms:
            return  # As an interrupted turn (R8): it waits until its platform is configured again.
        zone = time_zones.zone_or_utc(schedule.timing.time_zone)
        due = schedules.due(schedule, now=now, zone=zone)
        if due is None:
            return
        if schedule.sender and not await self._people.allows(schedule.session_key, schedule.sender):
            due = Due(due_at=due.due_at, next_at=due.next_at, missed=due.missed, skipped=due.skipped or NOT_ALLOWED)
        when = reminders.time_of(due.due_at, zone, schedule.timing.time_zone)
        try:
            fired = await self._store.fire_schedule(schedule, due, when=when, fresh=(self._ids.new("s"), self._ids.new("l")), at=now)
        except NotFound:
            return  # Its session was deleted in this moment.
        if fired is None:
            return
        log.info("schedule", schedule=schedule.schedule_id, session=fired.session_id, due=when, missed=due.missed, skipped=fired.skipped)
        if fired.session_id is not None:
            self._lanes.look(fired.session_id)
