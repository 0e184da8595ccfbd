"""Conversations that get too long for their model: they go on with a summary, which is recorded, counted and told."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.agents.prices import Prices
from holdfast.config.agent import ModelPrice
from holdfast.core import compaction
from holdfast.core import events as e
from holdfast.core.effects import ToolOutcome
from holdfast.core.events import Usage
from holdfast.core.history import SUMMARY, Result, User
from holdfast.ports.models import Busy, Rejected
from holdfast.ports.tools import ToolContext, ToolResult
from holdfast.store import open_store
from tests.conformance.steps import ENDED, append, new_owner, new_session, start
from tests.conformance.steps import NOW as NOW_MS
from tests.conformance.steps import say as post
from tests.fakes.loop import Crash
from tests.fakes.models_scripted import Given, ScriptedModels
from tests.gateway import gateways
from tests.gateway.gateways import Home, Life, Shell
from tests.gateway.models import FIRST, agent_of

WINDOW = 2000
WORDS = "x" * 300  # About 100 tokens.
NOW = f"and now? {WORDS}"
# With more than this, the next turn that brings as many words begins with a summary.
SOON = 1299


class Wordy(Shell):
    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(ToolOutcome.DONE, "a" * 9000)


@pytest.fixture
def models() -> ScriptedModels:
    return ScriptedModels()


@pytest.fixture
def home(tmp_path: Path, models: ScriptedModels) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        prices = Prices({FIRST: ModelPrice(window=WINDOW, input=1, output=1)})
        made.agent = agent_of(models, tmp_path, FIRST, prices=prices)
        yield made


def say(life: Life, page: str, text: str = WORDS) -> None:
    life.post(page, text)
    life.rest(page)


def compactions(life: Life, page: str) -> list[e.ContextCompacted]:
    return [item.event for item in life.events(page) if isinstance(item.event, e.ContextCompacted)]


def begins_with_summary(given: Given) -> bool:
    first = given.history[0]
    return isinstance(first, User) and first.what == SUMMARY


def rows(life: Life, page: str) -> list[tuple[str, str]]:
    return [(message.id, message.text) for message in life.transcript(page).messages]


def notices(life: Life, page: str) -> list[str]:
    return [message.text for message in life.transcript(page).messages if message.role == "notice"]


def grown(life: Life, models: ScriptedModels) -> str:
    """A conversation whose next turn begins with a summary."""
    page = life.open_page()
    while not models.requests or sum(map(compaction.size, models.requests[-1].history)) < SOON:
        say(life, page)
    assert models.summaries == 0
    return page


def test_a_turn_that_begins_with_too_much_begins_with_a_summary(home: Home, models: ScriptedModels) -> None:
    """Of ended turns, apart from the newest; the log keeps everything, and the next turns begin with the summary."""
    life = home.start()
    page = grown(life, models)
    before, turns = rows(life, page), life.turn(page).generation
    say(life, page, NOW)
    [compacted] = compactions(life, page)
    assert compacted.summary == "Summary 1." and compacted.problem is None and 0 < compacted.through < turns
    assert (compacted.usage, compacted.cost, compacted.model, compacted.sender) == (Usage(input=7, output=2), 9, "first", "owner")
    asked = models.requests[-2].request
    assert asked.tools == () and asked.system == compaction.INSTRUCTIONS and len(asked.history) == 1
    assert begins_with_summary(models.requests[-1]) and models.requests[-1].history[-1].text == NOW
    assert rows(life, page)[: len(before)] == before and life.answers(page)[-1] == NOW
    [told] = notices(life, page)
    assert told == "The conversation has become too long for the model. It sees a summary of the earlier messages from here on."
    spent = life.turn(page).spent
    assert spent.requests == 2 and spent.input > 7
    say(life, page, "go on")
    assert models.summaries == 1 and begins_with_summary(models.requests[-1]) and life.answers(page)[-1] == "go on"


def test_a_later_summary_covers_the_former(home: Home, models: ScriptedModels) -> None:
    life = home.start()
    page = grown(life, models)
    for _ in range(12):
        say(life, page)
    found = compactions(life, page)
    assert len(found) >= 2 and [each.through for each in found] == sorted({each.through for each in found})
    requests = [given for given in models.requests if given.request.system == compaction.INSTRUCTIONS]
    assert "Summary 1." in requests[1].history[0].text and "Summary 1." not in requests[0].history[0].text
    assert all(sum(map(compaction.size, given.history)) < WINDOW for given in models.requests)


def test_a_model_that_finds_a_request_too_long_is_asked_again_with_a_summary(home: Home, models: ScriptedModels, tmp_path: Path) -> None:
    """Where the window is not known, or was guessed too large."""
    home.agent = agent_of(models, tmp_path, FIRST)
    life = home.start()
    page = life.open_page()
    for _ in range(9):
        say(life, page)
    models.window = 1500
    say(life, page, WORDS)
    [compacted] = compactions(life, page)
    assert compacted.through == 9 and life.outcomes(page) == ["completed"] * 10 and life.answers(page)[-1] == WORDS
    failures = [failure.event for failure in life.turn(page).failures]
    assert [(each.error, each.summary, each.retry_at is None) for each in failures] == [("model_too_long", False, False)]
    assert [type(item) for item in models.requests[-1].history] == [User, User]


def test_a_turn_that_is_too_long_by_itself_goes_on_with_shorter_results(home: Home, models: ScriptedModels, tmp_path: Path) -> None:
    home.tools = lambda: {"terminal": Wordy(home.done, home.edge)}  # type: ignore[method-assign]
    home.agent = agent_of(models, tmp_path, FIRST)
    life = home.start()
    page = life.open_page()
    models.window = 1500
    say(life, page, "look > terminal all | done")
    [compacted] = compactions(life, page)
    assert compacted.trimmed == (f"{life.turn(page).id}.0.1",) and models.summaries == 0
    [given] = [item for item in models.requests[-1].history if isinstance(item, Result)]
    assert len(given.text) < 2200 and "characters left out" in given.text
    [call] = life.transcript(page).calls
    assert call.result == "a" * 9000 and life.outcomes(page) == ["completed"]
    assert "the beginning and the end of a long result" in notices(life, page)[0]


def test_a_request_that_nothing_shortens_any_more_fails_in_words(home: Home, models: ScriptedModels) -> None:
    """P3"""
    life = home.start()
    page = life.open_page()
    models.window = 100
    say(life, page)
    assert life.outcomes(page) == ["failed"] and "tokens are too many" in (life.turn(page).error or "") and len(models.requests) == 1


def test_turns_are_left_out_where_no_summary_can_be_had(home: Home, models: ScriptedModels) -> None:
    life = home.start()
    page = grown(life, models)
    models.wrong[FIRST] = [Rejected("we do not summarise")]
    say(life, page, NOW)
    [compacted] = compactions(life, page)
    assert compacted.summary == "" and "we do not summarise" in (compacted.problem or "")
    assert life.answers(page)[-1] == NOW and "is left out here" in models.requests[-1].history[0].text
    assert "It no longer sees the earlier messages: no summary could be made." in notices(life, page)[0]
    models.changes = {"text": ""}
    while len(compactions(life, page)) < 2:
        say(life, page)
    assert compactions(life, page)[-1].problem == "the model wrote no summary of them."


def test_a_busy_model_is_waited_for_and_loses_nothing_of_the_conversation(home: Home, models: ScriptedModels, tmp_path: Path) -> None:
    """P3, P8: a restart does not hurry it; where no model answers at all the turn fails, and the next one tries again."""
    life = home.start()
    page = grown(life, models)
    models.wrong[FIRST] = [Busy("overloaded", retry_after_s=40.0)]
    life.post(page, NOW)
    life.until(lambda: life.turn(page).failures)
    begun = home.elapsed
    life.die()
    life = home.start()
    life.rest(page)
    assert home.elapsed - begun >= 39 and models.summaries == 1 and life.answers(page)[-1] == NOW
    models.wrong[FIRST] = []
    while models.summaries == 1:
        models.wrong[FIRST] = [] if sum(map(compaction.size, models.requests[-1].history)) < SOON else [Busy("no")] * 8
        life.post(page, WORDS)
        life.until(lambda: life.session(page).state == "idle", within_s=300)
        if life.outcomes(page)[-1] == "failed":
            assert len(compactions(life, page)) == 1
            models.wrong[FIRST] = []
            say(life, page)
    assert len(compactions(life, page)) == 2


def test_a_summary_can_be_stopped(home: Home, models: ScriptedModels) -> None:
    """A21"""
    life = home.start()
    page = grown(life, models)
    models.wrong[FIRST] = ["hang"]
    life.post(page, NOW)
    life.until(lambda: models.open)
    life.do(life.gateway.stop_turn(page, by="owner", client_id=None))
    life.until(lambda: life.session(page).state == "idle")
    assert life.outcomes(page)[-1] == "cancelled" and compactions(life, page) == [] and models.open == 0


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_that_dies_at_any_commit_of_a_turn_with_a_summary_repeats_at_most_one_request(tmp_path: Path, moment: str) -> None:
    """P3, P5, P8: the turn ends whole, its summary is on record once."""
    number, died = 0, True
    while died:
        number += 1
        folder = tmp_path / str(number)
        folder.mkdir()
        models = ScriptedModels()
        with gateways.home(folder) as home:
            home.agent = agent_of(models, folder, FIRST, prices=Prices({FIRST: ModelPrice(window=WINDOW)}))
            life = home.start()
            page = grown(life, models)
            life.dies = (moment, life.commits + number)
            try:
                say(life, page, NOW)
                died = False
            except Crash:
                life = home.start()
                if NOW not in [message.text for message in life.transcript(page).messages]:
                    life.post(page, NOW)
                life.rest(page)
            assert life.outcomes(page)[-1] == "completed" and life.answers(page)[-1] == NOW
            assert len(compactions(life, page)) == 1 and models.summaries <= 1 + died
            assert begins_with_summary(models.requests[-1])
    assert number > 5


async def live(folder: Path, turns: int) -> None:
    """A conversation of so many turns, as an earlier life left it."""
    store = await open_store(folder, now=lambda: NOW_MS)
    owner = await new_owner(store, "long-gone")
    await new_session(store, "s_long")
    for number in range(turns):
        await post(store, "s_long", f"{number} {WORDS}")
        usage = Usage(input=200 * number, output=100)
        said = e.ModelResponded(step=0, text=WORDS, usage=usage)
        answer = e.MessageWritten(message_id=f"t{number}.answer", role="assistant", content=WORDS)
        await append(store, await start(store, "s_long", f"t{number}", owner=owner), said, answer, ENDED)
    await store.record_end(owner)
    await store.aclose()


def test_a_conversation_of_two_thousand_turns_goes_on(tmp_path: Path, models: ScriptedModels) -> None:
    """P8: what the model is given stays within its window, and what a summary covers is not given to it at all."""
    with gateways.home(tmp_path) as home:
        asyncio.run(live(tmp_path, 1990))
        home.agent = agent_of(models, tmp_path, FIRST, prices=Prices({FIRST: ModelPrice(window=20_000)}))
        models.window = 20_000
        life = home.start(chats=False)
        for _ in range(10):
            say(life, "s_long")
        assert life.outcomes("s_long") == ["completed"] * 2000 and models.summaries == 1
        transcript = life.transcript("s_long")
        assert transcript.compacted is not None and 1960 < transcript.compacted.event.through < 1990
        assert {begins_with_summary(given) for given in models.requests[1:]} == {True}
        assert len(transcript.messages) == 4001
        before, read = models.requests[-1].history, life.do(life.store.transcript(life.session("s_long"), whole=False))
        assert read.behind == transcript.compacted.event.recall > 0.95 * transcript.seq
        life.die()
        life = home.start(chats=False)  # It has read nothing of it yet.
        say(life, "s_long")
        assert models.requests[-1].history[: len(before)] == before and len(models.requests[-1].history) == len(before) + 2


def test_a_message_longer_than_the_room_for_a_summary_is_summarised_in_part(home: Home, models: ScriptedModels) -> None:
    """P8: the model is asked about words of the conversation, never about a gap alone."""
    life = home.start()
    page = life.open_page()
    say(life, page, "begin " + "y" * 13_000)
    say(life, page, NOW)
    [compacted] = compactions(life, page)
    asked = next(given for given in models.requests if given.request.system == compaction.INSTRUCTIONS)
    assert compacted.summary == "Summary 1." and "begin yyy" in asked.history[0].text and compaction.size(asked.history[0]) < WINDOW


def test_where_no_room_is_left_for_a_summary_the_record_says_so(home: Home, models: ScriptedModels, tmp_path: Path) -> None:
    home.agent = agent_of(models, tmp_path, FIRST, prices=Prices({FIRST: ModelPrice(window=60)}))
    life = home.start()
    page = life.open_page()
    say(life, page)
    say(life, page, "and now?")
    [compacted] = compactions(life, page)
    assert compacted.summary == "" and "too little of them at once" in (compacted.problem or "") and models.summaries == 0
    assert life.answers(page)[-1] == "and now?" and "It no longer sees the earlier messages" in notices(life, page)[0]
