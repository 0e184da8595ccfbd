"""What a conversation knows of the models that answered in it: what they used, which ones they were, and what they are no longer given."""

import msgspec
import pytest

from holdfast.core import events as e
from holdfast.core import notices
from holdfast.core.effects import ToolOutcome
from holdfast.core.messages import Link, model_name
from holdfast.core.transcript import Transcript
from holdfast.core.usage import NOTHING, Spent
from tests.core.logs import CALL, Log, begun, fold

RESPONSE = e.ModelResponded(step=0, text="One.", usage=e.Usage(input=5, output=2), cost=7, provider="claude", model="large")
SUMMARY = e.ContextCompacted(through=1, summary="It was so.", usage=e.Usage(input=9, output=1), cost=3, provider="claude", model="small")


def test_what_models_used_is_summed_up_by_turn_and_by_conversation() -> None:
    log = begun().in_turn(RESPONSE, SUMMARY, msgspec.structs.replace(RESPONSE, step=1, cost=None)).ended("One.")
    log.said("m2", "more").started("t2", "m2", "more", generation=2).in_turn(RESPONSE)
    first, second = fold(log).turns
    assert first.spent == Spent(requests=3, input=19, output=5, cost=10, unpriced=1)
    assert second.spent == Spent(requests=1, input=5, output=2, cost=7)
    assert fold(log).spent == Spent(requests=4, input=24, output=7, cost=17, unpriced=1)
    assert (fold(Log()).spent, fold(begun()).spent) == (NOTHING, NOTHING)


def test_what_a_call_asked_a_model_for_is_part_of_what_its_turn_used() -> None:
    used = e.Used(usage=e.Usage(input=4, output=1), cost=2)
    finished = e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="heard", used=used)
    (turn,) = fold(begun().in_turn(CALL, finished, RESPONSE)).turns
    assert turn.spent == Spent(requests=2, input=9, output=3, cost=9)


@pytest.mark.parametrize(
    ("provider", "model", "name"), [("claude", "large", "claude:large"), ("", "large", "large"), ("claude", "", ""), ("", "", "")]
)
def test_a_model_is_named_as_it_is_configured(provider: str, model: str, name: str) -> None:
    assert model_name(provider, model) == name


OTHER = msgspec.structs.replace(RESPONSE, step=1, model="small")
UNNAMED = msgspec.structs.replace(RESPONSE, step=2, provider="", model="")


@pytest.mark.parametrize(
    ("responses", "model", "steps"),
    [
        ((), None, 0),
        ((RESPONSE,), "claude:large", 1),
        ((RESPONSE, OTHER), "claude:small", 2),
        ((RESPONSE, OTHER, UNNAMED), "claude:small", 3),
        ((OTHER, RESPONSE), "claude:large", 2),
    ],
)
def test_a_turn_names_the_model_that_responded_last_and_counts_its_steps(
    responses: tuple[e.Event, ...], model: str | None, steps: int
) -> None:
    (turn,) = fold(begun().in_turn(*responses)).turns
    assert (turn.model, turn.steps) == (model, steps)


def test_a_summary_is_told_of_where_it_was_made() -> None:
    found = fold(begun().in_turn(SUMMARY))
    row = found.messages[-1]
    assert (row.id, row.role, row.turn_id, row.created_at, row.status) == ("t1.compacted.1", "notice", "t1", 1004, "complete")
    assert row.content == notices.compacted(summarised=True, problem=None, trimmed=0)
    assert [message.id for message in fold(begun().in_turn(SUMMARY, RESPONSE)).messages] == ["m1", "t1.compacted.1", "t1.answer"]
    shortened = e.ContextCompacted(through=1, summary="", trimmed=("c1", "c2"))
    assert fold(begun().in_turn(SUMMARY, shortened)).messages[-1].id == "t1.compacted.c1"


def given(found: Transcript) -> tuple[str, int, str] | None:
    by = found.compacted
    return None if by is None else (by.turn_id, by.generation, by.event.summary)


def test_what_models_are_given_instead_of_the_earliest_turns_is_the_summary_that_reaches_farthest_and_of_those_the_last() -> None:
    log = begun().in_turn(SUMMARY).ended("One.").said("m2", "more").started("t2", "m2", "more", generation=2)
    assert given(fold(begun())) is None and given(fold(log)) == ("t1", 1, "It was so.")
    log.in_turn(msgspec.structs.replace(SUMMARY, through=0, summary="Less."))
    assert given(fold(log)) == ("t1", 1, "It was so.")
    log.in_turn(msgspec.structs.replace(SUMMARY, summary="Better."))
    assert given(fold(log)) == ("t2", 2, "Better.")
    log.in_turn(e.ContextCompacted(through=2, summary="", trimmed=("c1",)))
    assert given(fold(log)) == ("t2", 2, "Better.")
    log.in_turn(e.ContextCompacted(through=2, summary="", problem="it wrote none", trimmed=("c2",)))
    assert given(fold(log)) == ("t2", 2, "")
    assert fold(log).trimmed == {"c1", "c2"}
    told = [message.content for message in fold(log).messages if message.role == "notice"]
    assert told[-2:] == [
        notices.compacted(summarised=False, problem=None, trimmed=1),
        notices.compacted(summarised=False, problem="it wrote none", trimmed=1),
    ]


def test_a_turn_that_nobody_stopped_says_first_why_it_was_to_stop() -> None:
    log = begun().free(e.StopRequested(turn_id="t1", by="gateway", why="the limit"))
    assert [fold(begun()).turns[0].stopped_because, fold(log).turns[0].stopped_because] == [None, "the limit"]
    log.free(e.StopRequested(turn_id="t1", by="ann"), e.StopRequested(turn_id="t1", by="gateway", why="another"))
    assert fold(log).turns[0].stopped_because == "the limit"


def read(process: str, offset: int) -> e.AgentRead:
    return e.AgentRead(agent="coder", process=process, session="x", how="new", offset=offset)


def test_how_far_a_conversation_is_with_an_agent_that_is_another_program() -> None:
    """The last process that was started, how often its turn has started one, and how far the last usable one was read."""
    log = begun().in_turn(e.AgentStarted(agent="coder", process="p1"))
    assert fold(log).links == {"coder": Link(process="p1", started_in="t1", starts=1)}
    log.in_turn(read("p1", 5), e.AgentStarted(agent="coder", process="p2"))
    assert fold(log).links == {"coder": Link(process="p2", started_in="t1", starts=2, read=read("p1", 5), turn_id="t1")}
    log.ended("One.").said("m2", "more").started("t2", "m2", "more", generation=2).in_turn(read("p2", 9))
    assert fold(log).links == {"coder": Link(process="p2", started_in="t1", starts=2, read=read("p2", 9), turn_id="t2")}
    log.in_turn(e.AgentStarted(agent="coder", process="p3"), e.AgentStarted(agent="other", process="p4"))
    links = fold(log).links
    assert links["coder"] == Link(process="p3", started_in="t2", starts=1, read=read("p2", 9), turn_id="t2")
    assert links["other"] == Link(process="p4", started_in="t2", starts=1)


def test_what_was_read_of_a_process_counts_though_its_start_cannot_be_read() -> None:
    log = begun().in_turn(read("p1", 5))
    assert fold(log).links == {"coder": Link(process="p1", read=read("p1", 5), turn_id="t1")}
