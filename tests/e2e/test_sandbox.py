"""Commands of a real gateway in each sandbox: what they reach, where they work, and what is said of it."""

import os
import re
import shlex
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command_line import holdfast
from tests.e2e.models import ModelProcess
from tests.e2e.serving import ROOT, Serving, wait_until
from tests.fakes.models.script import Reply, Script, call, text
from tests.tools.sandboxes import holding

MODES = ("bubblewrap", "landlock")
WORDS = {"bubblewrap": "commands run with bubblewrap sandbox, network on", "landlock": "commands run with Landlock sandbox, network on"}


@pytest.fixture(scope="module", params=MODES)
def serving(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    around = tmp_path_factory.mktemp(request.param)
    holding(request.param, around)
    with Serving(around / "home", tools_sandbox=request.param, tools_folder="", tools_shared="") as made:
        wait_until(lambda: made.status()["sandbox"] is not None)
        yield made


def printed(serving: Serving, session: str, text: str) -> str:
    """What a command put out."""
    said = holdfast(serving.home, "send", session, text, "--json").json
    (call,) = serving.session(said["session_id"])["messages"][-1]["tool_calls"]
    return str(call["result"])


def test_a_command_reads_neither_the_token_nor_anything_of_the_home_folder(serving: Serving) -> None:
    """The token, the database, the log, the settings: nothing by path, through the process, or by the folder above."""
    (serving.home / "config.toml").write_text("# the operator's own\n")
    home = serving.home
    line = f"run cat {home}/token {home}/config.toml {home}/holdfast.log ../../token /proc/{serving.pid}/environ; ls {home}; echo tried"
    said = printed(serving, "new", line)
    assert "tried" in said.splitlines()
    assert not any(word in said for word in (serving.token, "operator", "holdfast.db", "HOLDFAST_TOOLS", "serving"))


def test_a_background_process_reads_as_little_also_after_the_gateway_was_killed(serving: Serving) -> None:
    """What it printed is looked at as its keeper wrote it down: nothing is replaced there. It works in its conversation's folder."""
    (serving.home / "config.toml").write_text("# the operator's own\n")
    home, session_id = serving.home, serving.new_session()
    tries = f"cat {home}/token {home}/config.toml {home}/holdfast.log ../../token /proc/{serving.pid}/environ; ls {home} {home}/processes"
    line = f"{tries}; echo first; until [ -e go ]; do sleep 0.1; done; {tries}; cp {home}/token taken; echo mine > file; echo second"
    serving.post(session_id, f"background {line}")
    [process] = serving.wait_for(session_id)["processes"]
    kept = home / "processes" / session_id / process["process_id"] / "out.0"
    wait_until(lambda: kept.exists() and "first" in kept.read_text().splitlines())
    serving.kill()
    serving.start()
    (home / "work" / session_id / "go").touch()
    wait_until(lambda: len(serving.session(session_id)["turns"]) == 2)
    said = kept.read_text()
    assert "second" in said.splitlines() and (home / "work" / session_id / "file").read_text() == "mine\n"
    assert not any(word in said for word in (serving.token, "operator", "holdfast.db", "HOLDFAST_TOOLS", "serving", session_id))
    assert not (home / "work" / session_id / "taken").exists()


def test_each_conversation_has_a_private_folder_of_its_own(serving: Serving) -> None:
    first = holdfast(serving.home, "send", "new", "run pwd; echo mine > file; cat file", "--json").json
    folder = serving.home / "work" / first["session_id"]
    assert (folder / "file").read_text() == "mine\n" and stat.S_IMODE(folder.stat().st_mode) == 0o700
    said = printed(serving, "new", f"run ls; cat {folder}/file; cat ../*/file; echo tried")
    assert "tried" in said and "mine" not in said
    assert "mine" in printed(serving, first["session_id"], "run cat file"), "it is still there for the next command"


def test_the_status_the_doctor_and_the_log_say_which_sandbox_holds_and_what_it_does_not_keep(serving: Serving) -> None:
    found = serving.status()["sandbox"]
    assert (found["network"], found["missing"]) == (True, []) and found["mode"] in MODES
    assert any("reach the network" in gap for gap in found["gaps"])
    wait_until(lambda: serving.written["sandbox"] == found)
    said = holdfast(serving.home, "doctor").out
    assert f"{found['mode']}, tried. {' '.join(found['gaps'])}" in " ".join(said.split())
    assert WORDS[found["mode"]] in (serving.home / "holdfast.log").read_text()


def test_without_a_sandbox_the_start_says_so_and_why(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bwrap").write_text("#!/bin/sh\necho 'no user namespaces' >&2; exit 1\n")
    (tmp_path / "bin" / "bwrap").chmod(0o755)
    path = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    with Serving(tmp_path / "home", tools_sandbox="bubblewrap", variables=path) as serving:
        wait_until(lambda: serving.status()["sandbox"] is not None)
        found = serving.status()["sandbox"]
        assert (found["mode"], found["missing"]) == ("none", ["Bubblewrap: a command in it failed (no user namespaces)."])
        assert found["gaps"] == ["Commands can do everything that you can, so those of a model ask first."]
        wait_until(lambda: "no sandbox for commands: those of a model ask first" in (serving.home / "holdfast.log").read_text())


def modelled(folder: Path, server: ModelProcess, sandbox: str, **variables: str) -> Serving:
    """A model whose calls ask unless they are confined."""
    serving = Serving(folder / "home", tools_sandbox=sandbox, tools_folder="", tools_shared="", variables=variables)
    serving.configure(model="chat:test", model_base_url=server.url, model_api_key="sk-of-the-test")
    return serving


POISONS = Script(
    by="steps",
    replies=(Reply(say=(call("write_file", {"path": ".git/config", "content": "[core]\nfsmonitor = ./x\n"}),)), Reply(say=text("Done."))),
)
LOOKS = Script(by="steps", replies=(Reply(say=(call("terminal", {"command": "echo hello"}),)), Reply(say=text("Done."))))
WRITES = Script(
    by="steps",
    replies=(
        Reply(say=(call("write_file", {"path": "out/report.txt", "content": "all is well"}),)),
        Reply(say=(call("attach_file", {"path": "out/report.txt"}), call("read_file", {"path": "../../token"}))),
        Reply(say=text("Here it is.")),
    ),
)


def test_a_command_of_a_model_runs_at_once_in_a_sandbox_also_before_that_was_tried(tmp_path: Path) -> None:
    """The first command waits for the trial, here a slow one, and is not asked about."""
    holding("bubblewrap", tmp_path)
    slow = tmp_path / "bin" / "bwrap"
    slow.parent.mkdir()
    slow.write_text(f'#!/bin/sh\nsleep 1\nexec {shutil.which("bwrap")} "$@"\n')
    slow.chmod(0o755)
    path = f"{slow.parent}:{os.environ['PATH']}"
    with ModelProcess(tmp_path / "model", LOOKS) as server, modelled(tmp_path, server, "bubblewrap", PATH=path) as serving:
        session_id = serving.new_session()
        serving.post(session_id, "look")
        session = serving.wait_for(session_id)
        assert session["questions"] == [] and session["messages"][-1]["tool_calls"][0]["result"] == "hello\n"


def test_without_a_sandbox_a_model_asks_before_it_changes_the_settings_of_git(tmp_path: Path) -> None:
    """A27, E4: an allowed `git status` would run what they name."""
    with ModelProcess(tmp_path / "model", POISONS) as server, modelled(tmp_path, server, "none") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "look")
        (question,) = serving.wait_for(session_id, state="waiting")["questions"]
        assert "fsmonitor = ./x" in question["text"] and question["pattern"] == "write_file(.git/*)"


def test_without_a_sandbox_a_command_of_a_model_asks_first(tmp_path: Path) -> None:
    """A27, R5"""
    with ModelProcess(tmp_path / "model", LOOKS) as server, modelled(tmp_path, server, "none") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "look")
        (question,) = serving.wait_for(session_id, state="waiting")["questions"]
        assert "echo hello" in str(question) and "no sandbox" in str(question)


def test_a_model_writes_a_file_and_gives_it_to_the_user_without_asking(tmp_path: Path) -> None:
    with ModelProcess(tmp_path / "model", WRITES) as server, modelled(tmp_path, server, "none") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "write a report")
        session = serving.wait_for(session_id)
        wrote, attached, refused = session["messages"][-1]["tool_calls"]
        assert (serving.home / "work" / session_id / "out" / "report.txt").read_text() == "all is well"
        assert (wrote["outcome"], attached["outcome"], refused["outcome"]) == ("done", "done", "failed")
        assert "is not in the folder of this conversation" in refused["result"]
        assert "report.txt" in str(attached) and "report.txt" in str(server.requests[-1])


@pytest.mark.parametrize("document", ["tools.md", "security.md"])
def test_the_commands_in_the_documents_work(tmp_path: Path, document: str) -> None:
    blocks = re.findall(r"^```console\n(.*?)^```", (ROOT / "docs" / document).read_text(), re.MULTILINE | re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    assert lines
    with Serving(tmp_path / "home", tools_folder="", tools_shared="") as serving:
        for line in lines:
            name, *words = shlex.split(line)
            said = holdfast(serving.home, *words)
            assert name == "holdfast" and said.code == 0, said
            assert "6*7" not in line or "  42\n" in said.err
