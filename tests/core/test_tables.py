"""The tables of the core, every entry and every gap: turns, deliveries, the life of a process, routing, what a cut leaves."""

import itertools

import msgspec
import pytest

from holdfast.core import delivery, lifecycle, recovery, turns
from holdfast.core.content import bytes_part
from holdfast.core.delivery import DeliveryState
from holdfast.core.effects import Effect, ToolOutcome, may_repeat, unknown_result
from holdfast.core.errors import Bug
from holdfast.core.events import KINDS, QuestionAnswered, QuestionAsked, TurnWaiting
from holdfast.core.lifecycle import GatewayState, Input, Work
from holdfast.core.messages import ToolCall
from holdfast.core.sessions import Session, excerpt, title_of
from holdfast.core.turns import OPEN, TurnState

T, D, G = TurnState, DeliveryState, GatewayState

# --- turns

ANSWERS = {"question.answered", "question.answered (last)"}
ALLOWED = {
    T.NONE: {"turn.started": T.RUNNING},
    T.RUNNING: {"turn.waiting": T.WAITING, "question.asked (0.1)": T.WAITING, "turn.interrupted": T.INTERRUPTED, "turn.ended": T.ENDED}
    | dict.fromkeys(ANSWERS | {"question.asked"}, T.RUNNING),
    T.WAITING: {"question.answered (last)": T.ANSWERED} | {"question.answered": T.WAITING, "turn.left": T.WAITING, "turn.ended": T.ENDED},
    T.ANSWERED: {"turn.resumed": T.RUNNING, "turn.ended": T.ENDED},
    T.INTERRUPTED: {"turn.resumed": T.RUNNING, "turn.left": T.INTERRUPTED, "turn.ended": T.ENDED} | dict.fromkeys(ANSWERS, T.INTERRUPTED),
    T.ENDED: {"turn.started": T.RUNNING},
}
RECORDED = KINDS.keys() | ANSWERS | {"question.asked (0.1)"}


class Recorded:
    """An event of this kind, as far as the table knows it."""

    def __init__(self, move: str) -> None:
        self.move = move


def recorded(move: str) -> turns.Moving:
    kind = move.partition(" ")[0]
    return type(kind, (Recorded,), {"kind": kind})(move)


@pytest.mark.parametrize(("state", "move"), [*itertools.product(TurnState, sorted(RECORDED))])
def test_a_turn_moves_as_the_table_says_stays_where_nothing_moves_it_and_refuses_the_rest(state: TurnState, move: str) -> None:
    event = recorded(move)
    if move in ALLOWED[state]:
        assert turns.after(state, event) is ALLOWED[state][move]
    elif event.kind in turns.MOVES:
        with pytest.raises(Bug):
            turns.after(state, event)
    else:
        assert turns.after(state, event) is state


def test_what_an_event_is_called_in_the_table() -> None:
    """R5: version 0.1 ended an attempt by asking; since then a turn waits once it says so, and continues after the last answer."""
    asked = QuestionAsked(question_id="q", call_id="c", content="?", expires_at=0)
    answered = QuestionAnswered(question_id="q", call_id="c", content="!")
    assert asked.move == "question.asked (0.1)" and msgspec.structs.replace(asked, ends_attempt=False).move == "question.asked"
    assert answered.move == "question.answered (last)" and msgspec.structs.replace(answered, last=False).move == "question.answered"
    assert TurnWaiting(question_ids=("q",)).move == "turn.waiting"
    assert {move for _, move in turns.TABLE} <= RECORDED


@pytest.mark.parametrize(("state", "move"), [*itertools.product(TurnState, sorted(RECORDED))])
def test_whatever_was_recorded_leads_to_the_same_state_where_a_record_before_it_is_damaged(state: TurnState, move: str) -> None:
    """The catalog relies on it when it is built from a damaged log: a move that is not possible says where the turn must have been."""
    event = recorded(move)
    before = turns.before(state, event)
    if event.kind not in turns.MOVES or move in ALLOWED[state]:
        assert before is state
    else:
        assert len({turns.after(turns.before(other, event), event) for other in TurnState if move not in ALLOWED[other]}) == 1


def test_every_state_of_a_turn_can_be_reached_and_left() -> None:
    assert {after for after in turns.TABLE.values()} | {T.NONE} == set(TurnState)
    assert {before for before, _ in turns.TABLE} == set(TurnState)


def test_every_open_turn_can_end() -> None:
    """P3"""
    assert set(OPEN) == {state for state in TurnState if "turn.ended" in ALLOWED[state]}


@pytest.mark.parametrize("state", TurnState)
def test_an_answered_turn_is_shown_as_waiting_until_it_runs_again(state: TurnState) -> None:
    assert turns.shown(state) == ("waiting" if state is T.ANSWERED else state.value)


# --- sessions


def session(**values: object) -> Session:
    return Session(session_id="s", session_key="k", log="l", seq=1, created_at=0, updated_at=0, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "queued", "shown"),
    [
        (T.NONE, 0, "idle"), (T.NONE, 2, "queued"), (T.ENDED, 0, "idle"), (T.ENDED, 1, "queued"), (T.RUNNING, 0, "running"),
        (T.RUNNING, 3, "running"), (T.WAITING, 1, "waiting"), (T.ANSWERED, 0, "running"), (T.INTERRUPTED, 1, "interrupted"),
    ],
)  # fmt: skip
def test_a_sessions_state_as_users_see_it(state: TurnState, queued: int, shown: str) -> None:
    found = session(turn_state=state, queued=queued)
    assert found.state == shown
    assert found.open_turn == (state in OPEN)


@pytest.mark.parametrize(
    ("text", "title"), [("", ""), (" \n\t ", ""), ("two\nlines  here", "two lines here"), ("x" * 5000, "x" * 59 + "…")]
)
def test_a_title_is_one_line_of_first_words(text: str, title: str) -> None:
    found = title_of(text)
    assert "\n" not in found and (found == title or (len(text) > 100 and found.endswith("…") and len(found) < 200))


# --- deliveries

PICTURE = bytes_part(blob="a" * 64, size=5, media_type="image/png", name="cat.png")
LABEL = delivery.REPEAT_LABEL


DAY_MS = 24 * 3600 * 1000


@pytest.mark.parametrize(
    ("repeat", "age_ms", "before"),
    [
        (False, 0, ""),
        (False, DAY_MS - 1, ""),
        (True, 0, LABEL),
        (False, DAY_MS, "(delayed by 1 d) "),
        (True, DAY_MS + 3 * 3600 * 1000, f"{LABEL}(delayed by 1 d 3 h) "),
        (False, -DAY_MS, ""),
    ],
)
def test_what_may_be_a_repeat_or_is_a_day_old_says_so_first(repeat: bool, age_ms: int, before: str) -> None:
    """P4"""
    assert delivery.words_before(repeat=repeat, age_ms=age_ms) == before


MOVES = {
    (D.PENDING, "send"): D.SENDING, (D.SENDING, "receipt"): D.SENT, (D.SENDING, "failed"): D.PENDING, (D.SENDING, "lost"): D.UNKNOWN,
    (D.SENDING, "give up"): D.DEAD, (D.UNKNOWN, "found"): D.SENT, (D.UNKNOWN, "not found"): D.PENDING, (D.UNKNOWN, "repeat"): D.REPEATING,
    (D.UNKNOWN, "give up"): D.DEAD, (D.REPEATING, "receipt"): D.SENT, (D.REPEATING, "failed"): D.UNKNOWN, (D.REPEATING, "lost"): D.UNKNOWN,
    (D.REPEATING, "give up"): D.DEAD, (D.PENDING, "give up"): D.DEAD,
    **{(state, "restored"): D.UNKNOWN for state in (D.PENDING, D.SENDING, D.UNKNOWN, D.REPEATING)},
    (D.SENDING, "opened"): D.LIVE, (D.SENDING, "edit lost"): D.PENDING, (D.UNKNOWN, "opened"): D.LIVE, (D.UNKNOWN, "same key"): D.SENDING,
    (D.LIVE, "closed"): D.SENT, (D.LIVE, "restored"): D.LIVE, (D.LIVE, "give up"): D.DEAD, (D.DEAD, "retry"): D.PENDING,
    (D.UNKNOWN, "seen"): D.SENT, (D.DEAD, "seen"): D.SENT,
}  # fmt: skip


@pytest.mark.parametrize(
    ("state", "happened"),
    [
        *itertools.product(DeliveryState, [*dict.fromkeys(happened for _, happened in MOVES), "nonsense"]),
    ],
)
def test_a_delivery_moves_as_the_table_says_and_refuses_the_rest(state: DeliveryState, happened: str) -> None:
    if (state, happened) in MOVES:
        assert delivery.after(state, happened) is MOVES[state, happened]
    else:
        with pytest.raises(Bug):
            delivery.after(state, happened)


def test_what_is_over_never_moves_and_everything_else_can_end() -> None:
    """P4: no reply is tried for ever, none is forgotten. Only a person has what was given up tried again, or has seen it arrive."""
    over = {D.SENT, D.DEAD}
    assert {state for state, happened in delivery.TABLE if happened not in ("retry", "seen")} == set(DeliveryState) - over
    assert {*delivery.DUE, *delivery.IN_FLIGHT, D.LIVE} == set(DeliveryState) - over
    for state in set(DeliveryState) - over:
        reached = {state}
        for _ in DeliveryState:
            reached |= {after for (before, _), after in delivery.TABLE.items() if before in reached}
        assert over <= reached


@pytest.mark.parametrize("state", DeliveryState)
def test_a_person_settles_only_what_is_not_known_or_was_given_up(state: DeliveryState) -> None:
    """P4: what is under way comes to its own outcome; what arrived stays so."""
    settled = {D.UNKNOWN: (D.UNKNOWN, D.DEAD, D.SENT), D.DEAD: (D.PENDING, D.DEAD, D.SENT), D.PENDING: (D.PENDING, D.DEAD, None)}
    assert tuple(delivery.by_operator(state, word) for word in ("retry", "drop", "sent")) == settled.get(state, (None, None, None))


def test_a_reply_of_unknown_fate_is_only_ever_repeated_with_its_label() -> None:
    """P4: a repeat whose own fate is unknown is unknown again, so whatever follows it is found, or labelled too, or given up visibly."""
    assert delivery.after(D.REPEATING, "lost") is D.UNKNOWN
    assert [before for (before, _), after in delivery.TABLE.items() if after is D.REPEATING] == [D.UNKNOWN]


def test_waits_between_tries_grow_and_are_bounded() -> None:
    waits = [delivery.retry_delay_ms(tries) for tries in range(100)]
    assert waits == sorted(waits) and waits[0] == 1000 and waits[-1] == 300_000


@pytest.mark.parametrize("state", DeliveryState)
@pytest.mark.parametrize("left_ms", [-2 * 24 * 3600 * 1000, -1, 0, 1, 30_000, 60_000, 60_001, 600_000, 600_001, 2 * 24 * 3600 * 1000])
def test_a_stored_time_to_try_again_is_kept_for_as_long_as_a_clock_can_be_trusted(state: DeliveryState, left_ms: int) -> None:
    """P4: what may have arrived is asked about before the five minutes are over in which a platform is asked."""
    wait_ms = delivery.stored_wait_ms(state, left_ms)
    assert wait_ms == max(0, min(left_ms, 60_000 if state is D.UNKNOWN else 600_000))
    assert state is not D.UNKNOWN or wait_ms < delivery.ASK_MS


# --- the life of a process


@pytest.mark.parametrize(("state", "happened"), [*itertools.product(GatewayState, Input)])
def test_a_process_moves_as_the_table_says_stays_where_it_is_harmless_and_refuses_the_rest(state: GatewayState, happened: Input) -> None:
    listed, harmless = (state, happened) in lifecycle.TABLE, (state, happened) in lifecycle.HARMLESS
    assert not (listed and harmless)
    assert lifecycle.may(state, happened) == (listed or harmless)
    if listed:
        assert lifecycle.after(state, happened) is lifecycle.TABLE[state, happened] is not state
    elif harmless:
        assert lifecycle.after(state, happened) is state
    else:
        with pytest.raises(Bug):
            lifecycle.after(state, happened)


# What may come too late, or once more, and in which states it then means nothing.
MEANS_NOTHING = {
    Input.PAUSE: "paused",
    Input.UNPAUSE: "running handing_over giving_way retiring draining stopping stopped",
    Input.GIVE_WAY: "draining stopping",
    Input.TAKEN_OVER: "draining",
    Input.NOT_TAKEN: "draining stopping stopped",
    Input.STOP: "draining stopping stopped startup_failed",
    Input.EMPTY: "stopping",
    Input.DEADLINE: "stopping",
    Input.CLOSED: "stopped startup_failed",
}


@pytest.mark.parametrize("happened", Input)
def test_what_comes_too_late_or_once_more_changes_nothing(happened: Input) -> None:
    """C24, C28: a stop overtakes everything, and news of what it overtook is no bug."""
    harmless = {state for state, late in lifecycle.HARMLESS if late is happened}
    assert harmless == set(MEANS_NOTHING.get(happened, "").split())


@pytest.mark.parametrize("state", GatewayState)
def test_a_restart_may_be_asked_for_while_a_process_serves_and_joins_a_hand_over(state: GatewayState) -> None:
    assert lifecycle.restarts(state) is (state in ("running", "paused", "handing_over", "giving_way"))


def test_an_event_loop_that_has_not_answered_for_ten_seconds_hangs() -> None:
    """C28: long enough for a busy machine, as docs/operations.md says."""
    assert lifecycle.HUNG_AFTER_S == 10


def test_a_stop_may_come_at_any_time_and_leads_to_the_end() -> None:
    for state in GatewayState:
        reached = lifecycle.after(state, Input.STOP)
        for happened in (Input.DEADLINE, Input.CLOSED):
            if (reached, happened) in lifecycle.TABLE or (reached, happened) in lifecycle.HARMLESS:
                reached = lifecycle.after(reached, happened)
        assert reached in (G.STOPPED, G.STARTUP_FAILED)


def reached_from(state: GatewayState) -> set[GatewayState]:
    reached = {state}
    for _ in GatewayState:
        reached |= {after for (before, _), after in lifecycle.TABLE.items() if before in reached}
    return reached


def test_every_state_of_a_process_can_be_reached_and_every_one_can_end() -> None:
    """C: there is no state that a process cannot leave but its two ends."""
    assert reached_from(G.STARTING) == set(GatewayState)
    ends = {G.STOPPED, G.STARTUP_FAILED}
    assert {before for before, _ in lifecycle.TABLE} == set(GatewayState) - ends
    for state in set(GatewayState) - ends:
        assert G.STOPPED in reached_from(state), state


def test_a_process_that_has_begun_to_end_never_serves_again() -> None:
    serving = {G.STARTING, G.RUNNING, G.PAUSED, G.HANDING_OVER, G.GIVING_WAY}
    for state in set(GatewayState) - serving:
        assert not reached_from(state) & serving, state


def test_what_may_be_asked_of_a_process_in_which_state() -> None:
    """C21, C24, C25"""
    serving = {G.RUNNING, G.PAUSED}
    assert {state for state in GatewayState if lifecycle.may(state, Input.HAND_OVER)} == serving
    assert {state for state in GatewayState if lifecycle.may(state, Input.PAUSE)} == serving
    assert {state for state in GatewayState if not lifecycle.may(state, Input.UNPAUSE)} == {G.STARTING, G.STARTUP_FAILED}
    assert all(lifecycle.may(state, Input.STOP) for state in GatewayState)


@pytest.mark.parametrize("state", [G.GIVING_WAY, G.DRAINING])
def test_news_of_a_successor_may_come_late(state: GatewayState) -> None:
    """A stop that overtook a hand-over stands, whatever became of the successor."""
    assert lifecycle.after(state, Input.NOT_TAKEN) is (G.RUNNING if state is G.GIVING_WAY else G.DRAINING)
    assert lifecycle.after(state, Input.TAKEN_OVER) is (G.RETIRING if state is G.GIVING_WAY else G.DRAINING)


def test_turns_start_while_a_process_serves_and_while_its_successor_is_not_there_yet() -> None:
    """A26: a pause and a drain hold back starts and resumes only."""
    work = {state: lifecycle.work(state, paused=False) for state in GatewayState}
    assert [state for state in GatewayState if work[state] is Work.ALL] == [G.RUNNING, G.HANDING_OVER]
    assert [state for state in GatewayState if work[state] is Work.DECISIONS] == [G.PAUSED, G.DRAINING]


def test_a_pause_outlasts_the_start_of_a_successor() -> None:
    """C21, A26"""
    work = [lifecycle.work(state, paused=True) for state in (G.PAUSED, G.HANDING_OVER, G.GIVING_WAY, G.DRAINING)]
    assert work == [Work.DECISIONS, Work.DECISIONS, Work.NOTHING, Work.DECISIONS]


@pytest.mark.parametrize("state", [None, "", "unknown", "anything", *GatewayState])
def test_every_last_state_but_an_operators_stop_and_a_failed_start_brings_a_gateway_back(state: str | None) -> None:
    """C17, C18: a kill in mid-drain leaves `draining`, a container that is new has no state at all."""
    assert lifecycle.comes_back(state) == (state not in ("stopped", "startup_failed"))


# --- what a cut leaves


def call(effect: Effect, outcome: ToolOutcome | None = None, *, attempt: int = 1, finished_in: int = 0, call_id: str = "c") -> ToolCall:
    return ToolCall(
        call_id=call_id,
        name="terminal",
        arguments={},
        effect=effect,
        attempt=attempt,
        outcome=outcome,
        finished_in=finished_in,
        output="so far",
    )


@pytest.mark.parametrize(("effect", "outcome"), [*itertools.product(Effect, [None, *ToolOutcome])])
def test_open_calls_are_closed_by_their_declared_effect(effect: Effect, outcome: ToolOutcome | None) -> None:
    """P5: what has a result keeps it; what must not run twice is told as unknown; for a turn that will not go on nothing stays open."""
    closed = recovery.close_open_calls([call(effect, outcome)])
    every = recovery.close_every_call([call(effect, outcome)])
    assert bool(closed) == (outcome is None and effect is Effect.UNSAFE)
    assert bool(every) == (outcome is None)
    for finished in closed + every:
        assert (finished.call_id, finished.outcome) == ("c", ToolOutcome.UNKNOWN)
        assert finished.result == (
            "The gateway was interrupted while terminal was running. It is not known whether it finished, and it was not run again."
            "\n\nIts output until then:\nso far"
        )


def test_only_tools_that_say_so_may_be_repeated() -> None:
    assert [effect for effect in Effect if may_repeat(effect)] == [Effect.PURE, Effect.IDEMPOTENT]


def test_a_long_output_is_told_by_its_end() -> None:
    told = unknown_result("terminal", "x" * 10_000 + "the end", stopped=False)
    assert told.endswith("\nIts output until then:\n" + "x" * 3993 + "the end")


@pytest.mark.parametrize(("stopped", "what"), [(False, "The gateway was interrupted"), (True, "The turn was stopped")])
def test_what_is_recorded_of_a_call_that_nobody_saw_end_holds_no_advice_for_an_agent(stopped: bool, what: str) -> None:
    """P5: people read it too; the advice is in the agent's note."""
    told = f"{what} while terminal was running. It is not known whether it finished, and it was not run again."
    assert unknown_result("terminal", " \n", stopped=stopped) == told


@pytest.mark.parametrize(
    ("text", "words"),
    (
        ("", ""),
        ("hello  there\nyou", "hello there you"),
        ("# A **bold** `word`\n> quoted | cell", "A bold word quoted cell"),
        ("```python\nprint(1)\n```", "print(1)"),
        ("For six:\n- [ ] 3 leeks\n  * [x] salt", "For six: 3 leeks salt"),
        ("x" * 120, "x" * 120),
        ("x" * 121, "x" * 119 + "…"),
        ("a" * 118 + " bcd", "a" * 118 + "…"),
    ),
)
def test_what_was_last_said_is_shown_on_one_line_and_bounded(text: str, words: str) -> None:
    assert excerpt(text) == words
