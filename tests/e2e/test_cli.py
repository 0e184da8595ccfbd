"""The command line without a gateway: help, errors, exit codes, settings, the token."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.app import COMMANDS
from tests.e2e.command_line import command, environment, holdfast, is_one_sentence, process_fields, write_status

SLOW = (
    "asyncio",
    "apsw",
    "http.client",
    "msgspec",
    "psutil",
    "starlette",
    "structlog",
    "holdfast.store",
    "holdfast.config",
    "holdfast.gateway",
)
LOADED = """
import contextlib, io, sys
from holdfast.cli.app import run
for words in {calls}:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert run(words) == 0, words
    assert "Usage: holdfast" in out.getvalue(), words
print([name for name in {slow} if name in sys.modules])
"""


def test_help_loads_nothing_that_is_slow() -> None:
    """Time is what people notice, but it varies with the machine; what is loaded does not."""
    calls = [["--help"], *([name, "--help"] for name in COMMANDS)]
    script = LOADED.format(calls=calls, slow=SLOW)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment())
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_help_names_every_command(tmp_path: Path) -> None:
    said = holdfast(tmp_path, "--help")
    assert said.code == 0
    for name in COMMANDS:
        assert name in said.out


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense"],
        ["sessions", "--limit", "none"],
        ["sessions", "--state", "asleep"],
        ["show"],
        ["resume"],
        ["resume", "s_x", "--all"],
        ["suspend"],
        ["serve", "--port", "70000"],
        ["pause", "--for", "0"],
        ["pause", "--for", "nan"],
        *(["stop", "--timeout", number] for number in ("-1", "nan", "inf")),
        *(["send", "new", "hi", "--timeout", number] for number in ("-1", "nan", "inf", "1e999")),
        ["--home", "", "status"],
    ],
)
def test_a_command_line_that_is_not_understood_ends_with_2(tmp_path: Path, words: list[str]) -> None:
    said = holdfast(tmp_path, *words)
    assert said.code == 2
    assert "Usage:" in said.err and "Traceback" not in said.err


@pytest.mark.parametrize(
    "words",
    [
        ["stop"],
        ["stop", "s_x"],
        ["outbox"],
        ["pair"],
        ["pair", "approve", "ABCDEFGH"],
        ["restart"],
        ["upgrade"],
        ["pause"],
        ["unpause"],
        ["sessions"],
        ["show", "s_x"],
        ["send", "new", "hi"],
        ["resume", "s_x"],
        ["resume", "--all"],
        ["suspend", "agent:main:telegram:dm:1"],
        ["token"],
        ["backup", "copy.db"],
    ],
)
def test_where_nothing_is_yet_a_command_says_so_and_makes_nothing(tmp_path: Path, words: list[str]) -> None:
    said = holdfast(tmp_path / "home", *words)
    assert said.code == 1
    assert is_one_sentence(said.err) and "holdfast serve" in said.err
    assert not (tmp_path / "home").exists()


def test_home_is_understood_on_both_sides_of_the_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "config", "--json", "--home", str(tmp_path)], capture_output=True, env=environment(), check=True
    )
    assert str(tmp_path).encode() in done.stdout
    assert holdfast(tmp_path / "a", "config", "--home", str(tmp_path / "b"), "--json").json["home"] == {
        "value": str(tmp_path / "b"),
        "source": "--home",
    }


# the gateway that is not there


def test_status_says_that_nothing_runs(tmp_path: Path) -> None:
    said = holdfast(tmp_path, "status")
    assert said.code == 1 and f"No gateway runs on {tmp_path}" in said.out
    said = holdfast(tmp_path, "status", "--json")
    assert said.code == 1 and said.json == {"running": False, "home": str(tmp_path), "last": None}


@pytest.mark.parametrize("stale", [{"process_started_at": 12345}, {"pid": 2**22 + 12345}], ids=["another life of the pid", "no such pid"])
def test_a_stale_status_file_is_not_believed(tmp_path: Path, stale: dict[str, int]) -> None:
    """The pid may belong to another program by now: it must be neither reported nor stopped."""
    write_status(tmp_path, gateway_state="draining", **stale)
    said = holdfast(tmp_path, "status")
    assert said.code == 1 and "No gateway runs" in said.out and "its last state was draining" in said.out
    assert holdfast(tmp_path, "status", "--json").json["last"]["gateway_state"] == "draining"
    said = holdfast(tmp_path, "stop")
    assert said.code == 1 and is_one_sentence(said.err) and "is gone; its last state was draining" in said.err


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": "x"}', b"\xff"])
def test_a_status_file_that_does_not_read_is_no_status(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "status.json").write_bytes(content)
    assert holdfast(tmp_path, "status", "--json").json == {"running": False, "home": str(tmp_path), "last": None}


STUBBORN = "import signal, sys; signal.signal(signal.SIGTERM, {handler}); print('ready', flush=True); sys.stdin.read()"


@pytest.fixture
def named(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that the status file names and that does not speak HTTP; the parameter is what it does with a SIGTERM."""
    script = STUBBORN.format(handler=request.param)
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        write_status(tmp_path, **process_fields(process.pid), running_turns=2)
        yield process
        process.kill()


@pytest.mark.parametrize("named", ["signal.SIG_DFL"], indirect=True)
def test_stop_signals_a_gateway_that_does_not_answer(tmp_path: Path, named: subprocess.Popen[bytes]) -> None:
    said = holdfast(tmp_path, "stop")
    assert (said.code, said.out[:8]) == (0, "Stopped ")
    assert named.wait() == -signal.SIGTERM


@pytest.mark.parametrize("named", ["signal.SIG_IGN"], indirect=True)
def test_stop_kills_a_process_that_is_still_there_after_the_timeout_and_says_so(tmp_path: Path, named: subprocess.Popen[bytes]) -> None:
    """D9, C29: where there is no store to ask, nothing is said about turns; least of all what an old file says."""
    said = holdfast(tmp_path, "stop", "--timeout", "0.3")
    assert said.code == 1 and said.err == (
        f"holdfast: Process {named.pid} was asked to stop but was still running after 0.3 s, so it was killed, along with the commands its "
        "tools were running. Accepted messages are on disk.\n"
    )
    assert named.wait(10) == -signal.SIGKILL


# errors


def test_a_wrong_setting_ends_with_78(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("port = 'many'\n")
    for words in (["config"], ["serve"]):
        said = holdfast(tmp_path, *words)
        assert (
            said.code == 78
            and is_one_sentence(said.err)
            and "Invalid port 'many' (from config.toml). It must be a number from 0 to 65535" in said.err
        )
    assert holdfast(tmp_path, "status").code == 1, "a wrong setting keeps nobody from asking"
    said = holdfast(tmp_path, "doctor", "--json")
    assert said.code == 1
    assert {"check": "settings", "state": "fail"}.items() <= said.json["checks"][0].items()


def test_what_nobody_expected_is_one_line_and_a_trace_in_the_home_folder(tmp_path: Path) -> None:
    write_status(tmp_path, url="http://[")
    (tmp_path / "token").write_text("x")
    said = holdfast(tmp_path, "sessions")
    assert said.code == 1
    assert is_one_sentence(said.err) and "unexpected" in said.err and str(tmp_path / "errors.log") in said.err
    assert "Traceback" in (tmp_path / "errors.log").read_text()
    assert stat.S_IMODE((tmp_path / "errors.log").stat().st_mode) == 0o600
    assert "Traceback" in holdfast(tmp_path, "sessions", HOLDFAST_DEBUG="1").err


def test_what_the_system_refuses_is_named(tmp_path: Path) -> None:
    (tmp_path / "status.json").mkdir()
    said = holdfast(tmp_path, "stop")
    assert said.code == 1 and is_one_sentence(said.err) and str(tmp_path / "status.json") in said.err


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    process = subprocess.Popen(command(tmp_path, "config"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    with process:
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_output_that_the_terminal_cannot_show_does_not_fail(tmp_path: Path) -> None:
    said = holdfast(tmp_path / "漢字", "config", PYTHONIOENCODING="latin-1")
    assert said.code == 0 and str(tmp_path / "??") in said.out


# settings and the token


def test_config_says_where_each_setting_came_from(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("max_waiting = 7\n")
    said = holdfast(tmp_path, "config", "--json", HOLDFAST_PORT="9000").json
    assert said["max_waiting"] == {"value": 7, "source": "config.toml"}
    assert said["port"] == {"value": 9000, "source": "HOLDFAST_PORT"}
    assert said["host"] == {"value": "127.0.0.1", "source": "default"}
    resets = "default=idle 60; telegram.group=daily 4"
    said = holdfast(tmp_path, "config", "--json", HOLDFAST_RESETS=resets).json
    assert said["resets"] == {"value": {"default": "idle 60", "telegram.group": "daily 4"}, "source": "HOLDFAST_RESETS"}
    assert resets in holdfast(tmp_path, "config", HOLDFAST_RESETS=resets).out
    assert "9000" in holdfast(tmp_path, "config", HOLDFAST_PORT="9000").out


def test_the_token_is_replaced_without_a_gateway(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = holdfast(home, "token", "rotate")
    assert first.code == 0 and first.err == ""
    assert holdfast(home, "token").out == first.out
    second = holdfast(home, "token", "rotate", "--json").json["token"]
    assert second != first.out.strip() and holdfast(home, "token", "--json").json == {"token": second}
    assert stat.S_IMODE((home / "token").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_a_token_is_not_made_where_others_live(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    said = holdfast(tmp_path, "token", "rotate")
    assert said.code == 78 and is_one_sentence(said.err)
    assert os.listdir(tmp_path) == []
