"""Two gateways on one store file: whoever dies, and whenever, there is never more than one turn at a time."""

import itertools

import pytest

from holdfast.core import events as e
from holdfast.core.turns import Outcome
from tests.sim.people import Answer, Plan, Say, Stop
from tests.sim.promises import check
from tests.sim.twins import TwinWorld
from tests.sim.world import Death


@pytest.mark.parametrize("second_at_s", (0.0, 0.1, 0.5), ids=("at once", "in mid-turn", "late"))
def test_a_second_process_never_runs_what_the_first_one_runs(second_at_s: float) -> None:
    """P2, P5, C20: the second takes over what the first leaves when it is killed, and nothing while it lives."""
    taken_over = 0
    for point in itertools.count(3, 3):
        world = TwinWorld(1, second_at_s=second_at_s, deaths=(Death(point=point),))
        world.person("ann", Say("say:one|call:unsafe|sleep:0.3|say:two"), Say("say:three", again=1))
        world.person("bob", Say("say:one|ask:why?|call:idempotent"), Answer("because"))
        world.person("cid", Say("say:one|hang"), Stop(once=("text", 1)))
        world.person("dan", Plan("say:one|call:unsafe", in_s=0.4))
        try:
            world.run()
            found = check(world)
        except AssertionError as broken:
            raise AssertionError(f"the second after {second_at_s} s, died {world.died_at}: {broken}") from broken
        outcomes = sorted(turn.end.outcome for turn in found.turns if turn.end)
        assert outcomes == [Outcome.CANCELLED, *[Outcome.COMPLETED] * 4], world.died_at
        owners = {event.owner for _, event in found.log if isinstance(event, e.TurnStarted | e.TurnTaken)}
        taken_over += len(owners) > 1
        if not world.crashes:
            break
    assert taken_over > 3
