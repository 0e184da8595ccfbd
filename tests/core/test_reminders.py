"""Times as people write them, and how they are told."""

from datetime import datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from holdfast.core import reminders
from holdfast.core.errors import BadInput
from holdfast.core.schedules import Timing

BERLIN = "Europe/Berlin"


def zones(name: str) -> tzinfo:
    if name not in (BERLIN, "Asia/Tokyo", "UTC"):
        raise BadInput(f"There is no time zone {name!r} here.")
    return ZoneInfo(name)


def ms(text: str, zone: str = BERLIN) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zones(zone)).timestamp()) * 1000


NOW = ms("2026-03-04 15:30")  # A Wednesday.


def parse(words: str, now: int = NOW) -> reminders.Wish:
    return reminders.parse(words, now=now, zone=BERLIN, zones=zones)


@pytest.mark.parametrize(
    ("words", "at"),
    [
        ("in 20 minutes", "2026-03-04 15:50"),
        ("In 1 hour and 30 minutes", "2026-03-04 17:00"),
        ("in 1h30m", "2026-03-04 17:00"),
        ("in an hour", "2026-03-04 16:30"),
        ("20m", "2026-03-04 15:50"),
        ("in 2 days", "2026-03-06 15:30"),
        ("in 1 week", "2026-03-11 15:30"),
        ("at 18:00", "2026-03-04 18:00"),
        ("18:00", "2026-03-04 18:00"),
        ("18.00", "2026-03-04 18:00"),
        ("at 9", "2026-03-05 09:00"),
        ("9pm", "2026-03-04 21:00"),
        ("12 am", "2026-03-05 00:00"),
        ("12:30 pm", "2026-03-05 12:30"),
        ("15:30", "2026-03-05 15:30"),
        ("noon", "2026-03-05 12:00"),
        ("at midnight", "2026-03-05 00:00"),
        ("today 16:00", "2026-03-04 16:00"),
        ("tomorrow 9:00", "2026-03-05 09:00"),
        ("tomorrow at 9", "2026-03-05 09:00"),
        ("friday 17:30", "2026-03-06 17:30"),
        ("on Fri at 5:30 pm", "2026-03-06 17:30"),
        ("wednesday 16:00", "2026-03-04 16:00"),
        ("wednesday 15:00", "2026-03-11 15:00"),
        ("next monday 8:00", "2026-03-09 08:00"),
        ("2026-03-10 08:00", "2026-03-10 08:00"),
        ("on 2026-3-10 at 8", "2026-03-10 08:00"),
        ("2026-03-10T08:00", "2026-03-10 08:00"),
    ],
)
def test_a_time_that_comes_once(words: str, at: str) -> None:
    for more, text in (("", ""), (" water the plants", "water the plants"), (" to call Bob", "call Bob"), (": tea", "tea")):
        found = parse(words + more)
        assert (found.timing, found.text) == (Timing(once_at=ms(at), time_zone=BERLIN), text)


@pytest.mark.parametrize(
    ("words", "expression", "told"),
    [
        ("every day 8:00", "0 8 * * *", "every day at 08:00 (Europe/Berlin)"),
        ("daily at 7:05 am", "5 7 * * *", "every day at 07:05 (Europe/Berlin)"),
        ("every weekday 8:00", "0 8 * * 1-5", "every weekday at 08:00 (Europe/Berlin)"),
        ("every sunday noon", "0 12 * * 0", "every Sunday at 12:00 (Europe/Berlin)"),
        ("every mon, thu and fri at 19:00", "0 19 * * 1,4,5", "every Monday and Thursday and Friday at 19:00 (Europe/Berlin)"),
        ("cron 0 8 1 * *", "0 8 1 * *", "cron 0 8 1 * * (Europe/Berlin)"),
        ("*/15 9-17 * * MON-FRI", "*/15 9-17 * * MON-FRI", "cron */15 9-17 * * MON-FRI (Europe/Berlin)"),
        ("@daily", "0 0 * * *", "every day at 00:00 (Europe/Berlin)"),
    ],
)
def test_a_time_of_the_calendar_that_comes_again(words: str, expression: str, told: str) -> None:
    found = parse(f"{words} say the weather")
    assert found == reminders.Wish(Timing(cron=expression, time_zone=BERLIN), "say the weather")
    assert reminders.told(found.timing, zones(BERLIN)) == told


@pytest.mark.parametrize(
    ("words", "seconds", "told"),
    [
        ("every hour", 3600, "every hour"),
        ("every 2 hours", 7200, "every 2 hours"),
        ("every 90m", 5400, "every 90 minutes"),
        ("every 10 seconds", 10, "every 10 seconds"),
        ("every 2 weeks", 14 * 86400, "every 2 weeks"),
    ],
)
def test_an_interval_counts_from_now(words: str, seconds: int, told: str) -> None:
    found = parse(f"{words} stretch")
    assert found == reminders.Wish(Timing(every_s=seconds, since=NOW, time_zone=BERLIN), "stretch")
    assert reminders.told(found.timing, zones(BERLIN)) == told


def test_a_zone_may_be_named_behind_the_time() -> None:
    assert parse("tomorrow 9:00 Asia/Tokyo call").timing == Timing(once_at=ms("2026-03-05 09:00", "Asia/Tokyo"), time_zone="Asia/Tokyo")
    assert parse("every day 8:00 in UTC call") == reminders.Wish(Timing(cron="0 8 * * *", time_zone="UTC"), "call")
    assert parse("0 8 * * * Asia/Tokyo call").timing.time_zone == "Asia/Tokyo"
    with pytest.raises(BadInput, match="no time zone"):
        parse("tomorrow 9:00 Mars/Base call")


@pytest.mark.parametrize(
    ("words", "now", "at"),
    [
        ("2026-03-29 02:30", NOW, "2026-03-29 03:30"),  # There is no such time: an hour later by the clock.
        ("2026-10-25 02:30", NOW, "2026-10-25 02:30"),  # There are two: the first.
        ("tomorrow 9:00", ms("2026-03-28 22:00"), "2026-03-29 09:00"),
        ("in 24 hours", ms("2026-03-28 22:00"), "2026-03-29 23:00"),
    ],
)
def test_a_time_over_a_change_of_summer_time(words: str, now: int, at: str) -> None:
    assert parse(words, now).timing.once_at == ms(at)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("", "does not begin with a time"),
        ("hello world", "does not begin with a time"),
        ("9 run", "does not begin with a time"),
        ("in", "does not begin with a time"),
        ("every fortnight", "does not begin with a time"),
        ("tomorrow", "at what time, for example: tomorrow 9:00"),
        ("every day", "at what time, for example: every day 8:00"),
        ("at 25:00", "not a time of day"),
        ("13 pm", "not a time of day"),
        ("today 10:00", "already over"),
        ("2020-01-01 10:00", "already over"),
        ("2026-02-30 8:00", "no day 2026-02-30"),
        ("cron 99 * * * *", "bad minute"),
        ("cron x", "five fields"),
    ],
)
def test_words_without_a_time_are_refused_with_what_to_write(words: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        parse(words)


def timing(**given: Any) -> Timing:
    return reminders.timing(reminders.When(**given), now=NOW, zone=BERLIN, zones=zones)


def test_a_request_says_when_in_one_of_four_ways() -> None:
    assert timing(at="2026-03-10T08:00") == Timing(once_at=ms("2026-03-10 08:00"), time_zone=BERLIN)
    assert timing(at="2026-03-10T08:00:00Z") == Timing(once_at=ms("2026-03-10 08:00", "UTC"), time_zone=BERLIN)
    assert timing(every_s=60) == Timing(every_s=60, since=NOW, time_zone=BERLIN)
    assert timing(cron="@hourly") == Timing(cron="0 * * * *", time_zone=BERLIN)
    assert timing(cron="@hourly", time_zone="UTC").time_zone == "UTC"
    assert timing(when="in 20 minutes") == Timing(once_at=NOW + 20 * 60_000, time_zone=BERLIN)


@pytest.mark.parametrize(
    "given", [{}, {"at": "x"}, {"at": ""}, {"cron": "x"}, {"when": "soon"}, {"when": "in 20 minutes or so"}, {"at": "9", "every_s": 60}]
)
def test_a_request_that_does_not_say_when_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        timing(**given)
