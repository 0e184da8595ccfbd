"""Content that is more than text, between a chat and its conversation."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core import content
from holdfast.core import events as e
from holdfast.core.content import TextPart, bytes_part
from holdfast.ports.blobs import Blob
from tests import words
from tests.fakes.platform import session_key
from tests.gateway import gateways
from tests.gateway.gateways import ANN, Home

PICTURE = bytes_part(blob="a" * 64, size=5, media_type="image/png", name="cat.png")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def test_what_a_chat_attaches_is_in_the_message_and_its_words_are_answered(home: Home) -> None:
    """P1"""
    life = home.start()
    life.do(life.store.put_blob(Blob(digest=PICTURE.blob, size=5, media_type="image/png", file=f"{PICTURE.blob}-1"), at=1))
    home.server.write(ANN, ANN, content.of([TextPart("look"), PICTURE]))
    life.until(lambda: home.told() == ["re: look"])
    (said,) = [item.event for item in life.events() if isinstance(item.event, e.MessageAccepted)]
    assert said.parts == (TextPart("look"), PICTURE)


def test_an_agent_that_asks_is_given_every_part_of_the_answer(home: Home) -> None:
    """A27"""
    life = home.start()
    life.do(life.store.put_blob(Blob(digest=PICTURE.blob, size=5, media_type="image/png", file=f"{PICTURE.blob}-1"), at=1))
    life.write("ask:which one")
    life.until(lambda: home.told() == ["which one"] and life.session().state == "waiting")
    home.server.write(ANN, ANN, content.of([TextPart("this one"), PICTURE]))
    life.until(lambda: len(home.told()) == 2)
    assert home.told()[-1] == f"told {content.outline((TextPart('this one'), PICTURE))}"


def test_a_chat_is_sent_every_part_of_what_it_is_owed(home: Home) -> None:
    """P4"""
    life = home.start()
    life.do(life.store.put_blob(Blob(digest=PICTURE.blob, size=5, media_type="image/png", file=f"{PICTURE.blob}-1"), at=1))
    life.say("hello")
    notice = content.of([TextPart("A cat."), PICTURE])
    life.do(life.store.tell_once(life.session().session_id, notice_id="n", content=notice, anchor=None, at=life.clock.now()))
    life.until(lambda: home.told()[-2:] == ["A cat.", ""])
    told, picture = home.server.sent[-2:]
    assert (told.session_key, told.text, told.file) == (session_key(ANN), "A cat.", None)
    assert picture.file is not None and (picture.file.name, picture.file.media_type) == ("cat.png", "image/png")


def test_an_answer_of_nothing_but_blanks_says_that_there_is_none(home: Home) -> None:
    """P4: platforms refuse a message that shows nothing."""
    life = home.start()
    life.say("say: ")
    life.say("say:   \n \n|sleep:3")
    assert home.told() == ["(nothing was said)"] * 2


def test_a_file_that_the_platform_no_longer_has_is_named_and_its_message_is_answered(home: Home) -> None:
    """P1, P8"""
    life = home.start()
    home.server.write(ANN, ANN, content.of([TextPart("look"), PICTURE]))
    home.server.files.clear()
    life.say("hello")
    assert home.told() == ["re: look\n\n[The file cat.png is missing: There is no file 'cat.png' here.]", "re: hello"]
    assert not life.gateway.broken.is_set()


def test_a_command_with_an_attachment_is_refused_aloud(home: Home) -> None:
    """P1"""
    life = home.start()
    life.do(life.store.put_blob(Blob(digest=PICTURE.blob, size=5, media_type="image/png", file=f"{PICTURE.blob}-1"), at=1))
    home.server.write(ANN, ANN, content.of([TextPart("/status"), PICTURE]))
    life.say("hello")
    assert home.told() == [words.COMMAND_WITH_ATTACHMENT, "re: hello"]


def test_a_result_that_names_what_is_not_stored_ends_its_turn_once(home: Home) -> None:
    """P3, P5"""
    life = home.start()
    page = life.open_page()
    life.post(page, "call:camera|say:done")
    life.rest(page)
    assert (life.outcomes(page), home.edge.count("camera used")) == (["failed"], 1)
