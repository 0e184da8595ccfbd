"""Reset policies: how they are written, which one counts, when a conversation that rests is left (A19, A24)."""

import itertools

import pytest

from holdfast.core import resets
from holdfast.core.errors import BadInput
from holdfast.core.resets import DAY_MS, Boundary, Policy
from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState

HOUR = 3_600_000
MIDNIGHT = 19_676 * DAY_MS  # 2023-11-15, UTC.


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("none", Policy()),
        ("  none ", Policy()),
        ("idle 60", Policy(idle_min=60)),
        ("daily 0", Policy(daily_hour=0)),
        ("daily 23", Policy(daily_hour=23)),
        ("idle 1, daily 4", Policy(1, 4)),
        (" daily  4 ,idle\t999999 ", Policy(999_999, 4)),
    ],
)
def test_a_policy_is_read_from_its_words(text: str, policy: Policy) -> None:
    """A19"""
    assert resets.policy(text) == policy


@pytest.mark.parametrize(
    "text",
    [
        *("", ",", "idle", "daily", "60", "idle 0", "idle -5", "idle 1.5", "daily 24", "daily -1", "idle 1000000", "idle 60 minutes"),
        *("idle 60, idle 30", "daily 4, daily 5", "idle 60, none", "idle 60,", "weekly 1", "Idle 60", "idle60"),
    ],
)
def test_what_is_no_policy_is_refused_with_what_one_looks_like(text: str) -> None:
    with pytest.raises(BadInput, match="not a reset policy") as caught:
        resets.policy(text)
    assert repr(text) in str(caught.value)


def test_the_most_exact_policy_counts() -> None:
    """A19: per platform and chat type. One that says `none` counts too."""
    policies = {"default": Policy(1), "chat": Policy(2), "chat.group": Policy(3), "quiet": Policy()}
    assert resets.policy_for(policies, "chat", "group") == Policy(3)
    assert resets.policy_for(policies, "chat", "dm") == Policy(2)
    assert resets.policy_for(policies, "web", "page") == Policy(1)
    assert resets.policy_for(policies, "quiet", "dm") == Policy()
    assert resets.policy_for({"chat.group": Policy(3)}, "chat", "dm") == Policy()
    assert resets.policy_for({}, "chat", "dm") == Policy()


def test_without_a_policy_there_is_no_boundary() -> None:
    assert resets.boundaries(Policy(), now=MIDNIGHT, offset_s=0) == ()


def test_idle_counts_from_now() -> None:
    assert resets.boundaries(Policy(idle_min=30), now=MIDNIGHT, offset_s=7200) == (Boundary("idle", MIDNIGHT - 30 * 60_000),)


@pytest.mark.parametrize(
    ("hour", "offset_h", "now", "before"),
    [
        (4, 0, MIDNIGHT + 4 * HOUR, MIDNIGHT + 4 * HOUR),
        (4, 0, MIDNIGHT + 4 * HOUR - 1, MIDNIGHT - 20 * HOUR),
        (4, 0, MIDNIGHT + 4 * HOUR + 1, MIDNIGHT + 4 * HOUR),
        (4, 0, MIDNIGHT + 28 * HOUR - 1, MIDNIGHT + 4 * HOUR),
        (0, 0, MIDNIGHT, MIDNIGHT),
        (23, 0, MIDNIGHT, MIDNIGHT - HOUR),
        (4, 2, MIDNIGHT + 2 * HOUR, MIDNIGHT + 2 * HOUR),
        (4, 2, MIDNIGHT + 2 * HOUR - 1, MIDNIGHT - 22 * HOUR),
        (0, 2, MIDNIGHT + 21 * HOUR, MIDNIGHT - 2 * HOUR),
        (0, 2, MIDNIGHT + 22 * HOUR, MIDNIGHT + 22 * HOUR),
        (4, -8, MIDNIGHT + 12 * HOUR, MIDNIGHT + 12 * HOUR),
        (4, -8, MIDNIGHT + 12 * HOUR - 1, MIDNIGHT - 12 * HOUR),
        (20, -8, MIDNIGHT + 4 * HOUR, MIDNIGHT + 4 * HOUR),
        (20, -8, MIDNIGHT + 4 * HOUR - 1, MIDNIGHT - 20 * HOUR),
        (4, 5.75, MIDNIGHT - 1.75 * HOUR, MIDNIGHT - 1.75 * HOUR),
    ],
)
def test_daily_counts_from_the_last_time_the_clock_on_the_wall_showed_the_hour(hour: int, offset_h: float, now: int, before: int) -> None:
    """A19: local time, east and west of Greenwich, to the millisecond."""
    assert resets.boundaries(Policy(daily_hour=hour), now=int(now), offset_s=int(offset_h * 3600)) == (Boundary("daily", int(before)),)


def test_the_last_time_lies_within_a_day_and_shows_the_hour() -> None:
    for hour, offset_h, now in itertools.product((0, 4, 23), range(-12, 15), range(MIDNIGHT, MIDNIGHT + DAY_MS, HOUR // 2)):
        [found] = resets.boundaries(Policy(daily_hour=hour), now=now, offset_s=offset_h * 3600)
        assert now - DAY_MS < found.before <= now
        assert (found.before + offset_h * HOUR) % DAY_MS == hour * HOUR


def rests(**values: object) -> Session:
    known: dict[str, object] = {"turn_state": TurnState.ENDED, "updated_at": MIDNIGHT} | values
    return Session(session_id="s", session_key="k", log="l", seq=1, created_at=0, **known)  # type: ignore[arg-type]


PAST, COMING = Boundary("idle", MIDNIGHT + 1), Boundary("daily", MIDNIGHT)


def test_a_session_that_rests_since_before_a_boundary_is_left_for_its_reason() -> None:
    """A19"""
    assert resets.due(rests(), (PAST,)) == "idle"
    assert resets.due(rests(), (COMING,)) is None
    assert resets.due(rests(), (COMING, PAST)) == "idle"
    assert resets.due(rests(), (Boundary("daily", MIDNIGHT + 5), PAST)) == "daily"
    assert resets.due(rests(), ()) is None


@pytest.mark.parametrize("state", TurnState)
@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("queued", [0, 1])
def test_only_a_session_with_nothing_under_way_is_left(state: TurnState, pending: bool, queued: int) -> None:
    """A24: never one that is pending, waiting, queued or running; one that was never used stays too."""
    found = resets.due(rests(turn_state=state, resume_pending=pending, queued=queued), (PAST,))
    assert (found == "idle") == (state is TurnState.ENDED and not pending and not queued)
