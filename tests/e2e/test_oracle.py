"""Random people, random blows, an independent account of what was acknowledged; and proof that the account would find what is wrong."""

from collections import Counter

import pytest

from bench.oracle.account import Kind, Order, Said
from bench.oracle.judge import Logs, judge
from bench.oracle.trial import Found, Trial, misread, run

TRIAL = Trial(seconds=60, seed=7, people=6, deaths=6)


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return run(TRIAL, tmp_path_factory.mktemp("oracle"))


def test_random_operations_and_blows_leave_what_was_acknowledged_and_nothing_else(tried: Found) -> None:
    """P1, P2, P3, P5, P6, P7, A21, C24, C28: the account of those who asked and the conversations agree."""
    assert tried.wrong == [], "\n".join(tried.report())
    assert len(tried.account.blows) >= 10 and len(tried.account.said) >= 50


def completed(found: Found) -> Said:
    events = [event for log in found.logs.values() for event in log]
    done = {event.turn_id for event in events if event.name == "turn.ended" and event.data["outcome"] == "completed"}
    started = {name for event in events if event.name == "turn.started" and event.turn_id in done for name in event.data["causes"]}
    return next(said for said in found.account.said.values() if said.kind is Kind.COUNT and said.message_id in started)


def wrong(found: Found, *, logs: Logs | None = None, lines: Counter[str] | None = None) -> str:
    ran = Counter(said.name for said in found.account.said.values() if said.kind is Kind.RUN)
    return "\n".join(judge(found.account, logs or found.logs, lines or ran))


def test_a_lost_message_would_be_found(tried: Found) -> None:
    """P1"""
    tried.account.said["lost"] = Said("lost", Kind.HELLO, "hello lost", "s_1", message_id="m_lost", session_id="s_1")
    assert "lost was acknowledged as m_lost and is 0 times in the log" in wrong(tried)
    del tried.account.said["lost"]


def test_a_turn_that_nobody_asked_for_would_be_found(tried: Found) -> None:
    """P6"""
    said = completed(tried)
    del tried.account.said[said.name]
    assert f"{said.message_id} was accepted, and nobody had said it" in wrong(tried)
    tried.account.said[said.name] = said


def test_an_answer_that_is_not_whole_would_be_found(tried: Found) -> None:
    said = completed(tried)
    before, said.answer = said.answer, "1 2 3 and no more"
    assert f"{said.name} was answered with" in wrong(tried)
    said.answer = before


def test_a_command_that_ran_twice_would_be_found(tried: Found) -> None:
    """P5"""
    names = [said.name for said in tried.account.said.values() if said.kind is Kind.RUN]
    found = wrong(tried, lines=Counter({name: 2 for name in names}))
    assert "and ran 2 times" in found


def test_a_second_turn_beside_the_first_and_an_end_that_is_missing_would_be_found(tried: Found) -> None:
    """P2, P3"""
    session_id, log = next((each, log) for each, log in tried.logs.items() if sum(event.name == "turn.ended" for event in log) >= 2)
    without = next(index for index, event in enumerate(log) if event.name == "turn.ended")
    found = wrong(tried, logs=tried.logs | {session_id: log[:without] + log[without + 1 :]})
    assert "started while" in found


def test_a_stop_that_was_acknowledged_and_not_done_would_be_found(tried: Found) -> None:
    """A21"""
    turn = next(
        event.turn_id for log in tried.logs.values() for event in log if event.name == "turn.ended" and event.data["outcome"] == "completed"
    )
    tried.account.orders.append(Order("stop", "s_1", said={"turn_id": turn, "queued": 0}))
    assert f"a stop of {turn} was acknowledged, and it ended as completed" in wrong(tried)
    tried.account.orders.pop()


def test_a_stop_that_nobody_asked_for_would_be_found(tried: Found) -> None:
    """A21: a stop names its turn."""
    orders, tried.account.orders = tried.account.orders, []
    assert "was stopped, and nobody had asked for it" in wrong(tried)
    tried.account.orders = orders


def test_a_reader_that_missed_an_event_or_saw_another_one_would_be_found(tried: Found) -> None:
    """P7"""
    session_id, shown = next((each, shown) for each, shown in tried.watched.items() if len(shown) > 3)
    for changed in (shown[:-1], [*shown, shown[-1]], [shown[1], shown[0], *shown[2:]]):
        found = list(misread(tried.watched | {session_id: changed}, tried.logs))
        assert len(found) == 1 and found[0].startswith(f"the reader of {session_id} was shown")
