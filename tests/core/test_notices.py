"""What people are told by the gateway itself."""

import pytest

from holdfast.core import notices
from holdfast.core.resume import Staleness
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


def test_an_interruption_is_told_with_what_caused_it_and_how_long_ago() -> None:
    assert notices.interrupted_earlier("crash", 12_000) == "interrupted by a crash 12 s earlier"
    assert notices.interrupted_earlier("crash", 12_000, Staleness.OLD) == "interrupted by a crash 12 s earlier"
    assert notices.interrupted_earlier("anything else", -5) == "interrupted by an interruption 0 s earlier"
    off = "interrupted by a restart 1 s earlier, and Holdfast is set to continue nothing by itself"
    assert notices.interrupted_earlier("restart_timeout", 1000, Staleness.OFF) == off
    assert notices.interrupted_earlier("shutdown_timeout", 0, Staleness.UNKNOWN) == "interrupted by a shutdown at an unknown time"
    assert notices.interrupted_earlier("store_full", 0) == "interrupted by a full disk 0 s earlier"


@pytest.mark.parametrize("worked", [False, True])
@pytest.mark.parametrize("holes", [False, True])
def test_a_row_says_that_nothing_was_written_only_if_nothing_was(worked: bool, holes: bool) -> None:
    """F1: no tool call either, and no record that could not be read."""
    written = notices.interrupted("crash", written=True, worked=worked, holes=holes)
    assert written == "Interrupted by a crash. What had been written is kept."
    unwritten = notices.interrupted("crash", written=False, worked=worked, holes=holes)
    if worked:
        assert unwritten == "Interrupted by a crash. The work so far is kept."
    elif holes:
        assert unwritten == "Interrupted by a crash. Some output may be missing."
    else:
        assert unwritten == "Interrupted by a crash before anything was written."


def test_what_was_refused_is_told_once_with_every_text() -> None:
    """A20: nobody has to remember what they wrote."""
    several = "These messages were not answered, because the reason. Send them again:\n\n> one\n> two\n> lines"
    assert notices.refused(["one", "two\nlines"], "the reason") == several
    assert notices.refused(["one"], "the reason") == "This message was not answered, because the reason. Send it again:\n\n> one"


def test_a_long_text_is_quoted_by_its_beginning() -> None:
    exact, long = "x" * 10_000, "x" * 10_000 + "y"
    assert notices.refused([exact], "r").endswith(f"> {exact}")
    assert notices.refused([long], "r").endswith(f"> {exact}…")


@pytest.mark.parametrize(
    ("queued", "told"),
    [
        (0, "Stopped."),
        (1, "Stopped. 1 message is waiting and will be answered next."),
        (7, "Stopped. 7 messages are waiting and will be answered next."),
    ],
)
def test_a_stop_says_how_many_messages_wait(queued: int, told: str) -> None:
    """A21"""
    assert notices.stopped(queued) == told


def test_a_stop_for_a_turn_that_has_ended_says_what_would_be_stopped_next() -> None:
    """A21"""
    assert notices.already_ended(another=False) == "That has already ended."
    more = "That has already ended. Another answer is running now: send /stop again to stop that one."
    assert notices.already_ended(another=True) == more
    assert notices.nothing_to_stop() == "Nothing is running here, so there is nothing to stop."


@pytest.mark.parametrize(
    ("reason", "because"),
    [
        ("suspended", "the previous one was suspended"),
        ("idle", "nothing was said for a while"),
        ("daily", "a new day has begun"),
        ("asked", "you asked for one"),
        ("another", "the previous one was left"),
    ],
)
def test_a_new_conversation_says_why_it_began_and_how_to_get_the_previous_one_back(reason: str, because: str) -> None:
    """A19"""
    told = f"This is a new conversation, because {because}. The previous one is kept: /resume 3 brings it back."
    assert notices.begun(reason, 3) == told


def test_an_old_interruption_says_why_it_was_not_continued_and_how_to_continue() -> None:
    """R6: in words that are true for a window of 0 and for a time that cannot be right."""
    how = "Nothing is lost: send /resume to continue it, or a new message to continue from there."
    old = f"Your last request was interrupted by a crash 1 h ago, too long ago to continue without asking. {how}"
    assert notices.stale("crash", HOUR, Staleness.OLD) == old
    off = f"Your last request was interrupted by a crash 1 s ago, and Holdfast is set to continue nothing by itself. {how}"
    assert notices.stale("crash", 1000, Staleness.OFF) == off
    when = "at an unknown time, so it was not continued without asking"
    assert notices.stale("crash", 0, Staleness.UNKNOWN) == f"Your last request was interrupted by a crash {when}. {how}"


def test_work_that_nobody_asked_for_in_that_moment_is_named_by_what_started_it() -> None:
    """E8"""
    assert notices.interrupted_earlier("crash", 12_000, cause="schedule").endswith("12 s earlier (started by a schedule)")
    assert notices.interrupted_earlier("crash", 0, Staleness.UNKNOWN, cause="process").endswith("(started by a background process)")
    assert notices.interrupted_earlier("crash", 0, cause="anything").endswith("(started by an event)")
    assert notices.stale("crash", HOUR, Staleness.OLD, cause="schedule").startswith("Work started by a schedule was interrupted by a crash")
    assert notices.held("crash", safe_mode=True, cause="watch").startswith("Work started by a background process was interrupted")


def test_safe_mode_and_automatic_resume_that_is_off_are_told_apart() -> None:
    """B14, R7"""
    how = "Nothing is lost: send /resume to continue it, or a new message to continue from there."
    safe = f"Your last request was interrupted by a crash, and Holdfast is in safe mode after several crashes. {how}"
    assert notices.held("crash", safe_mode=True) == safe
    off = f"Your last request was interrupted by a shutdown, and Holdfast is set to continue nothing by itself. {how}"
    assert notices.held("shutdown_timeout", safe_mode=False) == off


def test_a_session_that_is_stuck_says_how_often_it_was_interrupted_and_continues_in_one_step() -> None:
    """R2, P8"""
    assert notices.stuck(3) == (
        "3 restarts in a row interrupted this conversation, so it is suspended. "
        "Send /resume to continue it, or a message to start a new conversation."
    )


def test_one_that_was_interrupted_too_often_in_all_is_suspended_too_and_operators_are_told_how_to_continue_it() -> None:
    """A17"""
    assert notices.stuck(10, in_a_row=False) == (
        "10 restarts interrupted this conversation, so it is suspended. "
        "Send /resume to continue it, or a message to start a new conversation."
    )
    assert notices.suspended_elsewhere(session(title="Bridges")) == (
        "The conversation “Bridges” (k) is suspended: Holdfast was interrupted repeatedly while working on it. "
        "See the log. To continue it: `holdfast resume s`"
    )


def test_what_is_said_before_and_after_a_restart() -> None:
    """C10, C11: it promises an attempt and no more."""
    assert notices.restarting() == "Holdfast is restarting."
    now = "Holdfast is restarting, which interrupts the work in progress here. It will try to resume it afterwards."
    assert notices.restarting_interrupts(0) == now
    assert notices.restarting_interrupts(90) == (
        "Holdfast is restarting. Work in progress here that is not done within 1 min 30 s is interrupted; "
        "Holdfast will try to resume it afterwards."
    )
    assert notices.stopping() == "Holdfast is shutting down."
    now = "Holdfast is shutting down, which interrupts the work in progress here. What is done so far is kept."
    assert notices.stopping_interrupts(0) == now
    assert notices.stopping_interrupts(0.1) == (
        "Holdfast is shutting down. Work in progress here that is not done within 1 s is interrupted; what is done by then is kept."
    )
    assert notices.back() == "Holdfast is back."
    assert notices.restart_failed(notices.stopped_instead()) == "Holdfast did not restart. It was asked to stop instead."
    assert notices.may_not_restart() == "You are not allowed to restart Holdfast from here. Ask the person who runs it."
    assert notices.cannot_restart() == "Holdfast cannot restart itself here. Restart it where it was started."
    assert notices.kept() == "Your message is saved; Holdfast will answer once it is working again."


def test_what_is_said_to_a_request_that_cannot_be_done() -> None:
    """A21, A22"""
    assert notices.already_new() == "This conversation is still empty, so there is nothing to start over."
    nothing = "There is nothing to resume: no work was interrupted here, and there is no earlier conversation."
    assert notices.nothing_to_resume() == nothing
    here = "You are already in that conversation, and no work in it was interrupted. /sessions lists the others."
    assert notices.already_here() == here
    waits = "There is nothing to resume: this conversation is waiting for your answer."
    assert notices.already_going_on(session(turn_state=TurnState.WAITING)) == waits
    works = "There is nothing to resume: this conversation is already working."
    assert notices.already_going_on(session(turn_state=TurnState.RUNNING)) == works
    assert notices.no_such_conversation("7") == "There is no conversation '7' here. /sessions lists them."
    assert notices.send_what("queue") == "Say what to send: /queue TEXT"
    refused = "This message was refused, because the conversation is busy. Send it again after the answer, or let it wait: /queue TEXT"
    assert notices.rejected() == refused
    assert notices.lane_full(100) == (
        "100 messages are already waiting here, so this one was not accepted. Wait for an answer, or send /stop, then send it again."
    )
    assert notices.unknown_command("dance") == (
        "There is no command /dance. /help lists the commands. To send it to the agent, begin with a space."
    )
    assert notices.expired() == "Nobody answered in time; the question has expired."
    assert notices.failed("No route.") == "This did not work: No route."


def test_the_help_lists_every_command_with_what_it_does() -> None:
    assert notices.help_text().splitlines() == [
        "/stop - Stop what is running. Waiting messages stay.",
        "/new - Start a new conversation; this one is kept.",
        "/resume [number or id] - Go back to an earlier conversation, or continue interrupted work.",
        "/sessions - List the conversations of this chat.",
        "/status - Show what is happening here.",
        "/model [name or number] - List the models, or choose the one that answers in this conversation.",
        "/remind [WHEN TEXT] - Start work from TEXT at a time, once or again and again; without words, list what is planned.",
        "/queue TEXT - Send TEXT as the next message, even while a question is open.",
        "/steer TEXT - Send TEXT to the answer that is being written.",
        "/interrupt TEXT - Stop what is running, and answer TEXT next.",
        "/approve [id or all] [always] - Let a call run that waits for your approval; `always` for this conversation.",
        "/deny [id or all] [reason] - Refuse a call that waits for your approval.",
        "/restart - Restart Holdfast (if allowed).",
        "/help - List these commands.",
    ]


def session(**values: object) -> Session:
    return Session(session_id="s", session_key="k", log="l", seq=1, created_at=0, updated_at=0, **values)  # type: ignore[arg-type]


def test_the_conversations_of_a_chat_are_listed_by_their_numbers() -> None:
    listed = [(3, session(title="Now")), (2, session(current=False, suspended=True)), (1, session(title="First", current=False))]
    assert notices.sessions(listed) == ("3. Now (this one)\n2. untitled (suspended)\n1. First\n\n/resume NUMBER goes back to one of them.")


def test_the_status_tells_what_waits_what_was_interrupted_and_what_was_decided() -> None:
    """B14: safe mode is shown, and so is the rule."""
    assert notices.status(session(), safe_mode=False) == "This conversation is idle."
    told = notices.status(
        session(
            turn_state=TurnState.INTERRUPTED,
            queued=2,
            resume_pending=True,
            resume_reason="restart_timeout",
            rule="R7",
            why="interrupted by a restart 5 s earlier",
        ),
        safe_mode=True,
    )
    assert told.splitlines() == [
        "This conversation is interrupted.",
        "2 messages are waiting.",
        "Its last work was interrupted by a restart.",
        "Last decision: rule R7, interrupted by a restart 5 s earlier.",
        "Holdfast is in safe mode after several crashes: it continues nothing by itself. Messages are answered as usual.",
    ]
    suspended = notices.status(session(suspended=True, queued=1), safe_mode=False)
    assert suspended == "This conversation is queued and suspended.\n1 message is waiting."


def test_a_conversation_that_is_resumed_says_whether_its_work_continues() -> None:
    told = notices.resumed(session(title="Bridges"), continues=True, stopped=False)
    assert told == "Back in the conversation “Bridges”. The interrupted work continues."
    assert notices.resumed(session(), continues=False, stopped=False) == "Back in the conversation."
    stopped = "Back in the conversation. What was running in the other conversation was stopped."
    assert notices.resumed(session(), continues=False, stopped=True) == stopped
    waits = notices.resumed(session(), continues=True, stopped=False, waits=True)
    assert waits == f"Back in the conversation. The interrupted work waits: {notices.ONE_AT_A_TIME}"
    assert notices.resumed(session(), continues=False, stopped=False, waits=True) == "Back in the conversation."
