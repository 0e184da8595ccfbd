"""Another program takes the database away and gives it back, after every single commit of a turn with tools; the process dies while it
spools; its spools cannot be read when they are wanted. No promise breaks.
"""

import itertools
from collections.abc import Sequence
from typing import Any, cast

import msgspec
import pytest

from holdfast.core.events import ToolFinished, TurnResumed
from holdfast.ports.journals import Shipped
from holdfast.ports.store import Store
from tests.sim.evidence import Evidence
from tests.sim.people import Answer, Deed, Say
from tests.sim.promises import check
from tests.sim.test_controls import Lying
from tests.sim.world import SETTINGS, Death, Life, Weather, World

SIMPLE = (Say("say:one|call:unsafe 1|say:two|call:pure|say:three"),)
STEPS = (Say("steps: look > pure a > pure b > unsafe c | act > idempotent d > unsafe e | done"),)
ASKING = (
    Say("model: go > guarded a > pure b > ask colour > guarded c | more > guarded d | done"),
    Answer("blue", which=1, once=("question.asked", 3)),
    Answer("not this", which=2, verdict="deny"),
    Answer("", which=0, verdict="approve", always=True),
)
# One that turns spool through, and one after which nobody waits any more.
LASTS_S = (3.0, 15.0)


def told(story: Sequence[Deed], commits: int, lasts_s: float, *deaths: Death, **world_is: Any) -> tuple[World, Evidence]:
    world = World(1, weather=Weather(away_after=((commits, lasts_s),)), deaths=deaths, **world_is)
    world.person("ann", *story)
    try:
        world.run()
        return world, check(world)
    except AssertionError as broken:
        raise AssertionError(f"{story[0]}, away for {lasts_s} s after {commits} commits, died {world.died_at}: {broken}") from broken


@pytest.mark.parametrize(("story", "stride"), ((SIMPLE, 1), (STEPS, 2), (ASKING, 3)), ids=("calls", "steps", "questions"))
def test_a_store_that_goes_away_at_any_point_of_a_turn_breaks_no_promise(story: tuple[Deed, ...], stride: int) -> None:
    """P1-P8: and interrupts no turn."""
    spooled = 0
    for commits in itertools.count(1, stride):
        for lasts_s in LASTS_S if story is not ASKING else LASTS_S[:1]:  # People do not wait for a question for ever.
            world, found = told(story, commits, lasts_s)
            assert all(turn.end is not None and turn.end.outcome == "completed" for turn in found.turns)
            assert not found.late
            spooled += bool(world.spooled)
        if world.lives[0].commits < commits:
            break
    assert commits > 12 and spooled > 3


@pytest.mark.parametrize("story", (SIMPLE, STEPS), ids=("calls", "steps"))
def test_a_death_while_the_store_is_away_loses_nothing_that_was_spooled(story: tuple[Deed, ...]) -> None:
    """P5, P7: with and without what had not been synced, and torn."""
    shipped = results = 0
    for commits in range(7, 16, 3):
        for number, point in enumerate(itertools.count(2 * commits + 1, 3)):
            world, found = told(story, commits, 6.0, Death(point=point, unsynced=("none", "all", "torn")[number % 3]))
            if not world.crashes:
                break
            shipped += any(entry["event"] == "journal shipped" for entry in world.logs)
            results += any(item.kind == ToolFinished.kind for _, _, item in world.spooled)
            assert not found.late
    assert shipped > 1 and results > 1


@pytest.mark.parametrize("dies", (False, True), ids=("lives", "dies"))
def test_a_silent_tool_shows_signs_of_life_while_the_store_is_away(dies: bool) -> None:
    """R6, R9: they are in the spool, so that a turn whose process dies then is not taken for stale."""
    settings = msgspec.structs.replace(SETTINGS, turn_idle_timeout_s=1000.0, resume_window_s=28.0)
    world = World(1, deaths=[Death(at_s=31.0)] * dies, weather=Weather(away=((19.5, 31.5),), downtimes=(0.0,)), settings=settings)
    world.person("ann", Say("say:one|call:idempotent 100|say:two"))
    world.run()
    [turn] = check(world).turns
    assert turn.end is not None and turn.end.outcome == "completed"
    assert [event.rule for _, event in turn.log.of(TurnResumed)] == ["R9"] * dies


def test_spools_that_cannot_be_read_in_time_are_filled_in_later_and_change_nothing_that_was_told() -> None:
    """F1-F3, F7, P5, P7: no resume waits for them, and every cursor sees what they bring."""

    def readable(life: Life) -> bool:
        return life.number == 0 or life.lives_s() > 20

    late = 0
    for story, commits in ((SIMPLE, 7), (STEPS, 10)):
        for point in itertools.count(2 * commits + 1, 2):
            world, found = told(story, commits, 6.0, Death(point=point, unsynced="all"), readable=readable, unreadable=True)
            if not world.crashes:
                break
            late += bool(found.late)
    assert late > 3


class NeverShips(Lying):
    """Says that what was spooled is stored, and stores nothing of it."""

    async def ship(self, *arguments: Any, **named: Any) -> Shipped:
        return Shipped(0, False, None)


def test_a_recovery_that_forgets_what_was_spooled_is_found() -> None:
    """If this passed, the others would prove nothing."""
    with pytest.raises(AssertionError, match=r"P7: .* was spooled and is stored 0 times"):
        for point in itertools.count(15):
            world, _ = told(SIMPLE, 7, 6.0, Death(point=point), wrap=lambda store: cast(Store, NeverShips(store)))
            assert world.crashes, "nothing was found"
