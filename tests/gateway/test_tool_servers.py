"""Tools of servers, which come and go: what an attempt is given of them, and what it waits for (P5, P8)."""

import asyncio
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.plans.answer import Answer
from holdfast.gateway.toolbox import Toolbox
from holdfast.ports.tools import Tool, ToolContext, ToolResult
from holdfast.tools.plain import PlainTool
from tests.fakes.models_scripted import ScriptedModels
from tests.gateway import gateways
from tests.gateway.gateways import Home, Life
from tests.gateway.models import agent_of


class Served(PlainTool):
    """A tool of a server. What it was given is in `ran`."""

    def __init__(self, name: str, *, version: str = "1", effect: Effect = Effect.PURE, ran: list[dict[str, Any]] | None = None) -> None:
        self.name, self.version, self._effect, self._ran = name, version, effect, ran if ran is not None else []
        self.description = f"{name} as of version {version}"

    def effect(self, arguments: dict[str, Any]) -> Effect:
        return self._effect

    def place(self, session_id: str, folder: str | None) -> str:
        return f"the server, version {self.version}"

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        self._ran.append(arguments)
        return ToolResult(ToolOutcome.DONE, f"{self.name} {self.version}")


class Servers:
    """`tools`: what they have now. `takes_s`: how long it takes until that is known; nobody waits longer than a second, except for tools
    that are wanted.
    """

    name = "servers"

    def __init__(self) -> None:
        self.tools: list[Tool] = []
        self.takes_s = 0.0
        self.wanted: list[Collection[str]] = []
        self.closed = 0

    async def offered(self, wanted: Collection[str]) -> Sequence[Tool]:
        self.wanted.append(wanted)
        there = self.takes_s <= 1.0 or any(tool.name in wanted for tool in self.tools)
        await asyncio.sleep(self.takes_s if there else 1.0)
        return list(self.tools) if there else []

    def missing(self, name: str) -> str | None:
        return "the server a is away." if name.startswith("mcp__a__") else None

    async def aclose(self) -> None:
        self.closed += 1


@pytest.fixture
def models() -> ScriptedModels:
    return ScriptedModels()


@pytest.fixture
def servers() -> Servers:
    return Servers()


@pytest.fixture
def home(tmp_path: Path, models: ScriptedModels, servers: Servers) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        made.agent = agent_of(models, tmp_path)
        made.tool_servers = servers
        yield made


def ask(life: Life, text: str) -> str:
    page = life.open_page()
    life.post(page, text)
    life.rest(page)
    return page


def told(models: ScriptedModels, number: int) -> set[str]:
    """The tools of servers that a model was told of."""
    return {tool.description for tool in models.requests[number].request.tools if tool.name.startswith("mcp__")}


def test_a_model_is_told_of_the_tools_that_are_there_and_the_same_ones_for_the_whole_turn(
    home: Home, models: ScriptedModels, servers: Servers
) -> None:
    life = home.start()
    page = ask(life, "nothing there")
    servers.tools = [Served("mcp__a__look")]
    life.post(page, "go > mcp__a__look x > deed 2 | more > mcp__a__look y | done")
    life.until(lambda: len(models.requests) == 2)
    servers.tools = [Served("mcp__a__look", version="2"), Served("mcp__b__new")]
    life.rest(page)
    assert life.answers(page)[-1] == "done [done mcp__a__look 1] [done done] [done mcp__a__look 1]"
    life.post(page, "again > mcp__b__new z | done")
    life.rest(page)
    assert [told(models, number) for number in range(5)] == [
        set(),
        *[{"mcp__a__look as of version 1"}] * 3,
        {"mcp__a__look as of version 2", "mcp__b__new as of version 1"},
    ]
    life.stop()
    assert servers.closed == 1


def test_no_turn_waits_long_for_a_server_and_one_whose_call_is_open_waits_until_it_is_there(home: Home, servers: Servers) -> None:
    """P5, P8: after a death, a call that only reads is made again, and its server has to start first."""
    servers.tools, servers.takes_s = [Served("mcp__a__slow")], 8.0
    life = home.start()
    page = ask(life, "go > mcp__a__slow x | done")
    assert "It was not run: the server a is away." in life.answers(page)[0]
    servers.takes_s = 0.0

    class Hanging(Served):
        async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
            return await asyncio.Event().wait()  # type: ignore[return-value]

    servers.tools = [Hanging("mcp__a__slow")]
    life.post(page, "go > mcp__a__slow x | done")
    life.until(lambda: "tool.started" in home.records_on_disk(page)[-3:])
    life.die()
    servers.tools, servers.takes_s = [Served("mcp__a__slow")], 8.0
    life = home.start()
    life.rest(page)
    assert life.answers(page)[-1] == "done [done mcp__a__slow 1]" and set(servers.wanted[-1]) == {"mcp__a__slow"}


def test_a_stop_ends_a_turn_that_waits_for_a_server(home: Home, servers: Servers) -> None:
    """A21"""
    servers.tools, servers.takes_s = [Served("mcp__a__look")], 0.9
    life = home.start()
    page = life.open_page()
    life.post(page, "go")
    life.until(lambda: bool(servers.wanted))
    life.do(life.gateway.stop_turn(page, by="owner", client_id=None))
    life.rest(page)
    assert life.outcomes(page) == ["cancelled"]


def test_what_was_allowed_of_a_tool_is_not_allowed_once_it_is_described_differently(home: Home, servers: Servers) -> None:
    """P5: neither by a rule of the conversation nor by an approval that was given for the tool as it was."""
    ran: list[dict[str, Any]] = []

    def serve(version: str) -> None:
        servers.tools = [Served("mcp__a__act", version=version, effect=Effect.UNSAFE, ran=ran)]

    def answer(scope: str) -> str:
        [question] = life.transcript(page).questions
        life.do(life.gateway.judge(question.question_id, Answer(by="owner", verdict="approve", scope=scope)))
        return f"{question.pattern} in {question.text.partition('?')[0]}"

    serve("1a")
    life = home.start()
    page = life.open_page()
    life.post(page, "go > mcp__a__act x | done")
    life.until(lambda: life.session(page).state == "waiting")
    assert answer("session") == "mcp__a__act@1a in May I run `mcp__a__act` in the server, version 1a"
    life.rest(page)
    life.post(page, "go > mcp__a__act y | done")
    life.rest(page)
    assert len(ran) == 2, "the rule counts as long as the tool is the same"
    serve("2b")
    life.post(page, "go > mcp__a__act z | done")
    life.until(lambda: life.session(page).state == "waiting")
    serve("3c")
    assert answer("once").startswith("mcp__a__act@2b")
    life.until(lambda: life.session(page).state == "waiting")
    assert len(ran) == 2 and answer("once").startswith("mcp__a__act@3c"), "the approval was for the tool as it was"
    life.rest(page)
    assert len(ran) == 3 and life.outcomes(page) == ["completed"] * 3


def test_a_schema_of_others_makes_nobody_fetch_or_read_anything(tmp_path: Path) -> None:
    """P8: neither an address nor a file of this machine; a schema that cannot be used checks nothing."""
    file = tmp_path / "schema.json"
    file.write_text('{"type": "string"}')
    for number, reference in enumerate((f"file://{file}", "http://127.0.0.1:9/schema.json")):
        tool = Served(f"mcp__a__{number}")
        tool.schema = {"type": "object", "properties": {"a": {"$ref": reference}}}
        assert Toolbox({}).problem(tool.name, tool, {"a": 1}) is None
    strict = Served("mcp__a__strict")
    strict.schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/word"}}, "$defs": {"word": {"type": "string"}}}
    box = Toolbox({})
    assert "is not of type" in (box.problem(strict.name, strict, {"a": 1}) or "")
    strict.schema = {"type": "object"}
    assert box.problem(strict.name, strict, {"a": 1}) is None, "the newest description counts"
