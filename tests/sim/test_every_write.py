"""The process dies before and after every sync of the disk and every tool: no promise breaks. In chats: `test_every_write_in_chats`."""

import pytest

from tests.sim.deaths import die_at_every_point, die_twice, told_of, told_with_two_deaths
from tests.sim.scenarios import Story


@pytest.mark.parametrize("story", told_of(chats=False), ids=lambda story: story.name)
def test_a_death_at_any_point_breaks_no_promise(story: Story) -> None:
    """P1-P8, E5: with and without what had not been synced."""
    die_at_every_point(story)


@pytest.mark.parametrize("story", told_with_two_deaths(chats=False), ids=lambda story: story.name)
def test_a_second_death_during_the_recovery_breaks_no_promise(story: Story) -> None:
    """P1-P7, E5, E6, E8: what was half recovered is recovered again, and still nothing is done or said twice without a word, be it started
    by a message, a process or a schedule.
    """
    die_twice(story)
