"""`holdfast service` where no systemd can be asked: a clear answer everywhere. With a systemd: tests/e2e/test_service.py."""

import json
import os
import subprocess
import sys
import zoneinfo  # noqa: F401 - it asks which system this is when it is first loaded, and a test says another one.
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holdfast.cli.commands.service import command
from holdfast.core.errors import HoldfastError
from holdfast.install import launchd
from holdfast.install.entry import is_waiting
from tests.e2e.serving import wait_until
from tests.ports import free_port

WORDS = ("install", "uninstall", "start", "stop", "restart", "status", "logs")


def service(home: Path, *words: str, **variables: str) -> Result:
    return CliRunner().invoke(command, ["--home", str(home), *words], env={"SUDO_USER": "", **variables}, standalone_mode=False)


def refused(result: Result) -> str:
    """The sentence of an error that ends the command with exit code 1."""
    assert isinstance(result.exception, HoldfastError), result.exception or result.output
    return str(result.exception)


@pytest.mark.parametrize("word", WORDS)
def test_without_systemd_every_command_says_what_to_do(tmp_path: Path, word: str) -> None:
    said = refused(service(tmp_path / "home", word, PATH=""))
    assert "No systemd runs on this machine" in said and "`holdfast serve`" in said and "docs/service.md" in said
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("word", WORDS)
def test_every_command_has_both_scopes_a_name_and_json(word: str) -> None:
    options = {option for parameter in command.commands[word].params for option in parameter.opts}
    assert {"--user", "--system", "--name", "--json", "--home"} <= options


def test_a_user_can_be_named_only_for_the_machines_service(tmp_path: Path) -> None:
    result = service(tmp_path, "install", "--user", "--run-as", "daemon", PATH="")
    assert "--run-as needs --system" in str(result.exception)


@pytest.mark.skipif(os.geteuid() != 0, reason="the machine's services belong to root")
def test_the_machines_service_never_runs_as_root_by_mistake(tmp_path: Path) -> None:
    assert "--run-as USER" in str(service(tmp_path, "install", "--system", PATH="").exception)
    assert "There is no user 'nobody-knows'" in refused(service(tmp_path, "install", "--system", "--run-as", "nobody-knows", PATH=""))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may")
def test_the_machines_service_needs_root(tmp_path: Path) -> None:
    assert "belong to root" in refused(service(tmp_path, "install", "--system", PATH=""))


def test_a_stop_is_taken_back_in_a_container_that_waits(tmp_path: Path) -> None:
    """C18: stopped by an operator, it stays down over a start of the container, until an operator starts it."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "status.json").write_text(json.dumps({"pid": 1, "process_started_at": 1, "gateway_state": "stopped"}))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST")}
    environment = kept | {"HOLDFAST_HOME": str(home), "HOLDFAST_PORT": str(free_port())}
    with (tmp_path / "output.txt").open("wb") as output:
        words = [sys.executable, "-P", "-m", "holdfast.install.entry"]
        entry = subprocess.Popen(words, env=environment, cwd=tmp_path, stdout=output, stderr=output)
    try:
        wait_until(lambda: is_waiting(home))
        result = service(home, "start", PATH="")
        assert result.exception is None, f"{result.exception}\n{(tmp_path / 'output.txt').read_text()}"
        assert f"started the gateway (process {entry.pid})" in result.output
        assert not is_waiting(home)
    finally:
        entry.terminate()
        assert entry.wait(30) is not None


def test_on_a_mac_the_property_list_is_written_and_said_to_be_untried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    result = service(tmp_path / "home", "install", HOME=str(tmp_path), PATH="/usr/bin:/bin")
    written = (tmp_path / "Library" / "LaunchAgents" / "holdfast.plist").read_text()
    assert "never been tested" in result.output and "launchctl bootstrap" in result.output
    assert f"<string>{tmp_path / 'home'}</string>" in written and f"<string>{launchd.__name__.rpartition('.')[2]}</string>" in written
    assert "launchctl print" in refused(service(tmp_path / "home", "status", HOME=str(tmp_path)))
