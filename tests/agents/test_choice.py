"""Which models are asked for a conversation, and with whose key."""

import pytest

from holdfast.agents.choice import Choice
from holdfast.config import Agent, BadConfig
from holdfast.ports.models import Busy, ModelRequest, ModelSettings
from tests.fakes.models.script import Reply, Script, text
from tests.fakes.models.server import ModelServer

AGENT = Agent(model="openrouter:a", fallbacks=("groq:b", "openrouter:a"), models=("ollama:c", "groq:b"))


@pytest.mark.parametrize(
    ("chosen", "models"),
    [
        (None, ("openrouter:a", "groq:b")),
        ("openrouter:a", ("openrouter:a", "groq:b")),
        ("ollama:c", ("ollama:c", "groq:b", "openrouter:a")),
        ("groq:b", ("groq:b", "openrouter:a")),
        ("no:longer", ("openrouter:a", "groq:b")),
    ],
)
def test_the_chosen_model_is_asked_first_and_then_the_fallbacks(chosen: str | None, models: tuple[str, ...]) -> None:
    assert Choice(AGENT, key=None, environment={}).models(chosen) == models


async def _no_blob(digest: str) -> bytes:
    raise AssertionError(digest)


async def _ask(choice: Choice, name: str) -> None:
    client = choice.client(name)
    try:
        async for _ in client.stream(ModelRequest(system="", history=(), tools=(), read=_no_blob)):
            pass
    finally:
        await client.aclose()


async def test_a_key_and_an_address_go_to_the_provider_they_belong_to_and_to_no_other() -> None:
    server = ModelServer(Script(replies=(Reply(say=text("hello")),)))
    await server.start()
    try:
        agent = Agent(model="chat:a", models=("chat:b", "vllm:c"), base_url=server.url)
        choice = Choice(agent, key="sk-mine", environment={"OPENROUTER_API_KEY": "sk-other"})
        await _ask(choice, "chat:a")
        await _ask(choice, "chat:b")
        assert [asked.headers["authorization"] for asked in server.requests] == ["Bearer sk-mine"] * 2
        with pytest.raises(Busy):  # Its own address, where nobody listens here.
            await _ask(choice, "vllm:c")
        own = Choice(Agent(model="openrouter:a", base_url=server.url), key=None, environment={"OPENROUTER_API_KEY": "sk-other"})
        await _ask(own, "openrouter:a")
        assert server.requests[-1].headers["authorization"] == "Bearer sk-other"
    finally:
        await server.stop()


def test_what_is_configured_for_a_model_is_for_its_provider_and_for_no_other() -> None:
    """A fallback of another provider must not fail because of a field that it does not know."""
    agent = Agent(model="openrouter:a", models=("openrouter:b",), fallbacks=("anthropic:c",), takes=("audio",), extra={"top_p": 0.9})
    choice = Choice(agent, key=None, environment={})
    assert [choice.client(name).takes.kinds for name in ("openrouter:a", "openrouter:b")] == [{"audio"}] * 2
    assert choice.client("anthropic:c").takes.kinds == {"image", "file"}
    assert [choice.settings(name).extra for name in ("openrouter:b", "anthropic:c")] == [{"top_p": 0.9}, {}]
    nothing = Choice(Agent(model="anthropic:c", takes=(), max_tokens=7, effort="low"), key=None, environment={})
    assert nothing.client("anthropic:c").takes.kinds == frozenset()
    assert nothing.settings("openai:d") == ModelSettings(max_tokens=7, effort="low")


@pytest.mark.parametrize(
    ("agent", "key", "words"),
    [
        (
            Agent(model="openrouter:a", fallbacks=("nobody:b",)),
            None,
            "The model nobody:b cannot be asked. 'nobody' is none of Holdfast's own providers (openai, ",
        ),
        (Agent(model="chat:a"), None, "needs an address: set base_url"),
        (Agent(model="openrouter:a", models=("chat:b",), base_url="http://127.0.0.1"), None, "The model chat:b"),
        (Agent(model="openrouter:a"), "sk \u00f6", "characters that no key has"),
    ],
)
def test_a_model_that_cannot_be_asked_is_a_wrong_setting_at_the_start(agent: Agent, key: str | None, words: str) -> None:
    with pytest.raises(BadConfig) as caught:
        Choice(agent, key=key, environment={})
    assert words in str(caught.value)
