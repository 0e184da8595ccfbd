"""The rules of resuming, over every combination of facts; the window of freshness; the notes to the agent."""

import itertools

import msgspec
import pytest

from holdfast.core import notes, resume
from holdfast.core.resume import RULES, Decision, Facts, Staleness
from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState

T = TurnState
CUT = (T.RUNNING, T.INTERRUPTED)
FLAGS = ("stop_requested", "suspended", "stuck", "tried", "asked", "fresh", "held", "reachable", "allowed")

EVERY_FACT = [
    Facts(turn=turn, **dict(zip(FLAGS, flags, strict=True)))
    for turn, flags in itertools.product(TurnState, itertools.product([False, True], repeat=len(FLAGS)))
]
PLAIN = Facts(
    turn=T.INTERRUPTED,
    stop_requested=False,
    suspended=False,
    stuck=False,
    tried=False,
    asked=False,
    fresh=True,
    held=False,
    reachable=True,
    allowed=True,
)


def expected(facts: Facts) -> tuple[str, Decision]:
    """The rules as a person reads them in the table of promises."""
    over, cut = facts.turn in (T.NONE, T.ENDED), facts.turn in CUT
    reads: list[tuple[bool, str, Decision]] = [
        (facts.stop_requested and not over, "R0", Decision.CANCEL),
        (facts.suspended, "R1", Decision.LEAVE),
        (facts.stuck and cut, "R2", Decision.SUSPEND),
        (over, "R3", Decision.CLEAR),
        (facts.tried and cut, "R4", Decision.FAIL),
        (facts.turn is T.WAITING, "R5", Decision.LEAVE),
        (cut and not facts.fresh and not facts.asked, "R6", Decision.SET_ASIDE),
        (cut and facts.held and not facts.asked, "R7", Decision.LEAVE),
        (cut and not facts.reachable, "R8", Decision.LEAVE),
        (cut and not facts.allowed, "R8", Decision.SET_ASIDE),
        (True, "R9", Decision.RESUME),
    ]
    return next((label, decision) for holds, label, decision in reads if holds)


def test_exactly_one_rule_decides_whatever_the_facts() -> None:
    """R0-R9"""
    for facts in EVERY_FACT:
        rule = resume.decide(facts)
        assert rule is next(rule for rule in RULES if rule.matches(facts))
        assert (rule.label, rule.decision) == expected(facts), facts


def test_every_rule_decides_something() -> None:
    """R0-R9: each is reachable."""
    assert {resume.decide(facts).name for facts in EVERY_FACT} == {rule.name for rule in RULES}


def test_every_rule_has_a_label_a_name_of_its_own_and_a_sentence_and_they_stand_in_order() -> None:
    labels = [rule.label for rule in RULES]
    assert labels == sorted(labels) and set(labels) == {f"R{number}" for number in range(10)}
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.sentence.endswith(".") for rule in RULES)


@pytest.mark.parametrize(
    ("label", "changed"),
    [
        ("R0", {"stop_requested": True}),
        ("R1", {"suspended": True}),
        ("R2", {"stuck": True}),
        ("R3", {"turn": T.ENDED}),
        ("R4", {"tried": True}),
        ("R5", {"turn": T.WAITING}),
        ("R6", {"fresh": False}),
        ("R7", {"held": True}),
        ("R8", {"reachable": False}),
        ("R8", {"allowed": False}),
        ("R9", {}),
    ],
)
def test_one_fact_is_enough_for_its_rule(label: str, changed: dict[str, object]) -> None:
    """R0-R9, one by one."""
    assert resume.decide(msgspec.structs.replace(PLAIN, **changed)).label == label


def test_nothing_is_resumed_that_was_stopped_is_over_waits_or_is_suspended() -> None:
    """A21, P6, P8: no boot revives it."""
    for facts in EVERY_FACT:
        if resume.decide(facts).decision is Decision.RESUME:
            assert not facts.stop_requested and not facts.suspended and facts.turn in (*CUT, T.ANSWERED)
            assert not facts.stuck or facts.turn is T.ANSWERED


def test_a_human_who_asks_to_go_on_is_heard_in_safe_mode_and_after_any_time() -> None:
    """R6, R7: they hold back what goes on by itself."""
    asked = msgspec.structs.replace(PLAIN, asked=True, fresh=False, held=True)
    assert resume.decide(asked).label == "R9"


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("answered", [False, True])
def test_a_recovery_that_ends_by_itself_is_decided_by_the_table(failed: bool, answered: bool) -> None:
    """R4: an error or an empty answer, and nothing else."""
    rule = resume.after_recovery(failed=failed, answered=answered)
    assert (rule.label if rule else None) == ("R4" if failed or not answered else None)


def test_a_pause_holds_back_what_starts_or_resumes_and_nothing_else() -> None:
    """A26: stops, ends and verdicts are carried out."""
    assert {rule.label for rule in RULES if not resume.waits_in_a_pause(rule)} == {f"R{number}" for number in range(7)}


HOUR = 3_600_000
NOW = 1_700_000_000_000


@pytest.mark.parametrize(
    ("signed_at", "window_s", "fresh"),
    [
        (NOW, 3600, True),
        (NOW - HOUR, 3600, True),
        (NOW - HOUR - 1, 3600, False),
        (NOW + 5 * 60_000, 3600, True),
        (NOW + 5 * 60_000 + 1, 3600, False),
        (None, 3600, False),
        (NOW, 0, False),
        (NOW - 10**12, -1, True),
        (None, -1, True),
        (NOW + 10**9, -1, True),
    ],
)
def test_a_sign_of_life_is_fresh_within_the_window(signed_at: int | None, window_s: float, fresh: bool) -> None:
    """R6: 0 is never, negative is always; a time that is missing or lies in the future is not fresh."""
    assert resume.is_fresh(signed_at, now=NOW, window_s=window_s) is fresh
    found = resume.staleness(signed_at, now=NOW, window_s=window_s)
    if fresh:
        assert found is None
    elif window_s == 0:
        assert found is Staleness.OFF
    else:
        assert found is (Staleness.OLD if signed_at is not None and signed_at <= NOW else Staleness.UNKNOWN)


CAUSES = [
    ("restart_timeout", "gateway restart"),
    ("shutdown_timeout", "gateway shutdown"),
    ("crash", "gateway interruption"),
    ("anything", "gateway interruption"),
    ("", "gateway interruption"),
]


@pytest.mark.parametrize(("reason", "cause"), CAUSES)
def test_the_note_names_what_happened_in_words_agents_know(reason: str, cause: str) -> None:
    """B1, B2, B6"""
    for note in (notes.continued(reason), notes.with_message(reason)):
        assert note.startswith("[System note:") and note.endswith("]") and note.count("[System note:") == 1
        assert [known for known in ("gateway restart", "gateway shutdown", "gateway interruption") if known in note] == [cause]


def test_a_resume_without_a_new_message_is_told_to_continue_and_to_repeat_nothing() -> None:
    """B6"""
    note = notes.continued("crash")
    assert note == (
        "[System note: a gateway interruption interrupted this turn, and it now continues. Continue the interrupted work. Results that are "
        "recorded stand; do not repeat what was done, above all not the command that restarted the gateway. A call whose outcome is "
        "unknown may have done its work: check before you repeat it, and tell the user if it matters.]"
    )


def test_a_new_message_after_a_cut_is_told_that_the_history_is_intact() -> None:
    """B1"""
    note = notes.with_message("restart_timeout")
    assert note == (
        "[System note: a gateway restart interrupted the previous turn. The history is intact. Process unfinished tool results first and "
        "summarise what was accomplished, then answer the message. Do not repeat what was done. A call whose outcome is unknown may have "
        "done its work: check before you repeat it, and tell the user if it matters.]"
    )


def test_unread_tool_results_are_processed_and_summarised_first() -> None:
    """B4"""
    assert notes.tool_tail() == (
        "[System note: the history ends in tool results that were not processed, because a gateway interruption or an error ended that "
        "turn. Process them first and summarise what was accomplished, then answer the message. A call whose outcome is unknown may have "
        "done its work: check before you repeat it, and tell the user if it matters.]"
    )


@pytest.mark.parametrize("resumed", [None, "crash"])
@pytest.mark.parametrize("pending", [None, "restart_timeout"])
@pytest.mark.parametrize("unread", [False, True])
def test_there_is_one_note_or_none(resumed: str | None, pending: str | None, unread: bool) -> None:
    """B3, B4, B5: the restart's note wins over the tool tail, and nothing to resume is no note."""
    note = notes.choose(resumed=resumed, pending=pending, unread_results=unread)
    if resumed:
        assert note == notes.continued("crash")
    elif pending:
        assert note == notes.with_message("restart_timeout")
    else:
        assert note == (notes.tool_tail() if unread else None)


@pytest.mark.parametrize("resumed", [None, "crash"])
@pytest.mark.parametrize(("hours", "told"), [(0, None), (24, None), (24.1, 24), (49, 49)])
def test_the_age_of_a_message_stands_in_the_one_note(resumed: str | None, hours: float, told: int | None) -> None:
    """DESIGN 5.7, B3"""
    note = notes.choose(resumed=resumed, pending=None, unread_results=False, waited_ms=int(hours * 3_600_000))
    if told is None:
        assert note == (notes.continued("crash") if resumed else None)
    else:
        assert note is not None and note.startswith("[System note: ") and note.endswith("before you act on it.]")
        assert f"The message is {told} hours old" in note and "gateway interruption" in note and note.count("[System note:") == 1
        assert not resumed or note.startswith(notes.continued("crash").removesuffix("]"))


def test_a_sign_of_life_counts_for_an_hour() -> None:
    """R6, as the settings promise it."""
    assert resume.FRESH_FOR_S == 3600


def test_a_stop_on_record_is_decided_by_its_rule() -> None:
    """R0"""
    assert (resume.stopped().label, resume.stopped().decision) == ("R0", Decision.CANCEL)


@pytest.mark.parametrize(
    ("state", "rule", "queued"), [*itertools.product(TurnState, [None, *sorted({rule.label for rule in RULES})], [0, 1])]
)
def test_a_request_is_put_again_where_a_rule_set_it_aside_for_no_fault_of_its_user(state: TurnState, rule: str | None, queued: int) -> None:
    """R2, R6: and nothing came since."""
    session = Session(
        session_id="s", session_key="k", log="l", seq=1, created_at=0, updated_at=0, turn_state=state, turn_id="t", rule=rule, queued=queued
    )
    assert resume.asks_again(session) is (state is T.ENDED and rule in ("R2", "R6") and queued == 0)
