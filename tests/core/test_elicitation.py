"""What a tool asks a person in the middle of a call: how it reads, and what plain words mean as an answer."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import elicitation
from holdfast.core.elicitation import Ask, Elicited, Given, Request, Resting


def asking(required: tuple[str, ...] | None = None, **fields: Any) -> Request:
    needed = list(fields) if required is None else list(required)
    return Request(key="k", message="Who are you?", schema={"type": "object", "properties": fields, "required": needed})


NAME = asking(name={"type": "string", "description": "As in your passport"})
AGE = asking(age={"type": "integer"})
SURE = asking(sure={"type": "boolean"})
SIZE = asking(size={"type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"]})
COLOUR = asking(colour={"oneOf": [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}]})
TAGS = asking(tags={"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}})
BOTH = asking(("name",), name={"type": "string"}, age={"type": "number"}, mode={"type": "string", "default": "plain"})
CONFIRM = Request(key="k", message="Really?", schema={"type": "object", "properties": {}})
OPEN = Request(key="k", message="Sign in.", url="https://sign.example/in?x=1")

ANSWERS: list[tuple[Request, str, dict[str, Any] | None]] = [
    (NAME, " Ann ", {"name": "Ann"}),
    (NAME, '{"name": "decline"}', {"name": "decline"}),
    (NAME, "{not json", {"name": "{not json"}),
    (AGE, "42", {"age": 42}),
    (SURE, "Yes", {"sure": True}),
    (SURE, "no", {"sure": False}),
    (SIZE, "medium", {"size": "m"}),
    (SIZE, "s", {"size": "s"}),
    (COLOUR, "green", {"colour": "#0f0"}),
    (TAGS, "a, C", {"tags": ["a", "c"]}),
    (TAGS, '{"tags": ["b"]}', {"tags": ["b"]}),
    (BOTH, "name: Ann\nage = 1.5", {"name": "Ann", "age": 1.5, "mode": "plain"}),
    (BOTH, "`Name`: Ann: the second\nnothing", {"name": "Ann: the second", "mode": "plain"}),
    (BOTH, '{"name": "Ann", "age": 3, "more": 4}', {"name": "Ann", "age": 3.0, "mode": "plain"}),
    (CONFIRM, "accept", {}),
    (OPEN, "Accept", None),
]


@pytest.mark.parametrize(("request_", "text", "content"), ANSWERS)
def test_an_answer_in_plain_words_is_what_was_asked_for(request_: Request, text: str, content: dict[str, Any] | None) -> None:
    assert elicitation.read(request_, text) == Given(action="accept", content=content)


WRONG = [
    (AGE, "many", "`age` must be a whole number."),
    (SURE, "perhaps", "`sure` must be yes or no."),
    (SIZE, "large", "`size` must be one of Small, Medium."),
    (TAGS, "a, d", "`tags` must be one of a, b, c."),
    (BOTH, "age: 3", "`name` is missing."),
    (BOTH, "what?", "No line of that was understood."),
    (CONFIRM, "well", "That was neither `Accept` nor `Decline`."),
]


@pytest.mark.parametrize(("request_", "text", "problem"), WRONG)
def test_an_answer_that_does_not_fit_is_told_so(request_: Request, text: str, problem: str) -> None:
    assert elicitation.read(request_, text) == problem


@pytest.mark.parametrize("request_", [NAME, AGE, SURE, SIZE, COLOUR, TAGS, BOTH, CONFIRM, OPEN])
def test_everything_can_be_declined_and_says_how_to_answer(request_: Request) -> None:
    assert elicitation.read(request_, "decline") == Given(action="decline")
    words = elicitation.question("mcp__a__b", request_, "`age` must be a number.")
    assert words.startswith(f"`mcp__a__b` asks:\n\n> {request_.message}") and "`Decline`" in words and "`age` must be a number." in words
    for choice in elicitation.choices(request_):
        assert isinstance(elicitation.read(request_, choice), Given)


def test_a_person_is_shown_what_is_asked_for_and_where_an_address_leads() -> None:
    assert "`name` (text): As in your passport" in elicitation.question("t", NAME)
    assert "- `age` (a number, may be left out)" in elicitation.question("t", BOTH)
    assert "https://sign.example/in?x=1" in elicitation.question("t", OPEN)
    assert elicitation.choices(SIZE) == ("Small", "Medium", "Decline") and elicitation.choices(BOTH) == ()
    assert elicitation.question("t", Request(key="k", message="a\n\nb")).count("\n> ") == 3, "all of it is marked as the words of others"


def test_several_questions_are_asked_one_after_the_other_until_one_is_declined() -> None:
    requests = tuple(Request(key=key, message=key, schema=AGE.schema) for key in "abc")
    resting = Resting(elicited=Elicited(requests=requests))
    assert elicitation.proceed(resting) == Ask(0)
    resting.answers[0] = "1"
    assert elicitation.proceed(resting) == Ask(1)
    resting.answers[1] = "many"
    assert elicitation.proceed(resting) == Ask(1, "`age` must be a whole number.")
    resting.answers[1] = "decline"
    one = Given(action="accept", content={"age": 1})
    assert elicitation.proceed(resting) == {"a": one, "b": Given(action="decline"), "c": Given(action="cancel")}


TOO_MUCH = [
    ((NAME,) * 6, None),
    ((Request(key="k", message="x" * 5_000),), None),
    ((asking(a={"description": "x" * 20_000}),), None),
    ((asking(None, **{f"f{number}": {} for number in range(30)}),), None),
    ((asking(a="text"),), None),
    ((NAME,), "x" * 100_000),
]


@pytest.mark.parametrize(("requests", "state"), TOO_MUCH)
def test_what_is_too_much_is_not_asked(requests: tuple[Request, ...], state: str | None) -> None:
    """P8: what a server asks for goes into the log."""
    assert elicitation.problem(requests, state) is not None
    assert elicitation.problem((NAME, BOTH, CONFIRM, OPEN), "state") is None


@given(st.text(), st.sampled_from([NAME, AGE, SURE, SIZE, COLOUR, TAGS, BOTH, CONFIRM, OPEN]))
def test_no_answer_is_too_odd_to_be_read(text: str, request_: Request) -> None:
    assert isinstance(elicitation.read(request_, text), Given | str)
