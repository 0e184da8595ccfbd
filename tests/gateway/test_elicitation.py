"""Calls that ask a person in their middle: what survives a death, what an answer leads to, and what is told if nobody can (P5, R5, A27)."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.core import events as e
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.elicitation import Request
from holdfast.core.errors import QuestionClosed
from holdfast.core.messages import Question, ToolCall
from holdfast.core.plans.answer import Answer
from holdfast.ports.tools import Asks, Tool, ToolContext, ToolResult
from holdfast.tools.plain import PlainTool
from tests.fakes.loop import Crash
from tests.gateway import gateways
from tests.gateway.gateways import ANN, Home, Life

COMMITS = 100
AGE = Request(key="age", message="How old are you?", schema={"properties": {"age": {"type": "integer"}}, "required": ["age"]})
COLOUR = Request(key="colour", message="Which colour?", schema={"properties": {"colour": {"enum": ["red", "blue"]}}})


class Asker(PlainTool):
    """Asks for an age and a colour, says what it was told, and notes what it did outside: before it asks, and after."""

    name = "asker"
    declared = Effect.UNSAFE

    def __init__(self, did: list[str], version: str = "", confined: bool = True) -> None:
        self._did, self.version, self._confined = did, version, confined

    def confined(self, arguments: dict[str, Any]) -> bool:
        return self._confined

    def effect(self, arguments: dict[str, Any]) -> Effect:
        return self.declared

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult | Asks:
        await asyncio.sleep(0.002)
        if context.answers is None:
            self._did.append("asked")
            return Asks(requests=(AGE, COLOUR), state="half done")
        self._did.append("went on")
        assert context.answers.state == "half done"
        return ToolResult(ToolOutcome.DONE, ", ".join(f"{key}: {given.content}" for key, given in context.answers.given.items()))


class Live(PlainTool):
    """Asks while it runs."""

    name = "live"
    declared = Effect.UNSAFE

    def __init__(self, did: list[str]) -> None:
        self._did = did

    def confined(self, arguments: dict[str, Any]) -> bool:
        return True

    def effect(self, arguments: dict[str, Any]) -> Effect:
        return self.declared

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        assert context.ask is not None
        self._did.append("asked")
        given = await context.ask(AGE)
        self._did.append("went on")
        return ToolResult(ToolOutcome.DONE, f"told {given.content if given else None}")


@pytest.fixture
def did() -> list[str]:
    return []


@pytest.fixture
def home(tmp_path: Path, did: list[str]) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        made.tools = lambda: tools(did)  # type: ignore[method-assign]
        yield made


def tools(did: list[str], version: str = "", *, confined: bool = True) -> dict[str, Tool]:
    return {"asker": Asker(did, version, confined), "live": Live(did)}


def questions(life: Life, page: str) -> list[Question]:
    return life.transcript(page).questions


def answer(life: Life, page: str, text: str) -> None:
    [question] = questions(life, page)
    life.do(life.gateway.judge(question.question_id, Answer(content=text, by="owner")))


def waiting(life: Life, page: str) -> Question:
    life.until(lambda: life.session(page).state == "waiting")
    [question] = questions(life, page)
    return question


def call(life: Life, page: str) -> ToolCall:
    [found] = [call for message in life.transcript(page).messages for call in message.tool_calls]
    return found


def test_a_call_that_asks_rests_and_continues_with_the_answers_after_a_death(home: Home, did: list[str]) -> None:
    """P5, R5: one question after the other, each of them durable; an answer that does not fit is asked for again."""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > asker x | done")
    question = waiting(life, page)
    assert (question.form, question.call.name if question.call else "") == ("elicitation", "asker")
    assert question.text.startswith("`asker` asks:\n\n> How old are you?") and life.gateway.runner.running == 0
    life.die()
    life = home.start()
    life.post(page, "many")  # On a page, a plain message answers it.
    assert "must be a whole number" in waiting(life, page).text
    answer(life, page, "42")
    assert waiting(life, page).choices == ("red", "blue", "Decline")
    life.die()
    life = home.start()
    answer(life, page, "blue")
    life.rest(page)
    assert life.answers(page) == ["done [done age: {'age': 42}, colour: {'colour': 'blue'}]"] and did == ["asked", "went on"]
    texts = [message.text for message in life.transcript(page).messages if message.answers]
    assert texts == ["many", "42", "blue"]


def test_in_a_chat_what_can_be_chosen_is_on_buttons(home: Home, did: list[str]) -> None:
    """A27: as for every other question; words do as well."""
    life = home.start()
    life.write("steps: go > asker x | done")
    life.until(lambda: len(home.server.sent) == 1 and life.session().state == "waiting")
    assert home.server.sent[0].buttons == ()
    life.write("42")
    life.until(lambda: len(home.server.sent) == 2 and life.session().state == "waiting")
    asked = home.server.sent[1]
    assert [button.label for button in asked.buttons] == ["red", "blue", "Decline"]
    home.server.press(asked, "blue", ANN)
    life.until(lambda: home.replies() == ["done [done age: {'age': 42}, colour: {'colour': 'blue'}]"])
    assert asked.buttons == () and did == ["asked", "went on"]


def test_no_death_makes_a_call_that_asks_do_anything_twice(tmp_path: Path) -> None:
    """P5, P3: before and after every commit. What nobody knows is told as unknown."""
    outcomes = set()
    for number in range(1, COMMITS):
        told = [_tell(tmp_path / f"{number}-{moment}", (moment, number)) for moment in ("before", "after")]
        outcomes |= {outcome for outcome, _ in told}
        if not any(died for _, died in told):
            break
    assert number > 8 and outcomes == {"done", "unknown"}


def _tell(folder: Path, dies: tuple[str, int]) -> tuple[str, bool]:
    """What became of the call, and whether the process died at that commit after the message was accepted."""
    did: list[str] = []
    folder.mkdir()
    with gateways.home(folder) as home:
        home.tools = lambda: tools(did)  # type: ignore[method-assign]
        life, died = home.start(), False
        page = life.open_page()
        life.post(page, "steps: go > asker x | done")
        life.dies = (dies[0], life.commits + dies[1])
        while True:
            try:
                if not _ask_or_end(life, page):
                    break
                answer(life, page, "42" if "How old" in questions(life, page)[0].text else "red")
            except Crash:
                life, died = home.start(), True
        assert did in ([], ["asked"], ["asked", "went on"])
        outcome = call(life, page).outcome
        life.dies = None
        life.stop()
        assert outcome is not None
        return outcome, died


def _ask_or_end(life: Life, page: str) -> bool:
    """Until a question is open, or the turn is over."""
    life.until(lambda: bool(questions(life, page)) or life.outcomes(page) == ["completed"])
    return bool(questions(life, page))


def test_a_person_may_decline_and_is_not_asked_the_rest(home: Home, did: list[str]) -> None:
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > asker x | done")
    waiting(life, page)
    answer(life, page, "decline")
    life.rest(page)
    assert life.answers(page) == ["done [done age: None, colour: None]"]


def test_an_approval_is_for_the_whole_call_and_a_tool_that_changed_is_not_continued(home: Home, did: list[str]) -> None:
    """P5: nobody is asked twice whether it may run."""
    home.tools = lambda: tools(did, confined=False)  # type: ignore[method-assign]
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > asker x | done")
    approval = waiting(life, page)
    life.do(life.gateway.judge(approval.question_id, Answer(by="owner", verdict="approve", scope="once")))
    life.until(lambda: did == ["asked"])
    assert waiting(life, page).form == "elicitation"
    answer(life, page, "42")
    waiting(life, page)
    life.die()
    home.tools = lambda: tools(did, "2b", confined=False)  # type: ignore[method-assign]
    life = home.start()
    answer(life, page, "red")
    life.rest(page)
    assert did == ["asked"] and "described differently since it asked" in life.answers(page)[0]


def test_a_stop_ends_a_call_that_rests_and_a_late_answer_says_so(home: Home, did: list[str]) -> None:
    """A21"""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > asker x | done")
    question = waiting(life, page)
    life.do(life.gateway.stop_turn(page, by="owner", client_id=None))
    life.rest(page)
    assert life.outcomes(page) == ["cancelled"] and call(life, page).outcome is ToolOutcome.FAILED
    with pytest.raises(QuestionClosed):
        life.do(life.gateway.judge(question.question_id, Answer(content="42", by="owner")))


def test_a_question_that_nobody_answers_ends_its_turn(home: Home) -> None:
    """R5: after a day."""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > asker x | done")
    waiting(life, page)
    life.die()
    home.later(25 * 3600)
    life = home.start()
    life.rest(page)
    assert life.outcomes(page) == ["failed"] and call(life, page).outcome is ToolOutcome.FAILED


def test_a_call_asks_ten_times_at_most(home: Home, did: list[str]) -> None:
    """P8"""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > asker x | done")
    for _ in range(10):
        waiting(life, page)
        answer(life, page, "many")
    life.rest(page)
    assert "It asked the user 10 times and was ended" in life.answers(page)[0]


def test_a_call_that_cannot_rest_asks_while_it_runs(home: Home, did: list[str]) -> None:
    """The turn is running meanwhile, and its silence is no idleness."""
    life = home.start(turn_idle_timeout_s=60.0)
    page = life.open_page()
    life.post(page, "steps: go > live x | done")
    life.until(lambda: bool(questions(life, page)))
    life.pass_s(300)
    assert life.session(page).state == "running"
    answer(life, page, "a lot")
    life.until(lambda: any("must be a whole number" in question.text for question in questions(life, page)))
    answer(life, page, "42")
    life.rest(page)
    assert life.answers(page) == ["done [done told {'age': 42}]"] and questions(life, page) == []


def test_a_call_that_asks_while_it_runs_gives_up_after_a_while(home: Home) -> None:
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > live x | done")
    life.until(lambda: bool(questions(life, page)))
    [question] = questions(life, page)
    life.pass_s(16 * 60)
    assert life.answers(page) == ["done [done told None]"]
    with pytest.raises(QuestionClosed):
        life.do(life.gateway.judge(question.question_id, Answer(content="42", by="owner")))


@pytest.mark.parametrize(("effect", "answered"), [("unsafe", False), ("idempotent", False), ("idempotent", True)])
def test_a_death_ends_a_call_that_asked_while_it_ran_and_its_question(
    home: Home, did: list[str], monkeypatch: pytest.MonkeyPatch, effect: str, answered: bool
) -> None:
    """P5: told as unknown, or run again, which asks again. The old question is closed, so that nobody answers in vain."""
    monkeypatch.setattr(Live, "declared", Effect(effect))
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > live x | done")
    life.until(lambda: bool(questions(life, page)))
    [question] = questions(life, page)
    if answered:
        answer(life, page, "41")
    life.die()
    life = home.start()
    if effect == "idempotent":
        life.until(lambda: any(asked.question_id != question.question_id for asked in questions(life, page)))
        answer(life, page, "42")
    life.rest(page)
    outcome = "unknown" if effect == "unsafe" else "done told {'age': 42}"
    assert life.answers(page)[0].startswith(f"done [{outcome}")
    closed = [item.event for item in life.events(page) if isinstance(item.event, e.QuestionClosed)]
    assert [each.question_id for each in closed] == ([] if answered else [question.question_id])


def test_a_chat_is_asked_and_its_next_message_is_the_answer(home: Home, did: list[str]) -> None:
    """A27"""
    life = home.start()
    life.write("steps: go > asker x | done")
    life.until(lambda: any("How old are you?" in text for text in home.told()))
    life.write("42")
    life.until(lambda: any("Which colour?" in text for text in home.told()))
    life.say("blue")
    assert home.replies() == ["done [done age: {'age': 42}, colour: {'colour': 'blue'}]"]
