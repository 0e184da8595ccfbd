"""Stops over every state of a turn, every way to name it, and every memory of the stop before."""

from itertools import product

import pytest

from holdfast.core import events as e
from holdfast.core.delivery import DeliveryState
from holdfast.core.plans import command, stop
from holdfast.core.plans.command import Aside
from holdfast.core.plans.repeats import NOTHING, STOP, Known
from holdfast.core.plans.stop import Snapshot, Stopped
from holdfast.core.stops import LastStop
from holdfast.core.turns import OPEN, TurnState
from tests.core.plans.values import AT, CHAT, PAGE, STATES, events, kinds, session, unattended

WORDS = Aside(message_id="m9", content="/stop", sender="ann", dedup_key="k9", anchor="a9")
ENDS = (TurnState.WAITING, TurnState.ANSWERED)


def found(state: TurnState, key: str = CHAT, last: LastStop | None = None, queued: int = 2) -> Snapshot:
    of = session(state, session_key=key, queued=queued)
    return Snapshot(session=of, last=last, unfinished=unattended(of))


@pytest.mark.parametrize(("state", "named", "saw"), list(product(STATES, (None, "t1", "t0"), (None, "t1", "t0"))))
def test_a_stop_is_for_the_turn_it_names_or_was_seen_and_for_no_later_one(state: TurnState, named: str | None, saw: str | None) -> None:
    """A21, A22"""
    plan = stop.plan(found(state), by="ann", turn_id=named, saw=saw, dedup_key="k", at=AT)
    if state in OPEN and (named or saw or "t1") == "t1":
        assert plan.reply == Stopped("t1", 2, ended=state in ENDS)
        asked = plan.writes[0]
        assert asked.event == e.StopRequested(turn_id="t1", by="ann", dedup_key="k") and not asked.in_turn
        assert ("turn.ended" in kinds(plan)) == (state in ENDS)
    else:
        assert plan.reply == Stopped(None, 2, ended=True)
        assert [write.event for write in plan.writes] == [e.RequestNoted(what="stop", dedup_key="k")]


def test_a_turn_belongs_to_no_process_while_it_waits_and_until_its_answer_is_taken_up() -> None:
    """P3"""
    assert set(stop.UNATTENDED) == set(ENDS)


@pytest.mark.parametrize("state", ENDS)
def test_what_ends_with_a_stop_ends_in_its_own_turn_and_nothing_stays_open(state: TurnState) -> None:
    """P3"""
    plan = stop.plan(found(state), by="ann", turn_id=None, saw=None, dedup_key=None, at=AT)
    assert all(write.in_turn for write in plan.writes[1:])
    closed = [event.call_id for event in events(plan, e.ToolFinished)]
    assert closed == (["c1"] if state is TurnState.WAITING else [])
    assert kinds(plan)[-2:] == ["message.written", "turn.ended"]


@pytest.mark.parametrize("state", STATES)
def test_nothing_to_stop_leaves_a_record_only_where_the_request_may_come_again(state: TurnState) -> None:
    """A22"""
    plan = stop.plan(found(state), by="ann", turn_id="t0", saw=None, dedup_key=None, at=AT)
    assert plan.writes == ()


@pytest.mark.parametrize(("state", "ref"), list(product(STATES, ("t1", "t0", NOTHING))))
def test_a_repeated_stop_gives_the_first_reply_and_says_whether_its_turn_has_ended(state: TurnState, ref: str) -> None:
    """A22"""
    reply = stop.again(Known(STOP, "s1", ref), session(state, queued=1))
    assert reply == Stopped(None if ref == NOTHING else ref, 1, ended=not (ref == "t1" and state in OPEN))


@pytest.mark.parametrize(("state", "saw", "key"), list(product(STATES, (None, "t1", "t0"), (PAGE, CHAT))))
def test_a_stop_by_command_says_what_it_did(state: TurnState, saw: str | None, key: str) -> None:
    """A21: `/stop` always answers, and its reply is what the next stop waits for."""
    plan = command.stop(found(state, key), WORDS, command.Stop("ann", saw), at=AT)
    said, told = events(plan, e.MessageWritten)[-2:]
    assert (said.message_id, said.role, said.dedup_key) == ("m9", "user", "k9")
    assert (told.message_id, told.anchor, told.delivery_id) == ("m9.reply", "a9", "m9.reply" if key == CHAT else None)
    target = saw or ("t1" if state in OPEN else None)
    stopped = events(plan, e.StopRequested)
    assert [event.turn_id for event in stopped] == ([] if target is None else [target])
    if target is None:
        assert "nothing to stop" in told.text
    elif target == "t1" and state in OPEN:
        assert told.text.startswith("Stopped. 2 messages")
        assert ("turn.ended" in kinds(plan)) == (state in ENDS)
    else:
        assert told.text.startswith("That has already ended.") and ("Another answer" in told.text) == (state in OPEN)
        assert "turn.ended" not in kinds(plan)
    for event in stopped:
        assert event.reply == ("m9.reply" if key == CHAT else None)


@pytest.mark.parametrize(("waited", "reply", "after_ms"), list(product((False, True), (None, *DeliveryState), (0, 3_001, 10_001))))
def test_stops_sent_at_once_are_all_for_the_same_turn(waited: bool, reply: DeliveryState | None, after_ms: int) -> None:
    """The sender of the second one has not heard yet that the first did its work."""
    last = LastStop("t0", AT - after_ms, waited=waited, reply=reply)
    plan = stop.plan(found(TurnState.RUNNING, last=last), by="ann", turn_id=None, saw=None, dedup_key=None, at=AT)
    heard = reply in (DeliveryState.SENT, DeliveryState.DEAD)
    unheard_ms = 3_000 if reply is None else 10_000
    assert (plan.reply.turn_id is None) == (waited and not heard and after_ms <= unheard_ms)
