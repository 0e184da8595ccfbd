"""Several agents behind one gateway: which of them answers a conversation, and that a turn is finished by the agent that began it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.agents.demo import DemoAgent
from holdfast.agents.lazy import LazyAgent
from holdfast.config import BadConfig
from holdfast.core import events as e
from holdfast.core.model_choice import UnknownModel
from holdfast.ports.agents import Agent, AgentRequest, TurnFace
from tests.gateway import gateways
from tests.gateway.gateways import ANN, Home, Life

FIRST = "a:first"
CHOICES = (FIRST, "writer", "broken", "demo")


class Named:
    """Says who it is. `wait` waits for the end of the world, in a first attempt; `ask` asks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.closed = 0

    async def run(self, request: AgentRequest, turn: TurnFace) -> None:
        if request.text == "wait" and request.attempt == 1:
            await turn.say("I begin.")
            await asyncio.Event().wait()
        if request.text == "ask":
            await turn.ask(f"{request.turn_id}.1", "What?")
        await turn.say(f"{self.name} {request.model}")

    async def aclose(self) -> None:
        self.closed += 1


async def broken() -> Agent:
    raise BadConfig("The agent 'x:y' cannot be loaded.")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        made.agent = lambda life: Named("default")
        made.agents = {"writer": Named("writer"), "broken": LazyAgent("broken", broken), "demo": DemoAgent()}
        yield made


def choose(life: Life, page: str, name: str | None) -> None:
    life.do(life.gateway.change_session(page, e.SessionChanged(model=name)))


def ask(life: Life, page: str, text: str = "who?") -> str:
    life.post(page, text)
    life.rest(page)
    return life.answers(page)[-1]


def test_an_agent_is_chosen_for_a_conversation_and_stays_chosen(home: Home) -> None:
    """P1: over a death; other conversations keep theirs."""
    life = home.start(models=CHOICES)
    page, other = life.open_page(), life.open_page()
    assert ask(life, page) == "default None"
    life.post(page, "/model")
    assert life.notices(page)[-1].splitlines()[:2] == [f"1. {FIRST} (default) - answers here", "2. writer"]
    life.post(page, "/model 2")
    assert life.notices(page)[-1] == "From the next message on writer answers in this conversation."
    assert ask(life, page) == "writer writer"
    life.die()
    life = home.start(models=CHOICES)
    assert (ask(life, page), ask(life, other)) == ("writer writer", "default None")
    choose(life, page, FIRST)
    assert ask(life, page) == f"default {FIRST}"
    choose(life, page, None)
    assert ask(life, page) == "default None"
    with pytest.raises(UnknownModel):
        choose(life, page, "nobody")


@pytest.mark.parametrize(("before", "after"), [("writer", None), (None, "writer"), (FIRST, "writer"), ("writer", FIRST)])
@pytest.mark.parametrize("dies", [True, False])
def test_a_turn_is_finished_by_the_agent_that_began_it_whatever_is_chosen_meanwhile(
    home: Home, before: str | None, after: str | None, dies: bool
) -> None:
    """B11, R9: killed in its middle, or stopped and started in order."""
    life = home.start(models=CHOICES)
    page = life.open_page()
    choose(life, page, before)
    life.post(page, "wait")
    life.until(lambda: life.answers(page) == ["I begin."])
    choose(life, page, after)
    life.die() if dies else life.stop()
    life = home.start(models=CHOICES)
    life.rest(page)
    who = {"writer": "writer", None: "default", FIRST: "default"}
    assert life.answers(page) == [f"{who[before]} {before}"]
    assert ask(life, page) == f"{who[after]} {after}"


def test_a_turn_that_waited_for_a_person_is_continued_by_its_own_agent(home: Home) -> None:
    """R5"""
    life = home.start(models=CHOICES)
    page = life.open_page()
    choose(life, page, "writer")
    life.post(page, "ask")
    life.until(lambda: life.session(page).state == "waiting")
    choose(life, page, None)
    life.die()
    life = home.start(models=CHOICES)
    assert ask(life, page, "that") == "writer writer" and ask(life, page) == "default None"


def test_an_agent_that_is_not_set_up_any_more_is_told_and_nobody_answers_in_its_place(home: Home) -> None:
    """P3: a turn that it had begun ends, too. A model that is gone gives way to the default, as it always did."""
    life = home.start(models=CHOICES)
    page, other = life.open_page(), life.open_page()
    choose(life, page, "writer")
    life.post(page, "wait")
    life.until(lambda: life.answers(page) == ["I begin."])
    choose(life, other, FIRST)
    life.die()
    home.agents = {}
    life = home.start(models=("b:second", "mine"))
    life.rest(page)
    assert life.turn(page).outcome == "failed" and "The agent 'writer'" in (life.turn(page).error or "")
    life.post(page, "/model")
    assert "writer, which was chosen for this conversation, is not set up any more" in life.notices(page)[-1]
    life.post(page, "again")
    life.rest(page)
    assert life.turn(page).outcome == "failed"
    assert ask(life, other) == f"default {FIRST}"


def test_an_agent_that_cannot_be_made_fails_its_turn_alone(home: Home) -> None:
    """P3, P8"""
    life = home.start(models=CHOICES)
    page, other = life.open_page(), life.open_page()
    choose(life, page, "broken")
    life.post(page, "who?")
    life.rest(page)
    assert life.turn(page).outcome == "failed" and life.turn(page).error == "The agent 'x:y' cannot be loaded."
    assert ask(life, other) == "default None"


def test_the_demo_runs_nothing_for_a_chat_that_chose_it(home: Home) -> None:
    life = home.start(models=CHOICES)
    life.say("/model demo")
    life.say("run date")
    assert "No agent is set up" in life.answers(ANN)[-1] and not home.done


def test_every_agent_is_closed_once_with_the_gateway(home: Home) -> None:
    """C8"""
    life, writer = home.start(models=CHOICES), Named("writer")
    life.stop()
    home.agents = {"writer": writer}
    home.agent = lambda life: writer
    home.start().stop()
    assert writer.closed == 1
