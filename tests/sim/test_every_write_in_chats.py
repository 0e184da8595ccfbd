"""The process dies before and after every sync of the disk, every tool, every send and every confirmation, in chats: no promise breaks."""

import pytest

from tests.sim.deaths import die_at_every_point, die_twice, told_of, told_with_two_deaths
from tests.sim.scenarios import Story


@pytest.mark.parametrize("story", told_of(chats=True), ids=lambda story: story.name)
def test_a_death_at_any_point_breaks_no_promise(story: Story) -> None:
    """P1-P8, E5: with and without what had not been synced; on platforms that can be asked what arrived, and on others."""
    die_at_every_point(story)


@pytest.mark.parametrize("story", told_with_two_deaths(chats=True), ids=lambda story: story.name)
def test_a_second_death_during_the_recovery_breaks_no_promise(story: Story) -> None:
    """P1-P7: what was half recovered is recovered again, and still nothing is done or said twice without a word."""
    die_twice(story)
