"""What becomes of an edit, over every state of the session and every place where its message may stand."""

from itertools import product

import pytest

from holdfast.core import events as e
from holdfast.core.content import FilePart, TextPart
from holdfast.core.errors import CannotEdit
from holdfast.core.plans import Plan, edit
from holdfast.core.plans.causes import Cause
from holdfast.core.plans.edit import Edit, Edited, Snapshot
from holdfast.core.plans.repeats import Known
from holdfast.core.turns import TurnState
from tests.core.plans.values import STATES, events, kinds, session

SAID = e.MessageAccepted(message_id="m1", content="old", sender="ann")


def asked(text: str = "new", by: str = "ann") -> Edit:
    return Edit(message_id="m1", text=text, by=by, seq=7, dedup_key="k1")


def plan(words: e.Event = SAID, *, waits: bool = False, in_turn: bool = False, of: e.Event | None = None, **more: object) -> Plan[Edited]:
    given = {"session": session(TurnState.RUNNING), "words": words, "seq": 7, "waits": waits, "in_turn": in_turn} | more
    return edit.plan(Snapshot(**given), asked())  # type: ignore[arg-type]


CASES = list(product(STATES, (False, True), (False, True), (False, True), (False, True)))


@pytest.mark.parametrize(("state", "waits", "in_turn", "stop", "suspended"), CASES)
def test_an_edit_replaces_what_waits_corrects_the_open_turn_and_is_otherwise_only_recorded(
    state: TurnState, waits: bool, in_turn: bool, stop: bool, suspended: bool
) -> None:
    """DESIGN 5.7, P6, A21: nothing is said to a turn that is being stopped."""
    of = session(state, stop_requested=stop, suspended=suspended)
    made = plan(waits=waits, in_turn=in_turn, session=of)
    steers = not waits and in_turn and not stop and not suspended
    effect = "replaced" if waits else "steered" if steers else "recorded"
    assert made.reply == Edited("m1", "s1", effect)
    assert kinds(made) == ["message.edited"] + (["cause.recorded"] if steers else [])
    (edited,) = events(made, e.MessageEdited)
    assert edited == e.MessageEdited(message_id="m1", content="new", effect=effect, sender="ann", since=7, dedup_key="k1")
    for correction in events(made, e.CauseRecorded):
        assert (correction.what, correction.sender, correction.generation) == ("edit", "ann", of.generation)
        assert correction.text == "The message was edited. It now reads:\n\nnew" and correction.cause_id == "m1.edit.21"
    assert not any(write.in_turn for write in made.writes)


def test_an_edit_that_changes_no_word_is_recorded_and_told_to_no_turn() -> None:
    """DESIGN 5.7: platforms tell of edits that changed something else, and of one whose words its message already had."""
    same = e.MessageAccepted(message_id="m1", content="new", sender="ann")
    made = plan(same, in_turn=True)
    assert (kinds(made), made.reply.effect) == (["message.edited"], "recorded")
    assert plan(same, waits=True).reply.effect == "replaced"


def test_a_correction_that_nobody_has_read_is_dropped_for_the_next_one() -> None:
    """P6"""
    waiting = (
        Cause(cause_id="m1.edit.9", content="x", what="edit"),
        Cause(cause_id="m10.edit.9", content="x", what="edit"),
        Cause(cause_id="m1.edit.x", content="x"),
    )
    made = plan(in_turn=True, waiting=waiting)
    assert [event.cause_id for event in events(made, e.CauseDropped)] == ["m1.edit.9"]
    assert kinds(made) == ["message.edited", "cause.dropped", "cause.recorded"]


@pytest.mark.parametrize(
    "words",
    [
        SAID,
        e.MessageEdited(message_id="m1", content="older", sender="ann", since=3),
        e.QuestionAnswered(question_id="q1", call_id="c", content="old", message_id="m1", by="ann"),
    ],
)
def test_only_its_sender_edits_a_message(words: e.Event) -> None:
    """DESIGN 5.6: every message keeps its sender's rights."""
    (edited,) = events(plan(words), e.MessageEdited)
    assert (edited.sender, edited.since) == ("ann", 3 if isinstance(words, e.MessageEdited) else 7)
    with pytest.raises(CannotEdit) as refusal:
        edit.plan(Snapshot(session=session(), words=words, seq=7), asked(by="bob"))
    assert str(refusal.value) == str(CannotEdit("m1", "somebody else wrote it"))


def test_an_answer_that_does_not_say_who_gave_it_is_the_owners() -> None:
    words = e.QuestionAnswered(question_id="q1", call_id="c", content="old", message_id="m1")
    made = edit.plan(Snapshot(session=session(), words=words, seq=7), asked(by="owner"))
    assert [edited.sender for edited in events(made, e.MessageEdited)] == ["owner"]


def test_a_message_is_in_no_inbox_and_no_open_turn_unless_that_is_said() -> None:
    found = Snapshot(session=session(TurnState.RUNNING), words=SAID, seq=7)
    assert (found.waits, found.in_turn, edit.plan(found, asked()).reply.effect) == (False, False, "recorded")
    assert asked().waits is False


@pytest.mark.parametrize(
    "words",
    [
        e.Damaged(reason="gone"),
        e.MessageAccepted(message_id="m2", content="other", sender="ann"),
        e.MessageEdited(message_id="m2", content="other", sender="ann", since=3),
        e.QuestionAnswered(question_id="q1", call_id="c", content="old", by="ann"),
        e.CauseRecorded(cause_id="m1", what="process", content="x", sender="ann"),
    ],
)
def test_what_is_no_message_of_a_person_is_not_edited(words: e.Event) -> None:
    with pytest.raises(CannotEdit) as refusal:
        plan(words)
    assert str(refusal.value) == str(CannotEdit("m1", "it is no message that a person sent, or its record cannot be read"))


def test_what_is_attached_stays() -> None:
    picture = FilePart(blob="b1", size=3, name="a.txt")
    made = plan(e.MessageAccepted(message_id="m1", content=(TextPart("old"), picture), sender="ann"), in_turn=True)
    (edited,), (correction,) = events(made, e.MessageEdited), events(made, e.CauseRecorded)
    assert edited.content == (TextPart("new"), picture)
    assert correction.content == (TextPart("The message was edited. It now reads:\n\nnew"), picture)


def test_an_edit_is_known_again_by_what_it_did() -> None:
    assert edit.again(Known(b"", "s1", "steered"), "m1") == Edited("m1", "s1", "steered")
