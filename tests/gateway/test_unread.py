"""Attachments that a model is not given: the person who sent them is told, once, whatever dies in between."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core import content, notices
from holdfast.core.busy import Mode
from holdfast.core.content import BytesPart, TextPart, bytes_part
from holdfast.ports.blobs import Blob
from holdfast.ports.models import Taking
from tests.fakes.loop import Crash
from tests.fakes.models_scripted import ScriptedClient, ScriptedModels
from tests.fakes.platform import Update
from tests.gateway import gateways
from tests.gateway.gateways import ANN, Home, Life
from tests.gateway.models import FIRST, agent_of

PHOTO = bytes_part(blob="a" * 64, size=5, media_type="image/png", name="photo.png")
LARGE = bytes_part(blob="b" * 64, size=Taking().image_limit + 1, media_type="image/png", name="large.png")
ZIP = bytes_part(blob="c" * 64, size=5, media_type="application/zip", name="all.zip")
NOTES = bytes_part(blob="d" * 64, size=5, media_type="text/markdown", name="notes.md")
MOST_POINTS = 60


@pytest.fixture
def models() -> ScriptedModels:
    return ScriptedModels()


@pytest.fixture
def home(tmp_path: Path, models: ScriptedModels) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        made.agent = agent_of(models, tmp_path, FIRST)
        yield made


def sees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its models take images from now on."""
    monkeypatch.setattr(ScriptedClient, "takes", Taking(kinds=frozenset({"image"})))


def store(life: Life, *parts: BytesPart) -> None:
    for part in parts:
        life.do(life.store.put_blob(Blob(digest=part.blob, size=part.size, media_type=part.media_type, file=f"{part.blob}-1"), at=1))


def send(life: Life, *parts: BytesPart, words: str = "look") -> None:
    store(life, *parts)
    arrive(life, life.home.server.write(ANN, ANN, content.of([TextPart(words), *parts])))


def arrive(life: Life, update: Update) -> None:
    life.arrived(update)


def told(home: Home) -> list[str]:
    return [said for said in home.told() if "not given" in said]


ONE = (
    f"photo.png was not given to {FIRST}: this model does not take images. It knows only the name, type and size. Choose another model"
    " with /model, or send what matters as text."
)


def test_the_person_is_told_what_a_model_does_not_take_and_small_texts_are_given(home: Home, models: ScriptedModels) -> None:
    """P3: in the chat itself, and not again in later turns."""
    life = home.start()
    send(life, PHOTO, NOTES)
    life.rest()
    life.say("again")
    assert told(home) == [ONE] and life.notices() == [ONE] and len(models.requests) == 2


def test_several_are_told_together_each_with_its_reason(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    sees(monkeypatch)
    life = home.start()
    send(life, PHOTO, LARGE, ZIP)
    life.rest()
    reasons = {"large.png": "it is too large for this model", "all.zip": "this model does not take files"}
    assert told(home) == [notices.not_given(reasons, FIRST)]


def test_what_steers_a_turn_is_told_when_it_is_taken(home: Home) -> None:
    life = home.start(busy={"default": Mode.STEER})
    life.write("look > deed 5 | done")
    send(life, PHOTO, words="and")
    life.rest()
    assert told(home) == [ONE]


def test_a_model_that_takes_it_is_no_reason_for_a_word(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    sees(monkeypatch)
    life = home.start()
    send(life, PHOTO)
    life.rest()
    assert told(home) == []


def test_a_kill_before_or_after_any_commit_tells_it_once(tmp_path: Path) -> None:
    """P5: by the same id in every attempt."""
    for moment in ("before", "after"):
        for point in range(1, MOST_POINTS):
            folder = tmp_path / f"{moment}-{point}"
            folder.mkdir()
            with gateways.home(folder) as home:
                home.agent = agent_of(ScriptedModels(), folder, FIRST)
                life = home.start()
                store(life, PHOTO)
                update, died = home.server.write(ANN, ANN, content.of([TextPart("look"), PHOTO])), False
                life.dies = (moment, life.commits + point)
                try:
                    arrive(life, update)
                    life.rest()
                except Crash:
                    died, life = True, home.start()
                    arrive(life, update)
                    life.rest()
                assert told(home) == [ONE], (moment, point)
                if not died:
                    break
        else:
            raise AssertionError("it never got through")
