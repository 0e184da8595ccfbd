"""Background processes on record, over every state of the session that they belong to."""

from itertools import product

import msgspec
import pytest

from holdfast.core import events as e
from holdfast.core import processes as decisions
from holdfast.core.errors import StaleEpoch
from holdfast.core.plans import Plan, causes, processes, take
from holdfast.core.plans.processes import Ending, Starting
from holdfast.core.processes import Matches, Moment, Telling, TooManyProcesses
from holdfast.core.sessions import Session
from holdfast.core.turns import OPEN, TurnState
from tests.core.plans.values import AT, CHAT, PAGE, STATES, session, written
from tests.core.test_processes import process

WANTED = e.ProcessStarted(process_id="p1", command="make", turn_id="t1", call_id="t1.1", owner=7, notify=False, patterns=("x",))
MATCHES = Matches(lines=2, quoted=("a", "b"), through=40)
NONE = Matches()


def lines(of: Session, matches: Matches = MATCHES) -> Matches:
    """Seen as the session stands."""
    return msgspec.structs.replace(matches, seen=processes.moment(of))


def running(**facts: object) -> Starting:
    of = session(TurnState.RUNNING, turn_id="t1", owner=7, generation=4, **facts)
    return Starting(session=of, sender="ann", anchor="a1")


def test_a_start_is_recorded_with_the_rights_of_its_turn() -> None:
    """E3, P6"""
    plan = processes.start(running(), WANTED, most=1)
    assert plan.reply and written(plan) == [("s1", "process.started", False)]
    assert plan.writes[0].event == msgspec.structs.replace(WANTED, generation=4, sender="ann", anchor="a1")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("turn_id", "owner", "stop"), [("t1", 7, False), ("t0", 7, False), ("t1", 8, False), ("t1", 7, True)])
def test_only_the_turn_that_runs_here_and_is_not_to_stop_starts_one(state: TurnState, turn_id: str, owner: int, stop: bool) -> None:
    """P2"""
    found = Starting(session=session(state, turn_id=turn_id, owner=owner, stop_requested=stop), sender="ann")
    if (state, turn_id, owner, stop) == (TurnState.RUNNING, "t1", 7, False):
        assert processes.start(found, WANTED, most=1).reply
    else:
        with pytest.raises(StaleEpoch):
            processes.start(found, WANTED, most=1)


def test_a_start_that_is_on_record_is_not_recorded_again_whatever_happened_since() -> None:
    """P5: the call that was interrupted is made again."""
    again = Starting(session=session(TurnState.ENDED), sender="ann", known=process(), running=9)
    assert processes.start(again, WANTED, most=1) == Plan((), False)


def test_no_more_run_than_are_allowed() -> None:
    with pytest.raises(TooManyProcesses, match="3 background processes are running already"):
        processes.start(msgspec.structs.replace(running(), running=3), WANTED, most=3)
    assert processes.start(msgspec.structs.replace(running(), running=2), WANTED, most=3).reply


# its end

END = e.ProcessEnded(process_id="p1", ended_at=AT - 1000, code=0)
FLAGS = (False, True)


@pytest.mark.parametrize("key", [CHAT, PAGE])
@pytest.mark.parametrize(("notify", "consumed", "current", "suspended", "deleted", "stale"), list(product(FLAGS, repeat=6)))
def test_an_end_is_recorded_and_told_in_one_transaction(
    key: str, notify: bool, consumed: bool, current: bool, suspended: bool, deleted: bool, stale: bool
) -> None:
    """E2, E3, E6"""
    of = session(
        TurnState.ENDED,
        session_key=key,
        current=current and not deleted,
        suspended=suspended,
        deleted_at=AT if deleted else None,
    )
    now = session(TurnState.ENDED, session_id="s2", session_key=key)
    known = process(notify=notify, consumed="read" if consumed else None)
    found = Ending(process=known, session=of, current=of if of.current else now)
    plan = processes.end(found, END, tail="tail", matches=NONE, now=AT + (3_600_001 if stale else 0), window_s=3600)
    assert plan.writes[0].event == END and plan.writes[0].session_id == "s1" and not any(write.in_turn for write in plan.writes)
    if consumed or deleted or not notify:
        assert plan.reply is Telling.NOTHING and len(plan.writes) == 1
        return
    assert len(plan.writes) == 2
    where, told = plan.writes[1].session_id, plan.writes[1].event
    if current and not suspended and not stale:
        assert plan.reply is Telling.TURN and where == "s1"
        assert isinstance(told, e.CauseRecorded) and (told.cause_id, told.what) == ("p1.ended", "process")
        assert (told.sender, told.anchor, told.generation, told.during) == ("ann", "a1", None, False)
    else:
        assert plan.reply is Telling.NOTICE and where == ("s1" if current else "s2")
        assert isinstance(told, e.MessageWritten) and (told.role, told.message_id, told.anchor) == ("notice", "p1.ended", "a1")
        assert told.delivery_id == ("p1.ended" if key == CHAT else None)
    assert told.text == decisions.ended(known, END, tail="tail")


@pytest.mark.parametrize(("state", "left"), list(product(STATES, FLAGS)))
def test_where_a_turn_was_left_for_a_person_to_continue_an_end_starts_none(state: TurnState, left: bool) -> None:
    """A23, R7: it is told as a plain message, and what it prints is nobody's."""
    found = Ending(process=process(), session=session(state, left=left))
    told = processes.end(found, END, tail="", matches=NONE, now=AT, window_s=3600).reply
    waits = left and state is TurnState.INTERRUPTED
    assert told is (Telling.NOTICE if waits else Telling.TURN)
    assert processes.match(found, lines(found.session), at=AT).reply is not waits


def test_an_end_is_on_record_once() -> None:
    """E6"""
    found = Ending(process=process(end=END), session=session(TurnState.ENDED))
    assert processes.end(found, END, tail="", matches=NONE, now=AT, window_s=3600) == Plan((), Telling.NOTHING)


def test_where_no_conversation_is_current_an_end_is_told_in_its_own() -> None:
    found = Ending(process=process(), session=session(TurnState.ENDED, current=False))
    plan = processes.end(found, END, tail="", matches=NONE, now=AT, window_s=3600)
    assert [write.session_id for write in plan.writes] == ["s1", "s1"] and plan.reply is Telling.NOTICE


@pytest.mark.parametrize(("lost", "stopped"), [("keeper", False), (None, True)])
def test_what_was_lost_is_told_unasked_and_what_an_operator_stopped_starts_no_turn(lost: str | None, stopped: bool) -> None:
    end = msgspec.structs.replace(END, lost=lost, stopped=stopped)
    for notify in FLAGS:
        found = Ending(process=process(notify=notify), session=session(TurnState.ENDED))
        told = processes.end(found, end, tail="", matches=NONE, now=AT, window_s=3600).reply
        expected = Telling.NOTICE if not notify else Telling.TURN
        assert told is (expected if lost else Telling.NOTICE if notify else Telling.NOTHING)


def test_lines_that_were_not_told_yet_are_told_with_the_end() -> None:
    found = Ending(process=process(), session=session(TurnState.ENDED))
    plan = processes.end(found, END, tail="", matches=lines(found.session), now=AT, window_s=-1)
    told = plan.writes[1].event
    assert isinstance(told, e.CauseRecorded) and "It had printed 2 lines that are watched for:\n\na\nb" in told.text


def test_lines_of_a_turn_that_is_over_are_not_told_with_the_end_either() -> None:
    """E3"""
    found = Ending(process=process(), session=session(TurnState.ENDED))
    plan = processes.end(found, END, tail="", matches=lines(session(TurnState.RUNNING)), now=AT, window_s=-1)
    told = plan.writes[1].event
    assert isinstance(told, e.CauseRecorded) and told.text == decisions.ended(process(), END)


# what it prints


@pytest.mark.parametrize("state", STATES)
def test_watched_lines_belong_to_the_newest_turn_and_during_it_to_it_alone(state: TurnState) -> None:
    """E3"""
    found = Ending(process=process(streak=1, matched_at=AT - 1), session=session(state, generation=6))
    plan = processes.match(found, lines(found.session), at=AT)
    assert plan.reply and written(plan) == [("s1", "process.matched", False), ("s1", "cause.recorded", False)]
    assert plan.writes[0].event == e.ProcessMatched(process_id="p1", lines=2, through=40, streak=2)
    cause = plan.writes[1].event
    assert isinstance(cause, e.CauseRecorded) and (cause.cause_id, cause.what) == ("p1.matched.40", "watch")
    assert (cause.generation, cause.during, cause.sender, cause.anchor) == (6, state in OPEN, "ann", "a1")
    assert cause.text == decisions.matched(process(), MATCHES)


@pytest.mark.parametrize(
    ("known", "of", "matches"),
    [
        (process(consumed="read"), {}, MATCHES),
        (process(end=END), {}, MATCHES),
        (process(scanned=40), {}, MATCHES),
        (process(), {"current": False}, MATCHES),
        (process(), {"suspended": True}, MATCHES),
        (process(), {"deleted_at": AT}, MATCHES),
        (process(), {}, Matches(through=40)),
    ],
)
def test_lines_that_are_nobodys_are_not_recorded(known: decisions.Process, of: dict[str, object], matches: Matches) -> None:
    """E2, E3, E6: after `consumed`, after the end, of a conversation that was left, and twice."""
    found = Ending(process=known, session=session(TurnState.ENDED, **of))
    assert processes.match(found, lines(found.session, matches), at=AT) == Plan((), False)


@pytest.mark.parametrize(
    "seen",
    [
        None,
        Moment(generation=4),
        Moment(generation=4, during=True),
        Moment(generation=5, during=True),
        Moment(generation=5, away=True),
    ],
)
@pytest.mark.parametrize("of", [{}, {"suspended": True}, {"current": False}])
def test_lines_whose_moment_is_over_are_told_to_nobody_and_not_read_again(seen: Moment | None, of: dict[str, object]) -> None:
    """E3: what counts is when they were seen. The next lines are told no later for them."""
    now = session(TurnState.ENDED, **of)
    if seen == processes.moment(now):
        return
    matches = msgspec.structs.replace(MATCHES, seen=seen)
    plan = processes.match(Ending(process=process(streak=3, matched_at=AT - 1), session=now), matches, at=AT)
    late = e.ProcessMatched(process_id="p1", lines=0, through=40, streak=3)
    assert not plan.reply and [(write.session_id, write.event) for write in plan.writes] == [("s1", late)]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("current", "suspended", "deleted", "left"), list(product(FLAGS, repeat=4)))
def test_a_moment_is_of_the_newest_turn_and_of_nobody_where_the_conversation_is_elsewhere(
    state: TurnState, current: bool, suspended: bool, deleted: bool, left: bool
) -> None:
    """E3, A23"""
    of = session(state, generation=6, current=current, suspended=suspended, deleted_at=AT if deleted else None, left=left)
    away = not current or suspended or deleted or (left and state is TurnState.INTERRUPTED)
    assert processes.moment(of) == Moment(generation=6, during=state in OPEN, away=away)


@pytest.mark.parametrize("what", ["watch", "process"])
def test_a_turn_that_runs_may_take_what_a_process_tells(what: str) -> None:
    recorded = e.CauseRecorded(cause_id="p1.x", what=what, content="x", generation=5 if what == "watch" else None, during=what == "watch")
    found = causes.read("p1.x", recorded)
    plan = take.plan("s1", [found], generation=5, stop_requested=False, step=0, offset=0)
    assert plan.reply == (found,) and written(plan) == [("s1", "cause.taken", True)]
    assert take.plan("s1", [found], generation=5, stop_requested=True, step=0, offset=0).writes == ()


# nobody needs to be told


def test_what_waits_to_be_told_of_a_consumed_process_is_dropped() -> None:
    """E2"""
    plan = processes.consume(process(), ["p1.ended", "p1.matched.4"], how="killed")
    assert plan.reply and written(plan) == [
        ("s1", "process.consumed", False),
        ("s1", "cause.dropped", False),
        ("s1", "cause.dropped", False),
    ]
    assert plan.writes[0].event == e.ProcessConsumed(process_id="p1", how="killed")
    assert plan.writes[2].event == e.CauseDropped(cause_id="p1.matched.4", reason=processes.CONSUMED)
    assert processes.consume(process(consumed="read"), ["p1.ended"], how="killed") == Plan((), False)
