"""Where the log goes: to a file, to standard error, and at a terminal only what is wrong."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.process.console import end
from holdfast.process.logs import LogFile
from tests.e2e.command_line import command, environment, holdfast
from tests.e2e.serving import ROOT, Serving, wait_until
from tests.e2e.window import Window

WRITES = """
import sys
from pathlib import Path
from holdfast.process.logs import LogFile
for first in range(0, 1500, 20):
    file = LogFile(Path(sys.argv[1]), max_bytes=2000, kept=1000)
    for number in range(first, first + 20):
        file.write(f"{sys.argv[2]} {number} {'x' * (number % 90)}\\n")
    file.close()
"""


def lines_of(folder: Path) -> list[str]:
    return [line for path in folder.iterdir() for line in path.read_text().splitlines()]


def test_processes_that_write_side_by_side_lose_and_tear_no_line_when_the_file_is_full(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITES, str(tmp_path / "log"), name], env=environment(), cwd=ROOT) for name in "abc"]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    written = [f"{name} {number} {'x' * (number % 90)}".rstrip() for name in "abc" for number in range(1500)]
    assert sorted(line.rstrip() for line in lines_of(tmp_path)) == sorted(written)
    assert len(list(tmp_path.iterdir())) > 3


def test_a_full_log_is_kept_under_another_name_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.log"
    for number in range(6):
        file = LogFile(path, max_bytes=10, kept=2)
        file.write(f"line number {number}\n")
        file.close()
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {
        "holdfast.log": "line number 5\n",
        "holdfast.log.1": "line number 4\n",
        "holdfast.log.2": "line number 3\n",
    }
    assert {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()} == {0o600}


def test_a_log_that_was_removed_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.log"
    file = LogFile(path)
    file.write("one\n")
    wait_until(lambda: path.exists() and path.read_text() == "one\n")
    path.unlink()
    file.write("two\n")
    file.close()
    assert path.read_text() == "two\n"


def test_a_log_that_cannot_be_written_is_told_once_and_harms_nobody(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = LogFile(tmp_path / "none" / "holdfast.log")
    for _ in range(3):
        file.write("lost\n")
    file.close()
    assert capfd.readouterr().err == f"holdfast: the log {tmp_path}/none/holdfast.log cannot be written: No such file or directory.\n"


@pytest.mark.parametrize("form", ["text", "json"])
def test_without_a_terminal_standard_error_and_the_file_have_the_same(tmp_path: Path, form: str) -> None:
    with Serving(tmp_path / "home", log_format=form) as serving:
        serving.stop(signal.SIGINT)
    file = (serving.home / "holdfast.log").read_text().splitlines()
    assert len(file) > 5 and set(file) <= set(serving.output().splitlines())
    if form == "json":
        # The trial of the sandbox may end later than the gateway.
        assert [line["state"] for line in map(json.loads, file) if "state" in line][-1] == "stopped"
    assert stat.S_IMODE((serving.home / "holdfast.log").stat().st_mode) == 0o600


def test_both_processes_of_a_hand_over_write_to_one_file(tmp_path: Path) -> None:
    with Serving(tmp_path / "home", log_format="json") as serving:
        assert holdfast(serving.home, "restart").code == 0
        assert holdfast(serving.home, "stop").code == 0
    said = [json.loads(line)["event"] for line in (serving.home / "holdfast.log").read_text().splitlines()]
    assert said.count("handed over") == 1 and said.count("gateway") > 6


# at a terminal


def serve(home: Path, *words: str, **variables: str) -> Window:
    return Window(command(home, "serve", "--port", "0", *words), cwd=home.parent, variables=variables)


def test_a_stop_at_the_terminal_is_one_sentence(tmp_path: Path) -> None:
    """C26: and the log has the rest."""
    home = tmp_path / "home"
    with serve(home) as window:
        window.wait_for("  kill  kill -9 ")
        assert holdfast(home, "send", "new", "hang", "--no-wait").code == 0
        wait_until(lambda: holdfast(home, "status", "--json").json["running_turns"] == 1)
        assert holdfast(home, "send", "last", "hello", "--no-wait").code == 0
        window.press("\x03")
        assert window.wait() == 0
    banner, _, rest = window.text.partition("lets a real model answer\n\n")
    assert banner.startswith("Holdfast ") and f"  kill  kill -9 {window.process.pid}\n" in banner and "[info" not in banner
    assert rest == "Stopped. 1 answer continues and 1 message is answered at the next start.\n"
    assert "step=drain" in (home / "holdfast.log").read_text()


def test_a_stop_with_nothing_to_continue_says_only_that(tmp_path: Path) -> None:
    with serve(tmp_path / "home") as window:
        window.wait_for("  kill  kill -9 ")
        window.press("\x03")
        assert window.wait() == 0
    assert window.text.endswith("\n\nStopped.\n")


def test_a_stop_that_waits_for_answers_says_so(tmp_path: Path) -> None:
    """C5"""
    home = tmp_path / "home"
    with serve(home, HOLDFAST_DRAIN_TIMEOUT_S="60") as window:
        window.wait_for("  kill  kill -9 ")
        assert holdfast(home, "send", "new", "count 30 0.1", "--no-wait").code == 0
        wait_until(lambda: holdfast(home, "status", "--json").json["running_turns"] == 1)
        window.press("\x03")
        assert window.wait() == 0
    assert window.text.endswith("\n\nStopping. Waiting up to 60 s for 1 answer that is being written. Ctrl-C again stops now.\nStopped.\n")


def test_a_second_press_waits_no_longer(tmp_path: Path) -> None:
    """C28"""
    home = tmp_path / "home"
    with serve(home, HOLDFAST_DRAIN_TIMEOUT_S="600") as window:
        window.wait_for("  kill  kill -9 ")
        assert holdfast(home, "send", "new", "hang", "--no-wait").code == 0
        wait_until(lambda: holdfast(home, "status", "--json").json["running_turns"] == 1)
        window.press("\x03")
        window.wait_for("Ctrl-C again stops now.")
        window.press("\x03")
        assert window.wait() == 0
    assert window.text.endswith("Ctrl-C again stops now.\nStopped. 1 answer continues at the next start.\n")


def test_after_a_hand_over_the_terminal_gets_the_same_sentence_once(tmp_path: Path) -> None:
    """C28"""
    home = tmp_path / "home"
    with serve(home) as window:
        window.wait_for("  kill  kill -9 ")
        assert holdfast(home, "restart").code == 0
        window.press("\x03")
        assert window.wait() == 0
    assert window.text.count("Stopped.") == 1 and "[info" not in window.text, window.text


@pytest.mark.parametrize(("words", "variables"), [(["--log-level", "info"], {}), ([], {"HOLDFAST_LOG_LEVEL": "info"})])
def test_a_log_level_that_is_set_shows_the_log_at_the_terminal(tmp_path: Path, words: list[str], variables: dict[str, str]) -> None:
    with serve(tmp_path / "home", *words, **variables) as window:
        window.wait_for("  kill  kill -9 ")
        window.press("\x03")
        window.wait()
    assert "asked to stop" in window.text


def test_under_a_supervisor_a_terminal_changes_nothing(tmp_path: Path) -> None:
    """As in `docker run -t`: what it prints is kept and read by others, so it has the whole log and no code."""
    with serve(tmp_path / "home", HOLDFAST_SUPERVISOR="other") as window:
        window.wait_for("  kill  kill -9 ")
        os.kill(window.process.pid, signal.SIGTERM)
        window.wait()
    assert "asked to stop" in window.text and "#code=" not in window.text


@pytest.mark.parametrize(
    ("answers", "messages", "resumes", "told"),
    [
        (0, 0, True, "Stopped."),
        (1, 0, True, "Stopped. 1 answer continues at the next start."),
        (2, 0, True, "Stopped. 2 answers continue at the next start."),
        (0, 3, True, "Stopped. 3 messages are answered at the next start."),
        (2, 1, True, "Stopped. 2 answers continue and 1 message is answered at the next start."),
        (1, 0, False, "Stopped. 1 answer was interrupted; a message or `holdfast resume` continues it."),
        (
            1,
            1,
            False,
            "Stopped. 1 answer was interrupted; a message or `holdfast resume` continues it. 1 message is answered at the next start.",
        ),
    ],
)
def test_the_last_sentence_counts_what_is_left_to_do(answers: int, messages: int, resumes: bool, told: str) -> None:
    assert end(answers=answers, messages=messages, resumes=resumes) == told


# holdfast logs


def test_logs_shows_the_last_lines_also_of_the_file_before(tmp_path: Path) -> None:
    (tmp_path / "holdfast.log.1").write_text("one\ntwo\n")
    (tmp_path / "holdfast.log").write_text("three\nfo\x1bur\n")
    assert holdfast(tmp_path, "logs", "--lines", "1").out == "fo\N{REPLACEMENT CHARACTER}ur\n"
    assert holdfast(tmp_path, "logs", "--lines", "3").out == "two\nthree\nfo\N{REPLACEMENT CHARACTER}ur\n"
    assert holdfast(tmp_path, "logs").out.startswith("one\n")
    said = holdfast(tmp_path / "none", "logs")
    assert said.code == 1 and "There is no log yet" in said.err and "`holdfast serve " in said.err


def test_logs_follows_a_file_that_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.log"
    path.write_text("one\n")
    with Window(command(tmp_path, "logs", "--follow"), cwd=tmp_path) as window:
        window.wait_for("one\n")
        with path.open("a") as file:
            file.write("two\n")
        window.wait_for("two\n")
        path.rename(tmp_path / "holdfast.log.1")
        path.write_text("three\n")
        window.wait_for("three\n")
        window.press("\x03")
        assert window.wait() == 130
    assert window.text.startswith("one\ntwo\nthree\n")
