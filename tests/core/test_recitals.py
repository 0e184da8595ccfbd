"""Conversations that clients name by their words alone: which part of a recital is known, and what in it is new."""

import pytest

from holdfast.core.recitals import ASSISTANT, USER, Line, agrees, behind, composed, digests, ends, new


def lines(*said: str) -> list[Line]:
    """As a client recites them: `u` begins what a person said, `a` an answer."""
    return [Line(USER if each[0] == "u" else ASSISTANT, each) for each in said]


def test_a_longer_recital_begins_with_the_digests_of_the_shorter_one() -> None:
    short, long = digests(lines("u1", "a1", "u2")), digests(lines("u1", "a1", "u2", "a2", "u3"))
    assert long[:3] == short and len(set(long)) == 5


def test_white_space_does_not_count_and_everything_else_does() -> None:
    [digest] = digests([Line(USER, "What  is\nit? 👍")])
    assert digests([Line(USER, " What is it?\t👍\n")]) == [digest]
    for other in (Line(USER, "What is it? 👎"), Line(ASSISTANT, "What is it? 👍"), Line(USER, "what is it? 👍")):
        assert digests([other]) != [digest]


def test_where_one_line_ends_and_the_next_begins_counts() -> None:
    assert digests([Line(USER, "a"), Line(USER, "b")])[-1] != digests([Line(USER, "a user b")])[-1]
    assert digests([Line(USER, "a\nuser b")])[-1] != digests([Line(USER, "a"), Line(USER, "b")])[-1]


def test_half_a_character_has_a_digest_too() -> None:
    assert len(digests([Line(USER, "\ud800")])[0]) == 32


@pytest.mark.parametrize(
    ("said", "known_up_to"),
    [
        (("u1",), []),
        (("u1", "a1", "u2"), [0]),
        (("u1", "a1", "a1 more", "u2"), [0]),
        (("u1", "a1", "u2", "a2", "u3"), [2]),
        (("u1", "u2"), [0]),  # The first got no answer, only an error.
        (("u1", "a1", "u2", "u3"), [2, 0]),
        (("u1", "a1", "u2", "u3", "u4"), [3, 2, 0]),
        (("a0", "u1"), []),  # A client that speaks first itself.
        (("a0", "u1", "a1", "u2"), [1]),
        (("u1", "a1"), [0]),
        ((), []),
        (("u1", "a1", *["u"] * 20), [20, 19, 18, 17, 16, 15, 14, 13, 0]),  # However many there are, few are looked for.
    ],
)
def test_the_known_part_ends_before_the_last_answer_or_at_a_message_without_one(said: tuple[str, ...], known_up_to: list[int]) -> None:
    assert ends(lines(*said)) == known_up_to


def test_behind_the_known_part_come_an_answer_and_new_messages() -> None:
    assert behind(lines("u1", "a1", "a+", "u2", "u3"), 0) == ("a1a+", lines("u2", "u3"))
    assert behind(lines("u1", "u2"), 0) == ("", lines("u2"))
    assert new(lines("u1", "a1", "u2", "u3")) == (lines("u1", "a1"), lines("u2", "u3"))
    assert new(lines("u1", "u2")) == ([], lines("u1", "u2"))


@pytest.mark.parametrize(
    ("sent", "same"),
    [
        ("1 2 3 4", True),
        ("1 2\n\n3  4 ", True),
        ("1 2 3", True),  # The client left in the middle.
        ("", True),
        ("1 2\n\n(The answer starts over.)\n\n1 2 3 4", True),  # It saw an attempt that was interrupted.
        ("1 2 3 4 5", False),
        ("1 2 4", False),
    ],
)
def test_an_answer_is_known_again_also_where_a_client_left_or_saw_more(sent: str, same: bool) -> None:
    assert agrees(sent, "1 2 3 4") is same


def test_a_message_says_only_what_its_conversation_does_not_have() -> None:
    assert composed(lines("u1")) == "u1"
    assert composed(lines("u1", "u2")) == "u1\n\nu2"
    assert composed(lines("u2"), earlier=lines("u1", "a1"), instructions="Be brief.") == (
        "Instructions from the client:\nBe brief.\n\nEarlier messages, as the client sent them:\nUser: u1\n\nAssistant: a1\n\nMessage:\nu2"
    )
