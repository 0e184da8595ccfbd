"""What people are told by the gateway itself."""

import pytest

from holdfast.core import notices
from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState

MIN, HOUR, DAY = 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("ms", "told"),
    [
        (0, "0 s"),
        (999, "0 s"),
        (1000, "1 s"),
        (59_999, "59 s"),
        (MIN, "1 min"),
        (MIN + 1000, "1 min 1 s"),
        (HOUR - 1, "59 min 59 s"),
        (HOUR, "1 h"),
        (HOUR + 59_999, "1 h"),
        (HOUR + MIN, "1 h 1 min"),
        (DAY - 1, "23 h 59 min"),
        (DAY, "1 d"),
        (DAY + 5 * HOUR + 59 * MIN, "1 d 5 h"),
        (400 * DAY, "400 d"),
        (-1, "0 s"),
        (-DAY, "0 s"),
    ],
)
def test_a_time_that_passed_is_told_in_at_most_two_units_and_is_never_negative(ms: int, told: str) -> None:
    assert notices.span(ms) == told


def test_a_cut_is_told_with_what_caused_it_and_how_long_ago() -> None:
    assert notices.cut_before("crash", 12_000) == "cut by a crash 12 s before"
    assert notices.cut_before("anything else", -5) == "cut by an interruption 0 s before"
    assert [notices.cut_by(reason) for reason in ("restart_timeout", "shutdown_timeout", "store_full")] == [
        "a restart",
        "a shutdown",
        "a full disk",
    ]


def test_what_was_refused_is_told_once_with_every_text() -> None:
    """A20: nobody has to remember what they wrote."""
    told = notices.refused(["one", "two\nlines"], "the reason")
    assert told.startswith("These messages were not answered, because the reason. Send them again:")
    assert told.splitlines()[-3:] == ["> one", "> two", "> lines"]
    told = notices.refused(["one"], "the reason")
    assert told.startswith("This message was not answered") and told.endswith("\n> one")


def test_a_long_text_is_quoted_by_its_beginning() -> None:
    exact, long = "x" * notices.MAX_QUOTED, "x" * notices.MAX_QUOTED + "y"
    assert notices.refused([exact], "r").endswith(f"> {exact}")
    assert notices.refused([long], "r").endswith(f"> {exact}…")


@pytest.mark.parametrize(("queued", "told"), [(0, "Stopped."), (1, "Stopped. 1 message waits and is"), (7, "7 messages wait and are")])
def test_a_stop_says_how_many_messages_wait(queued: int, told: str) -> None:
    """A21"""
    assert told in notices.stopped(queued)


@pytest.mark.parametrize("reason", ["suspended", "idle", "daily", "asked", "another"])
def test_a_new_conversation_says_why_it_began_and_how_to_get_the_last_one_back(reason: str) -> None:
    """A19"""
    told = notices.begun(reason, 3)
    assert "because" in told and "/resume 3" in told
    assert len({notices.begun(each, 3) for each in ("suspended", "idle", "daily", "asked", "another")}) == 5


@pytest.mark.parametrize(
    "told", [notices.stale("crash", HOUR), notices.held("crash", safe_mode=True), notices.held("crash", safe_mode=False)]
)
def test_whoever_waits_for_a_cut_answer_is_told_what_cut_it_and_how_to_go_on(told: str) -> None:
    """R6, R7"""
    assert "a crash" in told and "rite a message to go on" in told


def test_safe_mode_and_automatic_resume_that_is_off_are_told_apart() -> None:
    """B14, R7"""
    assert "safe mode" in notices.held("crash", safe_mode=True)
    assert "safe mode" not in notices.held("crash", safe_mode=False)


def test_a_session_that_is_stuck_says_how_often_it_was_cut_and_the_way_back() -> None:
    """R2, P8"""
    assert "3 restarts" in notices.stuck(3) and "/resume" in notices.stuck(3)


def session(**values: object) -> Session:
    return Session(session_id="s", session_key="k", log="l", seq=1, created_at=0, updated_at=0, **values)  # type: ignore[arg-type]


def test_the_conversations_of_a_chat_are_listed_by_their_numbers() -> None:
    listed = [(3, session(title="Now")), (2, session(current=False, suspended=True)), (1, session(title="First", current=False))]
    assert notices.sessions(listed).splitlines()[:3] == ["3. Now (this one)", "2. untitled (suspended)", "1. First"]
    assert "/resume NUMBER" in notices.sessions(listed)


def test_the_status_tells_what_waits_what_was_cut_and_what_was_decided() -> None:
    """B14: safe mode is shown, and so is the rule."""
    assert notices.status(session(), safe_mode=False) == "This conversation is idle."
    told = notices.status(
        session(
            turn_state=TurnState.INTERRUPTED,
            queued=2,
            resume_pending=True,
            resume_reason="restart_timeout",
            rule="R7",
            why="cut by a restart 5 s before",
        ),
        safe_mode=True,
    )
    assert told.splitlines()[:4] == [
        "This conversation is interrupted.",
        "2 messages wait.",
        "Its last work was cut by a restart.",
        "Last decision: rule R7, cut by a restart 5 s before.",
    ]
    assert "safe mode" in told.splitlines()[4]
    assert "and suspended." in notices.status(session(suspended=True, queued=1), safe_mode=False)
    assert "1 message waits." in notices.status(session(queued=1), safe_mode=False)


def test_a_conversation_that_is_resumed_says_whether_its_work_goes_on() -> None:
    told = notices.resumed(session(title="Bridges"), goes_on=True, stopped=False)
    assert told == "Back in the conversation “Bridges”. The work that was cut goes on."
    assert notices.resumed(session(), goes_on=False, stopped=False) == "Back in the conversation."
    assert "was stopped" in notices.resumed(session(), goes_on=False, stopped=True)
