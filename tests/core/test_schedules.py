"""When schedules are due: intervals and expressions, both changes of summer time, clocks that step, and what was missed (P6)."""

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import msgspec
import pytest
from cronsim import CronSim, CronSimError
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core import schedules
from holdfast.core.errors import BadInput
from holdfast.core.schedules import LATE_MS, MOST_COUNTED, RUN, SET_BACK, SKIP, TOO_LATE, Due, Schedule, Timing

BERLIN = ZoneInfo("Europe/Berlin")
MINUTE, HOUR, DAY = 60_000, 3_600_000, 24 * 3_600_000
NOW = 1_772_000_000_000


def ms(text: str, zone: tzinfo = UTC) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()) * 1000


def utc(at: int | None) -> str:
    return "never" if at is None else f"{datetime.fromtimestamp(at / 1000, UTC):%m-%d %H:%M}"


def schedule(timing: Timing, due_at: int, *, missed: str = RUN, noted_at: int = 0) -> Schedule:
    return Schedule(
        schedule_id="c1",
        session_id="s1",
        session_key="k",
        text="water the plants",
        timing=timing,
        missed=missed,
        sender="ann",
        call_id=None,
        created_at=0,
        due_at=due_at,
        noted_at=noted_at,
    )


def times(timing: Timing, after: int, zone: tzinfo, count: int) -> list[str]:
    found = []
    at: int | None = after
    for _ in range(count):
        at = schedules.following(timing, at or 0, zone)
        found.append(utc(at))
    return found


# the next time


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        # The clock goes from 2:00 to 3:00 on 29 March, and from 3:00 back to 2:00 on 25 October.
        ("30 8 * * *", "2026-03-28 12:00", ["03-29 06:30", "03-30 06:30"]),
        ("30 2 * * *", "2026-03-28 12:00", ["03-29 01:00", "03-30 00:30"]),
        ("0 * * * *", "2026-03-29 00:00", ["03-29 01:00", "03-29 02:00"]),
        ("30 8 * * *", "2026-10-24 12:00", ["10-25 07:30", "10-26 07:30"]),
        ("30 2 * * *", "2026-10-24 12:00", ["10-25 00:30", "10-26 01:30"]),
        ("30 2 * * *", "2026-10-25 01:10", ["10-26 01:30", "10-27 01:30"]),
        ("30 * * * *", "2026-10-24 23:30", ["10-25 00:30", "10-25 01:30", "10-25 02:30"]),
        ("0 8 * * 1-5", "2026-03-27 12:00", ["03-30 06:00", "03-31 06:00"]),
    ],
)
def test_an_expression_is_read_in_its_zone_over_both_changes_of_summer_time(expression: str, after: str, expected: list[str]) -> None:
    """A time of day comes once each day; one that the clock leaves out comes at once after the gap, one that it repeats comes the first
    time only. What comes every hour comes every hour."""
    assert times(Timing(cron=expression), ms(after), BERLIN, len(expected)) == expected


@pytest.mark.parametrize(
    ("after", "expected"),
    [(-5, 10_000), (0, 10_000), (1, 10_000), (9_999, 10_000), (10_000, 20_000), (10_001, 20_000), (123_456, 130_000)],
)
def test_an_interval_counts_from_where_it_began(after: int, expected: int) -> None:
    assert schedules.following(Timing(every_s=10, since=NOW), NOW + after, UTC) == NOW + expected


def test_what_is_due_once_has_no_next_time() -> None:
    once = Timing(once_at=NOW)
    assert [schedules.following(once, NOW + by, UTC) for by in (-1, 0, 1)] == [NOW, None, None]
    assert [schedules.latest(once, NOW + by, UTC) for by in (-1, 0, 1)] == [None, NOW, NOW]


_FIELDS = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)]


@st.composite
def expressions(draw: st.DrawFn) -> str:
    fields = []
    for low, high in _FIELDS:
        first = draw(st.integers(low, high))
        last = draw(st.integers(first, high))
        fields.append(draw(st.sampled_from(["*", "*", f"*/{max(1, last)}", str(first), f"{first}-{last}"])))
    return " ".join(fields)


def comes(expression: str) -> bool:
    """The thirtieth of February does not."""
    try:
        CronSim(expression, datetime(2026, 1, 1))
    except CronSimError:
        return False
    return True


@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@given(
    expression=expressions().filter(comes),
    zone=st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "UTC", "Asia/Kathmandu"]),
    day=st.sampled_from(["2026-03-08", "2026-03-29", "2026-04-04", "2026-10-03", "2026-10-25", "2026-11-01", "2026-07-01"]),
    minutes=st.integers(-1000, 2500),
)
def test_times_are_found_alike_forward_and_back(expression: str, zone: str, day: str, minutes: int) -> None:
    """Whatever the expression and the zone: the newest time until now is not behind it, and the next one is."""
    timing, found = Timing(cron=expression), ZoneInfo(zone)
    now = ms(day) + minutes * MINUTE + 1
    newest, following = schedules.latest(timing, now, found), schedules.following(timing, now, found)
    if newest is not None:
        assert newest <= now
        assert schedules.following(timing, newest, found) == following
        assert schedules.following(timing, newest - 1, found) == newest
    if following is not None:
        assert following > now and schedules.latest(timing, following, found) == following


def fits(field: str, value: int, low: int) -> bool:
    """As the expressions above are written."""
    if field.startswith("*/"):
        return (value - low) % int(field[2:]) == 0
    first, _, last = field.partition("-")
    return field == "*" or int(first) <= value <= int(last or first)


def matches(expression: str, local: datetime) -> bool:
    """Word by word, as Debian's cron reads it: where neither day is `*`, one of them is enough."""
    minute, hour, day, month, weekday = expression.split()
    dom, dow = fits(day, local.day, 1), fits(weekday, local.isoweekday() % 7, 0)
    days = (dom and dow) if day.startswith("*") or weekday.startswith("*") else (dom or dow)
    return fits(minute, local.minute, 0) and fits(hour, local.hour, 0) and days and fits(month, local.month, 1)


def walked(expression: str, begin: int, end: int, zone: tzinfo) -> list[int]:
    """Every time, found by looking at each minute: of the clock in UTC where it comes every hour, of the clock on the wall otherwise."""
    minute, hour, *_ = expression.split()
    found = set()
    if minute.startswith("*") or hour.startswith("*"):
        for at in range(begin + MINUTE, end + 1, MINUTE):
            if matches(expression, datetime.fromtimestamp(at / 1000, zone)):
                found.add(at)
        return sorted(found)
    wall = datetime.fromtimestamp(begin / 1000, zone).replace(tzinfo=None) - timedelta(days=1)
    while wall.replace(tzinfo=UTC).timestamp() * 1000 < end + 2 * DAY:
        if matches(expression, wall):
            real = wall
            while real.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None) != real:
                real += timedelta(minutes=1)  # The clock leaves it out.
            found.add(int(real.replace(tzinfo=zone).timestamp()) * 1000)
        wall += timedelta(minutes=1)
    return sorted(at for at in found if begin < at <= end)


@settings(max_examples=60, derandomize=True, database=None, deadline=None)
@given(
    expression=expressions().filter(comes),
    zone=st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana", "Asia/Kathmandu"]),
    day=st.sampled_from(["2026-03-08", "2026-03-29", "2026-04-04", "2026-10-03", "2026-10-25", "2026-11-01", "2028-02-28", "2026-12-31"]),
)
def test_no_time_is_left_out_or_invented(expression: str, zone: str, day: str) -> None:
    """P6: against a walk over every minute of three days, over changes of summer time, a leap day and the end of a year."""
    timing, found, begin = Timing(cron=expression), ZoneInfo(zone), ms(day) - DAY
    times, at = [], schedules.following(timing, begin, found)
    while at is not None and at <= begin + 3 * DAY:
        times.append(at)
        at = schedules.following(timing, at, found)
    assert times == walked(expression, begin, begin + 3 * DAY, found)


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("0 8 29 2 *", "2026-03-01 00:00", ["2028-02-29", "2032-02-29"]),
        ("0 8 29 2 *", "2096-03-01 00:00", ["2104-02-29"]),
        ("0 8 31 * *", "2026-01-31 09:00", ["2026-03-31", "2026-05-31", "2026-07-31", "2026-08-31"]),
        ("0 8 L * *", "2028-01-31 09:00", ["2028-02-29", "2028-03-31", "2028-04-30"]),
        ("0 8 LW * *", "2026-05-01 00:00", ["2026-05-29", "2026-06-30"]),
        ("0 8 * * 5L", "2026-05-01 00:00", ["2026-05-29", "2026-06-26"]),
    ],
)
def test_leap_days_and_the_ends_of_months_come_when_there_are_any(expression: str, after: str, expected: list[str]) -> None:
    timing, at, found = Timing(cron=schedules.cron(expression)), ms(after), []
    for _ in expected:
        at = schedules.following(timing, at, UTC) or 0
        found.append(f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d}")
    assert found == expected


def test_a_day_that_the_calendar_of_a_zone_leaves_out_is_told_after_it() -> None:
    """Samoa had no 30 December 2011."""
    apia = ZoneInfo("Pacific/Apia")
    assert times(Timing(cron="0 12 * * *"), ms("2011-12-28 12:00", apia), apia, 3) == ["12-29 22:00", "12-30 10:00", "12-30 22:00"]


# what has come to be due


HOURLY = Timing(every_s=3600, since=NOW)


@pytest.mark.parametrize(
    ("late", "expected"),
    [
        (-1, None),
        (0, Due(due_at=NOW + HOUR, next_at=NOW + 2 * HOUR)),
        (HOUR - 1, Due(due_at=NOW + HOUR, next_at=NOW + 2 * HOUR)),
        (HOUR, Due(due_at=NOW + 2 * HOUR, next_at=NOW + 3 * HOUR, missed=1)),
        (5 * HOUR + 7, Due(due_at=NOW + 6 * HOUR, next_at=NOW + 7 * HOUR, missed=5)),
        (5000 * HOUR, Due(due_at=NOW + 5001 * HOUR, next_at=NOW + 5002 * HOUR, missed=MOST_COUNTED)),
    ],
)
def test_however_many_times_were_missed_they_are_told_as_one(late: int, expected: Due | None) -> None:
    """P6, E6"""
    assert schedules.due(schedule(HOURLY, NOW + HOUR), now=NOW + HOUR + late, zone=UTC) == expected


@pytest.mark.parametrize(("late", "skipped"), [(0, False), (LATE_MS, False), (LATE_MS + 1, True), (HOUR - 1, True), (HOUR, False)])
def test_what_was_missed_is_skipped_where_that_is_wished(late: int, skipped: bool) -> None:
    """Not what a restart delayed by some minutes; and of several missed times only the newest could be in time."""
    found = schedules.due(schedule(HOURLY, NOW + HOUR, missed=SKIP), now=NOW + HOUR + late, zone=UTC)
    assert found is not None and found.skipped == (TOO_LATE if skipped else None)


def test_what_was_due_once_is_told_late_or_skipped_and_over() -> None:
    once = Timing(once_at=NOW)
    assert schedules.due(schedule(once, NOW), now=NOW + DAY, zone=UTC) == Due(due_at=NOW, next_at=None)
    assert schedules.due(schedule(once, NOW, missed=SKIP), now=NOW + DAY, zone=UTC) == Due(due_at=NOW, next_at=None, skipped=TOO_LATE)


def test_a_year_of_missed_minutes_is_told_as_one_at_once() -> None:
    """P8: nobody waits for a long absence to be counted."""
    found = schedules.due(schedule(Timing(cron="* * * * *"), NOW - 365 * DAY), now=NOW, zone=BERLIN)
    assert found is not None and (found.missed, NOW - found.due_at < MINUTE) == (MOST_COUNTED, True)


# clocks that step


@pytest.mark.parametrize("timing", [Timing(cron="0 8 * * *"), Timing(every_s=86400, since=ms("2026-01-01 08:00"))])
def test_after_a_clock_that_ran_ahead_the_next_time_is_found_again(timing: Timing) -> None:
    """P6: it ran ahead by ten years, fired, and was set right."""
    ahead, now = ms("2036-05-01 09:00"), ms("2026-05-01 09:00")
    fired = schedules.due(schedule(timing, ms("2026-05-02 08:00")), now=ahead, zone=UTC)
    assert fired is not None and fired.next_at is not None and fired.next_at > ahead
    back = schedules.due(schedule(timing, fired.next_at, noted_at=ahead), now=now, zone=UTC)
    assert back == Due(due_at=fired.next_at, next_at=ms("2026-05-02 08:00"), skipped=SET_BACK)
    assert schedules.due(schedule(timing, ms("2026-05-02 08:00"), noted_at=now), now=now, zone=UTC) is None


@pytest.mark.parametrize("by", [0, 1, LATE_MS])
def test_a_clock_that_is_set_back_a_little_changes_nothing(by: int) -> None:
    found = schedule(Timing(cron="0 8 * * *"), ms("2026-05-03 08:00"), noted_at=NOW + by)
    assert schedules.due(found, now=NOW, zone=UTC) is None


def test_what_is_due_once_stays_where_it_is_whatever_the_clock_does() -> None:
    assert schedules.due(schedule(Timing(once_at=NOW + DAY), NOW + DAY, noted_at=NOW + DAY), now=NOW, zone=UTC) is None


# what a schedule may be


@pytest.mark.parametrize(("given", "fields"), [("0  8 * * 1-5 ", "0 8 * * 1-5"), ("@Daily", "0 0 * * *"), ("5 4 L * *", "5 4 L * *")])
def test_an_expression_has_five_fields_or_a_short_name(given: str, fields: str) -> None:
    assert schedules.cron(given) == fields


@pytest.mark.parametrize(
    "given", ["", "x", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "0 0 30 2 *", "0 0 31 4,6,9 *", "@sometimes"]
)
def test_what_is_no_expression_is_refused_with_an_example(given: str) -> None:
    with pytest.raises(BadInput, match=r"five fields.*0 8 \* \* 1-5"):
        schedules.cron(given)


@pytest.mark.parametrize(
    ("timing", "why"),
    [
        (Timing(once_at=NOW), "already over"),
        (Timing(once_at=NOW + 4000 * DAY), "ten years"),
        (Timing(every_s=59, since=NOW), "too often"),
        (Timing(every_s=400 * 86400, since=NOW), "longer than a year"),
        (Timing(cron="0,30 9 * * *"), "too often"),
        (Timing(cron="0 0 * 2 1#5"), "ten years"),
    ],
)
def test_a_schedule_that_never_comes_or_comes_too_often_is_refused(timing: Timing, why: str) -> None:
    """P8"""
    with pytest.raises(BadInput, match=why):
        schedules.check(timing, now=NOW, zone=UTC, least_s=60 if timing.every_s else 3600)


def test_a_new_schedule_is_first_due_after_now() -> None:
    assert schedules.check(Timing(once_at=NOW + 1), now=NOW, zone=UTC, least_s=60) == NOW + 1
    assert schedules.check(Timing(every_s=60, since=NOW), now=NOW, zone=UTC, least_s=60) == NOW + MINUTE
    first = schedules.check(Timing(cron="0 9 * * *"), now=NOW, zone=BERLIN, least_s=3600)
    assert timedelta(0) < timedelta(milliseconds=first - NOW) <= timedelta(days=1)


@pytest.mark.parametrize(
    ("due_at", "paused_at", "stands"), ((100, None, True), (101, None, False), (99, None, False), (100, 50, False), (100, 0, False))
)
def test_a_due_time_counts_only_if_it_is_still_the_next_one_and_nothing_is_paused(due_at: int, paused_at: int | None, stands: bool) -> None:
    """P6: of two processes that found it due, one starts a turn."""
    found = msgspec.structs.replace(schedule(HOURLY, 100), paused_at=paused_at)
    assert schedules.stands(found, due_at=due_at) is stands
