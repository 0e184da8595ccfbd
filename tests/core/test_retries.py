"""Whether, when and with which model a failed request is made again."""

import msgspec
import pytest

from holdfast.core import retries
from holdfast.core.events import ModelFailed
from holdfast.core.retries import PATIENCE_S, TRIES, TRIES_OF_SEVERAL, Problem, Try, due, failed, told

NOW = 1_000_000
BUSY = Problem(error="model_busy", why="overloaded", again=True)
REFUSED = Problem(error="model_not_allowed", why="no key")
THOUGHTS = Problem(error="model_rejected", why="thinking", thoughts=True)


def history(*problems: Problem, models: tuple[str, ...] = ("a",), chance: float = 1.0) -> list[ModelFailed]:
    """The records of requests that failed one after another, each made when it was due."""
    failures: list[ModelFailed] = []
    for problem in problems:
        tried = due(failures, models)
        assert tried is not None
        at = NOW if tried.after is None else tried.after.retry_at or NOW
        failures.append(failed(problem, tried, failures, models, step=0, now=at, chance=chance))
    return failures


def waits(failures: list[ModelFailed]) -> list[float | None]:
    found: list[float | None] = []
    now = NOW
    for failure in failures:
        found.append(None if failure.retry_at is None else (failure.retry_at - now) / 1000)
        now = failure.retry_at or now
    return found


def test_the_waits_double_up_to_a_minute_and_then_it_is_over() -> None:
    """P3"""
    assert waits(history(*[BUSY] * TRIES)) == [1, 2, 4, 8, 16, 32, 60, None]
    assert due(history(*[BUSY] * TRIES), ("a",)) is None


def test_many_who_fail_at_once_do_not_ask_again_at_once() -> None:
    assert waits(history(BUSY, BUSY, chance=0.0)) == [0.5, 1.0]


@pytest.mark.parametrize(
    ("problem", "models", "wait"),
    [
        (BUSY, ("a",), 1.0),
        (msgspec.structs.replace(BUSY, at_once=True), ("a",), 0.0),
        (msgspec.structs.replace(BUSY, after_s=5.0), ("a",), 6.0),
        (msgspec.structs.replace(BUSY, after_s=0.0), ("a",), 1.0),
        (msgspec.structs.replace(BUSY, after_s=5.0, at_once=True), ("a",), 6.0),
        (msgspec.structs.replace(BUSY, after_s=600.0), ("a",), 601.0),
        (msgspec.structs.replace(BUSY, after_s=600.0), ("a", "b"), None),
        (msgspec.structs.replace(BUSY, after_s=PATIENCE_S + 1), ("a",), None),
        (REFUSED, ("a",), None),
        (THOUGHTS, ("a",), 0.0),
        (msgspec.structs.replace(THOUGHTS, thoughts=False), ("a",), None),
    ],
)
def test_how_long_the_first_retry_waits(problem: Problem, models: tuple[str, ...], wait: float | None) -> None:
    assert waits(history(problem, models=models)) == [wait]


def test_one_that_others_can_stand_in_for_is_asked_less_often() -> None:
    failures = history(*[BUSY] * (TRIES_OF_SEVERAL + TRIES), models=("a", "b"))
    assert [failure.model for failure in failures] == ["a"] * TRIES_OF_SEVERAL + ["b"] * TRIES
    assert [failure.tries for failure in failures] == [*range(1, TRIES_OF_SEVERAL + 1), *range(1, TRIES + 1)]
    assert due(failures[:TRIES_OF_SEVERAL], ("a", "b")) == Try(model="b")


def test_thoughts_are_left_out_once_and_then_the_model_is() -> None:
    once = history(THOUGHTS)
    assert due(once, ("a", "b")) == Try(model="a", after=once[0], thoughts=False)
    assert due(history(THOUGHTS, THOUGHTS, models=("a", "b")), ("a", "b")) == Try(model="b")
    after = due(history(THOUGHTS, BUSY, models=("a", "b")), ("a", "b"))
    assert after is not None and (after.model, after.thoughts) == ("a", False)


def test_a_model_that_was_chosen_since_is_asked_whatever_became_of_the_others() -> None:
    assert due(history(*[BUSY] * TRIES), ("b", "a")) == Try(model="b")


@pytest.mark.parametrize(
    ("passed_ms", "wait"),
    [(0, 6.0), (2000, 4.0), (6000, 0.0), (3600_000, 0.0), (-1, 6.0), (-27 * 3600_000, 6.0)],
)
def test_a_clock_that_was_set_back_makes_nobody_wait_longer_than_was_decided(passed_ms: int, wait: float) -> None:
    """P3"""
    [failure] = history(msgspec.structs.replace(BUSY, after_s=5.0))
    assert retries.wait_s(failure, NOW + passed_ms) == wait


def test_a_request_that_is_not_made_again_or_did_not_fail_waits_for_nothing() -> None:
    assert retries.wait_s(None, NOW) == retries.wait_s(history(REFUSED)[0], NOW) == 0.0


def test_people_are_told_what_became_of_each_model_once() -> None:
    failures = history(BUSY, BUSY, REFUSED, models=("a",))
    assert told(failures) == "a did not answer after 3 tries: no key."
    assert told(history(REFUSED, BUSY, models=("a", "b"))) == "a did not answer: no key. b did not answer: overloaded."


def test_nobody_is_asked_where_there_is_no_model() -> None:
    assert retries.due((), ()) is None
