"""What is given up of a conversation that is too long for its model: as tables of conversations."""

import pytest

from holdfast.core import compaction
from holdfast.core.compaction import Older
from holdfast.core.content import FilePart
from holdfast.core.effects import ToolOutcome
from holdfast.core.events import ContextCompacted, ModelResponded, ProposedCall, Usage
from holdfast.core.history import SUMMARY, Call, Item, Result, Step, User

LONG = "x" * 30_000


def user(generation: int, text: str = "hi") -> User:
    return User(id=f"m{generation}", content=text, generation=generation)


def step(generation: int, text: str = "yes", *, tokens: int = 0, number: int = 0) -> Step:
    usage = Usage(input=tokens, output=tokens // 10)
    response = ModelResponded(step=number, text=text, usage=usage)
    return Step(turn_id=f"t{generation}", number=number, text=text, response=response, generation=generation)


def calling(generation: int, *call_ids: str) -> Step:
    calls = tuple(Call(call_id=call_id, name="look", arguments={"at": "it"}) for call_id in call_ids)
    proposed = tuple(ProposedCall(name="look", arguments={"at": "it"}) for _ in call_ids)
    response = ModelResponded(step=0, calls=proposed)
    return Step(turn_id=f"t{generation}", number=0, text="", calls=calls, response=response, generation=generation)


def result(call_id: str, text: str = "so") -> Result:
    return Result(call_id=call_id, name="look", outcome=ToolOutcome.DONE, content=text)


def summary(generation: int) -> User:
    return User(id="t.summary", content="Before.", what=SUMMARY, generation=generation)


TALK: list[Item] = [user(1), step(1), user(2), calling(2, "a"), result("a"), step(2), user(3)]


def test_the_last_response_says_how_long_a_conversation_is_and_only_the_rest_is_guessed() -> None:
    assert compaction.estimate([user(1, LONG), step(1, tokens=1000), user(2, "x" * 300)], 50_000) == 1000 + 100 + 101
    assert compaction.estimate([user(1, "x" * 300), step(1, "x" * 30)], 5000) == 101 + 11 + 5000
    assert compaction.estimate([], 7) == 7


def test_a_response_from_before_the_summary_says_nothing_about_what_came_after_it() -> None:
    """Else the next turn would begin with another one."""
    kept, since = step(4, tokens=90_000), step(5, tokens=2000)
    assert compaction.estimate([summary(5), user(4), kept, user(5)], 100) < 200
    assert compaction.estimate([summary(5), user(4), kept, user(5), since, user(6)], 100) == 2000 + 200 + 1
    assert compaction.estimate([summary(4), user(4), kept, user(5)], 100) == 90_000 + 9000 + 1


@pytest.mark.parametrize(("tokens", "full"), [(700, False), (701, True)])
def test_more_than_seven_tenths_of_a_window_is_too_much_to_begin_with(tokens: int, full: bool) -> None:
    assert compaction.is_full(tokens, 1000) is full


@pytest.mark.parametrize(
    ("items", "generation", "keep", "expected"),
    [
        ([user(1)], 1, 0, None),
        ([], 1, 0, None),
        (TALK, 3, 0, Older(2, 6)),
        (TALK, 3, 9, Older(1, 2)),
        (TALK, 3, 1000, None),
        (TALK, 2, 0, Older(1, 2)),
        (TALK[:-1], 3, 0, Older(2, 6)),
        ([summary(2), user(3)], 3, 0, None),
        ([summary(3), *TALK], 3, 0, Older(2, 7)),
        ([user(1), step(1), user(2, LONG), step(2), user(3)], 3, 500, Older(2, 4)),
    ],
    ids=["first", "empty", "all", "keeps the newest", "fits", "within", "no message", "summary only", "summary again", "newest too long"],
)
def test_a_summary_covers_ended_turns_whole(items: list[Item], generation: int, keep: int, expected: Older | None) -> None:
    assert compaction.older(items, generation, keep=keep) == expected


def test_the_largest_results_of_this_turn_are_shortened_first_and_none_twice() -> None:
    items: list[Item] = [user(1), calling(1, "old"), result("old", LONG), user(2), calling(2, "a", "b", "c", "d")]
    items += [result("a", "x" * 9000), result("b", LONG), result("c", "short"), result("d", "x" * 8000)]
    assert compaction.largest(items, 2) == ("b",)
    items = compaction.applied(items, ContextCompacted(through=0, summary="", trimmed=("b",)), "t2", 2)
    assert [len(item.text) > 3000 for item in items if isinstance(item, Result)] == [True, True, False, False, True]
    assert compaction.largest(items, 2) == ("a",)
    items = compaction.applied(items, ContextCompacted(through=0, summary="", trimmed=("a", "d")), "t2", 2)
    assert compaction.largest(items, 2) == () and compaction.largest([], 1) == ()


def test_what_is_on_record_is_what_the_attempt_continues_with() -> None:
    found = compaction.applied(TALK, ContextCompacted(through=1, summary="It was so."), "t3", 3)
    first, *rest = found
    assert isinstance(first, User) and (first.what, first.generation) == (SUMMARY, 3) and rest == TALK[2:]
    again = compaction.applied(found, ContextCompacted(through=2, summary="", problem="none"), "t4", 4)
    assert len(again) == 2 and again[1] == TALK[-1]


def test_a_summary_is_made_of_plain_words_the_newest_if_not_all_fit() -> None:
    words = compaction.rendered(TALK, 10_000)
    assert words.split("\n\n") == ["User: hi", "Assistant: yes", "User: hi", "Assistant: \n(calls look with {'at': 'it'})",
                                   "Result of look (done): so", "Assistant: yes", "User: hi"]  # fmt: skip
    assert compaction.rendered(TALK, 16) == "[5 earlier entries are left out here.]\n\nAssistant: yes\n\nUser: hi"
    short = compaction.rendered([summary(1), *TALK], 16)
    assert short.startswith("Before.\n\n[5 earlier entries") and short.endswith("User: hi")
    assert len(compaction.rendered([result("a", LONG)], 10_000)) < 3000
    attached = User(id="m", content=(FilePart(blob="d", size=1, name="a.txt"),))
    assert compaction.rendered([attached], 100) == "User: [a.txt]" and compaction.size(attached) > 1000


@pytest.mark.parametrize(
    "long", [user(2, "begin " + "x" * 13_000 + " end"), step(2, "begin " + "ü" * 13_000 + " end")], ids=["user", "step"]
)
@pytest.mark.parametrize("tokens", [4096, 500, 60])
def test_one_long_message_is_summarised_in_part_and_pushes_nothing_out_that_fits(long: Item, tokens: int) -> None:
    words = compaction.rendered([user(1), step(1), long], tokens)
    assert len(words.encode()) <= 3 * tokens + 60 and "begin" in words and words.endswith(" end") and "characters left out" in words
    assert compaction.rendered([user(1), step(1), long], 30_000).startswith("User: hi\n\nAssistant: yes\n\n")
    assert len(compaction.rendered([long, user(3)], 30_000).encode()) < 19_000, "it is shortened as results are"
    request = compaction.as_request([long], tokens)
    assert request is not None and words.splitlines()[-1] in request.text


def test_an_earlier_summary_leaves_room_for_what_is_new() -> None:
    earlier = User(id="t.summary", content="Before " + LONG, what=SUMMARY, generation=1)
    words = compaction.rendered([earlier, user(1, "what is new " + LONG)], 500)
    assert words.startswith("Before x") and "what is new x" in words and len(words) <= 1500


def test_where_nothing_fits_no_summary_is_asked_for() -> None:
    """A model that is told of nothing but a gap would make something up."""
    assert compaction.rendered([user(1, LONG)], 30) == "" and compaction.as_request([user(1, LONG)], 30) is None
    assert compaction.as_request([summary(1), user(1, LONG)], 30) is None and compaction.as_request([], 1000) is None


def test_a_text_file_counts_as_its_text_if_a_model_is_given_that() -> None:
    def attached(media_type: str, size: int) -> int:
        return compaction.size(User(id="m", content=(FilePart(blob="d", size=size, media_type=media_type),)))

    assert attached("text/plain", 120_000) > 40_000 and attached("Application/JSON; charset=utf-8", 90_000) > 30_000
    assert attached("text/plain", 30) < 20 and attached("text/plain", 200_000) < 2000 and attached("application/pdf", 120_000) < 2000
