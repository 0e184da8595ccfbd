"""Words to the gateway itself: what is done, and what is said about it."""

import pytest

from holdfast.core import events as e
from holdfast.core.plans import command, resume
from holdfast.core.plans.command import Aside, Resume, Say
from holdfast.core.plans.leave import Underway
from holdfast.core.turns import OPEN, TurnState
from tests.core.plans.values import STATES, events, session, unattended

ASIDE = Aside(message_id="m9", content="/resume 1", sender="ann", dedup_key="k9", anchor="a9")


def test_a_command_is_recorded_as_said_and_answered_by_a_notice() -> None:
    """P1: under its dedup key, and as a reply to it."""
    plan = command.say(session(), ASIDE, Say("Fine."))
    said, told = events(plan, e.MessageWritten)
    assert (said.role, said.text, said.message_id, said.dedup_key) == ("user", "/resume 1", "m9", "k9")
    assert (told.role, told.text, told.message_id, told.anchor) == ("notice", "Fine.", "m9.reply", "a9")
    assert (plan.reply.message_id, plan.reply.session_id) == ("m9", "s1")


@pytest.mark.parametrize("state", STATES)
def test_resuming_another_conversation_says_whether_it_stopped_something(state: TurnState) -> None:
    """A22: only what was under way in the conversation that is left."""
    current = session(state, session_id="s2", current=True)
    found = resume.Snapshot(
        session=session(TurnState.ENDED, current=False), other=Underway(session=current, unfinished=unattended(current))
    )
    plan = command.resumed(found, current, ASIDE, Resume("s1", "ann"))
    told = [event.text for event in events(plan, e.MessageWritten) if event.message_id == "m9.reply"]
    assert ["was stopped" in text for text in told] == [state in OPEN]
