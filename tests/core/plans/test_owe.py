"""What is owed to chats, and the marks that sessions bear."""

from itertools import product

import pytest

from holdfast.core import events as e
from holdfast.core.delivery import DeliveryState
from holdfast.core.plans import marks, owe
from holdfast.core.plans.owe import Asked, Question
from holdfast.core.sessions import Lease
from holdfast.core.turns import OPEN, TurnState
from tests.core.plans.values import AT, CHAT, PAGE, STATES, kinds, session

SENT, PENDING, DEAD = DeliveryState.SENT, DeliveryState.PENDING, DeliveryState.DEAD
TOLD = e.MessageWritten(message_id="q1.asked", role="notice", content="Which?", delivery_id="q1.asked", anchor="a1")
FLAGS = (False, True)


@pytest.mark.parametrize("deliveries", [(), *product(DeliveryState), *product(DeliveryState, repeat=2)])
def test_a_question_is_seen_once_one_message_with_it_arrived_and_lost_once_all_were_given_up(
    deliveries: tuple[DeliveryState, ...],
) -> None:
    """A27"""
    if not deliveries or SENT in deliveries:
        assert owe.asked(deliveries) is Asked.SEEN
    else:
        assert owe.asked(deliveries) is (Asked.LOST if set(deliveries) == {DEAD} else Asked.ON_ITS_WAY)


@pytest.mark.parametrize(("deliveries", "expires_at", "readable"), list(product([(), (SENT,), (PENDING,), (DEAD,)], (AT, AT + 1), FLAGS)))
def test_only_a_lost_question_that_can_still_be_answered_is_asked_again(
    deliveries: tuple[DeliveryState, ...], expires_at: int, readable: bool
) -> None:
    """R5"""
    told = TOLD if readable else None
    question = Question(question_id="q1", call_id="c1", expires_at=expires_at, deliveries=deliveries, told=told)
    again = owe.question_again(question, at=AT)
    assert bool(again) == (deliveries == (DEAD,) and expires_at > AT and readable)
    for event in again:
        assert (event.message_id, event.delivery_id, event.text, event.anchor) == ("q1.asked.2", "q1.asked.2", "Which?", "a1")


def test_a_delivery_carries_what_was_written_or_says_that_it_was_damaged() -> None:
    """P4"""
    assert owe.written(TOLD) == "Which?"
    assert "damaged" in str(owe.written(e.Damaged(reason="gone")))


@pytest.mark.parametrize("key", [PAGE, CHAT])
def test_a_notice_is_written_under_its_own_key_and_owed_to_a_chat_only(key: str) -> None:
    """C22, P4"""
    plan = owe.notice(session(session_key=key), "held.3", "Wait.", anchor="a1")
    (told,) = [write.event for write in plan.writes]
    assert plan.reply and isinstance(told, e.MessageWritten)
    assert (told.role, told.text, told.message_id, told.anchor) == ("notice", "Wait.", "s1.held.3", "a1")
    assert told.dedup_key == owe.notice_key("s1", "held.3")
    assert told.delivery_id == ("s1.held.3" if key == CHAT else None)


@pytest.mark.parametrize(("state", "expect"), list(product((None, *DeliveryState), DeliveryState)))
def test_a_delivery_moves_on_only_from_where_its_sender_believes_it_to_be(state: DeliveryState | None, expect: DeliveryState) -> None:
    """P4"""
    change = e.DeliveryChanged(delivery_id="d1", state="sent")
    plan = owe.delivery("s1", change, state=state, expect=expect)
    assert plan.reply == (state is expect) and kinds(plan) == (["delivery.changed"] if state is expect else [])


@pytest.mark.parametrize(("there", "suspended", "pending"), list(product(FLAGS, FLAGS, FLAGS)))
def test_a_suspended_session_is_never_marked_and_only_a_marked_one_is_cleared(there: bool, suspended: bool, pending: bool) -> None:
    of = session(TurnState.ENDED, suspended=suspended, resume_pending=pending) if there else None
    marked, cleared = marks.pending(of, "crash"), marks.cleared(of)
    assert marked.reply == (there and not suspended) and len(marked.writes) == marked.reply
    assert cleared.reply == (there and pending) and len(cleared.writes) == cleared.reply
    assert [write.event for write in cleared.writes] == ([e.SessionChanged(resume_pending=False)] if cleared.reply else [])
    if marked.reply:
        assert marked.writes[0].event == e.SessionChanged(resume_pending=True, resume_reason="crash")


@pytest.mark.parametrize(("state", "turn_id", "queued", "pending"), list(product(STATES, ("t1", "t0"), (0, 1), FLAGS)))
def test_a_rule_clears_the_mark_of_a_session_that_has_not_moved_since(state: TurnState, turn_id: str, queued: int, pending: bool) -> None:
    """R3"""
    of = session(state, queued=queued, resume_pending=pending, turn_id="t1")
    plan = marks.cleared_by_rule(of, turn_id=turn_id, rule="R3")
    assert plan.reply == (state not in OPEN and turn_id == "t1" and not queued and pending)
    assert [write.event for write in plan.writes] == ([e.SessionChanged(resume_pending=False, rule="R3")] if plan.reply else [])


@pytest.mark.parametrize(("state", "turn_id", "owner", "lost"), list(product(STATES, ("t1", "t0"), (None, 7), FLAGS)))
def test_only_a_turn_that_no_process_holds_is_left_and_its_lost_question_asked_again(
    state: TurnState, turn_id: str, owner: int | None, lost: bool
) -> None:
    """R5, R7"""
    of = session(state, turn_id="t1", owner=owner)
    question = Question(question_id="q1", call_id="c1", expires_at=AT + 1, deliveries=(DEAD if lost else SENT,), told=TOLD)
    left = e.TurnLeft(rule="R5")
    plan = marks.left(of, turn_id, left, questions=(question,), at=AT)
    can = turn_id == "t1" and owner is None and state in (TurnState.WAITING, TurnState.INTERRUPTED)
    assert plan.reply == can
    again = can and lost and state is TurnState.WAITING
    assert kinds(plan) == (["turn.left"] if can else []) + (["message.written"] if again else [])
    assert all(write.in_turn for write in plan.writes)


@pytest.mark.parametrize(("state", "on_trial", "epoch", "turn_id"), list(product(STATES, FLAGS, (2, 3), ("t1", "t0"))))
def test_a_trial_is_passed_by_the_turn_that_runs_it(state: TurnState, on_trial: bool, epoch: int, turn_id: str) -> None:
    """A25"""
    of = session(state, turn_id="t1", owner=7, epoch=2, on_trial=on_trial)
    plan = marks.trial_passed(of, Lease("s1", 7, epoch), turn_id)
    assert plan.reply == (state is TurnState.RUNNING and on_trial and epoch == 2 and turn_id == "t1")
    assert kinds(plan) == (["trial.passed"] if plan.reply else [])


@pytest.mark.parametrize(("state", "turn_id"), list(product(STATES, ("t1", "t0"))))
def test_a_trial_is_awaited_by_an_interrupted_turn(state: TurnState, turn_id: str) -> None:
    """A25"""
    plan = marks.trial_awaited(session(state, turn_id="t1"), turn_id, aged_ms=5)
    assert plan.reply == (state is TurnState.INTERRUPTED and turn_id == "t1")
    assert kinds(plan) == (["trial.awaited"] if plan.reply else [])


@pytest.mark.parametrize("pieces", [*product(DeliveryState), *product(DeliveryState, repeat=2)])
def test_a_message_in_pieces_is_lost_with_one_of_them_and_there_with_all(pieces: tuple[DeliveryState, ...]) -> None:
    """A27, P4"""
    assert owe.arrived(pieces) is (DEAD if DEAD in pieces else SENT if set(pieces) == {SENT} else PENDING)


LIVE, UNKNOWN = DeliveryState.LIVE, DeliveryState.UNKNOWN
STANDING: list[dict[str, DeliveryState]] = [{}, {"l1": LIVE, "l2": UNKNOWN}, {"l1": LIVE, "l2": LIVE}, {"l1": UNKNOWN, "l2": UNKNOWN}]


@pytest.mark.parametrize(("state", "live"), list(product((None, *DeliveryState), STANDING)))
def test_a_reply_is_planned_only_while_it_waits_and_all_that_it_is_put_into_is_as_it_was_found(
    state: DeliveryState | None, live: dict[str, DeliveryState]
) -> None:
    """P4, B11: two processes that plan the same reply leave one plan."""
    planned = e.DeliveryPlanned(delivery_id="d", pieces=(e.Piece(),), live=("l1",), lost=("l2",))
    plan = owe.pieces("s1", planned, owe.Planning(state=state, live=live))
    holds = state is PENDING and live == {"l1": LIVE, "l2": UNKNOWN}
    assert (plan.reply, [(write.session_id, write.event) for write in plan.writes]) == (holds, [("s1", planned)] if holds else [])


@pytest.mark.parametrize(("live", "holds"), [({"l1": LIVE, "l3": LIVE}, True), ({"l1": LIVE, "l3": PENDING}, False), ({"l1": LIVE}, False)])
def test_every_message_that_a_reply_is_put_into_counts(live: dict[str, DeliveryState], holds: bool) -> None:
    planned = e.DeliveryPlanned(delivery_id="d", pieces=(e.Piece(),), live=("l1", "l3"))
    assert owe.pieces("s1", planned, owe.Planning(state=PENDING, live=live)).reply is holds
    gone = {name: UNKNOWN if state is LIVE else state for name, state in live.items()}
    lost = e.DeliveryPlanned(delivery_id="d", pieces=(e.Piece(),), lost=("l1", "l3"))
    assert owe.pieces("s1", lost, owe.Planning(state=PENDING, live=gone)).reply is holds


@pytest.mark.parametrize(("state", "turn", "owes", "deleted"), list(product(STATES, ("t1", "t2"), FLAGS, FLAGS)))
def test_a_message_shows_an_answer_only_while_its_turn_runs_and_nothing_else_is_owed(
    state: TurnState, turn: str, owes: bool, deleted: bool
) -> None:
    """P4, B11"""
    found = session(state, deleted_at=AT if deleted else None)
    opened = e.DeliveryOpened(delivery_id="l1", turn_id=turn, owner=1)
    plan = owe.opening(found, opened, owes=owes)
    opens = state is TurnState.RUNNING and turn == found.turn_id and not owes and not deleted
    assert (plan.reply, [(write.session_id, write.event) for write in plan.writes]) == (opens, [("s1", opened)] if opens else [])
