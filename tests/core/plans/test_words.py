"""Words of plans that stand on disk or before people keep their spelling."""

from holdfast.core.plans import accept, causes, delete, deliver, edit, ending, leave, owe, processes, repeats, schedules


def test_what_requests_and_causes_are_remembered_by_keeps_its_spelling() -> None:
    """A22, P6: a request that an earlier version stored must be known again."""
    assert (repeats.STOP, repeats.RESET, repeats.RESUME) == (b"stop", b"reset", b"resume")
    assert (repeats.CONTINUES, repeats.NOTHING, repeats.REFUSED) == ("goes on", "nothing", "refused ")
    assert causes.MESSAGE == "message"
    assert causes.STEERING == ("edit", "process", "watch")
    assert (leave.DELETED, leave.SUSPENDED, delete.RETENTION) == ("deleted", "suspended", "retention")
    assert owe.notice_key("s1", "held.3") == "notice|s1|held.3"
    assert deliver.ANSWER == "assistant"
    assert (schedules.WHAT, schedules.dedup_key("c1", 5), schedules.cause_id("c1", 5)) == ("schedule", "schedule|c1|5", "c1.5")


def test_why_something_was_refused_or_dropped_is_said_in_words_that_end_a_sentence() -> None:
    """A20: people read "This message was not answered, because ..."; the record keeps the same words."""
    assert (causes.SUSPENDED_FIRST, causes.LEFT_FIRST) == ("the conversation was suspended first", "the conversation was left first")
    assert (leave.RESET_FIRST, leave.RESUMED_FIRST) == ("a new conversation was started first", "another conversation was resumed first")
    assert (delete.DELETED_FIRST, causes.OUTDATED) == ("the conversation was deleted first", "another turn has started since")
    assert edit.AGAIN == "the message was edited again"
    assert processes.CONSUMED == "what it tells of is known already"
    assert (accept.BUSY, accept.INTERRUPTED) == ("the conversation was busy", "interrupted by a new message")
    assert causes.UNREADABLE == "(this message was damaged on disk and cannot be read)"
    assert owe.UNREADABLE == "(this answer was damaged on disk and cannot be read)"
    assert schedules.UNREADABLE == "(this schedule was damaged on disk and cannot be read)"
    assert ending.STOPPED_WAITING == "The turn was stopped before an answer came."
    assert ending.ENDED_WAITING == "The turn ended before an answer came."
    assert (ending.NO_ANSWER, ending.ENDED_BY_ITSELF) == (
        "Resumed after an interruption, but produced no answer.",
        "the recovery ended by itself",
    )
