"""The texts are those of the golden files, and other programs read in them what we meant."""

import os
import plistlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.install import launchd, s6, systemd
from holdfast.install.description import MARGIN_S, BadName, Unprintable, describe
from holdfast.install.systemctl import Scope, unit_path
from tests.install.texts import DEPLOY, container, deployed, golden, machine, own


def lines(text: str, name: str) -> list[str]:
    return [line.partition("=")[2] for line in text.splitlines() if line.startswith(f"{name}=")]


@pytest.mark.parametrize("path", golden() | deployed(), ids=lambda path: path.name)
def test_a_text_is_the_one_in_its_golden_file(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == (golden() | deployed())[path], "Look at the change, then: python -m tests.install.texts"


def test_there_is_no_golden_file_that_nobody_prints() -> None:
    assert set(golden()) == set(next(iter(golden())).parent.iterdir())
    assert set(deployed()) == {path for path in (DEPLOY / "s6").rglob("*") if path.is_file()}


@pytest.mark.parametrize("service", [own(), machine()], ids=["own", "machine"])
def test_a_unit_restarts_on_75_never_on_78_and_believes_the_main_process_alone(service) -> None:
    """C9."""
    text = systemd.unit(service)
    assert lines(text, "Type") == ["notify"] and lines(text, "NotifyAccess") == ["main"]
    # Where background processes can have no scope of their own, they are left alone (C15).
    assert lines(text, "KillMode") == ["mixed" if service.user is None else "process"]
    assert lines(text, "Restart") == ["on-failure"]
    assert lines(text, "RestartForceExitStatus") == lines(text, "SuccessExitStatus") == ["75"]
    assert lines(text, "RestartPreventExitStatus") == ["78"]
    assert lines(text, "ExecReload") == ["/bin/kill -HUP $MAINPID"]


@pytest.mark.parametrize("service", [own(), machine()], ids=["own", "machine"])
def test_the_process_is_told_of_a_deadline_before_the_one_of_its_supervisor(service) -> None:
    """C23: one deadline, derived from the supervisor's; both stand in the same text."""
    text = systemd.unit(service)
    (told,) = [line.partition("=")[2] for line in lines(text, "Environment") if line.startswith("HOLDFAST_STOP_TIMEOUT_S=")]
    assert int(lines(text, "TimeoutStopSec")[0]) - int(told) == MARGIN_S >= 5
    plist = plistlib.loads(launchd.plist(service).encode())
    assert plist["ExitTimeOut"] - int(plist["EnvironmentVariables"]["HOLDFAST_STOP_TIMEOUT_S"]) == MARGIN_S


def test_a_longer_drain_gives_a_stop_more_time() -> None:
    def stop_s(drain_timeout_s: float) -> int:
        return describe(
            name="x", python="/p", home="/h", folder="/", user=None, drain_timeout_s=drain_timeout_s, environment={}
        ).stop_timeout_s

    assert stop_s(300.5) - stop_s(0) == 301


def test_the_machines_unit_names_its_user_and_waits_for_the_network_and_ones_own_does_neither() -> None:
    assert lines(systemd.unit(machine()), "User") == ["team"] and lines(systemd.unit(own()), "User") == []
    assert lines(systemd.unit(machine()), "After") == ["network-online.target"] and lines(systemd.unit(own()), "After") == []
    assert lines(systemd.unit(machine()), "WantedBy") == ["multi-user.target"]
    assert lines(systemd.unit(own()), "WantedBy") == ["default.target"]


@pytest.mark.parametrize("service", [own(), machine()], ids=["own", "machine"])
def test_a_unit_tells_what_it_was_written_from(service) -> None:
    assert systemd.described_in(systemd.unit(service)) == service


@pytest.mark.parametrize("text", ["", "[Service]\nExecStart=/bin/true\n", "# holdfast: {", '# holdfast: {"name": 1}'])
def test_a_unit_that_is_not_ours_tells_nothing(text: str) -> None:
    assert systemd.described_in(text) is None


@pytest.mark.parametrize("scope", ["user", "system"])
def test_systemd_finds_nothing_to_complain_of(tmp_path: Path, scope: str) -> None:
    """In units with blanks, quotes, per cent and dollar signs; a key it does not know would be complained of."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd is not installed (on Debian: apt-get install systemd)")
    python = tmp_path / "100% py $thon"
    python.symlink_to(sys.executable)
    service = describe(
        name="holdfast",
        python=str(python),
        home=str(tmp_path / 'a "home" at 50%h \\ $HOME'),
        folder=str(tmp_path),
        user=None if scope == "user" else "daemon",
        drain_timeout_s=0,
        environment={"PATH": '/a b:/50%h:/$x:/"q"'},
    )
    (tmp_path / "holdfast.service").write_text(systemd.unit(service))
    # Only ours is of interest, and it wants units that are found in the system's folders.
    environment = {"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)}
    words = ["systemd-analyze", f"--{scope}", "verify", "--man=no", "--recursive-errors=no", str(tmp_path / "holdfast.service")]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_launchd_starts_it_again_unless_it_was_stopped() -> None:
    """C9: 75 and crashes are ends without success."""
    plist = plistlib.loads(launchd.plist(machine()).encode())
    assert plist["KeepAlive"] == {"SuccessfulExit": False} and plist["ThrottleInterval"] >= 10
    assert tuple(plist["ProgramArguments"]) == machine().command and plist["UserName"] == "team"
    assert plist["EnvironmentVariables"]["HOLDFAST_SUPERVISOR"] == "launchd"


@pytest.mark.parametrize(("code", "again"), [("0", True), ("75", True), ("1", True), ("256", True), ("78", False)])
def test_s6_starts_everything_again_but_a_wrong_configuration(tmp_path: Path, code: str, again: bool) -> None:
    """C9, C17: what was stopped by an operator waits in `run`."""
    script = tmp_path / "finish"
    script.write_text(s6.files(container())["holdfast/finish"])
    done = subprocess.run(["sh", str(script), code, "9"], capture_output=True, timeout=30)
    assert done.returncode == (0 if again else s6.STAY_DOWN)


def test_the_scripts_of_s6_may_be_run() -> None:
    assert all(os.access(DEPLOY / "s6" / "holdfast" / name, os.X_OK) for name in ("run", "finish"))
    assert (DEPLOY / "s6" / "holdfast" / "timeout-kill").read_text() == f"{container().killed_after_s * 1000}\n"


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "x" * 64, "x.service"])
def test_a_name_that_no_service_can_have_is_refused(name: str) -> None:
    with pytest.raises(BadName):
        own(name=name)
    with pytest.raises(BadName):
        unit_path(Scope.USER, name, {"XDG_CONFIG_HOME": "/x"})


@pytest.mark.parametrize("what", ["python", "home", "folder"])
def test_a_line_break_gets_into_no_unit(what: str) -> None:
    with pytest.raises(Unprintable):
        own(**{what: "/x\nExecStartPre=/bin/false"})


def test_the_search_path_is_taken_along_without_relative_folders() -> None:
    service = describe(
        name="x", python="/p", home="/h", folder="/", user=None, drain_timeout_s=0, environment={"PATH": "/a:.::/b:/a:bin", "SECRET": "s"}
    )
    assert service.environment == {"PATH": "/a:/b"}
