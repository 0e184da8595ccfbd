"""A story told again and again, its process dying at another place each time."""

import itertools

from tests.fakes.power import Mode
from tests.sim.promises import check
from tests.sim.scenarios import STORIES, Story
from tests.sim.world import Death, World

# Fewer places than this, and the story did not happen.
FEWEST_POINTS = 12
# Of all pairs of a death and a second one during the recovery from it, every so manieth of each.
STRIDE = 5


def told_of(*, chats: bool) -> list[Story]:
    """Those of chats and those of pages are tried by two files, which run at the same time."""
    return [story for story in STORIES if story.chats is chats]


def told_with_two_deaths(*, chats: bool) -> list[Story]:
    """One of each thing that starts a turn: a message, with a tool that must not run twice, a process and a schedule."""
    names = ("a turn with an unsafe tool", *(() if chats else ("a process ends after its turn", "work is planned and its time comes")))
    found = [story for story in told_of(chats=chats) if story.name.partition(", ")[2] in names]
    assert {story.name.partition(", ")[2] for story in found} == set(names)
    return found


def die_at_every_point(story: Story) -> None:
    """With and without what had not been synced."""
    for life in range(story.lives):
        for point in itertools.count(1, story.stride):
            world = _tell(story, *_in(life, point, "none"))
            if not world.crashes:
                break
            if world.lives[life].disk.unsynced_at_death:
                _tell(story, *_in(life, point, "all"))
        assert point > FEWEST_POINTS


def die_twice(story: Story) -> None:
    """And once more during the recovery."""
    for first in itertools.count(1, STRIDE):
        for second in itertools.count(1 + first % STRIDE, STRIDE):
            world = _tell(story, Death(point=first, unsynced="none"), Death(point=second, unsynced="all"))
            if world.crashes < 2:
                break
        if not world.crashes:
            break
    assert first > FEWEST_POINTS


def _tell(story: Story, *deaths: Death | None) -> World:
    world = story.world(*deaths)
    try:
        world.run()
        story.check(check(world))
    except AssertionError as broken:
        raise AssertionError(f"{story.name}, died {world.died_at or 'nowhere'}: {broken}") from broken
    return world


def _in(life: int, point: int, unsynced: Mode) -> tuple[Death | None, ...]:
    return (*(None,) * life, Death(point=point, unsynced=unsynced))
