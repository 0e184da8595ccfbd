"""Taking back a message: refused where it stands, or nothing at all."""

from holdfast.core import events as e
from holdfast.core.plans import Plan, Write, withdraw
from tests.core.plans.values import session


def test_a_message_that_waits_is_refused_in_its_session() -> None:
    refused = e.MessageRefused(message_id="m1", reason="its sender took it back")
    assert withdraw.plan(session(session_id="s9"), "m1", waits=True) == Plan((Write("s9", refused),), True)


def test_one_that_does_not_wait_is_left_alone() -> None:
    assert withdraw.plan(session(), "m1", waits=False) == Plan((), False)
