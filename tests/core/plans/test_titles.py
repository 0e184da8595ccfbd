"""Asking for a title, over what may have happened since it was looked at."""

import msgspec
import pytest

from holdfast.core import events as e
from holdfast.core import titles
from holdfast.core.plans import titles as plans
from holdfast.core.titles import ASKED, DONE, DUE, GIVEN, Titling
from tests.core.plans.values import events, kinds

FOUND = Titling(session_id="s1", state=ASKED, since=5, owner=2, tries=2)
MADE = e.TitleMade(turn_id="t1", title="Plants", tries=2, usage=e.Usage(input=5, output=1), model="m")
FAILED = e.TitleMade(turn_id="t1", problem="no", tries=2)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("changed", [{}, {"state": GIVEN}, {"state": DONE}, {"owner": 3}, {"tries": 1}])
def test_a_model_is_asked_only_if_the_session_is_as_it_was_seen(changed: dict[str, object], named: bool) -> None:
    found = msgspec.structs.replace(FOUND, **changed)
    plan = plans.ask(found, named=named, expected=FOUND, turn_id="t1", owner=9)
    if named:
        assert not plan.reply
        assert events(plan, e.TitleMade) == ([] if changed else [e.TitleMade(turn_id="t1", problem=titles.NAMED_FIRST, tries=2)])
        return
    assert plan.reply == (not changed)
    assert events(plan, e.TitleAsked) == ([] if changed else [e.TitleAsked(turn_id="t1", owner=9, tries=3)])


@pytest.mark.parametrize("outcome", [MADE, FAILED])
@pytest.mark.parametrize("state", [DUE, ASKED, DONE, GIVEN])
@pytest.mark.parametrize("tries", [1, 2])
@pytest.mark.parametrize("named", [False, True])
def test_a_name_that_somebody_gave_stays_and_what_a_title_cost_counts(outcome: e.TitleMade, state: str, tries: int, named: bool) -> None:
    plan = plans.made(msgspec.structs.replace(FOUND, state=state, tries=tries), outcome, named=named)
    wanted = not named and state in (DUE, ASKED) and tries == outcome.tries
    assert plan.reply == (wanted and outcome is MADE)
    if wanted:
        assert kinds(plan) == ["title.made", *(["session.changed"] if outcome is MADE else [])]
        assert [changed.title for changed in events(plan, e.SessionChanged)] == (["Plants"] if outcome is MADE else [])
    elif outcome is FAILED:
        assert kinds(plan) == []
    else:
        assert events(plan, e.TitleMade) == [msgspec.structs.replace(MADE, title=None, problem=titles.NAMED_FIRST)]
    assert not any(write.in_turn for write in plan.writes)
