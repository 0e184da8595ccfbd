"""Events turned into changes of rows, as values: no database is asked for it."""

from typing import Any

import pytest

from holdfast.core import events as e
from holdfast.core.content import FilePart
from holdfast.core.turns import Outcome, TurnState
from holdfast.store import projection
from holdfast.store.heads import Head
from holdfast.store.projection import common, project, sessions
from holdfast.store.rows import Form
from holdfast.store.sqlite.connection import connect, migrate
from tests.conformance.backends import quick_place
from tests.conformance.steps import NOW

PLACES = (projection, common, *projection.SUBJECTS)
NAMED = {id(form): form for place in PLACES for form in vars(place).values() if isinstance(form, Form)}
FORMS = [*NAMED.values(), *sessions.CHANGED.values()]
BLOB = FilePart(blob="d1", size=3, name="a.txt")


def head(state: TurnState = TurnState.NONE, *, deleted: int = 0) -> Head:
    return Head(7, 40, state, turn="t1", owner=3, epoch=2, attempt=1, position=5, deleted=deleted)


def rows(found: Head, event: e.Event, *, in_turn: bool = False) -> list[tuple[str, tuple[Any, ...]]]:
    return [(form.table, values) for form, values in project(found, event, NOW, in_turn=in_turn)]


CASES: list[tuple[str, e.Event, TurnState | None, list[tuple[str, tuple[Any, ...]]]]] = [
    ("a piece", e.Text(offset=0, text="x"), TurnState.RUNNING, []),
    ("a kind of a later version", e.Unknown(name="later"), TurnState.RUNNING, []),
    ("a cause that was taken", e.CauseTaken(cause_id="c"), TurnState.RUNNING, [("inbox", (7, "c"))]),
    (
        "a message that names a file",
        e.MessageAccepted(message_id="m", content=(BLOB,), mode="steer"),
        None,
        [("inbox", (7, 40, "m", "steer")), ("session", ("[a.txt]", 7)), ("blob_use", ("d1", 7))],
    ),
    (
        "a reply to a chat",
        e.MessageWritten(message_id="m", role="assistant", content="x", delivery_id="d"),
        TurnState.RUNNING,
        [("outbox", ("d", 7, 40, NOW, "pending", 0, 0, "t1"))],
    ),
    (
        "a start",
        e.TurnStarted(generation=4, attempt=1, cause="message", causes=("m",), owner=9, epoch=3),
        TurnState.ENDED,
        [("session", (NOW, 0, 4, 7)), ("lane", (4, 7)), ("inbox", (7, "m"))],
    ),
    (
        "an end that completes it",
        e.TurnEnded(outcome=Outcome.COMPLETED),
        TurnState.RUNNING,
        [("question", (NOW, "ended", 7, "t1")), ("start", (3,)), ("titling", (7, "due", NOW)), ("session", (NOW, 7))],
    ),
    (
        "a schedule",
        e.ScheduleAdded(schedule_id="c", content="x", due_at=9, once_at=9, dedup_key=None),
        None,
        [("schedule", ("c", 7, 40, NOW, 9, NOW))],
    ),
    ("a due time", e.ScheduleDue(schedule_id="c", due_at=9, next_at=12, skipped="late"), None, [("schedule", (12, NOW, 9, "late", "c"))]),
    ("a schedule that is paused", e.SchedulePaused(schedule_id="c", by="ann"), None, [("schedule", (NOW, NOW, "c"))]),
    ("one that continues", e.ScheduleContinued(schedule_id="c", by="ann", next_at=12), None, [("schedule", (12, NOW, "c"))]),
    ("a name", e.SessionChanged(title="x"), None, [("session", ("x", 7)), ("titling", (7, "given", NOW))]),
    ("a request for a title", e.TitleAsked(turn_id="t1", owner=3, tries=2), None, [("titling", ("asked", 3, 2, 7))]),
    ("a title that failed", e.TitleMade(turn_id="t1", problem="no", tries=2), None, [("titling", ("done", 7, 2))]),
    ("the last due time", e.ScheduleDue(schedule_id="c", due_at=9, cause_id="c.9"), None, [("schedule", ("c",))]),
    ("a wait", e.TurnWaiting(question_ids=("q",)), TurnState.RUNNING, [("session", (7,))]),
    (
        "a question that leaves the attempt running",
        e.QuestionAsked(question_id="q", call_id="c", content="?", expires_at=9, ends_attempt=False),
        TurnState.RUNNING,
        [("question", ("q", 7, "t1", "c", "open", 9, "question", 40))],
    ),
]


@pytest.mark.parametrize(("event", "state", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_an_event_changes_these_rows_and_no_others(
    event: e.Event, state: TurnState | None, expected: list[tuple[str, tuple[Any, ...]]]
) -> None:
    assert rows(head(state or TurnState.NONE), event, in_turn=state is not None) == expected


@pytest.mark.parametrize(("old", "owner"), [(True, None), (False, 3)])
def test_a_question_of_version_0_1_frees_the_turn_and_one_of_now_does_not(old: bool, owner: int | None) -> None:
    """A3"""
    found = head(TurnState.RUNNING)
    rows(found, e.QuestionAsked(question_id="q", call_id="c", content="?", expires_at=9, ends_attempt=old), in_turn=True)
    assert (found.state, found.owner) == (TurnState.WAITING if old else TurnState.RUNNING, owner)


def test_nothing_that_is_said_in_a_turn_of_a_deleted_session_is_owed() -> None:
    written = e.MessageWritten(message_id="m", role="notice", content="x", delivery_id="d")
    assert rows(head(TurnState.RUNNING, deleted=39), written, in_turn=True) == []
    assert len(rows(head(deleted=39), written)) == 1


def test_every_form_is_a_statement_of_the_schema_with_as_many_values_as_it_has_marks() -> None:
    with quick_place() as home:
        db = connect(home / "holdfast.db")
        migrate(db)
        for form in FORMS:
            db.execute(f"EXPLAIN {form.sql}", (None,) * form.sql.count("?"))
        db.close()
    assert {form.table for form in FORMS} == {*projection.DERIVED, "start"}
    assert len({form.sql for form in FORMS}) >= len(FORMS) - 1
