"""The terminal with real processes: when a command is over, what it leaves behind, and how all of it ends."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from holdfast import processes, tool_processes
from holdfast.core.effects import ToolOutcome
from holdfast.core.output import RESULT_HEAD, RESULT_TAIL
from holdfast.core.process_id import ProcessId
from holdfast.ports.tools import ToolContext, ToolResult
from holdfast.sandbox import Sandbox
from holdfast.tool_processes import SHARED
from holdfast.tools.confinement import Confinement
from holdfast.tools.surroundings import Surroundings
from holdfast.tools.terminal import Terminal
from holdfast.tools.workspaces import Workspaces
from tests.tools.sandboxes import holding

pytestmark = pytest.mark.anyio
# A turn that waits for what a command left in the background waits for ever. Everything here takes less than a second.
WITHIN_S = 60.0


@pytest.fixture(params=[("asyncio", "none"), ("uvloop", "none"), ("uvloop", "bubblewrap"), ("uvloop", "landlock")], ids="-".join)
def world(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The event loop and the sandbox. The two loops start processes in different ways; so do the sandboxes."""
    return cast(tuple[str, str], request.param)


@pytest.fixture
def anyio_backend(world: tuple[str, str]) -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": world[0] == "uvloop"}


class Bench:
    """A terminal, and what it put out. All sessions share its folder."""

    def __init__(self, around: Path, sandbox: Sandbox, timeout_s: float = 600.0) -> None:
        self.home, self.folder, self.sandbox = around / "home", around / "work", sandbox
        self.terminal = Terminal(
            home=self.home,
            owner="us",
            surroundings=Surroundings(
                workspaces=Workspaces(self.home, folder=self.folder, shared=True),
                confinement=Confinement(lambda: sandbox),
                environment=os.environ,
            ),
            timeout_s=timeout_s,
        )
        self.out = ""
        self.calls = 0

    def reached(self, killed: int, number: int) -> bool:
        """Whether that many were killed. A sandbox of its own processes has one more, and takes the others with it."""
        return 1 <= killed <= number + 1 if self.sandbox.hides_processes else killed == number

    @property
    def background(self) -> str:
        """How a result begins to tell what it left running."""
        return "still running in the background" + (", where other commands cannot see it" if self.sandbox.hides_processes else "")

    async def run(self, command: str, *, turn: str = "t1", session: str = "s1", **arguments: Any) -> ToolResult:
        self.calls += 1

        async def output(text: str) -> None:
            self.out += text

        context = ToolContext(
            session_id=session, session_key="k", generation=1, turn_id=turn, call_id=f"c{self.calls}", key="", output=output
        )
        async with asyncio.timeout(WITHIN_S):
            return await self.terminal.run({"command": command} | arguments, context)

    def running(self) -> list[ProcessId]:
        """Without the sandbox's own."""
        found = [process for process, _ in tool_processes.running(self.home)]
        return [process for process in found if not self.sandbox.runs_as(tool_processes.name(process))]

    async def until(self, happened: Any) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not happened():  # noqa: ASYNC110 - other processes tell nobody.
                await asyncio.sleep(0.01)

    async def pid(self, name: str) -> int:
        """What a command wrote into a file of this name."""
        await self.until(lambda: (self.folder / name).exists() and (self.folder / name).read_text().strip())
        return int((self.folder / name).read_text())

    async def stopped(self, command: str, *, when: Any) -> float:
        """Runs a command, stops it in the middle, and gives how long that took."""
        task = asyncio.ensure_future(self.run(command))
        await self.until(when)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - began


@pytest.fixture
async def bench(tmp_path: Path, world: tuple[str, str]) -> AsyncIterator[Bench]:
    for name in ("home", "work"):
        tmp_path.joinpath(name).mkdir()
    made = Bench(tmp_path, holding(world[1], tmp_path / "home", shared=tmp_path / "work"))
    yield made
    await made.terminal.reap(lambda name: False)


async def test_the_plain_case(bench: Bench) -> None:
    assert await bench.run("echo out; echo err >&2") == ToolResult(ToolOutcome.DONE, "out\nerr\n")
    assert bench.out == "out\nerr\n"
    assert await bench.run("echo no; exit 3") == ToolResult(ToolOutcome.FAILED, "no\n(exit code 3)")


@pytest.mark.parametrize(
    "command",
    [
        "sleep 600 >/dev/null 2>&1 &",
        "sleep 600 &",
        "(sleep 600 &) ; true",
        "setsid sleep 600 &",
        "setsid sh -c 'sleep 600 & exit' >/dev/null 2>&1",
        "nohup sleep 600 >/dev/null 2>&1 </dev/null &",
    ],
    ids=["redirected", "silent on our pipe", "double fork", "a session of its own", "a daemon", "nohup"],
)
async def test_what_a_command_leaves_in_the_background_holds_up_nothing_and_is_named(bench: Bench, command: str) -> None:
    """P3: it goes on, and the result says so."""
    result = await bench.run(f"echo before; {command}")
    await bench.until(bench.running)  # One that just becomes another program is not seen for a moment.
    [process] = bench.running()
    # A process that was just forked still has the name of its shell.
    said = [ToolResult(ToolOutcome.DONE, f"before\n({bench.background}: {name} (pid {process.pid}))") for name in ("sleep", "sh")]
    assert result in said


async def test_a_command_that_is_busy_in_the_background_is_left_in_peace(bench: Bench) -> None:
    """P3: it prints without end, is not waited for, and not held up or killed by a pipe that nobody reads."""
    result = await bench.run("(while true; do echo tick; echo x >> ticks; done) & echo started")
    assert "started\n" in result.text and f"({bench.background}: " in result.text
    size = (bench.folder / "ticks").stat().st_size
    await bench.until(lambda: (bench.folder / "ticks").stat().st_size > size + 100_000)


async def test_what_ends_with_the_command_is_not_said_to_be_left(bench: Bench) -> None:
    result = await bench.run("sleep 0.01 & for i in 1 2 3; do echo $i | cat | cat; done; wait")
    assert result == ToolResult(ToolOutcome.DONE, "1\n2\n3\n")


async def test_everything_the_command_itself_put_out_is_read_though_others_hold_the_pipe(bench: Bench) -> None:
    result = await bench.run("sleep 600 & seq 1 10000")
    assert result.text.startswith("1\n2\n") and "\n10000\n(still running" in result.text
    assert bench.out.splitlines() == [str(number) for number in range(1, 10001)]


async def test_a_command_that_a_signal_ends_says_which(bench: Bench) -> None:
    killed, ended = ("exit code 137", "exit code 143") if bench.sandbox.hides_processes else ("ended by SIGKILL", "ended by SIGTERM")
    assert await bench.run("echo half; kill -9 $$") == ToolResult(ToolOutcome.FAILED, f"half\n({killed})")
    assert await bench.run("kill -TERM $$") == ToolResult(ToolOutcome.FAILED, f"({ended})")


async def test_a_command_that_closes_its_output_is_over_when_it_ends(bench: Bench) -> None:
    result = await bench.run("echo last; exec >&- 2>&-; sleep 0.3; date > done; exit 4")
    assert result == ToolResult(ToolOutcome.FAILED, "last\n(exit code 4)")
    assert (bench.folder / "done").exists()


async def test_a_command_has_nothing_to_read(bench: Bench) -> None:
    assert await bench.run("cat; read line || echo none") == ToolResult(ToolOutcome.DONE, "none\n")


async def test_output_that_is_no_text_and_ends_without_a_line_end(bench: Bench) -> None:
    """F8: every byte becomes something, half a character too."""
    assert await bench.run(r"printf 'a\377b\303'") == ToolResult(ToolOutcome.DONE, "a\ufffdb\ufffd")
    assert await bench.run(r"printf 'h\303'; sleep 0.05; printf '\244lt'") == ToolResult(ToolOutcome.DONE, "hält")
    result = await bench.run("head -c 3000000 /dev/urandom")
    assert result.outcome is ToolOutcome.DONE and len(result.text) < RESULT_HEAD + RESULT_TAIL + 100
    assert "characters left out" in result.text


async def test_a_result_has_both_ends_of_a_long_output(bench: Bench) -> None:
    result = await bench.run("seq 1 1000000")
    assert result.text.startswith("1\n2\n") and result.text.endswith("\n1000000\n") and "characters left out ...]\n" in result.text
    assert len(bench.out) == 6_888_896


async def test_a_command_that_prints_without_end_leaves_room_for_others(bench: Bench) -> None:
    """P8"""
    task = asyncio.ensure_future(bench.run("yes"))
    longest = 0.0
    for _ in range(100):
        began = time.monotonic()
        await asyncio.sleep(0.005)
        longest = max(longest, time.monotonic() - began)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert longest < 0.5
    assert len(bench.out) < 100_000_000


async def test_two_hundred_commands_at_once_get_their_own_output_each(bench: Bench) -> None:
    results = await asyncio.gather(*(bench.run(f"sleep 0.1; echo number {number}") for number in range(200)))
    assert [result.text for result in results] == [f"number {number}\n" for number in range(200)]
    assert bench.running() == []


async def test_commands_that_run_at_the_same_time_inherit_nothing_of_each_other(bench: Bench) -> None:
    """P3: the first is over at once, though the second has started meanwhile and goes on."""
    slow = asyncio.ensure_future(bench.run("sleep 600"))
    await bench.until(bench.running)
    assert (await bench.run("ls /proc/self/fd")).text.split() == ["0", "1", "2", "3"]
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow


@pytest.mark.parametrize(
    "command",
    [
        "setsid sh -c 'echo $$ > pid; sleep 600' & sleep 600",
        "setsid sh -c 'trap \"\" TERM; echo $$ > pid; while true; do sleep 1; done' & sleep 600",
        "trap '' TERM HUP INT; echo $$ > pid; while true; do sleep 1; done",
        "(setsid sh -c '(sleep 600; true) & echo $! > pid' &) ; sleep 600",
    ],
    ids=["a session of its own", "a session of its own that does not listen", "a shell that does not listen", "a daemon"],
)
async def test_a_stop_ends_whatever_the_command_started(bench: Bench, command: str) -> None:
    """A21: within the time a stop has, wherever it went, whatever it ignores."""
    took = await bench.stopped(command, when=lambda: (bench.folder / "pid").exists() and (bench.folder / "pid").read_text().strip())
    assert took < 5
    assert bench.running() == []
    if not bench.sandbox.hides_processes:  # Inside, it has another number.
        assert processes.with_pid(await bench.pid("pid")) is None


async def test_a_hundred_commands_are_stopped_in_the_time_of_one(bench: Bench) -> None:
    """A21: a gateway that stops ends all of its commands at once."""
    tasks = [asyncio.ensure_future(bench.run("trap '' TERM; sleep 600; sleep 600")) for _ in range(100)]
    await bench.until(lambda: len(bench.running()) == 200)
    began = time.monotonic()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert time.monotonic() - began < 5
    assert bench.running() == []


async def test_a_stop_asks_before_it_kills(bench: Bench) -> None:
    command = "trap 'echo asked > asked; exit' TERM; echo $$ > pid; while true; do sleep 0.05; done"
    await bench.stopped(command, when=lambda: (bench.folder / "pid").exists())
    assert (bench.folder / "asked").read_text() == "asked\n"


async def test_a_stop_of_a_turn_ends_what_its_finished_calls_left_and_nothing_of_others(bench: Bench) -> None:
    """A21"""
    await bench.run("setsid sleep 600 >/dev/null 2>&1 &", turn="t1")
    mine = bench.running()
    await bench.run("setsid sleep 601 >/dev/null 2>&1 &", turn="t2")
    assert bench.reached(await bench.terminal.stop("t1"), 1)
    await bench.until(lambda: not any(processes.is_alive(process) for process in mine))
    assert len(bench.running()) == 1


async def test_with_bubblewrap_nothing_hides_by_clearing_its_environment(bench: Bench, world: tuple[str, str]) -> None:
    """A21: without, it is not found by the mark that it does not have."""
    if not bench.sandbox.hides_processes:
        pytest.skip("only bubblewrap has processes of its own")
    await bench.run("env -i setsid sh -c 'trap \"\" TERM; while true; do date +%N > beat; sleep 0.02; done' >/dev/null 2>&1 &")
    beat = bench.folder / "beat"
    await bench.until(lambda: beat.exists() and beat.read_text())
    assert await bench.terminal.stop("t1") >= 1
    await bench.until(lambda: not list(tool_processes.running(bench.home)))
    last = beat.read_text()
    await asyncio.sleep(0.2)
    assert beat.read_text() == last


async def test_what_a_life_left_is_reaped_when_it_is_over_and_not_before(bench: Bench) -> None:
    """C15, C29: per owner."""
    await bench.run("setsid sleep 600 >/dev/null 2>&1 & sleep 600 &")
    assert await bench.terminal.reap(lambda name: name == "us") == 0
    assert len(bench.running()) == 2
    assert bench.reached(await bench.terminal.reap(lambda name: name != "us"), 2)
    await bench.until(lambda: not bench.running())


async def test_a_command_that_cannot_be_started_says_why(bench: Bench) -> None:
    bench.folder.rmdir()
    bench.folder.write_text("in the way")
    result = await bench.run("true")
    assert result.outcome is ToolOutcome.FAILED and result.text.startswith("The command could not be started: ")


async def test_a_command_that_takes_too_long_is_ended_with_everything_it_started(bench: Bench) -> None:
    """P3: what it had put out until then is told, with why it is over."""
    began = time.monotonic()
    command = "echo half; setsid sh -c 'trap \"\" TERM; echo $$ > pid; while true; do sleep 1; done' & echo done; sleep 600"
    result = await bench.run(command, timeout_s=1)
    said = "half\ndone\n(not over after 1 s, so it was stopped with everything it had started)"
    assert result == ToolResult(ToolOutcome.FAILED, said)
    assert bench.running() == [] and time.monotonic() - began < WITHIN_S
    result = await bench.run("exec >&- 2>&-; sleep 600", timeout_s=0.2)
    assert result.text == "(not over after 0.2 s, so it was stopped with everything it had started)"
    result = await bench.run("yes", timeout_s=0.2)
    assert result.outcome is ToolOutcome.FAILED and result.text.startswith("y\ny\n") and "not over after 0.2 s" in result.text


@pytest.mark.parametrize("timeout_s", [0, -1, 601, "long", float("nan")])
async def test_a_timeout_must_be_one_that_is_allowed(bench: Bench, timeout_s: Any) -> None:
    result = await bench.run("touch done", timeout_s=timeout_s)
    assert result == ToolResult(ToolOutcome.FAILED, "`timeout_s` must be a number of seconds, at most 600.")
    assert not (bench.folder / "done").exists()


async def test_a_command_knows_its_turn_and_nothing_that_is_secret(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """E4"""
    monkeypatch.setenv("HOLDFAST_MODEL_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    fresh = Bench(bench.home.parent, bench.sandbox)
    variables = dict(line.split("=", 1) for line in (await fresh.run("env", turn="t9", session="s9")).text.splitlines())
    said = {name: variables[f"HOLDFAST_{name}"] for name in ("SESSION_KEY", "SESSION_ID", "GENERATION", "TURN_ID")}
    assert said == {"SESSION_KEY": "k", "SESSION_ID": "s9", "GENERATION": "1", "TURN_ID": "t9"}
    ours = {"HOLDFAST_OWNER", "HOLDFAST_CALL", *(f"HOLDFAST_{name}" for name in said)}
    assert set(variables) <= {*SHARED, *ours, "PWD", "OLDPWD", "SHLVL", "_"}
    assert "sk-secret" not in str(variables)
    assert (variables["HOME"] != os.environ.get("HOME")) is bench.sandbox.confines


async def test_what_a_session_left_in_the_background_ends_with_it_and_nothing_else_does(bench: Bench) -> None:
    """A28"""
    for session in ("s1", "s2"):
        await bench.run("sleep 600 >/dev/null 2>&1 &", turn=f"t.{session}", session=session)
    mine, other = bench.running()
    assert bench.reached(await bench.terminal.end_session("s1"), 1)
    await bench.until(lambda: bench.running() == [other])
    assert bench.reached(await bench.terminal.end_session("s2"), 1)
    await bench.until(lambda: not processes.is_alive(mine) and bench.running() == [])
