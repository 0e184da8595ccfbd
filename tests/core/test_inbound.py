"""What is decided over things that people do in a chat, before anybody knows what they mean."""

from holdfast.core.inbound import EARLY_MS, MOST_EARLY, waits_no_more


def test_an_edit_waits_for_its_message_for_an_hour_and_only_the_newest_do() -> None:
    """P1"""
    assert waits_no_more({}, 0) == []
    assert waits_no_more({"a": 0, "b": 1}, EARLY_MS - 1) == []
    assert waits_no_more({"b": 1, "a": 0}, EARLY_MS) == ["a"]
    many = {str(number): number for number in range(MOST_EARLY)}
    assert waits_no_more(many, MOST_EARLY) == []
    assert waits_no_more({"old": -EARLY_MS, **many, "new": 0}, 0) == ["old", "0"]
    assert waits_no_more({"first": 0, **many, "last": 0}, 0) == ["first", "0"]
