"""The process dies before and after every sync of the disk, every tool, every send and every confirmation: no promise breaks."""

import itertools

import pytest

from tests.fakes.power import Mode
from tests.sim.promises import check
from tests.sim.scenarios import STORIES, Story
from tests.sim.world import Death, World

# Fewer places than this, and the story did not happen.
FEWEST_POINTS = 12
# Of all pairs of a death and a second one during the recovery from it, every so manieth of each.
STRIDE = 5


def _tell(story: Story, *deaths: Death | None) -> World:
    world = story.world(*deaths)
    try:
        world.run()
        story.check(check(world))
    except AssertionError as broken:
        raise AssertionError(f"{story.name}, died {world.died_at or 'nowhere'}: {broken}") from broken
    return world


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_death_at_any_point_breaks_no_promise(story: Story) -> None:
    """P1-P8, E5: with and without what had not been synced; on platforms that can be asked what arrived, and on others."""
    for life in range(story.lives):
        for point in itertools.count(1, story.stride):
            world = _tell(story, *_in(life, point, "none"))
            if not world.crashes:
                break
            if world.lives[life].disk.unsynced_at_death:
                _tell(story, *_in(life, point, "all"))
        assert point > FEWEST_POINTS


def _in(life: int, point: int, unsynced: Mode) -> tuple[Death | None, ...]:
    return (*(None,) * life, Death(point=point, unsynced=unsynced))


@pytest.mark.parametrize("story", [story for story in STORIES if "an unsafe tool" in story.name], ids=lambda story: story.name)
def test_a_second_death_during_the_recovery_breaks_no_promise(story: Story) -> None:
    """P1-P7: what was half recovered is recovered again, and still nothing is done or said twice without a word."""
    for first in itertools.count(1, STRIDE):
        for second in itertools.count(1 + first % STRIDE, STRIDE):
            world = _tell(story, Death(point=first, unsynced="none"), Death(point=second, unsynced="all"))
            if world.crashes < 2:
                break
        if not world.crashes:
            break
    assert first > FEWEST_POINTS
