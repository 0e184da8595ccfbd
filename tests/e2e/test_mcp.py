"""Tools of MCP servers behind a real Holdfast process, a model server and kill -9."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import tool_processes
from tests.e2e.command_line import holdfast
from tests.e2e.models import ModelProcess, asking
from tests.e2e.serving import Serving, files_with, wait_until
from tests.fakes.models.script import Reply, Script, call, text
from tests.tools.mcp import lines, notes, scripted


def using(*calls: tuple[str, dict[str, Any]], then: str = "Done.") -> Script:
    """A model that makes these calls, and then says so."""
    replies = (Reply(say=(*text("I look."), *(call(name, arguments) for name, arguments in calls))), Reply(say=text(then)))
    return Script(by="steps", replies=replies)


def servers(**tables: Any) -> str:
    """As `HOLDFAST_MCP` has them."""
    return msgspec.json.encode(tables).decode()


def answer(serving: Serving, session_id: str) -> dict[str, Any]:
    session = serving.wait_for(session_id)
    assert [turn["outcome"] for turn in session["turns"]] == ["completed"]
    return dict(session["messages"][-1])


def test_a_model_uses_a_server_of_the_registry_and_people_see_which_servers_there_are(tmp_path: Path) -> None:
    """`mcp-server-time` in the sandbox of this machine, if it has one. Another server is away, and hurts nobody (P8)."""
    time = {"command": sys.executable, "args": ["-m", "mcp_server_time"], "trusted": True}
    away = {"url": "http://127.0.0.1:9/mcp"}
    asked = ("mcp__time__convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"})
    with ModelProcess(tmp_path / "model", using(asked)) as server:
        with asking(tmp_path / "home", server, mcp=servers(time=time, away=away)) as serving:
            assert {each["name"]: each["state"] for each in serving.status()["mcp"]} == {"time": "not started", "away": "not started"}
            session_id = serving.new_session()
            serving.post(session_id, "What time is it in Tokyo when it is noon in London?")
            [used] = answer(serving, session_id)["tool_calls"]
            assert (used["name"], used["outcome"]) == (asked[0], "done") and "21:00" in used["result"]
            told = {tool["function"]["name"] for tool in server.requests[0]["body"]["tools"]}
            assert {"mcp__time__convert_time", "mcp__time__get_current_time", "terminal"} <= told
            shown = holdfast(serving.home, "status").out
            assert "time: running, 2 tools" in shown and "away: failed" in shown
            doctor = holdfast(serving.home, "doctor", HOLDFAST_MODEL="chat:test", HOLDFAST_MCP=servers(time=time, away=away)).out
            assert "time: running, 2 tools" in doctor and "there is no connection" in " ".join(doctor.split())
            assert serving.stop() == 75 and not list(tool_processes.running(serving.home))


# As its lock file has it; `./run test` installs it.
FILE_SERVER = Path(__file__).parent / "servers" / "node_modules" / "@modelcontextprotocol" / "server-filesystem" / "dist" / "index.js"


def test_a_model_works_with_the_files_of_a_folder_through_the_file_server_of_the_registry_over_kills(tmp_path: Path) -> None:
    """P5, P8: `@modelcontextprotocol/server-filesystem`, in the sandbox of this machine, if it has one. It lists, reads and writes; a path
    outside its folder is refused, and the model is told; what killed Holdfast or the server is over with the next call.
    """
    assert FILE_SERVER.exists(), "`./run test tests/e2e/test_mcp.py` installs this server"
    shared, outside = tmp_path / "shared", tmp_path / "outside.txt"
    shared.mkdir()
    (shared / "old.txt").write_text("written before")
    outside.write_text("not for the server")
    packages = FILE_SERVER.parents[3]
    table = {"command": "node", "args": [str(FILE_SERVER), str(shared)], "folders": [str(shared), str(packages)], "trusted": True}
    steps = (
        ("list_directory", {"path": str(shared)}, "[FILE] old.txt"),
        ("read_text_file", {"path": str(shared / "old.txt")}, "written before"),
        ("read_text_file", {"path": str(outside)}, "outside allowed directories"),
        ("write_file", {"path": str(shared / "new.txt"), "content": "written by a model"}, "Successfully wrote"),
        ("list_directory", {"path": str(shared)}, "[FILE] new.txt"),
        ("read_text_file", {"path": str(shared / "new.txt")}, "written by a model"),
    )
    replies = [reply for name, asked, _ in steps for reply in (Reply(say=(call(f"mcp__files__{name}", asked),)), Reply(say=text("Done.")))]
    with ModelProcess(tmp_path / "model", Script(by="steps", replies=tuple(replies))) as server:
        with asking(tmp_path / "home", server, mcp=servers(files=table), policy_allow="mcp__files__write_file") as serving:
            session_id = serving.new_session()
            for number, (name, _, expected) in enumerate(steps):
                serving.post(session_id, "Next.")
                [used] = serving.wait_for(session_id)["messages"][-1]["tool_calls"]
                outcome = "failed" if "outside" in expected else "done"
                assert (used["name"], used["outcome"]) == (f"mcp__files__{name}", outcome) and expected in used["result"], used
                if number == 3:
                    serving.kill()
                    serving.start()
                elif number == 4:
                    for process, _ in tool_processes.running(serving.home):
                        os.kill(process.pid, signal.SIGKILL)
                    wait_until(lambda: not list(tool_processes.running(serving.home)))
            assert (shared / "new.txt").read_text() == "written by a model"
            assert serving.stop() == 75 and not list(tool_processes.running(serving.home))


def test_a_call_that_kill_9_interrupted_is_made_again_or_told_as_unknown(tmp_path: Path) -> None:
    """P5: by its effect, where the server is trusted; with the same key, so that the server can tell. What the dead process had started is
    gone first.
    """
    folders = {name: tmp_path / name for name in ("trusted", "other")}
    tables = {name: msgspec.to_builtins(scripted(folder, trusted=name == "trusted", sandbox=False)) for name, folder in folders.items()}
    calls = [Reply(say=(call(f"mcp__{name}__put", {"line": "one", "seconds": 3.0}),)) for name in folders]
    with ModelProcess(tmp_path / "model", Script(replies=(*calls, Reply(say=text("Done."))))) as server:
        with asking(tmp_path / "home", server, mcp=servers(**tables), policy_allow="mcp__*") as serving:
            sessions = {}
            for name, folder in folders.items():
                sessions[name] = serving.new_session()
                serving.post(sessions[name], "Do it.")
                wait_until(lambda folder=folder: bool(lines(folder)))  # type: ignore[misc]
            serving.kill()
            serving.start()
            outcomes = {name: answer(serving, session_id)["tool_calls"][0]["outcome"] for name, session_id in sessions.items()}
            assert outcomes == {"trusted": "done", "other": "unknown"}
            assert [lines(folder) for folder in folders.values()] == [["one"], ["one"]]
            assert [len(notes(folder, "call")) for folder in folders.values()] == [2, 1]
            assert len({each["key"] for each in notes(folders["trusted"], "call")}) == 1
            assert not any(Path(f"/proc/{notes(folder, 'started')[0]['pid']}").exists() for folder in folders.values())


def test_a_call_of_a_server_that_is_not_trusted_asks_and_can_be_approved_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R5, P5, and the server is killed once it has answered: the next call finds it started again."""
    folder, said = tmp_path / "server", Reply(say=text("Said."))
    table = msgspec.to_builtins(scripted(folder, env={"NOTES_KEY": "${NOTES_KEY}"}, sandbox=False))
    script = Script(by="steps", replies=(echo := Reply(say=(call("mcp__a__echo", {"text": "sk-of-the-notes"}),)), said, echo, said))
    with ModelProcess(tmp_path / "model", script) as server:
        monkeypatch.setenv("NOTES_KEY", "sk-of-the-notes-42")
        with asking(tmp_path / "home", server, mcp=servers(a=table)) as serving:
            session_id = serving.new_session()
            serving.post(session_id, "Say it.")
            wait_until(lambda: serving.session(session_id)["state"] == "waiting")
            serving.kill()
            serving.start()
            [question] = serving.session(session_id)["questions"]
            assert question["kind"] == "approval" and "the MCP server a" in question["text"]
            assert question["pattern"].startswith("mcp__a__echo@")
            serving.order(f"/api/approvals/{question['question_id']}", verdict="approve", scope="session")
            [used] = answer(serving, session_id)["tool_calls"]
            assert (used["outcome"], used["result"]) == ("done", "sk-of-the-notes")
            assert notes(folder, "started")[-1]["environment"]["NOTES_KEY"] == "sk-of-the-notes-42"
            pid = notes(folder, "started")[-1]["pid"]
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not Path(f"/proc/{pid}").exists())  # A call that is sent before anybody knows may have been heard.
            serving.post(session_id, "Again.")
            session = serving.wait_for(session_id)
            assert session["messages"][-1]["tool_calls"][0]["outcome"] == "done", "the rule counts, and so does the server"
        assert files_with(serving.home, "sk-of-the-notes-42") == []


def test_a_question_of_a_server_survives_kill_9_and_its_call_continues_with_the_answer(tmp_path: Path) -> None:
    """R5, P5: the call was made once before the question and once after it, with what the server had kept in the question."""
    folder = tmp_path / "server"
    table = msgspec.to_builtins(scripted(folder, "modern", sandbox=False))
    with ModelProcess(tmp_path / "model", using(("mcp__a__ask", {"question": "Who are you?"}))) as server:
        with asking(tmp_path / "home", server, mcp=servers(a=table), policy_allow="mcp__*") as serving:
            session_id = serving.new_session()
            serving.post(session_id, "Ask me.")
            serving.wait_for(session_id, state="waiting")
            serving.kill()
            serving.start()
            [question] = serving.session(session_id)["questions"]
            assert question["kind"] == "elicitation" and "> Who are you?" in question["text"]
            assert question["call"] == {"name": "mcp__a__ask", "arguments": {"question": "Who are you?"}}
            serving.order(f"/api/questions/{question['question_id']}", text="Ann", client_id="c")
            serving.order(f"/api/questions/{question['question_id']}", text="Ann", client_id="c")  # As after a lost connection.
            [used] = answer(serving, session_id)["tool_calls"]
            assert (used["outcome"], used["result"]) == ("done", '{"action": "accept", "content": {"name": "Ann"}}')
            assert len(notes(folder, "call")) == 2 and [each["state"] for each in notes(folder, "answered")] == ["state of Who are you?"]


def test_doctor_looks_at_servers_and_tries_them_if_it_is_told_to(tmp_path: Path) -> None:
    """Without a gateway: what is missing is said, and nothing is left running."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    good = msgspec.to_builtins(scripted(tmp_path / "server", sandbox=False))
    gone, keyless = {"command": "no-such-program"}, {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer ${NO_SUCH_KEY}"}}
    tables = servers(good=good, gone=gone, keyless=keyless, off={"command": "x", "enabled": False})
    plain = holdfast(home, "doctor", HOLDFAST_MCP=tables)
    words = " ".join(plain.out.split())
    assert plain.code == 1 and "gone: there is no program no-such-program." in words and "The variable NO_SUCH_KEY is not set." in words
    assert "off: off" in words and "good: the program" in words and "The demo agent uses no servers." in words
    assert not notes(tmp_path / "server")
    deep = " ".join(holdfast(home, "doctor", "--deep", HOLDFAST_MCP=servers(good=good)).out.split())
    assert "good: running, 16 tools" in deep and len(notes(tmp_path / "server", "started")) == 1
    assert not list(tool_processes.running(home))
