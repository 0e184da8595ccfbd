"""Tools of MCP servers, against real processes: what is offered, what a call gives, and what no bad server can do (P5, P8)."""

import asyncio
import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast.config.mcp import McpServer
from holdfast.core.content import FilePart, ImagePart, attached
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.elicitation import Ask, Elicited, Given, Request, Resting, proceed
from holdfast.ports.tools import Answers, Asks, ToolResult
from holdfast.tools.mcp import server as servers
from tests.tools.mcp import SCRIPT, desk, lines, notes, over_http, scripted, until

pytestmark = pytest.mark.anyio
WIRES = ["pipes", "pipes modern", "http", "http modern"]


def serve(stack: ExitStack, wire: str, folder: Path, **settings: object) -> McpServer:
    """The scripted server on some wire."""
    words = tuple(wire.split()[1:])
    if wire.startswith("http"):
        return stack.enter_context(over_http(folder, *words, **settings))
    return scripted(folder, *words, **settings)


@pytest.mark.parametrize("wire", WIRES)
async def test_the_tools_of_a_server_are_offered_and_used(tmp_path: Path, wire: str) -> None:
    """Over both wires, with both generations of the protocol. It is started when a turn first needs it."""
    folder = tmp_path / "a"
    with ExitStack() as stack:
        server = serve(stack, wire, folder, tools=("e*", "add", "image", "slow", "fail", "odd"))
        async with desk(tmp_path / "home", a=server) as here:
            assert here.shown("a").state == "not started" and not here.processes
            tools = await here.tools()
            assert sorted(tools) == [f"mcp__a__{name}" for name in ("add", "echo", "fail", "image", "odd", "slow")]
            assert tools["mcp__a__echo"].description == "[From the MCP server a] Does echo."
            assert (here.shown("a").state, here.shown("a").tools) == ("running", 6)
            said = await here.run("a", "echo", text="hello")
            assert (said.outcome, said.content) == (ToolOutcome.DONE, "hello")
            added = await here.run("a", "add", key="t_1.0.1", line="one")
            assert (added.outcome, added.content) == (ToolOutcome.DONE, "added one") and lines(folder) == ["one"]
            assert notes(folder, "call")[-1]["key"] == "t_1.0.1"
            failed = await here.run("a", "fail")
            assert (failed.outcome, failed.content) == (ToolOutcome.FAILED, "it went wrong")
            odd = await here.run("a", "odd")
            assert odd.outcome is ToolOutcome.FAILED and "does not follow the protocol" in odd.text
            slow = await here.run("a", "slow", seconds=0.2, times=2)
            assert slow.content == "at last" and here.output == ["1 of 2: part 1\n", "2 of 2: part 2\n"]
            pictures = await here.run("a", "image")
            assert pictures.text == "a picture\n\n[The resource a link: file:///tmp/elsewhere]"
            assert [(type(part), part.media_type, part.name) for part in attached(pictures.content)] == [
                (ImagePart, "image/png", "image 2"),
                (FilePart, "application/octet-stream", "image 3"),  # It only says that it is a picture.
                (FilePart, "application/octet-stream", "notes.bin"),
            ]
            assert len(await here.tools()) == 6 and len(notes(folder, "started")) == 1


DIES = [("unsafe", "die", "unknown", 1), ("pure", "die_reading", "done", 2)]


@pytest.mark.parametrize(("effect", "tool", "outcome", "times"), DIES)
async def test_a_server_that_dies_in_a_call_leaves_it_unknown_or_it_is_made_again(
    tmp_path: Path, effect: str, tool: str, outcome: str, times: int
) -> None:
    """P5: by the effect, which is believed because the server is trusted."""
    async with desk(tmp_path / "home", a=scripted(tmp_path / "a", trusted=True)) as here:
        found = (await here.tools())[f"mcp__a__{tool}"]
        assert found.effect({}) == Effect(effect)
        said = await here.run("a", tool, line="one")
        assert said.outcome == ToolOutcome(outcome) and lines(tmp_path / "a") == ["one"] * times
        if outcome == "unknown":
            assert "It is not known whether it finished" in said.text and "exit code 3" not in said.text
        assert (await here.run("a", "echo", text="again")).content == "again" and len(notes(tmp_path / "a", "started")) == 2


@pytest.mark.parametrize("wire", ["pipes"])
async def test_a_server_that_dies_between_calls_is_started_again_and_nothing_is_unknown(tmp_path: Path, wire: str) -> None:
    """P5: its end is noticed when it comes, also that of one that only stopped working: it is asked for a sign of life first."""
    folder = tmp_path / "a"
    with ExitStack() as stack:
        async with desk(tmp_path / "home", a=serve(stack, wire, folder)) as here:
            assert (await here.run("a", "add", line="one")).outcome is ToolOutcome.DONE
            os.kill(notes(folder, "started")[0]["pid"], signal.SIGKILL)
            await until(lambda: here.shown("a").state == "failed")
            assert (here.shown("a").problem or "").startswith("it ended (ended by SIGKILL)")
            assert (await here.run("a", "add", line="two")).outcome is ToolOutcome.DONE
            assert lines(folder) == ["one", "two"]


async def test_a_server_that_has_rested_is_asked_for_a_sign_of_life_before_it_is_sent_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P5: one that stopped working meanwhile gets no call, and is replaced."""
    monkeypatch.setattr(servers, "REST_S", 0.0)
    monkeypatch.setattr(servers, "PROBE_S", 0.5)
    folder = tmp_path / "a"
    async with desk(tmp_path / "home", a=scripted(folder)) as here:
        assert (await here.run("a", "add", line="one")).outcome is ToolOutcome.DONE
        assert len(notes(folder, "ping")) == 1
        os.kill(notes(folder, "started")[0]["pid"], signal.SIGSTOP)
        assert (await here.run("a", "add", line="two")).outcome is ToolOutcome.DONE
        assert lines(folder) == ["one", "two"] and len(notes(folder, "started")) == 2


async def test_a_server_that_does_one_thing_at_a_time_is_not_ended_in_the_middle_of_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P5: it gives no sign of life and does not list its tools meanwhile, and nothing of that makes a call unknown."""
    for name, seconds in {"REST_S": 0.0, "PROBE_S": 0.2, "LIST_S": 0.2, "RELIST_S": 0.1}.items():
        monkeypatch.setattr(servers, name, seconds)
    folder = tmp_path / "a"
    async with desk(tmp_path / "home", a=scripted(folder, "busy")) as here:
        assert (await here.run("a", "change")).outcome is ToolOutcome.DONE
        tools = await here.tools()
        slow = here.tasks.spawn(here.use(tools["mcp__a__put"], line="one", seconds=1.0), name="a slow call")
        await until(lambda: lines(folder) == ["one"])
        other = await here.use(tools["mcp__a__echo"], text="two")
        assert (await slow).outcome is ToolOutcome.DONE and other.content == "two"
        await until(lambda: len(notes(folder, "tools/list")) >= 4)
        assert len(notes(folder, "started")) == 1


async def test_a_server_at_an_address_may_be_away_and_come_back(tmp_path: Path) -> None:
    """The gateway runs meanwhile, and a session that the server forgot is begun again: nothing was sent, so nothing is unknown."""
    folder = tmp_path / "a"
    with ExitStack() as stack:
        server = stack.enter_context(over_http(folder))
        port = f"port={server.url.rpartition(':')[2].partition('/')[0]}"
        async with desk(tmp_path / "home", a=server) as here:
            assert (await here.run("a", "add", line="one")).outcome is ToolOutcome.DONE
            tool = (await here.tools())["mcp__a__add"]
            stack.close()
            away = await here.use(tool, line="two")
            assert away.outcome is ToolOutcome.FAILED and "It was not run" in away.text and "no connection" in away.text
            assert "mcp__a__add" not in await here.tools()
            assert "the MCP server a is away (failed)" in (here.servers.missing("mcp__a__add") or "")
            stack.enter_context(over_http(folder, port))
            await until(lambda: here.shown("a").state == "failed")
            assert (await here.use(tool, line="three")).outcome is ToolOutcome.DONE
            stack.close()
            stack.enter_context(over_http(folder, port))
            assert (await here.use(tool, line="four")).outcome is ToolOutcome.DONE, "it was started again unnoticed"
            assert lines(folder) == ["one", "three", "four"]


@pytest.mark.parametrize("wire", ["pipes", "http", "http modern"])
async def test_a_call_that_takes_too_long_is_given_up_and_the_server_hears_of_it(tmp_path: Path, wire: str) -> None:
    """P3, P5: and so it does when the turn is stopped. Progress gives it more time, up to a limit."""
    folder = tmp_path / "a"
    with ExitStack() as stack:
        server = serve(stack, wire, folder, timeout_s=0.4)
        async with desk(tmp_path / "home", a=server, longest_s=3.0) as here:
            late = await here.run("a", "hang")
            assert late.outcome is ToolOutcome.UNKNOWN and "did not answer within 0.4 s" in late.text
            assert (await here.run("a", "slow", seconds=0.6, times=12)).content == "at last"
            tool = (await here.tools())["mcp__a__hang"]
            running = here.tasks.spawn(here.use(tool), name="a call")
            await until(lambda: len(notes(folder, "call")) == 3)
            running.cancel()
            await asyncio.wait({running})
            assert running.cancelled()
            told = "stream ended" if wire == "http modern" else "notifications/cancelled"
            await until(lambda: len([note for note in notes(folder, told) if note.get("method") != "subscriptions/listen"]) >= 2)
            assert (await here.run("a", "echo", text="still here")).content == "still here"
            assert len(notes(folder, "started")) == 1


@pytest.mark.parametrize("wire", ["pipes", "http modern"])
async def test_a_tool_that_is_described_differently_is_another_one(tmp_path: Path, wire: str) -> None:
    """What an attempt was given is refused, and the next one is given the tool as it is now."""
    folder = tmp_path / "a"
    with ExitStack() as stack:
        async with desk(tmp_path / "home", a=serve(stack, wire, folder)) as here:
            before = (await here.tools())["mcp__a__add"]
            await until(lambda: "modern" not in wire or notes(folder, "subscriptions/listen"))
            await here.run("a", "change")
            await until(lambda: len(notes(folder, "tools/list")) >= 4)
            now = before
            while now is before:
                now = (await here.tools())["mcp__a__add"]
                await asyncio.sleep(0.01)
            assert now.version != before.version and now.place("s", None) != before.place("s", None) and "Or else." in now.description
            refused = await here.use(before, line="one")
            assert refused.outcome is ToolOutcome.FAILED and "describes this tool differently" in refused.text
            assert (await here.use(now, line="two")).outcome is ToolOutcome.DONE and lines(folder) == ["two"]


@pytest.mark.parametrize("wire", ["pipes modern", "http modern"])
async def test_what_a_server_asks_can_wait_where_the_protocol_lets_it(tmp_path: Path, wire: str) -> None:
    """R5: the call rests, and is made again with the answer and the server's own state, also after the server was started again."""
    folder = tmp_path / "a"
    with ExitStack() as stack:
        async with desk(tmp_path / "home", a=serve(stack, wire, folder)) as here:
            tool = (await here.tools())["mcp__a__ask"]
            asks = await tool.run({"question": "Who?"}, here.context())
            assert isinstance(asks, Asks) and asks.state == "state of Who?"
            [request] = asks.requests
            assert (request.message, list(request.schema["properties"])) == ("Who?", ["name"])
            if wire.startswith("pipes"):
                os.kill(notes(folder, "started")[0]["pid"], signal.SIGKILL)
                await until(lambda: here.shown("a").state == "failed")
            answers = Answers(given={request.key: Given(action="accept", content={"name": "Ann"})}, state=asks.state)
            said = await tool.run({"question": "Who?"}, here.context(answers=answers))
            assert isinstance(said, ToolResult) and said.content == '{"action": "accept", "content": {"name": "Ann"}}'
            assert notes(folder, "answered")[-1]["state"] == "state of Who?"


@pytest.mark.parametrize("wire", ["pipes", "http"])
async def test_what_a_server_asks_while_a_call_runs_is_asked_while_it_runs(tmp_path: Path, wire: str) -> None:
    """However long the person takes. With calls of several conversations open, nobody knows whom to ask."""
    asked: list[Request] = []
    answers = asyncio.Event()

    async def ask(request: Request) -> Given | None:
        asked.append(request)
        await answers.wait()
        return Given(action="decline")

    with ExitStack() as stack:
        async with desk(tmp_path / "home", a=serve(stack, wire, tmp_path / "a", timeout_s=0.4)) as here:
            tool = (await here.tools())["mcp__a__ask"]
            asking = here.tasks.spawn(tool.run({"question": "Who?"}, here.context(ask=ask)), name="a call")
            await until(lambda: asked)
            await asyncio.sleep(0.5)
            answers.set()
            said = await asking
            assert isinstance(said, ToolResult) and said.content == '[{"action": "decline"}]' and asked[0].message == "Who?"
            running = here.tasks.spawn(here.run("a", "slow", seconds=5.0), name="a call of another conversation")
            await until(lambda: len(notes(tmp_path / "a", "call")) == 2)
            refused = await tool.run({"question": "Me?"}, here.context(ask=ask, session="other"))
            assert isinstance(refused, ToolResult) and refused.content == "[]" and len(asked) == 1
            running.cancel()
            await asyncio.wait({running})
            answers.clear()
            asking = here.tasks.spawn(tool.run({"question": "Who?", "times": 20}, here.context(ask=ask)), name="a call")
            await until(lambda: sum(note["refused"] for note in notes(tmp_path / "a", "told")) == 1 + 19)
            answers.set()
            many = await asking
            assert isinstance(many, ToolResult) and many.content == '[{"action": "decline"}]' and len(asked) == 2, "one at a time"


async def test_a_server_of_the_protocols_own_library_asks_and_continues_also_after_it_was_started_again(tmp_path: Path) -> None:
    """R5: it refuses the state of its former life, is asked from the beginning, and nobody has to answer twice. Our scripted server is held
    to what this one does.
    """
    library = McpServer(command=sys.executable, args=(str(SCRIPT.with_name("library.py")),))
    async with desk(tmp_path / "home", a=library) as here:
        tool = (await here.tools())["mcp__a__book"]
        asks = await tool.run({"seat": "12a"}, here.context())
        assert isinstance(asks, Asks) and [request.message for request in asks.requests] == ["Who are you?", "Are you sure?"]
        resting = Resting(elicited=Elicited(requests=asks.requests), answers={0: "name: Ann\nage: 7", 1: "yes"})
        given = proceed(resting)
        assert not isinstance(given, Ask)
        answers = Answers(requests=asks.requests, given=given, state=asks.state)
        for _ in range(2):
            booked = await tool.run({"seat": "12a"}, here.context(answers=answers))
            assert isinstance(booked, ToolResult) and booked.content == "12a for Ann, 7, sure: True"
            os.kill(here.processes[-1], signal.SIGKILL)
            await until(lambda: here.shown("a").state == "failed")
        assert (await here.run("a", "count", to=2)).content == "counted" and here.output == ["1 of 2: at 1\n", "2 of 2: at 2\n"]
