"""Edits of messages: what the agent reads, what people see, and that no death loses one."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.core import events as e
from holdfast.core.busy import Mode
from holdfast.core.errors import CannotEdit, DuplicateOtherContent, NotFound
from holdfast.core.history import User
from holdfast.core.messages import Message
from tests.gateway import gateways
from tests.gateway.gateways import Home, Life, Story

NEW = "The message was edited. It now reads:\n\n"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def post(life: Life, page: str, text: str, mode: Mode | None = None) -> str:
    """Gives the message's id."""
    return life.do(life.gateway.post(page, text, client_id=None, mode=mode)).message_id


def edit(life: Life, page: str, message_id: str, text: str, *, client_id: str | None = None) -> str:
    """Gives what it did."""
    return life.do(life.gateway.edit_message(page, message_id, text, client_id=client_id)).effect


def shown(life: Life, page: str, message_id: str) -> Message:
    found = life.transcript(page).find(message_id)
    assert found is not None
    return found


def found(life: Life, *words: str) -> list[bool]:
    """Which of these a search finds."""
    while life.do(life.store.index_search(limit=1000)):
        pass
    return [bool(life.do(life.store.sessions(limit=5, before=None, query=word, archived=False)).sessions) for word in words]


def test_a_message_that_waits_is_replaced_and_its_turn_reads_the_new_words(home: Home) -> None:
    """DESIGN 5.7, P1: it keeps its place."""
    life = home.start()
    page = life.open_page()
    post(life, page, "hang")
    life.until(lambda: "hang" in home.texts)
    waits = post(life, page, "feed the giraffe")
    post(life, page, "last")
    assert edit(life, page, waits, "feed the zebra") == "replaced"
    assert edit(life, page, waits, "feed the okapi") == "replaced"
    message = shown(life, page, waits)
    assert (message.text, message.edited_at is not None, message.id in life.transcript(page).queued) == ("feed the okapi", True, True)
    life.post(page, "/stop")
    life.rest(page)
    assert life.answers(page) == ["re: feed the okapi", "re: last"] and home.heard[1].causes[0].text == "feed the okapi"
    message = shown(life, page, waits)
    assert (message.text, message.edited_at is not None, message.turn_id is not None) == ("feed the okapi", True, True)
    assert found(life, "okapi", "zebra", "giraffe") == [True, False, False]


def test_the_message_of_the_running_turn_is_corrected_between_two_steps(home: Home) -> None:
    """DESIGN 5.7, P6: on record before the agent sees it, and no turn of its own."""
    life = home.start()
    page = life.open_page()
    asked = post(life, page, "steps: go > deed 3 | more > deed 0 | done")
    life.until(lambda: life.session(page).state == "running")
    assert edit(life, page, asked, "steps: other") == "steered"
    life.rest(page)
    assert life.outcomes(page) == ["completed"]
    assert life.answers(page) == [f"done [done done] [done done] <{NEW}steps: other>"]
    kinds = [item.kind for item in life.events(page)]
    assert kinds.index("message.edited") < kinds.index("cause.recorded") < kinds.index("cause.taken")
    assert shown(life, page, asked).text == "steps: other"


def test_of_two_corrections_of_a_message_the_turn_takes_the_last(home: Home) -> None:
    """P6"""
    life = home.start()
    page = life.open_page()
    asked = post(life, page, "steps: go > deed 3 | done")
    life.until(lambda: life.session(page).state == "running")
    assert [edit(life, page, asked, text) for text in ("one", "two")] == ["steered", "steered"]
    life.rest(page)
    assert life.answers(page) == [f"done [done done] <{NEW}two>"] and life.outcomes(page) == ["completed"]


def test_a_correction_goes_to_the_resumed_attempt_of_a_turn_that_a_crash_interrupted(home: Home) -> None:
    """DESIGN 5.7, P1: also one that comes between the crash and the start."""
    life = home.start()
    page = life.open_page()
    asked = post(life, page, "steps: go > look slow | done")
    life.until(lambda: home.edge.count("look slow begins"))
    edit(life, page, asked, "steps: go > look slow | over")
    life.die()
    life = home.start()
    life.rest(page)
    assert life.outcomes(page) == ["completed"] and life.turn(page).attempt == 2
    assert life.answers(page) == [f"over [done saw slow] <{NEW}steps: go > look slow | over>"]


def test_a_correction_that_comes_too_late_is_the_next_turn(home: Home) -> None:
    """P1: as any message that steers."""
    life = home.start()
    page = life.open_page()
    asked = post(life, page, "steps: go > deed 3")
    life.until(lambda: life.session(page).state == "running")
    assert edit(life, page, asked, "hello") == "steered"
    life.rest(page)
    assert life.outcomes(page) == ["completed", "completed"]
    turn = life.transcript(page).turns[1]
    assert (turn.cause, home.heard[1].causes[0].what, home.heard[1].causes[0].text) == ("edit", "edit", f"{NEW}hello")


def test_a_correction_that_a_message_came_before_starts_no_turn_because_that_turn_reads_the_new_words(home: Home) -> None:
    """P6: it is dropped, on record."""
    life = home.start()
    page = life.open_page()
    asked = post(life, page, "steps: go > deed 3")
    life.until(lambda: life.session(page).state == "running")
    post(life, page, "next")
    edit(life, page, asked, "hello")
    life.rest(page)
    assert [item.text for item in home.heard[1].history if isinstance(item, User)] == ["hello", "next"]
    assert [item.event.reason for item in life.events(page) if isinstance(item.event, e.CauseDropped)] == ["another turn has started since"]
    assert life.outcomes(page) == ["completed", "completed"] and life.session(page).queued == 0


def test_an_older_message_is_changed_and_nothing_is_answered(home: Home) -> None:
    """DESIGN 5.7, P6"""
    life = home.start()
    page = life.open_page()
    asked = post(life, page, "say:fine|nothing:giraffe")
    life.rest(page)
    assert found(life, "giraffe") == [True]
    assert edit(life, page, asked, "the zebra") == "recorded"
    life.pass_s(5)
    assert life.outcomes(page) == ["completed"] and shown(life, page, asked).text == "the zebra"
    assert found(life, "zebra", "giraffe") == [True, False]
    life.post(page, "next")
    life.rest(page)
    assert [item.text for item in home.heard[-1].history if isinstance(item, User)] == ["the zebra", "next"]


@pytest.mark.parametrize("mode", [None, Mode.STEER])
def test_a_search_finds_the_new_words_of_a_message_and_not_the_old_ones(home: Home, mode: Mode | None) -> None:
    """Whether or not the old ones were in the index when it was edited."""
    life = home.start()
    page = life.open_page()
    post(life, page, "steps: go > deed 3 | done")
    life.until(lambda: life.session(page).state == "running")
    message = post(life, page, "giraffe", mode)
    assert found(life, "giraffe") == [mode is Mode.STEER]
    edit(life, page, message, "zebra")
    assert found(life, "giraffe") == [False]
    life.rest(page)
    edit(life, page, message, "okapi")
    assert found(life, "okapi") == [True]


def test_what_answered_a_question_can_be_edited_and_the_answer_stands(home: Home) -> None:
    """A27: what was answered stays answered."""
    life = home.start()
    page = life.open_page()
    life.post(page, "steps: go > ask colour | more > deed 0 | done")
    life.until(lambda: life.session(page).state == "waiting")
    answer = post(life, page, "blue")
    life.rest(page)
    assert edit(life, page, answer, "green") == "recorded"
    assert life.answers(page) == ["done [done blue] [done done]"] and shown(life, page, answer).text == "green"


def test_what_is_no_message_to_the_agent_cannot_be_edited(home: Home) -> None:
    life = home.start()
    page = life.open_page()
    command = post(life, page, "/status")
    post(life, page, "hello")
    life.rest(page)
    for name in (command, f"{command}.reply", f"{life.turn(page).id}.answer"):
        with pytest.raises(CannotEdit):
            edit(life, page, name, "x")
    with pytest.raises(NotFound):
        edit(life, page, "m_nobody", "x")


def test_somebody_elses_message_cannot_be_edited(home: Home) -> None:
    """DESIGN 5.6: nobody speaks with another's rights."""
    life = home.start()
    session = life.say("hello")
    [message] = [message for message in life.transcript().messages if message.role == "user"]
    with pytest.raises(CannotEdit):
        edit(life, session.session_id, message.id, "x")


def test_the_same_edit_again_is_one_edit(home: Home) -> None:
    """P1: it gets the first answer, whatever has happened since."""
    life = home.start()
    page = life.open_page()
    post(life, page, "hang")
    life.until(lambda: "hang" in home.texts)
    waits = post(life, page, "old")
    assert edit(life, page, waits, "new", client_id="c1") == "replaced"
    life.post(page, "/stop")
    life.rest(page)
    assert edit(life, page, waits, "new", client_id="c1") == "replaced"
    with pytest.raises(DuplicateOtherContent):
        edit(life, page, waits, "other", client_id="c1")
    assert sum(item.kind == "message.edited" for item in life.events(page)) == 1


def test_an_edit_that_comes_as_its_message_is_taken_corrects_the_turn(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """P1: what was read of the conversation is read again."""
    life = home.start()
    page = life.open_page()
    post(life, page, "hang")
    life.until(lambda: "hang" in home.texts)
    waits = post(life, page, "steps: go > deed 3 | done")
    apply, moved = life.store.edit, False

    async def late(session_id: str, wanted: Any, *, at: int) -> Any:
        nonlocal moved
        if not moved:
            moved = True
            await life.gateway.stop_turn(page, by="owner", client_id=None)
            while (await life.store.session(page)).queued:  # noqa: ASYNC110 - the time that passes is simulated.
                await asyncio.sleep(0.1)
        return await apply(session_id, wanted, at=at)

    monkeypatch.setattr(life.store, "edit", late)
    assert edit(life, page, waits, "other") == "steered"
    life.rest(page)
    assert life.answers(page)[-1] == f"done [done done] <{NEW}other>"


def test_a_request_that_is_put_again_says_what_it_was_edited_to(home: Home) -> None:
    """A24, R2: resumed after a suspension."""
    life = home.start()
    page = life.open_page()
    asked = post(life, page, "say:half|hang")
    life.until(lambda: life.answers(page) == ["half"])
    life.die()
    home.later(2 * 3600)
    life = home.start()
    life.until(lambda: life.outcomes(page) == ["set_aside"])
    assert edit(life, page, asked, "hello") == "recorded"
    life.do(life.gateway.resume_session(page, by="owner", client_id=None))
    life.rest(page)
    assert life.answers(page)[-1] == "re: hello"


# age


@pytest.mark.parametrize(("hours", "told"), [(23, False), (25, True)])
def test_a_message_older_than_a_day_carries_its_age_in_a_note(home: Home, hours: int, told: bool) -> None:
    """DESIGN 5.7, B6: also in the attempts that follow."""
    life = home.start()
    page = life.open_page()
    life.do(life.gateway.pausing.pause(holder="op", for_s=10))
    life.post(page, "say:half|hang / hello")
    life.die()
    home.later(hours * 3600)
    life = home.start()
    life.until(lambda: life.answers(page) == ["half"])
    assert home.heard[0].text == "say:half|hang / hello"
    assert (home.note is not None and f"The message is {hours} hours old" in home.note) is told
    life.die()
    life = home.start()
    life.rest(page)
    assert home.note is not None and "gateway interruption" in home.note and home.note.startswith("[System note:")
    assert (f"The message is {hours} hours old" in home.note) is told and home.note.count("[System note:") == 1


# deaths


def test_a_death_at_any_write_loses_no_edit(tmp_path: Path) -> None:
    """P1, P6: of a message that waits, and of the one that is being answered."""
    gateways.with_a_death_after_each_commit(tmp_path, _tell, at_least=8)


def _tell(story: Story, home: Home) -> None:
    page, corrected = story.page, "steps: go > deed 0 > ask colour | more > deed 0 | over"
    asked = post(story.life, page, "steps: go > deed 0.002 > ask colour | more > deed 0.001 | done")
    story.until(lambda: story.life.session(page).state == "waiting")
    edit(story.life, page, asked, corrected)
    story.until(lambda: story.life.commits > 0)
    waits = post(story.life, page, "waits", Mode.STEER)
    edit(story.life, page, waits, "edited")
    story.until(lambda: story.life.commits > 0)
    post(story.life, page, "blue")
    story.until(lambda: None not in story.life.outcomes(page) and not story.life.session(page).queued)
    life = story.life
    life.rest(page)
    [answer] = life.answers(page)
    assert life.outcomes(page) == ["completed"]
    assert answer.count(f"<{NEW}{corrected}>") == 1 and answer.count("<edited>") == 1 and "waits" not in answer
    assert len(home.done) == len(set(home.done)) and sum(item.kind == "message.edited" for item in life.events(page)) == 2
