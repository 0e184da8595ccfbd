"""Times as people write them: what `/remind` and `when` understand, and how a schedule is told."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo

import msgspec

from holdfast.core import schedules
from holdfast.core.errors import BadInput
from holdfast.core.schedules import Schedule, Timing

EXAMPLES = "in 20 minutes, at 18:00, tomorrow 9:00, friday 17:30, every 2 hours, every day 8:00, every weekday 8:00, or cron 0 8 * * 1-5"
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}
_SHORT = {"s": "second", "sec": "second", "m": "minute", "min": "minute", "h": "hour", "hr": "hour", "d": "day", "w": "week"}
_END = r"(?=[\s,]|:\s|$)"
_UNIT = r"(seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w)"
_SPAN = re.compile(rf"(\d{{1,6}}|an?)\s*{_UNIT}\b(?:\s*(?:,|and)\s*(?=\d)|\s*)", re.I)
_DAY = rf"({'|'.join(DAYS)}|{'|'.join(day[:3] for day in DAYS)})"
_TIME = re.compile(r"(?:at\s+)?(?:(\d{1,2})(?:[:.](\d{2}))?\s*(am|pm)?|(noon|midnight))" + _END, re.I)
_DATE = re.compile(r"(?:on\s+)?(\d{4})-(\d{1,2})-(\d{1,2})(?=[\s,T]|$)", re.I)
_REPEATED = re.compile(rf"(?:every\s+(day|weekday|{_DAY}(?:\s*(?:,|and)\s*{_DAY})*)|(daily)){_END}", re.I)
_ZONE = re.compile(r"(?:in\s+)?((?:[A-Z][A-Za-z_]+/)+[A-Z][A-Za-z0-9_+-]*|UTC)" + _END)
_CRON = re.compile(r"(?:cron\s+)?(@[a-z]+|(?:[\d*][\d*,/LW-]*\s+){3}[\dA-Z*][\dA-Z*,/-]*\s+[\dA-Z*][\dA-Z*,/#-]*)" + _END, re.I)
_GLUE = re.compile(r"[\s,:]*(?:to\s+)?", re.I)

Zones = Callable[[str], tzinfo]


class When(msgspec.Struct, frozen=True, kw_only=True):
    """As a request says it, with exactly one of the first four: an ISO 8601 time, an interval, a cron expression, or words."""

    at: str | None = None
    every_s: int | None = None
    cron: str | None = None
    when: str | None = None
    time_zone: str | None = None


class Wish(msgspec.Struct, frozen=True):
    """When, and what is left of the words."""

    timing: Timing
    text: str


def parse(words: str, *, now: int, zone: str, zones: Zones) -> Wish:
    """The time at the beginning of `words`. `zone`: the name of the one that counts where none is named. Raises `BadInput`."""
    given = words.strip()
    found = _cron(given, zone, zones) or _every(given, now, zone) or _in(given, now, zone) or _at(given, now, zone, zones)
    if found is None:
        raise BadInput(f"{_quoted(given)} does not begin with a time. Write for example: {EXAMPLES}.")
    return found


def timing(given: When, *, now: int, zone: str, zones: Zones) -> Timing:
    """`zone`: the name of the one that counts where none is named. Raises `BadInput`."""
    at, every_s, cron, words, zone = given.at, given.every_s, given.cron, given.when, given.time_zone or zone
    if sum(each is not None for each in (at, every_s, cron, words)) != 1:
        raise BadInput("Say when with exactly one of `at`, `every_s`, `cron` and `when`.")
    zones(zone)
    if every_s is not None:
        return Timing(every_s=every_s, since=now, time_zone=zone)
    if cron is not None:
        return Timing(cron=schedules.cron(cron), time_zone=zone)
    if at is not None:
        return Timing(once_at=moment(at, zones(zone)), time_zone=zone)
    found = parse(words or "", now=now, zone=zone, zones=zones)
    if found.text:
        raise BadInput(f"{_quoted(found.text)} is not understood. Write for example: {EXAMPLES}.")
    return found.timing


def moment(text: str, zone: tzinfo) -> int:
    """An ISO 8601 time; one without an offset counts in `zone`. Raises `BadInput`."""
    try:
        found = datetime.fromisoformat(text.strip())
        return _ms(found if found.tzinfo is not None else found.replace(tzinfo=zone))
    except (ValueError, OverflowError):
        raise BadInput(f"{_quoted(text)} is not a time. Write it like 2026-03-01T18:00 or 2026-03-01T18:00+01:00.") from None


def _cron(words: str, zone: str, zones: Zones) -> Wish | None:
    match = _CRON.match(words)
    if match is None:
        if re.match(r"cron\b", words, re.I):
            schedules.cron(" ".join(words.split()[1:6]))  # Says what is wrong with it.
        return None
    zone, end = _zone(words, match.end(), zone, zones)
    return Wish(Timing(cron=schedules.cron(match[1]), time_zone=zone), _rest(words, end))


def _in(words: str, now: int, zone: str) -> Wish | None:
    lead = re.match(r"in\s+|(?=\d+\s*[a-z])", words, re.I)
    if lead is None:
        return None
    seconds, end = _span(words, lead.end())
    return Wish(Timing(once_at=now + seconds * 1000, time_zone=zone), _rest(words, end)) if seconds else None


def _every(words: str, now: int, zone: str) -> Wish | None:
    """`every 2 hours`, `every hour`; days at a time of day are of the calendar."""
    lead = re.match(r"every\s+", words, re.I)
    if lead is None or _REPEATED.match(words):
        return None
    one = re.compile(_UNIT + _END, re.I).match(words, lead.end())
    seconds, end = (_SECONDS[_unit(one[1])], one.end()) if one else _span(words, lead.end())
    return Wish(Timing(every_s=seconds, since=now, time_zone=zone), _rest(words, end)) if seconds else None


def _span(words: str, start: int) -> tuple[int, int]:
    """The seconds of `1 hour and 30 minutes` or `1h30m`, and where that ends."""
    seconds = 0
    compact = re.compile(rf"(?:\d{{1,6}}{_UNIT})+{_END}", re.I).match(words, start)
    if compact:
        for number, unit in re.findall(rf"(\d{{1,6}}){_UNIT}", compact[0], re.I):
            seconds += int(number) * _SECONDS[_unit(unit)]
        return seconds, compact.end()
    end = start
    while match := _SPAN.match(words, end):
        seconds += (int(match[1]) if match[1].isdecimal() else 1) * _SECONDS[_unit(match[2])]
        end = match.end()
    return seconds, end


def _unit(word: str) -> str:
    word = word.lower()
    return _SHORT.get(word) or _SHORT.get(word.removesuffix("s")) or word.removesuffix("s")


def _at(words: str, now: int, zone: str, zones: Zones) -> Wish | None:
    if repeated := _REPEATED.match(words):
        return _repeated(words, repeated, zone, zones)
    lead = re.match(rf"(today|tomorrow|(?:on\s+|next\s+)?{_DAY}){_END}", words, re.I) or _DATE.match(words)
    start = 0 if lead is None else _skip(words, lead.end(), " \t\n,T")
    at = _TIME.match(words, start)
    if at is None:
        if lead is not None:
            raise BadInput(f"Say at what time, for example: {lead[0]} 9:00.")
        return None
    if lead is None and at[2] is None and at[3] is None and at[4] is None and not at[0].lower().startswith("at"):
        return None  # A number alone is no time.
    zone, end = _zone(words, at.end(), zone, zones)
    today = _local(now, zones(zone)).date()
    found = _first(_days(lead, today), _clock(at), now, zones(zone))
    return Wish(Timing(once_at=found, time_zone=zone), _rest(words, end))


def _days(lead: re.Match[str] | None, today: date) -> tuple[date, ...]:
    """The days that are meant, the first of them if its time is still to come."""
    if lead is None:
        return today, today + timedelta(days=1)
    if lead.re is _DATE:
        try:
            return (date(int(lead[1]), int(lead[2]), int(lead[3])),)
        except ValueError:
            raise BadInput(f"There is no day {lead[1]}-{lead[2]}-{lead[3]}.") from None
    word = lead[1].lower()
    if word in ("today", "tomorrow"):
        return (today + timedelta(days=int(word == "tomorrow")),)
    ahead = (_weekday(lead[2]) - today.weekday()) % 7
    return today + timedelta(days=ahead), today + timedelta(days=ahead + 7)


def _first(days: tuple[date, ...], at: time, now: int, zone: tzinfo) -> int:
    for day in days:
        if (found := _ms(datetime.combine(day, at, tzinfo=zone))) > now:
            return found
    raise BadInput("That time is already over. Choose one that is still to come.")


def _repeated(words: str, match: re.Match[str], zone: str, zones: Zones) -> Wish:
    at = _TIME.match(words, _skip(words, match.end(), " \t\n,"))
    if at is None:
        raise BadInput(f"Say at what time, for example: {match[0]} 8:00.")
    zone, end = _zone(words, at.end(), zone, zones)
    clock = _clock(at)
    which = (match[1] or match[4]).lower()
    if which in ("day", "daily"):
        days = "*"
    elif which == "weekday":
        days = "1-5"
    else:
        numbers = sorted({_weekday(day) + 1 for day in re.findall(_DAY, which)})
        days = ",".join(str(number % 7) for number in numbers)
    return Wish(Timing(cron=f"{clock.minute} {clock.hour} * * {days}", time_zone=zone), _rest(words, end))


def _clock(match: re.Match[str]) -> time:
    if match[4]:
        return time(12 if match[4].lower() == "noon" else 0)
    hour, minute, half = int(match[1]), int(match[2] or 0), (match[3] or "").lower()
    if half and not 1 <= hour <= 12:
        hour = 99
    elif half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    try:
        return time(hour, minute)
    except ValueError:
        raise BadInput(f"{_quoted(match[0])} is not a time of day. Write it like 18:00 or 6 pm.") from None


def _zone(words: str, start: int, zone: str, zones: Zones) -> tuple[str, int]:
    """A zone named behind the time, and where it ends."""
    match = _ZONE.match(words, _skip(words, start, " \t\n"))
    if match is None:
        return zone, start
    zones(match[1])
    return match[1], match.end()


def _skip(words: str, start: int, these: str) -> int:
    while start < len(words) and words[start] in these:
        start += 1
    return start


def _weekday(word: str) -> int:
    return next(number for number, day in enumerate(DAYS) if day.startswith(word.lower()))


def _rest(words: str, start: int) -> str:
    return words[start:].strip() and _GLUE.sub("", words[start:], count=1).strip()


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")


def _local(ms: int, zone: tzinfo) -> datetime:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)).astimezone(zone)


def _ms(local: datetime) -> int:
    return round(local.timestamp() * 1000)


# how it is told


def time_of(ms: int, zone: tzinfo, name: str) -> str:
    """A moment, for people: Sunday 1 March 2026, 08:00 (Europe/Berlin)."""
    local = _local(ms, zone)
    return f"{local:%A} {local.day} {local:%B %Y, %H:%M} ({name})"


def told(timing: Timing, zone: tzinfo) -> str:
    """When it is due, for people."""
    if timing.once_at is not None:
        return f"once, {time_of(timing.once_at, zone, timing.time_zone)}"
    if timing.every_s is not None:
        return f"every {_told_span(timing.every_s)}"
    minute, hour, day, month, days = (timing.cron or "").split()
    if minute.isdecimal() and hour.isdecimal() and day == month == "*":
        named = _told_days(days)
        if named is not None:
            return f"{named} at {int(hour):02}:{int(minute):02} ({timing.time_zone})"
    return f"cron {timing.cron} ({timing.time_zone})"


def _told_days(days: str) -> str | None:
    if days == "*":
        return "every day"
    if days == "1-5":
        return "every weekday"
    numbers = days.split(",")
    if not all(number in "0123456" and len(number) == 1 for number in numbers):
        return None
    return "every " + " and ".join(DAYS[(int(number) - 1) % 7].capitalize() for number in numbers)


def _told_span(seconds: int) -> str:
    for unit in ("week", "day", "hour", "minute", "second"):
        if seconds % _SECONDS[unit] == 0:
            count = seconds // _SECONDS[unit]
            return unit if count == 1 else f"{count} {unit}s"
    raise AssertionError(seconds)


def made(schedule_id: str, timing: Timing, zone: tzinfo) -> str:
    return f"Scheduled {told(timing, zone)}. To remove it: /remind remove {schedule_id}"


def listed(found: Sequence[tuple[Schedule, tzinfo]]) -> str:
    """The schedules of a chat, each with its zone, the next one that is due first."""
    if not found:
        return f"Nothing is scheduled here. Write for example: /remind tomorrow 9:00 water the plants. Times can be: {EXAMPLES}."
    lines = []
    for schedule, zone in found:
        next_one = "" if schedule.timing.once_at is not None else f", next {time_of(schedule.due_at, zone, schedule.timing.time_zone)}"
        if schedule.paused_at is not None:
            next_one = ", paused"
        skipped = f". Last time nothing was started: {schedule.skipped}" if schedule.skipped else ""
        lines.append(f"{schedule.schedule_id}: {_short(schedule.text)} ({told(schedule.timing, zone)}{next_one}){skipped}")
    return "\n".join(lines) + "\n\n/remind remove ID removes one of them."


def removed(schedule: Schedule) -> str:
    return f"Removed: {_short(schedule.text)}"


def no_such(which: str, found: int) -> str:
    if not which:
        return "Say which one: /remind remove ID. /remind lists them."
    if found:
        return f"{found} schedules here begin with {_quoted(which)}. Write more of the id."
    return f"There is no schedule {_quoted(which)} here. /remind lists them."


def not_yours(schedule_id: str) -> str:
    return f"{schedule_id} can be removed only by the person who made it, or by an administrator."


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59] + "…"
