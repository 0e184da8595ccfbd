"""What becomes of what was under way when a backup was made (P3, P4, F1)."""

import pytest

from holdfast.core import notices
from holdfast.core.delivery import DeliveryState as D
from holdfast.core.events import DeliveryChanged
from holdfast.core.plans.restore import doubted, interrupted
from holdfast.core.turns import TurnState
from tests.core.plans.values import session

OPEN = tuple(state for state in D if state not in (D.SENT, D.DEAD))


@pytest.mark.parametrize(("late", "stream_id"), (((), None), (("t1.2",), "t1.2"), (("t1.1", "t2.2"), None)))
def test_a_turn_that_ran_is_interrupted_by_the_restore_and_nobody_is_to_blame(late: tuple[str, ...], stream_id: str | None) -> None:
    cut = interrupted(session(TurnState.RUNNING, interrupted_restarts=1), written=7, late=late)
    assert (cut.reason, cut.restarts, cut.written, cut.stream_id) == ("restored", 1, 7, stream_id)


@pytest.mark.parametrize("state", OPEN)
def test_a_reply_that_may_have_been_sent_since_is_doubted_and_an_edit_repeated(state: D) -> None:
    owed = DeliveryChanged(delivery_id="d", part=1, state=state, tries=2, receipt="r")
    for edits in (False, True):
        found = doubted(owed, edits=edits, fresh=True)
        expected = D.PENDING if edits else D.LIVE if state is D.LIVE else D.UNKNOWN
        assert (found.delivery_id, found.part, found.state, found.tries, found.receipt, found.error) == ("d", 1, expected, 2, "r", None)


@pytest.mark.parametrize("state", OPEN)
def test_of_a_backup_that_is_too_old_nothing_is_sent(state: D) -> None:
    for edits in (False, True):
        found = doubted(DeliveryChanged(delivery_id="d", state=state), edits=edits, fresh=False)
        assert (found.state, found.error) == (D.DEAD, notices.OWED_TOO_LONG)
