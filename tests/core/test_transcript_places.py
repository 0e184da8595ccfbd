"""Where in an answer its interruptions stand, and how far messages have come on their way to a chat."""

from holdfast.core import delivery, notices
from holdfast.core import events as e
from holdfast.core.messages import Message
from holdfast.core.turns import Outcome
from tests.core.logs import Log, begun, fold, text


def cuts(log: Log) -> list[tuple[int | None, int | None]]:
    return [(message.step, message.offset) for message in fold(log).messages if message.role == "interruption"]


def responded(step: int, said: str) -> e.ModelResponded:
    return e.ModelResponded(step=step, text=said)


def test_the_answer_of_an_agent_that_continues_is_interrupted_behind_what_it_had_written() -> None:
    log = begun().in_turn(text("1 2 ", 0)).cut(written=4).resumed(2).in_turn(text("3 4", 4))
    assert cuts(log) == [(0, 4)]
    log.cut(written=7).resumed(3).in_turn(text("!", 7)).ended("1 2 3 4!")
    assert cuts(log) == [(0, 4), (0, 7)]


def test_a_step_of_a_model_that_is_asked_again_is_interrupted_before_what_it_says_now() -> None:
    """Its half answer stays until there is another one."""
    log = begun().in_turn(responded(0, "Let me look."), text("The fi", 0, step=1)).cut(written=6)
    assert cuts(log) == [(1, None)]
    log.resumed(2)
    assert cuts(log) == [(1, None)]
    log.in_turn(text("All", 0, step=1))
    assert cuts(log) == [(1, 0)]
    log.in_turn(responded(1, "All is well.")).ended("All is well.")
    assert cuts(log) == [(1, 0)] == cuts_of_records(log)


def test_a_step_that_begins_later_moves_no_interruption_of_an_earlier_one() -> None:
    log = begun().in_turn(text("1 2 ", 0)).cut(written=4).resumed(2).in_turn(text("3 4", 4), text("And", 0, step=1))
    assert cuts(log) == [(0, 4)]


def test_the_first_step_of_a_model_is_no_different() -> None:
    log = begun().in_turn(text("Wel", 0)).cut(written=3).resumed(2).in_turn(text("W", 0), responded(0, "What?"))
    assert cuts(log) == [(0, 0)] == cuts_of_records(log)


def answered(content: str, begun: int = 0) -> e.MessageWritten:
    return e.MessageWritten(message_id="t1.answer", role="assistant", content=content, begun=begun)


def test_a_step_that_no_response_fixed_says_in_its_record_which_attempt_began_it() -> None:
    """P7: the interruption stands in the same place once the pieces are gone."""
    log = begun().in_turn(responded(0, "Let me look."), text("The fi", 0, step=1)).cut(written=6).resumed(2)
    assert fold(log).begun == 1
    log.in_turn(text("All", 0, step=1), text(" is", 3, step=1))
    assert fold(log).begun == 2
    log.cut(written=6).resumed(3).in_turn(answered("All is", 2), e.TurnEnded(outcome=Outcome.CANCELLED))
    assert cuts(log) == [(1, 0), (1, None)] == cuts_of_records(log)


def test_the_attempt_that_began_an_answer_of_one_step_is_on_record_too() -> None:
    """P7"""
    log = begun().in_turn(text("Wel", 0)).cut(written=3).resumed(2).in_turn(text("What?", 0), answered("What?", 2))
    assert fold(log.items[:-1]).begun == 2 and cuts(log) == [(0, 0)] == cuts_of_records(log)
    log = begun().in_turn(text("1 2 ", 0)).cut(written=4).resumed(2).in_turn(text("3", 4))
    assert fold(log).begun == 1
    log.in_turn(answered("1 2 3"))
    assert cuts(log) == [(0, 4)] == cuts_of_records(log)


def test_a_response_ends_what_an_attempt_began() -> None:
    log = begun().in_turn(text("Wel", 0))
    assert fold(log).begun == 1
    log.in_turn(responded(0, "Well."))
    assert fold(log).begun == 0 == fold(Log()).begun


def cuts_of_records(log: Log) -> list[tuple[int | None, int | None]]:
    return [(message.step, message.offset) for message in fold(log.records()).messages if message.role == "interruption"]


def written(name: str | None) -> e.MessageWritten:
    return e.MessageWritten(message_id="t1.answer", role="assistant", content="yes", delivery_id=name)


def answer(log: Log) -> Message:
    return next(message for message in fold(log).messages if message.role == "assistant")


def test_what_is_sent_to_a_chat_says_how_far_it_has_come() -> None:
    """P4"""
    log = begun().in_turn(written("d1"))
    owed = answer(log).delivery
    assert owed is not None and (owed.delivery_id, owed.states) == ("d1", ["pending"])
    log.free(e.DeliveryChanged(delivery_id="d1", state="sending", owner=1), e.DeliveryChanged(delivery_id="other", state="dead"))
    log.free(e.DeliveryChanged(delivery_id="d1", state="pending", tries=1, retry_at=9, error="It is away"))
    owed = answer(log).delivery
    assert owed is not None and (owed.states, owed.tries, owed.retry_at, owed.error) == (["pending"], 1, 9, "It is away")
    log.free(e.DeliveryChanged(delivery_id="d1", state="sent", tries=2))
    owed = answer(log).delivery
    assert owed is not None and (owed.states, owed.error) == (["sent"], None)
    assert answer(begun().in_turn(written(None))).delivery is None


def test_a_message_that_takes_several_has_arrived_when_all_of_them_have() -> None:
    log = begun().in_turn(written("d1")).free(e.DeliveryPlanned(delivery_id="d1", pieces=(e.Piece(), e.Piece())))
    log.free(e.DeliveryChanged(delivery_id="d1", state="sent"))
    owed = answer(log).delivery
    assert owed is not None and owed.states == ["sent", "pending"] and delivery.overall(owed.states) == "pending"
    log.free(e.DeliveryChanged(delivery_id="d1", part=1, state="sent"))
    owed = answer(log).delivery
    assert owed is not None and delivery.overall(owed.states) == "sent"


def test_what_went_wrong_with_one_of_several_counts() -> None:
    assert delivery.overall(["sent", "dead", "pending"]) == "dead"
    assert delivery.overall(["unknown", "sent"]) == "unknown"
    assert delivery.overall(["sending", "pending"]) == "sending"


def test_what_the_gateway_itself_says_to_a_chat_says_how_far_it_has_come_too() -> None:
    """P4"""
    log = Log().free(e.MessageWritten(message_id="n1", role="notice", content="Careful.", delivery_id="d1"))
    [told] = fold(log).messages
    assert told.delivery is not None and told.delivery.states == ["pending"]


def test_what_is_said_of_a_piece_that_nobody_planned_changes_nothing() -> None:
    owed = answer(begun().in_turn(written("d1")).free(e.DeliveryChanged(delivery_id="d1", part=1, state="sent"))).delivery
    assert owed is not None and owed.states == ["pending"]


def test_a_branch_says_where_it_is_from_below_what_was_copied() -> None:
    log = begun().ended("yes").free(e.SessionBranched(origin="s0", message_id="m0", by="ann", title="Trip", left_out=2))
    told = Message(id="branched.6", role="notice", content=notices.branched("Trip", 2), turn_id=None, created_at=log.items[-1].at)
    assert fold(log).messages[-1] == told and log.items[-1].seq == 6
