"""A model behind a real Holdfast process, and agents of one's own."""

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.command_line import environment, holdfast
from tests.e2e.models import ModelProcess, asking
from tests.e2e.serving import ROOT, Serving, files_with, wait_until
from tests.fakes.models.script import Reply, Script, call, text

WORKS = Script(
    by="steps",
    replies=(
        Reply(say=(*text("I will look."), call("terminal", {"command": "echo hello from the tool"}))),
        Reply(say=text("It said ", "hello.")),
    ),
)


def test_a_configured_model_answers_and_its_key_is_shown_nowhere(tmp_path: Path) -> None:
    """P4: the key goes to the server, and nowhere else."""
    with ModelProcess(tmp_path / "model", WORKS) as server, asking(tmp_path / "home", server) as serving:
        session_id = serving.new_session()
        serving.post(session_id, "Say hello")
        session = serving.wait_for(session_id)
        answer = session["messages"][-1]
        assert answer["text"] == "It said hello." and answer["tool_calls"][0]["result"] == "hello from the tool\n"
        assert session["turns"][0]["steps"] == 2 and session["turns"][0]["outcome"] == "completed"
        assert [asked["headers"]["authorization"] for asked in server.requests] == ["Bearer sk-of-the-test"] * 2
        told = [line.split() for line in holdfast(serving.home, "status").out.splitlines()]
        assert ["agent", "chat:test"] in told and serving.status()["models"] == ["chat:test"]
        shown = holdfast(serving.home, "config", HOLDFAST_MODEL="chat:test", HOLDFAST_MODEL_API_KEY="sk-of-the-test").out
        assert "chat:test" in shown and "HOLDFAST_MODEL" in shown and "sk-of-the-test" not in shown
        assert files_with(serving.home, "sk-of-the-test") == []


def test_what_a_model_used_is_shown_by_the_api_and_the_command_line(tmp_path: Path) -> None:
    """Also once the gateway is stopped."""
    prices = '{"chat:test": {"input": 2, "output": 10, "cached": 1}}'
    with ModelProcess(tmp_path / "model", WORKS) as server, asking(tmp_path / "home", server, agent_prices=prices) as serving:
        session_id = serving.new_session()
        serving.post(session_id, "Say hello")
        usage = serving.wait_for(session_id)["usage"]
        cost = 2 * (6 * 2 + 4 * 1 + 5 * 10)
        assert usage == {"requests": 2, "input": 20, "output": 10, "cached": 8, "stored": 0, "thought": 0, "cost": cost, "unpriced": 0}
        with serving.client() as client:
            report = client.get("/api/usage?days=1").json()
            assert client.get("/api/usage?days=0").status_code == 400
        assert report["total"] == usage and [(each["sender"], each["turns"]) for each in report["senders"]] == [("owner", 1)]
        running = holdfast(serving.home, "usage").out
        assert "$0.0001" in running and "30 tokens in 2 requests, $0.00" in holdfast(serving.home, "status").out
    stopped = holdfast(tmp_path / "home", "usage")
    assert (stopped.code, stopped.out) == (0, running)


def test_a_key_in_a_file_is_used_and_a_key_in_the_settings_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "key").write_text("sk-from-a-file\n")
    (home / "key").chmod(0o600)
    with ModelProcess(tmp_path / "model", WORKS) as server:
        with asking(home, server, model_api_key="", agent_api_key_file="key") as serving:
            session_id = serving.new_session()
            serving.post(session_id, "Say hello")
            serving.wait_for(session_id)
        assert server.requests[0]["headers"]["authorization"] == "Bearer sk-from-a-file"
    (home / "key").chmod(stat.S_IRUSR | stat.S_IRGRP)
    said = holdfast(home, "serve", HOLDFAST_MODEL="openai:gpt", HOLDFAST_AGENT_API_KEY_FILE="key")
    assert said.code == 78 and "chmod 600" in said.err
    (home / "config.toml").write_text("[agent]\napi_key = 'sk-secret'\n")
    said = holdfast(home, "serve")
    assert said.code == 78 and "a key does not belong there" in said.err and "sk-secret" not in said.err


def test_a_model_that_fails_is_asked_again_and_people_see_that(tmp_path: Path) -> None:
    """B10, P3"""
    busy = Reply(status=503, error={"error": {"message": "The engine is overloaded", "type": "server_error"}})
    with ModelProcess(tmp_path / "model", Script(replies=(busy, Reply(say=text("Hello."))))) as server:
        with asking(tmp_path / "home", server) as serving:
            said = holdfast(serving.home, "send", "new", "Say hello")
            assert said.out == "Hello.\n" and "chat:test did not answer and is asked again" in said.err
            shown = holdfast(serving.home, "show", "last").out
            assert re.search(r"chat:test did not answer \(turn 1, step 1, try 1; asked again .*\): .*overloaded", " ".join(shown.split()))
            [turn] = holdfast(serving.home, "show", "last", "--json").json["turns"]
            assert [(each["model"], each["tries"], each["error"]) for each in turn["failures"]] == [("chat:test", 1, "model_busy")]


def test_a_stop_ends_a_turn_whose_model_says_nothing(tmp_path: Path) -> None:
    """A21"""
    with ModelProcess(tmp_path / "model", Script(replies=(Reply(say=text("Well"), stop_after=2, then="hang"),))) as server:
        with asking(tmp_path / "home", server) as serving:
            session_id = serving.new_session()
            serving.post(session_id, "Say hello")
            wait_until(lambda: bool(serving.session(session_id)["messages"][1:]))
            serving.order(f"/api/sessions/{session_id}/stop")
            session = serving.wait_for(session_id)
            assert [turn["outcome"] for turn in session["turns"]] == ["cancelled"]


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"HOLDFAST_MODEL": "nobody:gpt"}, "The model nobody:gpt cannot be asked."),
        ({"HOLDFAST_MODEL": "chat:gpt"}, "set base_url"),
        ({"HOLDFAST_AGENT_MODULE": "missing_agent:agent"}, "cannot be loaded: ModuleNotFoundError: No module named 'missing_agent'."),
        ({"HOLDFAST_AGENT_MODULE": "json:nothing"}, "the module json has no nothing."),
        ({"HOLDFAST_AGENT_MODULE": "json:loads"}, "is no agent"),
    ],
)
def test_an_agent_that_cannot_be_had_is_a_wrong_setting(tmp_path: Path, variables: dict[str, str], words: str) -> None:
    said = holdfast(tmp_path / "home", "serve", "--port", "0", **variables)
    assert said.code == 78 and words in said.err and "Traceback" not in said.err


def test_no_model_is_loaded_where_none_is_configured(tmp_path: Path) -> None:
    with Serving(tmp_path / "home") as serving:
        loaded = Path(f"/proc/{serving.pid}/maps").read_text() if os.path.exists("/proc") else ""
        assert "aiohttp" not in loaded and "jsonschema_rs" not in loaded


def test_the_example_of_an_agent_of_ones_own_runs_and_survives_kills(tmp_path: Path) -> None:
    """P5, R5: nothing that it did is done twice."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    shutil.copy(ROOT / "examples" / "my_agent.py", home)
    old = tmp_path / "old.txt"
    old.write_text("")
    with Serving(home, agent_module="my_agent:agent", policy_allow="terminal") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "old.txt")
        session = serving.wait_for(session_id, state="waiting")
        assert session["questions"][0]["text"] == "This is there:\nold.txt\n\nDelete it?"
        serving.kill()
        serving.start()
        serving.post(session_id, "yes")
        session = serving.wait_for(session_id)
        assert session["messages"][-1]["text"].endswith("Deleted (done).") and not old.exists()
        assert [each["name"] for each in session["messages"][-1]["tool_calls"]] == ["terminal", "ask_user", "terminal"]


# docs/models.md

MODELS = (ROOT / "docs" / "models.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", MODELS, re.MULTILINE | re.DOTALL)


def test_the_commands_in_the_documentation_do_what_they_say(tmp_path: Path) -> None:
    """The address is that of a server of ours; everything else is done as it is written."""
    serve, talk = blocks("sh")[-2:]  # Those before are about `setup`: tests/e2e/test_setup.py runs them.
    *before, last = serve.replace("http://127.0.0.1:11434/v1", "$ADDRESS").splitlines()
    assert last == "holdfast serve"
    with ModelProcess(tmp_path / "model", WORKS) as server, asking(tmp_path / "home", server, model="chat:qwen3") as serving:

        def typed(lines: list[str]) -> str:
            script = "\n".join((f'holdfast() {{ "{sys.executable}" -m holdfast "$@"; }}', "set -e", *lines))
            variables = environment(HOLDFAST_HOME=str(serving.home), ADDRESS=server.url)
            done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, env=variables, timeout=120)
            assert done.returncode == 0, done.stderr
            return done.stdout

        shown = typed(before)
        assert re.search(r"agent.model +chat:qwen3 +HOLDFAST_MODEL\b", shown) and server.url in shown
        told = typed(talk.splitlines())
    assert "It said hello." in told and "1. chat:qwen3 (default) - answers here" in told and "model.responded" in told


def test_the_agent_in_the_documentation_is_one(tmp_path: Path) -> None:
    [text] = blocks("python")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "my_agent.py").write_text(f"from holdfast.ports.agents import AgentRequest, TurnFace\n\n\n{text}")
    with Serving(home, agent_module="my_agent:agent", policy_allow="terminal") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "Look")
        assert serving.wait_for(session_id, state="waiting")["questions"][0]["text"].startswith("This is there:\n")
        serving.post(session_id, "no")
        assert serving.wait_for(session_id)["messages"][-1]["text"] == "You said no."
