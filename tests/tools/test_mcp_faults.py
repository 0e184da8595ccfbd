"""Bad MCP servers, and malicious ones: whatever one does, it fails alone (P8)."""

import asyncio
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.effects import ToolOutcome
from holdfast.core.mcp import MOST_TOOLS, tool_name
from holdfast.core.redaction import Secrets
from tests.fakes.mcp.logic import tool
from tests.pulse import undisturbed
from tests.tools.mcp import desk, lines, notes, over_http, scripted, until, write_tools
from tests.tools.sandboxes import holding

pytestmark = pytest.mark.anyio
# No server may hold up the event loop for longer than this.
HELD_UP_S = 1.0


FAULTS = {
    "silent": "did not start within",
    "exits": "it ended (exit code 4): no key was given",
    "garbage": "did not start within",
    "huge": "did not start within",
}


async def test_servers_that_do_not_start_are_named_and_left_alone(tmp_path: Path) -> None:
    """P8: the others work, and no turn waits for them again and again."""
    # The one that ends must have come so far.
    bad = {fault: scripted(tmp_path / fault, fault, start_timeout_s=60 if fault == "exits" else 0.7) for fault in FAULTS}
    async with desk(tmp_path / "home", None, None, **{"good": scripted(tmp_path / "good"), **bad}) as here:  # type: ignore[arg-type]
        async with undisturbed(HELD_UP_S):
            assert (await here.run("good", "echo", text="hello")).content == "hello"
            await until(lambda: all(here.shown(fault).state == "failed" for fault in FAULTS))
            for fault, why in FAULTS.items():
                assert why in (here.shown(fault).problem or "")
            for _ in range(5):
                assert {name.split("__")[1] for name in await here.tools()} == {"good"}
        assert (await here.run("good", "echo", text="still")).content == "still"


async def test_a_server_that_ends_at_once_is_not_started_over_and_over(tmp_path: Path) -> None:
    """P8: each time it is left alone for longer, and a call that needs it says when it is tried again."""
    marks = tmp_path / "starts"
    marks.touch()
    loop = scripted(tmp_path / "a")
    ends = type(loop)(command="/bin/sh", args=("-c", f"echo . >> {marks}; exit 1"))
    async with desk(tmp_path / "home", a=ends) as here:
        clock = asyncio.get_running_loop().time
        end = clock() + 1.5
        while clock() < end or len(marks.read_text().splitlines()) < 2:
            await here.tools()
            await asyncio.sleep(0.01)
        assert len(marks.read_text().splitlines()) <= 4


async def test_an_answer_that_is_too_long_is_not_taken_and_a_long_one_is_shortened(tmp_path: Path) -> None:
    """P8"""
    async with desk(tmp_path / "home", a=scripted(tmp_path / "a")) as here:
        await here.tools()
        async with undisturbed(HELD_UP_S):
            huge = await here.run("a", "big", size=20_000_000)
            assert huge.outcome is ToolOutcome.FAILED and "longer than 8 MB" in huge.text
            long = await here.run("a", "big", size=7_000_000)
            assert long.outcome is ToolOutcome.DONE and len(long.text) < 70_000 and "characters left out" in long.text
        assert len(notes(tmp_path / "a", "started")) == 1


@pytest.mark.parametrize("wire", ["pipes", "http"])
async def test_an_answer_of_too_many_values_is_not_read(tmp_path: Path, wire: str) -> None:
    """P8: a few megabytes of them would keep everybody waiting for seconds, and take a hundred times their size."""
    with ExitStack() as stack:
        words = wire.split()[1:]
        server = stack.enter_context(over_http(tmp_path / "a", *words)) if "http" in wire else scripted(tmp_path / "a")
        async with desk(tmp_path / "home", a=server) as here:
            await here.tools()
            async with undisturbed(HELD_UP_S):
                odd = await here.run("a", "values", count=2_000_000)
            assert odd.outcome is not ToolOutcome.DONE and "made of more than 100,000 values" in odd.text
            assert (await here.run("a", "values", count=100)).outcome is ToolOutcome.DONE


@pytest.mark.parametrize(("fault", "why"), [("astray", "failed"), ("packed", "compressed")])
async def test_an_address_that_misbehaves_is_a_server_that_failed(tmp_path: Path, fault: str, why: str) -> None:
    """P8: also where it breaks the library itself. It is tried again later, by the same task."""
    with over_http(tmp_path / "a", fault) as server:
        async with desk(tmp_path / "home", a=server, good=scripted(tmp_path / "good")) as here:
            for _ in range(3):
                assert not [name for name in await here.tools() if name.startswith("mcp__a__")]
            assert here.shown("a").state == "failed" and (why == "failed" or why in (here.shown("a").problem or ""))
            assert (await here.run("good", "echo", text="hello")).content == "hello"


async def test_a_server_that_never_stops_talking_is_heard_at_its_own_pace(tmp_path: Path) -> None:
    """P8: the others hardly notice."""
    async with desk(tmp_path / "home", a=scripted(tmp_path / "a"), good=scripted(tmp_path / "good")) as here:
        await here.tools()
        talking = here.tasks.spawn(here.run("a", "flood", times=1_000_000), name="a call")
        async with undisturbed(HELD_UP_S):
            for number in range(5):
                assert (await here.run("good", "echo", text=f"hello {number}")).content == f"hello {number}"
                await asyncio.sleep(0.1)
        talking.cancel()
        await asyncio.wait({talking})


async def test_an_answer_over_http_that_is_too_long_is_not_taken(tmp_path: Path) -> None:
    """P8: and no other call is lost with it."""
    with over_http(tmp_path / "a") as server:
        async with desk(tmp_path / "home", a=server) as here:
            other = here.tasks.spawn(here.run("a", "slow", seconds=1.0), name="another call")
            await until(lambda: notes(tmp_path / "a", "call"))
            async with undisturbed(HELD_UP_S):
                huge = await here.run("a", "big", size=20_000_000)
            assert huge.outcome is ToolOutcome.UNKNOWN and "longer than 8 MB" in huge.text
            assert (await other).content == "at last" and len(notes(tmp_path / "a", "started")) == 1


async def test_a_server_that_prints_other_things_between_its_messages_is_understood(tmp_path: Path) -> None:
    async with desk(tmp_path / "home", a=scripted(tmp_path / "a")) as here:
        assert (await here.run("a", "noise", lines=500)).content == "that was noise"


async def test_a_server_that_reads_no_more_holds_up_nobody_and_is_replaced(tmp_path: Path) -> None:
    """A21: a stop does not wait for it."""
    async with desk(tmp_path / "home", a=scripted(tmp_path / "a", "deaf", timeout_s=0.5)) as here:
        add = (await here.tools())["mcp__a__add"]
        filling = [here.tasks.spawn(here.use(add, line="x" * 300_000), name="a call") for _ in range(2)]
        await asyncio.sleep(0.1)
        for call in filling:
            call.cancel()
        await asyncio.wait(filling, timeout=30.0)
        assert all(call.cancelled() for call in filling)
        await until(lambda: here.shown("a").state != "running")
        assert lines(tmp_path / "a") == []


async def test_a_server_that_does_not_want_to_end_is_killed_with_all_it_started(tmp_path: Path) -> None:
    """Also what left its session and ignores signals."""
    server = scripted(tmp_path / "a", "stays")
    line = f"setsid sleep 1000 & exec {' '.join((server.command, *server.args))}"
    async with desk(tmp_path / "home", a=type(server)(command="/bin/sh", args=("-c", line))) as here:
        assert (await here.run("a", "echo", text="hello")).content == "hello"
        assert len(here.processes) == 2


DEEP: dict[str, Any] = {}
for _ in range(60):
    DEEP = {"items": DEEP}
WRONG = [
    tool("good"),
    tool("good", "Another one of that name."),
    tool(""),
    tool("deep", schema={"type": "object", "properties": {"a": DEEP}}),
    tool("large", schema={"type": "object", "description": "x" * 40_000}),
    tool("named", schema={"type": "object", "properties": {"an argument": {}}}),
]


async def test_tools_that_no_provider_would_take_are_left_out_and_named(tmp_path: Path) -> None:
    """P8: one of them would end every answer of every conversation."""
    write_tools(tmp_path / "a", [*WRONG, *(tool(f"more_{number}") for number in range(200))])
    async with desk(tmp_path / "home", a=scripted(tmp_path / "a")) as here:
        tools = await here.tools()
        assert len(tools) == MOST_TOOLS and tools["mcp__a__good"].description == "[From the MCP server a] Does good."
        left_out = {said.partition(":")[0] for said in here.shown("a").left_out}
        assert left_out >= {"good", "", "deep", "large", "named"}


async def test_a_list_that_does_not_follow_the_protocol_is_not_believed(tmp_path: Path) -> None:
    """It is named, with the place in it that is wrong."""
    write_tools(tmp_path / "a", [tool("good"), tool("text", schema={"type": "string"})])
    async with desk(tmp_path / "home", a=scripted(tmp_path / "a")) as here:
        assert await here.tools() == {}
        assert here.shown("a").problem == "its answer does not follow the protocol (at tools.0.inputSchema.type)"


async def test_names_that_providers_refuse_are_changed_and_stay_apart(tmp_path: Path) -> None:
    names = ["a.b", "a b", "a/b", "ä", "x" * 200, "x" * 201]
    write_tools(tmp_path / "a", [tool(name) for name in names])
    async with desk(tmp_path / "home", a=scripted(tmp_path / "a")) as here:
        tools = await here.tools()
        assert sorted(tools) == sorted(tool_name("a", name) for name in names) and len(tools) == len(names)


async def test_a_list_without_an_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "endless").touch()
    async with desk(tmp_path / "home", a=scripted(tmp_path / "a")) as here:
        assert 0 < len(await here.tools()) <= MOST_TOOLS


async def test_a_server_sees_what_tools_see_and_what_it_is_given_and_nothing_else(tmp_path: Path) -> None:
    """Its secrets come from the environment or a file, and what it says of them is recorded nowhere."""
    known = Secrets()
    home = tmp_path / "home"
    home.mkdir()
    (home / "notes.key").write_text("from-a-file-42\n")
    (home / "notes.key").chmod(0o600)
    given = {"API_KEY": "${NOTES_KEY}", "TOKEN": "Bearer ${file:notes.key}", "MODE": "quiet"}
    variables = {**os.environ, "NOTES_KEY": "from-a-variable-42", "HOLDFAST_TOKEN": "never-this-one", "OTHER_KEY": "nor-this-one"}
    server = scripted(tmp_path / "a", env=given)
    async with desk(home, secrets=known, variables=variables, a=server) as here:
        await here.tools()
        [started] = notes(tmp_path / "a", "started")
        seen = started["environment"]
        assert (seen["API_KEY"], seen["TOKEN"], seen["MODE"]) == ("from-a-variable-42", "Bearer from-a-file-42", "quiet")
        assert not {"NOTES_KEY", "HOLDFAST_TOKEN", "OTHER_KEY"} & seen.keys()
        assert known.text("from-a-variable-42 from-a-file-42") == "[secret NOTES_KEY] [secret notes.key]"
        (home / "notes.key").chmod(0o644)
        os.kill(started["pid"], 9)
        await until(lambda: here.shown("a").state == "failed")
        await here.tools()
        assert "Others can read the secret" in (here.shown("a").problem or "")


@pytest.mark.parametrize("mode", ["bubblewrap", "landlock"])
async def test_a_server_runs_in_the_sandbox_with_the_folders_it_is_given(tmp_path: Path, mode: str) -> None:
    """The home folder is not there for it."""
    home, project, elsewhere = tmp_path / "home", tmp_path / "project", tmp_path / "elsewhere"
    for each in (home, project, elsewhere):
        each.mkdir()
    (home / "token").write_text("the-token")
    sandbox = holding(mode, home)
    look = f"cat {home}/token {elsewhere}/secret; echo from inside > {project}/file; pwd"
    (elsewhere / "secret").write_text("another-secret")

    async def said(**more: Any) -> str:
        server = type(scripted(project))(command="/bin/sh", args=("-c", f"({look}) >&2; exit 1"), start_timeout_s=10.0, **more)
        async with desk(home, sandbox, a=server) as here:
            await here.tools()
            await until(lambda: here.shown("a").state == "failed")
            return here.shown("a").problem or ""

    assert (await said(folders=(str(project),))).endswith(str(project)) and (project / "file").read_text() == "from inside\n"
    (project / "file").unlink()
    inside = await said()
    assert "the-token" not in inside and inside.endswith("mcp/a/work") and not (project / "file").exists()
    assert (await said(sandbox=False)).endswith("mcp/a/work") and (project / "file").exists()
