"""Recordings become words at a provider's `/audio/transcriptions`. The official SDK says how such a request looks."""

from typing import Any

import msgspec
import openai
import pytest

from holdfast.agents.choice import Choice
from holdfast.agents.wires import providers
from holdfast.config import Agent, BadConfig
from holdfast.config.agent import ModelPrice
from holdfast.core.events import Usage, Used
from holdfast.ports.models import Busy, ModelError, NotAllowed, Rejected, Transcriber
from tests.agents.wiring import KEY
from tests.fakes.models import ModelServer, Script, serving

RECORDING = bytes(range(256)) * 8


def transcriber(server: ModelServer, **more: str) -> Transcriber:
    return providers.transcriber("openai:whisper-1", base_url=server.url, **({"key": KEY} | more))  # type: ignore[arg-type]


def hearing(*transcripts: str | int | dict[str, Any], key: str | None = None) -> Script:
    return Script(replies=(), transcripts=transcripts, key=key)


async def test_a_recording_is_sent_as_the_sdk_sends_it() -> None:
    async with serving(script=hearing(" Buy milk. \n", "Buy bread.")) as server:
        heard = await transcriber(server).words(RECORDING, name="voice.ogg", media_type="audio/ogg")
        assert heard.text == "Buy milk." and heard.used == Used(provider="openai", model="whisper-1")
        async with openai.AsyncOpenAI(api_key=KEY, base_url=server.url, max_retries=0) as client:
            sent = ("recording.ogg", RECORDING, "audio/ogg")
            made = await client.audio.transcriptions.create(model="whisper-1", file=sent, response_format="json")
        assert made.text == "Buy bread."
        ours, theirs = server.heard
    assert (ours.fields, ours.file_name, ours.media_type, ours.recording) == (
        theirs.fields, theirs.file_name, theirs.media_type, theirs.recording,
    )  # fmt: skip
    assert ours.recording == RECORDING and ours.headers["authorization"] == theirs.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("told", "price", "expected"),
    [
        ({"type": "tokens", "input_tokens": 14, "output_tokens": 45, "total_tokens": 59}, None, Used(usage=Usage(input=14, output=45))),
        ({"type": "tokens", "input_tokens": 14, "output_tokens": 45}, 2.0, Used(usage=Usage(input=14, output=45), cost=118)),
        ({"type": "duration", "seconds": 3}, 2.0, Used()),
        ("much", 2.0, Used()),
        (None, 2.0, Used()),
    ],
)
async def test_what_a_transcript_used_is_told_where_the_provider_tells_it(told: Any, price: float | None, expected: Used) -> None:
    """Seconds have no price here, so their cost is not known."""
    models = {"openai:whisper-1": ModelPrice(input=price, output=price)} if price is not None else {}
    async with serving(script=hearing({"text": "Hi.", "usage": told})) as server:
        agent = Agent(model="openai:gpt-5", base_url=server.url, transcriber="openai:whisper-1", prices=models)
        chosen = Choice(agent, key=KEY, environment={}).transcriber
        assert chosen is not None
        heard = await chosen.words(b"x", name="a.ogg", media_type="audio/ogg")
    assert heard.used == msgspec.structs.replace(expected, provider="openai", model="whisper-1")


@pytest.mark.parametrize(
    ("name", "media_type", "sent"),
    [
        ("voice.OGG", "audio/ogg", "recording.ogg"),
        ("Gr\u00fc\u00dfe.mp3", "audio/mpeg", "recording.mp3"),
        ("voice", "audio/webm; codecs=opus", "recording.webm"),
        ("note.bin", "audio/x-m4a", "recording.m4a"),
        ("recording", "audio/strange", "recording.ogg"),
    ],
)
async def test_the_name_of_a_recording_tells_its_format(name: str, media_type: str, sent: str) -> None:
    async with serving(script=hearing("x")) as server:
        await transcriber(server).words(b"x", name=name, media_type=media_type)
        (heard,) = server.heard
    assert heard.file_name == sent


@pytest.mark.parametrize(
    ("status", "error"), [(401, NotAllowed), (429, Busy), (500, Busy), (400, Rejected), (302, Rejected), (200, Rejected)]
)
async def test_a_refusal_is_an_error_without_the_key(status: int, error: type[ModelError]) -> None:
    async with serving(script=hearing(status)) as server:
        with pytest.raises(error) as raised:
            await transcriber(server).words(b"x", name="a.ogg", media_type="audio/ogg")
    assert KEY not in str(raised.value) and raised.value.__cause__ is None and raised.value.__context__ is None


async def test_a_server_without_transcriptions_and_one_that_is_not_there_are_errors() -> None:
    async with serving(script=Script(replies=())) as server:
        with pytest.raises(NotAllowed):
            await transcriber(server).words(b"x", name="a.ogg", media_type="audio/ogg")
        gone = transcriber(server)
    with pytest.raises(Busy) as raised:
        await gone.words(b"x", name="a.ogg", media_type="audio/ogg")
    assert raised.value.at_once


async def test_a_key_goes_to_the_provider_it_belongs_to_and_to_no_other() -> None:
    async with serving(script=hearing("x")) as server:
        own = Choice(Agent(model="chat:a", transcriber="chat:w", base_url=server.url), key="sk-mine", environment={})
        assert own.transcriber is not None
        await own.transcriber.words(b"x", name="a.ogg", media_type="audio/ogg")
        assert (server.heard[0].headers["authorization"], server.heard[0].fields["model"]) == ("Bearer sk-mine", "w")
        other = Choice(Agent(model="chat:a", transcriber="vllm:w", base_url=server.url), key="sk-mine", environment={})
        assert other.transcriber is not None
        with pytest.raises(Busy):  # Its own address, where nobody listens here.
            await other.transcriber.words(b"x", name="a.ogg", media_type="audio/ogg")
    assert Choice(Agent(model="openai:a"), key=None, environment={}).transcriber is None


@pytest.mark.parametrize("name", ["anthropic:a", "nobody:b"])
def test_a_provider_without_transcriptions_is_a_wrong_setting(name: str) -> None:
    with pytest.raises(BadConfig, match=f"The transcriber {name} cannot be asked. Holdfast knows no transcriptions of"):
        Choice(Agent(model="openai:a", transcriber=name), key=None, environment={})
