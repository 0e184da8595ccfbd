"""The title that a model gives a conversation: when it is asked for one, what it is given, and what is taken from what it says."""

from itertools import product

import pytest

from holdfast.core import titles
from holdfast.core.messages import Message
from holdfast.core.sessions import TITLE_CHARS, title_of
from holdfast.core.titles import ASKED, DONE, DUE, FRESH_MS, GIVEN, MOST_TRIES, Move, Titling, cleaned, decide, subject

FLAGS = (False, True)


@pytest.mark.parametrize(("state", "tries", "lives", "fresh"), list(product((DUE, ASKED, DONE, GIVEN), range(4), FLAGS, FLAGS)))
def test_a_model_is_asked_once_and_once_more_after_a_death(state: str, tries: int, lives: bool, fresh: bool) -> None:
    found = Titling(session_id="s1", state=state, since=10, owner=3, tries=tries)
    move = decide(found, now=10 + FRESH_MS + (not fresh), lives=lives)
    if state == DUE:
        assert move is (Move.ASK if fresh else Move.LEAVE)
    elif state != ASKED or lives:
        assert move is Move.LEAVE
    else:
        assert move is (Move.ASK if tries < MOST_TRIES else Move.GIVE_UP)


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Watering the plants", "Watering the plants"),
        ("  **Watering** the `plants`. ", "Watering the plants"),
        ('"Watering the plants"\n\nAnything else?', "Watering the plants"),
        ("Title: „Pflanzen gießen“", "Pflanzen gießen"),
        ("# Watering\n\nthe plants", "Watering"),
        ("- Watering the plants", "Watering the plants"),
        ("What is P=NP?", "What is P=NP?"),
        ("Wait...", "Wait..."),
        ("植物に水をやる。", "植物に水をやる"),
        ("snake_case of a_name", "snake_case of a_name"),
        ("a\u202eb\x07c", "a b c"),
        ("\n\n***\n\nWords", "Words"),
        ("x" * 200, "x" * (TITLE_CHARS - 1) + "…"),
        ("", None),
        (" \n ---\n“”", None),
    ],
)
def test_a_title_is_one_line_of_plain_words_however_a_model_wraps_them(said: str, title: str | None) -> None:
    assert cleaned(said) == title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("**Hello** there", "Hello there"),
        ("# Plan\n\n- one\n- two", "Plan one two"),
        ("run `ls -l` *now*", "run ls -l now"),
        ("[the docs](https://example.org/x) say", "the docs say"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("snake_case_name", "snake_case_name"),
        ("---", "---"),
        ("```", "```"),
        ("> quoted\n\nwhy?", "quoted why?"),
    ],
)
def test_the_first_words_of_a_conversation_are_its_title_without_marks(text: str, title: str) -> None:
    assert title_of(text) == title


def message(role: str, text: str, turn_id: str | None = "t1", *, status: str = "complete") -> Message:
    return Message(id=f"{role}.{text[:9]}", role=role, content=text, turn_id=turn_id, created_at=1, status=status, sender="ann")


def test_a_title_is_made_from_the_first_answer_and_what_it_answers() -> None:
    before = [message("user", "never answered", "t0"), message("assistant", "half", "t0", status="partial"), message("notice", "n", None)]
    found = subject([*before, message("user", "water?"), message("assistant", "Yes."), message("user", "later", "t2")])
    assert found is not None and (found.turn_id, found.sender) == ("t1", "ann")
    assert found.words.index("water?") < found.words.index("Yes.") and "later" not in found.words and "half" not in found.words
    assert subject(before) is None
    assert subject([message("user", ""), message("assistant", " ")]) is None


def test_of_long_texts_a_model_is_given_the_beginning_and_the_end() -> None:
    found = subject([message("cause", "a" * 100_000 + "END"), message("assistant", "b" * 100_000)])
    assert found is not None and "aEND" in found.words and len(found.words) < 3 * (titles.HEAD + titles.TAIL)
