"""`schedule`: an agent plans work for later in its conversation, lists what is planned, and takes it back."""

from typing import Any

from holdfast import time_zones
from holdfast.core import reminders, schedules
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.errors import BadInput, Refused
from holdfast.core.events import ScheduleAdded
from holdfast.core.reminders import When
from holdfast.core.schedules import MAX_TEXT, Policy, Schedule
from holdfast.ports.process import Clock, Ids
from holdfast.ports.schedules import Schedules
from holdfast.ports.tools import ToolContext, ToolResult
from holdfast.tools.plain import PlainTool

CREATE, LIST, REMOVE = "create", "list", "remove"


class ScheduleWork(PlainTool):
    """What it records stands, whatever becomes of its turn (E7)."""

    name = "schedule"
    description = (
        "Plan work for later in this conversation. At the given time a new turn starts with `text` as its task, so write it as an"
        " instruction to yourself that is complete without this conversation. `create` needs `text` and exactly one of `when` (words:"
        " 'in 20 minutes', 'tomorrow 9:00', 'every weekday 8:00'), `at` (ISO 8601), `every_s` and `cron` (five fields). `list` shows what"
        " is planned here; `remove` takes one back by its `schedule_id`."
    )
    schema = {  # noqa: RUF012 - nobody changes a schema.
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": [CREATE, LIST, REMOVE]},
            "text": {"type": "string", "maxLength": MAX_TEXT},
            "when": {"type": "string"},
            "at": {"type": "string"},
            "every_s": {"type": "integer", "minimum": 1},
            "cron": {"type": "string"},
            "time_zone": {"type": "string", "description": "A name such as Europe/Berlin. Without it, that of this Holdfast."},
            "missed": {
                "type": "string",
                "enum": list(schedules.MISSED),
                "description": "What to do about a time at which Holdfast was not running: run it once afterwards, or skip it.",
            },
            "schedule_id": {"type": "string"},
        },
        "required": ["action"],
        "additionalProperties": False,
    }

    def __init__(self, store: Schedules, *, clock: Clock, ids: Ids, policy: Policy) -> None:
        self._store, self._clock, self._ids, self._policy = store, clock, ids, policy

    def effect(self, arguments: dict[str, Any]) -> Effect:
        """One that is made or removed again under the same key is made or removed once."""
        return Effect.PURE if arguments.get("action") == LIST else Effect.IDEMPOTENT

    def place(self, session_id: str, folder: str | None) -> str:
        return "this conversation"

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        try:
            match arguments["action"]:
                case "create":
                    told = await self._create(arguments, context)
                case "remove":
                    told = await self._remove(str(arguments.get("schedule_id", "")), context)
                case _:
                    told = await self._list(context)
        except Refused as error:
            return ToolResult(ToolOutcome.FAILED, str(error))
        return ToolResult(ToolOutcome.DONE, told)

    async def _create(self, arguments: dict[str, Any], context: ToolContext) -> str:
        text, dedup_key = str(arguments.get("text", "")), f"new schedule|call|{context.key}"
        try:
            added = self._made(arguments, text, context, dedup_key)
        except BadInput:  # The call may be repeated after an interruption, and its time be over.
            made = await self._store.made_schedule(dedup_key, text.strip())
            if made is None:
                raise
        else:
            made = await self._store.add_schedule(context.session_id, added, limit=self._policy.limit, at=self._clock.now())
        return f"Scheduled as {made.schedule_id}: {self._told(made)}."

    def _made(self, arguments: dict[str, Any], text: str, context: ToolContext, dedup_key: str) -> ScheduleAdded:
        now, policy = self._clock.now(), self._policy
        given = {name: arguments.get(name) for name in When.__struct_fields__}
        timing = reminders.timing(When(**given), now=now, zone=policy.time_zone, zones=time_zones.zone)
        return schedules.made(
            self._ids.new("c"),
            text,
            timing,
            now=now,
            zone=time_zones.zone(timing.time_zone),
            policy=policy,
            sender=context.sender,
            missed=arguments.get("missed"),
            call_id=context.call_id,
            dedup_key=dedup_key,
        )

    async def _remove(self, schedule_id: str, context: ToolContext) -> str:
        mine = [each for each in await self._store.schedules(context.session_key) if each.schedule_id == schedule_id]
        if not mine:  # It may have been removed by this very call, before an interruption.
            return f"There is no schedule {schedule_id!r} in this conversation."
        if mine[0].sender != context.sender:
            raise BadInput(reminders.not_yours(schedule_id))
        gone = await self._store.remove_schedule(schedule_id, by=context.sender, at=self._clock.now())
        return f"Removed {gone.schedule_id}: {gone.text}"

    async def _list(self, context: ToolContext) -> str:
        found = await self._store.schedules(context.session_key)
        lines = [f"{each.schedule_id}: {self._told(each)}: {each.text}" for each in found]
        return "\n".join(lines) or "Nothing is scheduled in this conversation."

    def _told(self, schedule: Schedule) -> str:
        timing = schedule.timing
        zone = time_zones.zone_or_utc(timing.time_zone)
        next_one = "" if timing.once_at is not None else f", next {reminders.time_of(schedule.due_at, zone, timing.time_zone)}"
        return reminders.told(timing, zone) + (", paused by its people" if schedule.paused_at is not None else next_one)
