"""A model that is tried, and the list of what its provider offers."""

import asyncio
import subprocess
import sys
from typing import Any

import anthropic
import openai
import pytest

from holdfast.agents import trial
from holdfast.agents.wires import errors
from holdfast.config import Agent, BadConfig
from holdfast.ports.models import Busy, Cut, ModelError, NotAllowed
from tests.agents.wiring import KEY, WIRES
from tests.fakes.models import ModelServer, Reply, Script, call, serving, text

wires = pytest.mark.parametrize("wire", WIRES)
OFFERS = Script(replies=(Reply(say=text("ready")),), models=("fake", "other"), key=KEY)


async def tried(wire: str, server: ModelServer, *, key: str = KEY, **settings: Any) -> None:
    agent = Agent(model=f"{wire}:fake", base_url=server.url, **settings)
    await asyncio.to_thread(trial.answers, agent, agent.model, key=key, environment={})


async def listed(wire: str, server: "ModelServer | Answers", *, key: str = KEY) -> tuple[str, ...]:
    agent = Agent(model=f"{wire}:fake", base_url=server.url)
    return await asyncio.to_thread(trial.offered, agent, agent.model, key=key, environment={})


@wires
async def test_a_trial_is_one_request_as_the_agent_makes_them(wire: str) -> None:
    """With a tool and with the settings, because a model may refuse either."""
    async with serving(script=OFFERS) as server:
        await tried(wire, server, temperature=0.5, max_tokens=99)
    [asked] = server.requests
    assert asked.body["stream"] is True and asked.body.get("temperature", 0.5) == 0.5 and 99 in asked.body.values()
    assert len(asked.body["tools"]) == 1 and "ready" in str(asked.body)


@wires
@pytest.mark.parametrize("reply", [Reply(say=(call("ask_user", {"question": "Now?"}),)), Reply(say=text("rea"), finish="length")])
async def test_any_whole_response_passes(wire: str, reply: Reply) -> None:
    if reply.finish:
        reply = Reply(say=reply.say, finish={"responses": "max_output_tokens", "anthropic": "max_tokens"}.get(wire, "length"))
    async with serving(reply) as server:
        await tried(wire, server)


@wires
async def test_half_a_response_does_not_pass(wire: str) -> None:
    async with serving(Reply(say=text("rea", "dy"), stop_after=2)) as server:
        with pytest.raises(Cut):
            await tried(wire, server)


@wires
async def test_the_models_of_a_provider_are_listed_as_its_own_sdk_lists_them(wire: str) -> None:
    async with serving(script=OFFERS) as server:
        assert await listed(wire, server) == ("fake", "other")
        if wire == "anthropic":
            async with anthropic.AsyncAnthropic(api_key=KEY, base_url=server.root) as claude:
                assert [each.id async for each in claude.models.list()] == ["fake", "other"]
        else:
            async with openai.AsyncOpenAI(api_key=KEY, base_url=server.url) as client:
                assert [each.id async for each in client.models.list()] == ["fake", "other"]
        with pytest.raises(NotAllowed) as raised:
            await listed(wire, server, key="sk-wrong")
    assert raised.value.lacks == "key" and "sk-wrong" not in str(raised.value)


def test_a_list_that_nobody_serves_is_no_empty_one() -> None:
    with pytest.raises(Busy) as raised:
        trial.offered(Agent(model="chat:fake", base_url="http://127.0.0.1:9"), "chat:fake", key=KEY, environment={})
    assert raised.value.at_once and "Connection refused" in str(raised.value)


class Answers:
    """One HTTP answer, whatever is asked."""

    def __init__(self, answer: str) -> None:
        self._answer = answer.encode()
        self.asked: list[bytes] = []

    async def __aenter__(self) -> "Answers":
        self._server = await asyncio.start_server(self._meet, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self._answer)
        writer.close()


def ok(body: str) -> str:
    return f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"data": 3}', '{"data": [{"name": "x"}]}', "<html>"])
async def test_a_list_in_another_shape_is_none(body: str) -> None:
    async with Answers(ok(body)) as server:
        assert await listed("chat", server) == ()


async def test_names_are_those_that_a_request_takes() -> None:
    async with Answers(ok('{"data": [{"id": "models/gemini-x"}]}')) as server:
        assert await listed("chat", server) == ("gemini-x",)


async def test_a_key_does_not_follow_a_redirect_of_the_list() -> None:
    async with Answers(ok('{"data": []}')) as other, Answers(f"HTTP/1.1 302 Found\r\nLocation: {other.url}\r\n\r\n") as server:
        with pytest.raises(ModelError):
            await listed("chat", server)
    assert len(server.asked) == 1 and not other.asked


@pytest.mark.parametrize(
    ("status", "words", "lacks"),
    [
        (401, "Incorrect API key", "key"),
        (402, "Payment required", "credit"),
        (400, "Your credit balance is too low", "credit"),
        (403, "Not for you", "permission"),
        (404, "The model does not exist", "model"),
    ],
)
def test_a_refusal_says_what_is_missing(status: int, words: str, lacks: str) -> None:
    error = errors.error("p", errors.fault({"error": {"message": words}}, status=status))
    assert isinstance(error, NotAllowed) and error.lacks == lacks


async def test_a_model_is_tried_though_another_one_of_the_settings_cannot_be_asked() -> None:
    async with serving(script=OFFERS) as server:
        await tried("chat", server, fallbacks=("responses:without-an-address",))
        agent = Agent(model="chat:fake", base_url=server.url, fallbacks=("responses:x",))
        with pytest.raises(BadConfig, match="set base_url"):
            trial.check(agent, "responses:x", key=None, environment={})
        trial.check(agent, "chat:fake", key=None, environment={})


@pytest.mark.parametrize("words", [["--help"], ["setup", "--help"], ["doctor", "--help"]])
def test_help_waits_for_no_agent(words: list[str]) -> None:
    told = (
        "import sys\nfrom holdfast.cli.app import run\n"
        f"assert run({words!r}) == 0\n"
        "assert not [name for name in sys.modules if name.startswith(('holdfast.agents', 'holdfast.gateway', 'aiohttp', 'asyncio'))]"
    )
    subprocess.run([sys.executable, "-c", told], check=True, capture_output=True)
