"""Recordings: a model that does not take them is given their words, which are on record and not made again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core import content, usage
from holdfast.core import events as e
from holdfast.core.busy import Mode
from holdfast.core.content import TextPart, bytes_part
from holdfast.core.effects import ToolOutcome
from holdfast.core.events import Usage, Used
from holdfast.core.history import TRANSCRIBE, Step, User
from holdfast.core.limits import SpendingLimits
from holdfast.core.usage import Spent
from holdfast.ports.blobs import Blob
from holdfast.ports.models import Busy, ModelError, Rejected, Transcript
from holdfast.tools.transcribe import MOST_BYTES, NOBODY, SILENCE, Transcribe
from tests.fakes.loop import Crash
from tests.fakes.models_scripted import ScriptedModels
from tests.fakes.platform import Update
from tests.gateway import gateways
from tests.gateway.gateways import ANN, Home, Life
from tests.gateway.models import agent_of

VOICE = bytes_part(blob="a" * 64, size=5, media_type="audio/ogg", name="voice.ogg")
OTHER = bytes_part(blob="c" * 64, size=5, media_type="audio/ogg", name="other.ogg")
LONG = bytes_part(blob="b" * 64, size=MOST_BYTES + 1, media_type="audio/ogg", name="long.ogg")
WORDS = "[Transcript of voice.ogg:] Buy milk."
MOST_POINTS = 100


class Ear:
    """A transcriber: what it was given, and what becomes of its next requests."""

    def __init__(self) -> None:
        self.heard: list[tuple[bytes, str, str]] = []
        self.wrong: list[ModelError] = []
        self.text = "Buy milk."
        self.used = Used(provider="openai", model="whisper-1")

    async def words(self, recording: bytes, *, name: str, media_type: str) -> Transcript:
        self.heard.append((recording, name, media_type))
        if self.wrong:
            raise self.wrong.pop(0)
        return Transcript(self.text, self.used)


async def read(digest: str) -> bytes:
    return digest[:3].encode()


@pytest.fixture
def models() -> ScriptedModels:
    return ScriptedModels()


@pytest.fixture
def ear() -> Ear:
    return Ear()


@pytest.fixture
def home(tmp_path: Path, models: ScriptedModels, ear: Ear) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        prepare(made, models, ear, tmp_path)
        yield made


def prepare(home: Home, models: ScriptedModels, ear: Ear | None, folder: Path) -> None:
    tools = home.tools
    home.tools = lambda: tools() | {TRANSCRIBE: Transcribe(ear, read)}  # type: ignore[method-assign]
    home.agent = agent_of(models, folder)


def store(life: Life) -> None:
    for part in (VOICE, OTHER, LONG):
        life.do(life.store.put_blob(Blob(digest=part.blob, size=part.size, media_type=part.media_type, file=f"{part.blob}-1"), at=1))


def speak(home: Home, life: Life, words: str = "done", part: content.BytesPart = VOICE) -> None:
    """A person sends a recording with some words, and everything it led to has come to rest."""
    update = home.server.write(ANN, ANN, content.of([TextPart(words), part]))
    arrive(life, update)


def arrive(life: Life, update: Update) -> None:
    life.arrived(update)
    life.rest()


def given(models: ScriptedModels, request: int = -1) -> list[str]:
    """What the model was told people said."""
    return [item.text for item in models.requests[request].history if isinstance(item, User)]


def test_a_model_that_takes_no_audio_is_given_the_words_in_this_turn_and_in_later_ones(
    home: Home, models: ScriptedModels, ear: Ear
) -> None:
    """P5"""
    life = home.start()
    store(life)
    speak(home, life)
    assert ear.heard == [(b"aaa", "voice.ogg", "audio/ogg")] and given(models) == [f"done\n\n{WORDS}"]
    life.say("again")
    assert given(models) == [f"done\n\n{WORDS}", "again"] and len(ear.heard) == 1
    assert not [item for item in models.requests[-1].history if isinstance(item, Step) and item.calls]
    speak(home, life, "the same")
    assert given(models)[-1] == f"the same\n\n{WORDS}" and len(ear.heard) == 1
    (call,) = [call for message in life.transcript().messages for call in message.tool_calls]
    assert (call.name, call.outcome, call.result) == (TRANSCRIBE, ToolOutcome.DONE, "Buy milk.")
    assert TRANSCRIBE not in [tool.name for tool in models.requests[0].request.tools]


def test_a_recording_that_steers_a_turn_is_heard_before_the_next_step(home: Home, models: ScriptedModels, ear: Ear) -> None:
    """P6"""
    life = home.start(busy={"default": Mode.STEER})
    store(life)
    life.write("look > deed 5 | done")
    home.server.write(ANN, ANN, content.of([TextPart("and"), VOICE]))
    life.rest()
    assert given(models, 0) == ["look > deed 5 | done"] and given(models)[-1] == f"and\n\n{WORDS}"
    assert len(models.requests) == 2 and len(ear.heard) == 1 and WORDS in life.answers()[0]


@pytest.mark.parametrize(
    ("wrong", "asked", "said"),
    [
        ([Busy("wait"), Busy("wait", retry_after_s=3)], 3, WORDS),
        ([Busy("wait")] * 3, 3, "[There is no transcript of voice.ogg. wait]"),
        ([Busy("come back tomorrow", retry_after_s=9999)], 1, "[There is no transcript of voice.ogg. come back tomorrow]"),
        ([Rejected("no such format")], 1, "[There is no transcript of voice.ogg. no such format]"),
    ],
)
def test_a_transcriber_that_fails_is_told_to_the_model_and_the_next_turn_may_try_again(
    home: Home, models: ScriptedModels, ear: Ear, wrong: list[ModelError], asked: int, said: str
) -> None:
    life = home.start()
    store(life)
    ear.wrong = list(wrong)
    speak(home, life)
    assert len(ear.heard) == asked and given(models) == [f"done\n\n{said}"] and life.outcomes() == ["completed"]
    ear.wrong = []
    speak(home, life, "once more")
    assert given(models)[-1] == f"once more\n\n{WORDS}"
    life.say("and now")  # What is known of a recording since is known of it everywhere.
    assert given(models) == [f"done\n\n{WORDS}", f"once more\n\n{WORDS}", "and now"]


def test_a_recording_that_is_too_long_or_silent_is_said_to_be(home: Home, models: ScriptedModels, ear: Ear) -> None:
    life = home.start()
    store(life)
    speak(home, life, part=LONG)
    assert not ear.heard and "It is too large for a transcriber: 25,000,001 bytes" in given(models)[0]
    ear.text = ""
    speak(home, life)
    assert given(models)[-1] == f"done\n\n[Transcript of voice.ogg:] {SILENCE}"


def test_without_a_transcriber_both_the_model_and_the_person_are_told(tmp_path: Path, models: ScriptedModels) -> None:
    with gateways.home(tmp_path) as home:
        prepare(home, models, None, tmp_path)
        life = home.start()
        store(life)
        speak(home, life)
        assert given(models) == [f"done\n\n[There is no transcript of voice.ogg. {NOBODY}]"]
        (call,) = life.transcript().messages[-1].tool_calls
        assert (call.outcome, call.result) == (ToolOutcome.FAILED, NOBODY)


def test_a_model_cannot_transcribe_by_itself(home: Home, models: ScriptedModels, ear: Ear) -> None:
    """It is not among its tools: another conversation's recording is none of its business."""
    life = home.start()
    store(life)
    life.say("look > transcribe x | done")
    (result,) = [item.event for item in life.events() if isinstance(item.event, e.ToolFinished)]
    assert "There is no tool 'transcribe'" in str(result.content) and "transcribe," not in str(result.content) and not ear.heard


class Kills:
    """One home after the other, each with one death. `kept`, `lost`: how often the transcript was on record by then, or not though it was
    made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self.kept, self.lost = folder, 0, 0

    def play(self, moment: str, commit: int) -> bool:
        """Whether there was such a commit to die at."""
        folder, models, ear = self._folder / f"{moment}-{commit}", ScriptedModels(), Ear()
        folder.mkdir()
        with gateways.home(folder) as home:
            prepare(home, models, ear, folder)
            life = home.start()
            store(life)
            life.say("hello")
            life.commits, life.dies = 0, (moment, commit)
            update = home.server.write(ANN, ANN, content.of([TextPart("done"), VOICE]))
            try:
                arrive(life, update)
            except Crash:
                made, recorded = len(ear.heard), "tool.finished" in home.records_on_disk(life.id_of(ANN))
                self.kept, self.lost = self.kept + recorded, self.lost + (made > 0 and not recorded)
                life = home.start()
                arrive(life, update)
                assert len(ear.heard) == made + (not recorded)
            assert life.outcomes() == ["completed"] * 2 and given(models) == ["hello", f"done\n\n{WORDS}"]
            results = [item.event.outcome for item in life.events() if isinstance(item.event, e.ToolFinished)]
            assert results == [ToolOutcome.DONE]
            return len(home.lives) > 1


def test_a_kill_before_or_after_any_commit_leaves_one_transcript_which_is_not_made_again(tmp_path: Path) -> None:
    """P4, P5"""
    kills = Kills(tmp_path)
    for commit in range(1, MOST_POINTS):
        if not any([kills.play(moment, commit) for moment in ("before", "after")]):
            break
    assert kills.kept and kills.lost, "no death fell before or after the record"


@pytest.mark.parametrize(
    ("used", "spent"),
    [
        (Used(model="whisper-1"), {"requests": 1, "unpriced": 1}),
        (Used(model="gpt-4o-transcribe", usage=Usage(input=70, output=5), cost=12), {"requests": 1, "input": 70, "output": 5, "cost": 12}),
    ],
    ids=["told nothing", "told and priced"],
)
def test_a_transcript_is_counted_once_for_its_turn_day_and_sender(
    home: Home, models: ScriptedModels, ear: Ear, used: Used, spent: dict[str, int]
) -> None:
    """P5, P7: the sums of the log and of the catalog agree, also after a restart."""
    ear.used = used
    life = home.start()
    store(life)
    speak(home, life)
    life.die()
    life = home.start()
    life.rest()
    [finished] = [item.event for item in life.events() if isinstance(item.event, e.ToolFinished)]
    assert finished.used is not None and finished.used.day is not None and finished.used.sender
    answered = [usage.of(item.event) for item in life.events() if isinstance(item.event, e.ModelResponded)]
    whole = sum(answered, Spent(**spent))
    turn, session_id = life.turn(), life.session(ANN).session_id
    account = life.do(life.store.account(session_id, turn_id=turn.id, day=finished.used.day, sender=finished.used.sender))
    assert turn.spent == whole and (account.turn, account.session, account.day, account.sender) == (whole,) * 4


def test_no_transcript_is_asked_for_where_a_limit_is_reached(home: Home, models: ScriptedModels, ear: Ear) -> None:
    ear.used = Used(model="gpt-4o-transcribe", usage=Usage(input=700, output=5))
    life = home.start(limits=SpendingLimits(session_tokens=600, asks=False))
    store(life)
    speak(home, life)
    assert life.outcomes() == ["failed"] and len(ear.heard) == 1 and models.requests == [], "it counts before the model is asked"
    speak(home, life, "again", OTHER)
    assert life.outcomes() == ["failed"] * 2 and len(ear.heard) == 1 and "limits.session_tokens" in (life.turn().error or "")
