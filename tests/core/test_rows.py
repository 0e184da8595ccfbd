"""The order in which the messages of a conversation are read."""

import pytest

from holdfast.core.messages import Message
from holdfast.core.rows import Rows


def row(name: str, at: int = 0, turn: str | None = None, role: str = "user") -> Message:
    return Message(id=name, role=role, content=name, turn_id=turn, created_at=at)


def rows(*messages: Message, unsaid: tuple[str, ...] = ()) -> Rows:
    found = Rows()
    for message in messages:
        (found.begin if message.id in unsaid else found.append)(message)
    return found


def read(found: Rows) -> list[str]:
    return [message.id for message in found.read()]


def test_an_answer_has_its_place_from_the_start_and_is_seen_once_it_says_something() -> None:
    answer = row("t1.answer", turn="t1")
    found = rows(row("m1", turn="t1"), answer, row("n1"), unsaid=("t1.answer",))
    assert read(found) == ["m1", "n1"]
    found.show(answer)
    assert read(found) == ["m1", "t1.answer", "n1"]


@pytest.mark.parametrize(
    ("before", "unsaid", "expected"),
    [
        ([], (), ["m9"]),
        ([row("n1", at=5)], (), ["m9", "n1"]),
        ([row("n1", at=6)], (), ["m9", "n1"]),
        ([row("n1", at=4)], (), ["n1", "m9"]),  # It was said before the message came.
        ([row("n1", at=4), row("n2", at=5)], (), ["n1", "m9", "n2"]),
        ([row("n1", at=4), row("n2", at=5), row("n3", at=6)], (), ["n1", "m9", "n2", "n3"]),
        ([row("n1", at=6), row("n2", at=4)], (), ["n1", "n2", "m9"]),
        ([row("m1", at=6, turn="t1")], (), ["m1", "m9"]),  # A turn that came first stays first, however long it took.
        ([row("n1", at=6), row("m1", at=6, turn="t1"), row("n2", at=6)], (), ["n1", "m1", "m9", "n2"]),
        # An answer that nobody sees keeps nothing apart.
        ([row("m1", at=1, turn="t1"), row("n1", at=6), row("t1.answer", at=2, turn="t1")], ("t1.answer",), ["m1", "m9", "n1"]),
        ([row("m1", at=1, turn="t1"), row("n1", at=6), row("t1.answer", at=2, turn="t1")], (), ["m1", "n1", "t1.answer", "m9"]),
    ],
)
def test_a_message_stands_above_what_the_gateway_said_while_it_waited(
    before: list[Message], unsaid: tuple[str, ...], expected: list[str]
) -> None:
    """C22: a notice stands below the message it is about."""
    found = rows(*before, unsaid=unsaid)
    found.take(row("m9", at=5))
    assert read(found) == expected


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_answer_continues_below_what_came_between_its_attempts(place: int) -> None:
    messages = [row(name) for name in ("a", "b", "c")]
    found = rows(*messages)
    found.insert_above(messages[place], row("above"))
    assert read(found) == [*"abc"[:place], "above", *"abc"[place:]]
    found.move_down(messages[place])
    below = [name for name in (*"abc"[:place], "above", *"abc"[place:]) if name != "abc"[place]]
    assert read(found) == [*below, "abc"[place]]


def test_of_several_messages_with_an_id_the_newest_is_found() -> None:
    first, second = row("a"), row("a")
    found = rows(first, second, row("b"))
    assert found.newest(("a",)) is second and found.newest(("a", "b")) is not second and found.newest(("c",)) is None


@pytest.mark.parametrize(
    ("unsaid", "expected"),
    [((), None), (("t1.answer",), "m1"), (("t0.answer", "t1.answer"), "m1"), (("m1", "t1.answer"), "t0.answer"), (("m1",), None)],
)
def test_an_answer_that_has_said_nothing_will_be_read_below_the_last_row_that_is_seen(
    unsaid: tuple[str, ...], expected: str | None
) -> None:
    answer = row("t1.answer", turn="t1")
    found = rows(row("t0.answer", turn="t0"), row("m1", turn="t1"), answer, row("n1"), unsaid=unsaid)
    above = found.above(answer)
    assert (None if above is None else above.id) == expected
