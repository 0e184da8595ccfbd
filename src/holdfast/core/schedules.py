"""When a schedule is due: once, at a steady interval, or whenever a cron expression says so in its time zone. Zones are given as values."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

import msgspec

from holdfast.core.errors import BadInput, Refused
from holdfast.core.events import ScheduleAdded

# What is done about a due time that passed while nothing could be started.
RUN, SKIP = "run", "skip"
MISSED = (RUN, SKIP)
# A due time this long ago was missed. A restart takes less.
LATE_MS = 5 * 60_000
# A record of a schedule that lies so far in the future was written by a clock that has been set back since.
FUTURE_MS = 5 * 60_000
MOST_COUNTED = 100
MAX_TEXT = 8000
MOST_AHEAD_MS = 10 * 366 * 24 * 3600 * 1000
MOST_EVERY_S = 366 * 24 * 3600
_SHORTHANDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_SAMPLED = 100

# Why a due time started no turn.
TOO_LATE = "it was missed"
SET_BACK = "the clock was set back"
STILL_WAITS = "the time before it still waits for its turn"
SUSPENDED = "the conversation is suspended"
NOT_ALLOWED = "its author may no longer use the agent"
KNOWN = "it was told already"


class TooManySchedules(Refused):
    code = "too_many_schedules"

    def __init__(self, limit: int) -> None:
        super().__init__(f"This conversation already has {limit} schedules, which is the limit. Remove one of them first.")


class ScheduleOver(Refused):
    """Its only time passed while it was paused."""

    code = "schedule_over"

    def __init__(self, when: str) -> None:
        super().__init__(
            f"Its time passed while it was paused: {when}. Remove this schedule, and plan the work again if it is still needed."
        )


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator decides. `time_zone`: the one that counts where none is named. `limit`: how many a session key may have. `least_s`:
    the shortest interval. `missed`: what is done about a missed time where nobody said it.
    """

    time_zone: str = "UTC"
    limit: int = 50
    least_s: float = 60.0
    missed: str = RUN


class Timing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of three: `once_at`; `every_s`, counted from `since`; `cron`, five fields read in `time_zone`. Times are in milliseconds."""

    once_at: int | None = None
    every_s: int | None = None
    since: int = 0
    cron: str | None = None
    time_zone: str = "UTC"


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """`session_id`: in whose log it stands; it belongs to the session key, and starts turns in the key's current session. `sender`: with
    whose rights. `call_id`: the call of an agent that made it, if one did. `noted_at`: when its newest record was written; `skipped`: why
    its last due time started no turn, if it did not. `paused_at`: since when no time of it is due.
    """

    schedule_id: str
    session_id: str
    session_key: str
    text: str
    timing: Timing
    missed: str
    sender: str
    call_id: str | None
    created_at: int
    due_at: int
    noted_at: int
    last_at: int | None = None
    skipped: str | None = None
    paused_at: int | None = None


def stands(schedule: Schedule, *, due_at: int) -> bool:
    """Whether a due time that was found still counts: the schedule was not paused since, and no other process was faster."""
    return schedule.due_at == due_at and schedule.paused_at is None


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """A time of a schedule has come. `due_at`: the time it stands for, the newest of those that have; `missed`: how many came before that
    one and were not told, at most `MOST_COUNTED`. `next_at`: None after the last. `skipped`: why it starts no turn, if it does not.
    """

    due_at: int
    next_at: int | None
    missed: int = 0
    skipped: str | None = None


def due(schedule: Schedule, *, now: int, zone: tzinfo) -> Due | None:
    """What has come to be due; None while nothing has. However many times have passed, they are told as one."""
    if now < schedule.due_at:
        return _set_back(schedule, now, zone)
    newest = max(schedule.due_at, latest(schedule.timing, now, zone) or 0)
    late = schedule.missed == SKIP and now - newest > LATE_MS
    return Due(
        due_at=newest,
        next_at=following(schedule.timing, newest, zone),
        missed=_count(schedule.timing, schedule.due_at, newest, zone),
        skipped=TOO_LATE if late else None,
    )


def _set_back(schedule: Schedule, now: int, zone: tzinfo) -> Due | None:
    """A clock that ran ahead moved the next time too far into the future: it is found again from what the clock shows now."""
    if schedule.timing.once_at is not None or schedule.noted_at <= now + FUTURE_MS:
        return None
    next_at = following(schedule.timing, now, zone)
    if next_at is None or next_at >= schedule.due_at:
        return None
    return Due(due_at=schedule.due_at, next_at=next_at, skipped=SET_BACK)


def following(timing: Timing, after: int, zone: tzinfo) -> int | None:
    """The first time behind `after`, None if there is none."""
    if timing.once_at is not None:
        return timing.once_at if timing.once_at > after else None
    if timing.every_s is not None:
        every = timing.every_s * 1000
        return timing.since + max(1, (after - timing.since) // every + 1) * every
    return next(_behind(timing, after, zone), None)


def latest(timing: Timing, until: int, zone: tzinfo) -> int | None:
    """The newest time that is not behind `until`."""
    if timing.once_at is not None:
        return timing.once_at if timing.once_at <= until else None
    if timing.every_s is not None:
        every = timing.every_s * 1000
        count = (until - timing.since) // every
        return timing.since + count * every if count > 0 else None
    from cronsim import CronSim  # Only where there are such expressions.

    try:
        found = _ms(next(CronSim(timing.cron or "", _local(until + 1000, zone), reverse=True)))
    except StopIteration:
        return None
    # Where clocks change by less than an hour, the way back may miss some.
    for at in _behind(timing, found, zone):
        if at > until:
            break
        found = at
    return found if found <= until else None


def _behind(timing: Timing, after: int, zone: tzinfo) -> Iterator[int]:
    """Times of a cron expression. One in the hour that comes twice may be found once more, before `after`."""
    from cronsim import CronSim

    for local in CronSim(timing.cron or "", _local(after, zone)):
        if (at := _ms(local)) > after:
            yield at


def passed(schedule: Schedule, next_at: int, zone: tzinfo) -> int:
    """How many of its times lie before `next_at`, from the one that is next now."""
    return _count(schedule.timing, schedule.due_at, next_at, zone)


def _count(timing: Timing, first: int, newest: int, zone: tzinfo) -> int:
    """How many times lie before `newest`, from `first` on."""
    count, at = 0, first
    while at < newest and count < MOST_COUNTED:
        count += 1
        at = following(timing, at, zone) or newest
    return count


def _local(ms: int, zone: tzinfo) -> datetime:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)).astimezone(zone)


def _ms(local: datetime) -> int:
    return round(local.timestamp()) * 1000


def suspended(text: str, when: str) -> str:
    """For the people of a suspended conversation."""
    return (
        f"This was scheduled for {when}, but the conversation is suspended, so nothing was started. Send /resume to continue it.\n\n> "
        + text.replace("\n", "\n> ")
    )


# what a schedule may be


def cron(expression: str) -> str:
    """The expression, in five fields. Raises `BadInput`."""
    from cronsim import CronSim, CronSimError

    given = " ".join(expression.split())
    fields = _SHORTHANDS.get(given.lower(), given)
    try:
        if len(fields.split()) != 5:
            raise CronSimError("Wrong number of fields")
        CronSim(fields, datetime(2024, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise BadInput(
            f"{given!r} is not a cron expression: {str(error).lower()}. It has five fields: minute, hour, day of the month, month, day of"
            " the week. For example 0 8 * * 1-5 is 8:00 on weekdays."
        ) from None
    return fields


def check(timing: Timing, *, now: int, zone: tzinfo, least_s: float) -> int:
    """The first time of a new schedule. Raises `BadInput` for one that never comes, is too far away, or comes too often."""
    first = following(timing, now, zone)
    if first is None and timing.once_at is not None:
        raise BadInput("That time is already over. Choose one that is still to come.")
    if first is None:
        raise BadInput(f"No day matches {timing.cron!r}, so it would never be due.")
    if first - now > MOST_AHEAD_MS:
        raise BadInput("That time is more than ten years away. Choose an earlier one.")
    if timing.every_s is not None and timing.every_s > MOST_EVERY_S:
        raise BadInput("The interval is longer than a year. Choose a shorter one.")
    if timing.once_at is None and _closest_s(timing, first, zone) < least_s:
        raise BadInput(f"That would be due too often: the shortest interval here is {least_s:g} seconds.")
    return first


def made(
    schedule_id: str,
    text: str,
    timing: Timing,
    *,
    now: int,
    zone: tzinfo,
    policy: Policy,
    sender: str,
    missed: str | None = None,
    call_id: str | None = None,
    dedup_key: str | None = None,
) -> ScheduleAdded:
    """The record of a new schedule. Raises `BadInput`."""
    words = text.strip()
    if not words:
        raise BadInput("Say what is to be done then: the text is empty.")
    if len(words) > MAX_TEXT:
        raise BadInput(f"The text is longer than {MAX_TEXT} characters. Shorten it.")
    return ScheduleAdded(
        schedule_id=schedule_id,
        content=words,
        due_at=check(timing, now=now, zone=zone, least_s=policy.least_s),
        once_at=timing.once_at,
        every_s=timing.every_s,
        since=timing.since,
        cron=timing.cron,
        time_zone=timing.time_zone,
        missed=missed or policy.missed,
        sender=sender,
        call_id=call_id,
        dedup_key=dedup_key,
    )


def timing_of(added: ScheduleAdded) -> Timing:
    return Timing(once_at=added.once_at, every_s=added.every_s, since=added.since, cron=added.cron, time_zone=added.time_zone)


def _closest_s(timing: Timing, first: int, zone: tzinfo) -> float:
    """The shortest interval between the next times."""
    if timing.every_s is not None:
        return timing.every_s
    closest, before = float("inf"), first
    for number, at in enumerate(_behind(timing, first, zone)):
        if number == _SAMPLED:
            break
        closest, before = min(closest, (at - before) / 1000), at
    return closest
