"""`holdfast acp`: an editor, played by the client of the protocol's official library, talks to a gateway that is killed under it."""

import asyncio
import base64
import json
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from acp import PROTOCOL_VERSION, Client, RequestError, schema, spawn_agent_process, text_block

from holdfast.cli.acp import prompts
from holdfast.cli.acp.editor import BadRequest
from holdfast.cli.acp.updates import Updates, replay
from holdfast.cli.messages.following import Following
from holdfast.tools.files.roots import fingerprint
from tests.e2e.command_line import command, environment
from tests.e2e.serving import ROOT, Serving, wait_until
from tests.e2e.test_schedules import plan

PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("acp") / "home") as serving:
        yield serving


class Editor(Client):
    """Keeps what it is shown, and answers every permission with `choice`."""

    def __init__(self) -> None:
        self.updates: list[tuple[str, Any]] = []
        self.choice = "once"
        self.asked: list[tuple[Any, list[Any]]] = []
        self.before_answer: Callable[[], Awaitable[None]] | None = None
        self._seen = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self.updates.append((session_id, update))
        self._seen.set()

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **more: Any) -> Any:
        self.asked.append((tool_call, options))
        if self.before_answer is not None:
            await self.before_answer()
        return schema.RequestPermissionResponse(outcome=schema.AllowedOutcome(outcome="selected", option_id=self.choice))

    def of(self, kind: str) -> list[Any]:
        return [update for _, update in self.updates if update.session_update == kind]

    def said(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update.content.text for update in self.of(kind))

    async def until(self, happened: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not happened():
                self._seen.clear()
                await self._seen.wait()


@asynccontextmanager
async def editor(home: Path, seen: Editor | None = None, *, reads: bool = False, writes: bool = False) -> AsyncIterator[tuple[Any, Editor]]:
    """`reads`, `writes`: what it offers to do with its files."""
    seen = seen or Editor()  # type: ignore[abstract]  # The rest is never asked for.
    able = schema.ClientCapabilities(fs=schema.FileSystemCapabilities(read_text_file=reads, write_text_file=writes))
    program, *words = command(home, "acp")
    async with spawn_agent_process(seen, program, *words, env=environment()) as (agent, _):
        async with asyncio.timeout(PATIENCE_S):
            await agent.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=able)
            yield agent, seen


def test_an_answer_is_streamed_with_its_calls_and_loaded_again_as_it_was(shared: Serving) -> None:
    """P7: text, a call with its states, a thread that is listed, and the same conversation for an editor that loads it."""

    async def talk() -> tuple[str, Editor]:
        async with editor(shared.home) as (agent, seen):
            session = (await agent.new_session(cwd="/tmp", mcp_servers=[])).session_id
            first = await agent.prompt(session_id=session, prompt=[text_block("count 4")])
            second = await agent.prompt(session_id=session, prompt=[text_block("run echo from the tool")])
            assert (first.stop_reason, second.stop_reason) == ("end_turn", "end_turn")
            listed = await agent.list_sessions(cwd="/tmp")
            assert session in [each.session_id for each in listed.sessions]
            return session, seen

    async def load(session: str) -> Editor:
        async with editor(shared.home) as (agent, seen):
            await agent.load_session(cwd="/tmp", session_id=session, mcp_servers=[])
            return seen

    session, live = asyncio.run(talk())
    assert live.said().startswith("1 2 3 4")
    [started] = live.of("tool_call")
    assert (started.kind, started.status, started.raw_input) == ("execute", "in_progress", {"command": "echo from the tool"})
    assert live.of("tool_call_update")[-1].status == "completed"
    assert "from the tool" in live.of("tool_call_update")[-1].content[0].content.text
    commands = live.of("available_commands_update")[0].available_commands
    assert {"status", "model"} <= {each.name for each in commands}
    loaded = asyncio.run(load(session))
    assert loaded.said() == live.said() and loaded.said("user_message_chunk") == "count 4run echo from the tool"
    assert [call.tool_call_id for call in loaded.of("tool_call")] == [started.tool_call_id]
    assert loaded.of("tool_call_update")[-1].status == "completed"


def test_a_gateway_killed_in_the_middle_of_a_prompt_or_a_permission_request_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """P1, P3, P5, P7, R5: the prompt is sent once and every number shown once; the permission is asked for once, and given to the next
    gateway, because the first one is dead by then.
    """

    async def talk(serving: Serving) -> tuple[str, Editor]:
        async with editor(serving.home) as (agent, seen):

            async def restart() -> None:
                serving.kill()
                await asyncio.to_thread(serving.start)

            session = (await agent.new_session(cwd="/tmp", mcp_servers=[])).session_id
            answer = asyncio.ensure_future(agent.prompt(session_id=session, prompt=[text_block("count 30 0.08")]))
            await seen.until(lambda: " 5 " in seen.said())
            await restart()
            assert (await answer).stop_reason == "end_turn"
            assert seen.said().split() == [str(number) for number in range(1, 31)]
            seen.before_answer = restart
            allowed = await agent.prompt(session_id=session, prompt=[text_block("approve touch approved")])
            assert allowed.stop_reason == "end_turn"
            return session, seen

    with Serving(tmp_path / "home") as serving:
        session, seen = asyncio.run(talk(serving))
        shown = serving.session(session)
        assert [message["text"] for message in shown["messages"] if message["role"] == "user"] == [
            "count 30 0.08",
            "approve touch approved",
            "Approved.",
        ]
        assert [turn["outcome"] for turn in shown["turns"]] == ["completed", "completed"]
        [(call, options)] = seen.asked
        assert "touch approved" in call.content[0].content.text and {option.kind for option in options} >= {"allow_once", "reject_once"}
        assert seen.of("tool_call")[0].status == "pending" and seen.of("tool_call_update")[-1].status == "completed"
        assert (serving.folder / "approved").exists()


def test_a_prompt_is_cancelled_a_permission_denied_and_a_question_answered_by_the_next_prompt(shared: Serving) -> None:
    """A21, P5, R5"""

    async def talk() -> None:
        async with editor(shared.home) as (agent, seen):
            session = (await agent.new_session(cwd="/tmp", mcp_servers=[])).session_id
            running = asyncio.ensure_future(agent.prompt(session_id=session, prompt=[text_block("count 400 0.05")]))
            await seen.until(lambda: "3" in seen.said())
            await agent.cancel(session_id=session)
            assert (await running).stop_reason == "cancelled"
            seen.updates.clear()
            assert (await agent.prompt(session_id=session, prompt=[text_block("ask Which colour?")])).stop_reason == "end_turn"
            assert seen.said().endswith("Which colour?")
            seen.updates.clear()
            assert (await agent.prompt(session_id=session, prompt=[text_block("green")])).stop_reason == "end_turn"
            assert "green" in seen.said()
            assert shared.session(session)["turns"][-1]["outcome"] == "completed"
            seen.choice = "deny"
            assert (await agent.prompt(session_id=session, prompt=[text_block("approve touch denied")])).stop_reason == "end_turn"
            assert len(seen.asked) == 1 and not (shared.folder / "denied").exists()

    asyncio.run(talk())


def test_an_editor_that_comes_in_the_middle_of_a_turn_sees_the_rest_of_it(shared: Serving) -> None:
    """P7: closing an editor stops nothing."""

    async def talk() -> str:
        async with editor(shared.home) as (agent, seen):
            session = (await agent.new_session(cwd="/tmp", mcp_servers=[])).session_id
            asyncio.ensure_future(agent.prompt(session_id=session, prompt=[text_block("count 40 0.05")])).add_done_callback(_ignore)
            await seen.until(lambda: "5 " in seen.said())
            return session

    async def come_back(session: str) -> str:
        async with editor(shared.home) as (agent, seen):
            await agent.load_session(cwd="/tmp", session_id=session, mcp_servers=[])
            await seen.until(lambda: seen.said().split()[-1:] == ["40"])
            return seen.said()

    assert asyncio.run(come_back(asyncio.run(talk()))).split() == [str(number) for number in range(1, 41)]


def test_an_editor_sees_the_rest_of_a_turn_that_a_schedule_started_and_all_of_one_that_is_over(shared: Serving) -> None:
    """P7, E8: as it was found when the conversation is loaded. What started it is a thought, and no message is invented."""

    async def load(session: str, last: str) -> Editor:
        async with editor(shared.home) as (agent, seen):
            await agent.load_session(cwd="/tmp", session_id=session, mcp_servers=[])
            await seen.until(lambda: seen.said().split()[-1:] == [last])
            return seen

    session = shared.new_session()
    plan(shared, session, "count 60 0.1")
    wait_until(
        lambda: "5 " in "".join(message["text"] for message in shared.session(session)["messages"] if message["role"] == "assistant")
    )
    rest = asyncio.run(load(session, "60"))
    assert shared.wait_for(session)["turns"][-1]["cause"] == "schedule"
    for seen in (rest, asyncio.run(load(session, "60"))):
        assert seen.said().split() == [str(number) for number in range(1, 61)]
        assert "count 60 0.1" in seen.said("agent_thought_chunk") and not seen.of("user_message_chunk")


def test_the_agent_works_in_the_folder_of_the_editor_and_what_is_not_used_is_said(
    shared: Serving, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The folder stays with the conversation, also after a reset; the home of Holdfast is no such folder."""
    project = tmp_path_factory.mktemp("project")
    (project / "letter").write_text("dear")

    async def talk() -> None:
        async with editor(shared.home) as (agent, seen):
            server = schema.McpServerStdio(name="clock", command="clock", args=[], env=[])
            session = (await agent.new_session(cwd=str(project), mcp_servers=[server])).session_id
            await seen.until(lambda: "MCP servers of the editor (clock)" in seen.said("agent_thought_chunk"))
            await agent.prompt(session_id=session, prompt=[text_block("run cat letter; echo yours > answer")])
            assert "dear" in seen.of("tool_call_update")[-1].content[0].content.text
            assert (project / "answer").read_text() == "yours\n" and shared.session(session)["folder"] == str(project)
            listed = {each.session_id: each.cwd for each in (await agent.list_sessions(cwd=str(project))).sessions}
            assert listed[session] == str(project)
            assert session not in [each.session_id for each in (await agent.list_sessions(cwd="/usr")).sessions]
            seen.updates.clear()
            await agent.load_session(cwd="/usr", session_id=session, mcp_servers=[])
            await seen.until(lambda: f"works in {project}, not in /usr" in seen.said("agent_thought_chunk"))
            seen.updates.clear()
            own = (await agent.new_session(cwd=str(shared.home), mcp_servers=[])).session_id
            await seen.until(lambda: "works in the default folder instead" in seen.said("agent_thought_chunk"))
            assert "folder" not in shared.session(own)

    asyncio.run(talk())


class Project(Editor):
    """An editor with files that are not saved."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, str] = {}

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **more: Any
    ) -> schema.ReadTextFileResponse:
        return schema.ReadTextFileResponse(content=self.files[path])

    async def write_text_file(self, session_id: str, path: str, content: str, **more: Any) -> None:
        self.files[path] = content


def test_tools_read_and_write_what_is_not_saved_in_the_editor_where_that_is_allowed(tmp_path: Path) -> None:
    """Also after the gateway was killed between two prompts. While it is away, that is said, and a prompt can be cancelled."""
    project = tmp_path / "project"
    project.mkdir()
    path = project / "a.txt"
    path.write_text("saved")

    def call(tool: str, **arguments: str) -> list[Any]:
        return [text_block(json.dumps({"tool": tool, "path": "a.txt", **arguments}))]

    async def talk(serving: Serving) -> Project:
        seen = Project()  # type: ignore[abstract]  # The rest is never asked for.
        async with editor(serving.home, seen, reads=True, writes=True) as (agent, _):
            seen.files[str(path)] = "not saved"
            session = (await agent.new_session(cwd=str(project), mcp_servers=[])).session_id
            await agent.prompt(session_id=session, prompt=call("read_file"))
            assert "not saved" in seen.said()
            serving.kill()
            waits = asyncio.ensure_future(agent.prompt(session_id=session, prompt=call("read_file")))
            await seen.until(lambda: "The gateway does not answer" in seen.said("agent_thought_chunk"))
            await agent.cancel(session_id=session)
            assert (await waits).stop_reason == "cancelled", "before the gateway is back"
            await asyncio.to_thread(serving.start)
            for _ in range(20):  # A gateway that has just started hears of its editor a moment later; on the disk the hash does not fit.
                await agent.prompt(session_id=session, prompt=call("write_file", content="theirs", hash=fingerprint(b"not saved")))
                if seen.files[str(path)] == "theirs":
                    break
            return seen

    with Serving(tmp_path / "home", agent_module="tests.e2e.calling:agent", tools_editor_files="true") as serving:
        seen = asyncio.run(talk(serving))
        assert seen.files == {str(path): "theirs"} and path.read_text() == "saved"


def _ignore(done: asyncio.Future[Any]) -> None:
    if not done.cancelled():
        done.exception()


def test_a_picture_and_a_file_of_the_editor_reach_the_conversation(shared: Serving) -> None:
    async def talk() -> str:
        async with editor(shared.home) as (agent, _):
            session = (await agent.new_session(cwd="/tmp", mcp_servers=[])).session_id
            picture = schema.ImageContentBlock(type="image", mime_type="image/png", data=base64.b64encode(b"picture").decode())
            await agent.prompt(session_id=session, prompt=[text_block("look"), picture])
            return str(session)

    [message] = [each for each in shared.session(asyncio.run(talk()))["messages"] if each["role"] == "user"]
    assert message["text"] == "look" and [part["type"] for part in message["parts"]] == ["text", "image"]


class Raw:
    """Lines to and from `holdfast acp`, each of which must be JSON."""

    def __init__(self, home: Path) -> None:
        self.process = subprocess.Popen(
            command(home, "acp"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        )
        self.complained = b""
        assert self.process.stderr is not None
        self._errors = threading.Thread(target=self._complaints, daemon=True)
        self._errors.start()

    def _complaints(self) -> None:
        assert self.process.stderr is not None
        self.complained = self.process.stderr.read()

    def say(self, line: bytes) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def ask(self, method: str, **params: Any) -> Any:
        return self.say(json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).encode())

    def close(self) -> int:
        assert self.process.stdin is not None and self.process.stdout is not None and self.process.stderr is not None
        self.process.stdin.close()
        code = self.process.wait(PATIENCE_S)
        self._errors.join(PATIENCE_S)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


def test_bad_input_gets_an_answer_and_a_gateway_that_is_not_there_a_hint(tmp_path: Path) -> None:
    raw = Raw(tmp_path / "home")
    try:
        for line, code in (
            (b"{nonsense", -32700),
            (b"\xff\xfe", -32700),
            (b"[" * 100_000, -32700),
            (b"[]", -32600),
            (b'{"id": 1}', -32600),
            (b'{"id": [1], "method": "initialize"}', -32600),
        ):
            answer = raw.say(line)
            assert (answer["id"], answer["error"]["code"]) == (None, code), line
        assert raw.ask("initialize", protocolVersion=99)["result"]["protocolVersion"] == 1
        assert raw.ask("session/fly")["error"] == {"code": -32601, "message": "Holdfast does not offer session/fly."}
        assert raw.ask("session/prompt", prompt=[])["error"]["code"] == -32602
        assert raw.ask("session/prompt", sessionId="s_0123456789abcdef", prompt=[{"type": "video"}])["error"]["code"] == -32602
        assert raw.ask("session/load", sessionId="last")["error"]["code"] == -32002
        refused = raw.ask("session/new", cwd="/tmp", mcpServers=[])["error"]["message"]
        assert refused.startswith("No gateway runs on") and "`holdfast serve" in refused
    finally:
        code = raw.close()
    assert code == 0 and b"Start it with" in raw.complained and b"Traceback" not in raw.complained


def test_a_conversation_that_does_not_exist_and_a_turn_that_fails_are_errors(shared: Serving) -> None:
    async def talk() -> None:
        async with editor(shared.home) as (agent, _):
            with pytest.raises(RequestError) as missing:
                await agent.load_session(cwd="/tmp", session_id="s_0123456789abcdef", mcp_servers=[])
            assert missing.value.code == -32002
            session = (await agent.new_session(cwd="/tmp", mcp_servers=[])).session_id
            with pytest.raises(RequestError) as failed:
                await agent.prompt(session_id=session, prompt=[text_block("fail")])
            assert "The turn ended as failed" in str(failed.value)

    asyncio.run(talk())


# without processes


def test_what_an_editor_may_send_becomes_one_text_and_files() -> None:
    blocks = [
        {"type": "text", "text": "Look at "},
        {"type": "resource_link", "name": "a.py", "uri": "file:///a.py"},
        {"type": "text", "text": " please."},
        {"type": "resource", "resource": {"uri": "file:///b.md", "text": "```x```"}},
        {"type": "resource", "resource": {"uri": "file:///c.bin", "blob": base64.b64encode(b"\0").decode()}},
    ]
    found = prompts.message(blocks)
    assert found.text == "Look at [a.py](file:///a.py) please.\n\nfile:///b.md\n````\n```x```\n````\n\n"
    assert found.files == (prompts.File("c.bin", b"\0"),)


@pytest.mark.parametrize(
    "blocks",
    [None, [], ["x"], [{"type": "text"}], [{"type": "image", "data": "?"}], [{"type": "resource"}], [{"type": "text", "text": " "}]],
)
def test_a_prompt_that_cannot_be_read_is_refused(blocks: Any) -> None:
    with pytest.raises(BadRequest):
        prompts.message(blocks)


def shown(*events: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    updates = Updates(Following("m"))
    begun = ("turn.started", {"turn_id": "t", "causes": ["m"]})
    return [update for event, data in (begun, *events) for update in updates.apply(event, {"turn_id": "t", **data})]


def test_a_text_that_starts_over_is_another_message() -> None:
    said = shown(
        ("text", {"step": 0, "attempt": 1, "offset": 0, "text": "one two"}), ("text", {"step": 0, "attempt": 2, "offset": 0, "text": "One"})
    )
    assert [(update["content"]["text"], update.get("messageId")) for update in said] == [
        ("one two", "m.0"),
        ("The answer starts over:\n\n", None),
        ("One", "m.1"),
    ]


def test_calls_of_other_turns_and_questions_are_not_shown_as_calls() -> None:
    call = {"call_id": "c", "name": "terminal", "arguments": {"command": "ls"}}
    assert shown(("tool.started", call | {"turn_id": "other"}), ("tool.finished", {"call_id": "x", "outcome": "done", "result": ""})) == []
    assert shown(("tool.started", call | {"name": "ask_user"})) == []
    started, printed, ended = shown(
        ("tool.started", call),
        ("tool.output", {"call_id": "c", "text": "a"}),
        ("tool.finished", {"call_id": "c", "outcome": "unknown", "result": "interrupted"}),
    )
    assert (started["sessionUpdate"], printed["status"], ended["status"]) == ("tool_call", "in_progress", "failed")
    assert "not known" in ended["content"][0]["content"]["text"]


def test_updates_read_with_the_types_of_the_protocol() -> None:
    call = {"call_id": "c", "name": "terminal", "arguments": {"command": "ls"}, "outcome": "done", "result": "x", "output": ""}
    parts = [
        {"type": "text", "text": "a", "step": 0},
        {"type": "call", "call_id": "c", "step": 0},
        {"type": "text", "text": "b", "step": 1},
    ]
    messages = [
        {"id": "m", "role": "user", "text": "hello", "parts": [], "turn_id": "t"},
        {"id": "n", "role": "notice", "text": "A notice.", "parts": [], "turn_id": "t"},
        {"id": "a", "role": "assistant", "text": "b", "parts": parts, "tool_calls": [call], "turn_id": "t"},
    ]
    turns = [{"id": "t", "thoughts": [{"step": 0, "text": "Hm.", "kept": True}]}]
    updates = list(replay({"messages": messages, "turns": turns}))
    for update in updates:
        schema.SessionNotification.model_validate({"sessionId": "s", "update": update})
    said = [update["content"]["text"] for update in updates if update["sessionUpdate"] == "agent_message_chunk"]
    assert said == ["a", "\n\nb"]
    thought = [update["content"]["text"] for update in updates if update["sessionUpdate"] == "agent_thought_chunk"]
    assert thought == ["A notice.\n\n", "Hm.\n\n"]


def test_the_example_of_the_documentation_prints_what_it_says(shared: Serving) -> None:
    doors = (ROOT / "docs" / "doors.md").read_text()
    [(code, printed)] = re.findall(r"```python\n([^`]*spawn_agent_process.*?)```\n\nIt prints:\n\n```text\n(.*?)```", doors, re.DOTALL)
    words = ", ".join(map(repr, command(shared.home, "acp")))
    done = subprocess.run(
        [sys.executable, "-c", code.replace('"holdfast", "acp"', words)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=PATIENCE_S,
        cwd=ROOT / "src",
    )
    assert (done.stdout, done.returncode) == (printed, 0), done.stderr
