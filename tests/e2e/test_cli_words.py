"""What people type and what they are told to type: hints, suggestions, names of conversations. As `holdfast` and as `./run`."""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.commands.send import MODES
from holdfast.core.busy import Mode
from scripts import run as project
from tests.e2e.command_line import Said, command, environment, holdfast, is_one_sentence
from tests.e2e.serving import ROOT, Serving, wait_until


def run(home: Path, *words: str, name: str = "./run") -> Said:
    done = subprocess.run([name, *words], capture_output=True, text=True, cwd=ROOT, env=environment(HOLDFAST_HOME=str(home)), timeout=120)
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("shared") / "home") as running:
        yield running


# hints


def test_hints_name_the_script_that_was_typed(tmp_path: Path) -> None:
    said = run(tmp_path, "status")
    assert said.out == f"No gateway runs on {tmp_path}.\nStart it with `./run serve`.\n"
    assert "Start it with `./run serve`." in run(tmp_path, "stop").err
    assert "`./run serve` creates it" in run(tmp_path / "none", "doctor").out
    assert run(tmp_path, "send", "--help").out.startswith("Usage: ./run send ")
    assert "`./run unpause` ends it now" in run(tmp_path, "pause", "--help").out
    whole = str(ROOT / "run")
    assert f"Start it with `{whole} serve`." in run(tmp_path, "stop", name=whole).err


def test_hints_name_the_folder_that_was_chosen(tmp_path: Path) -> None:
    assert f"Start it with `holdfast serve --home {tmp_path}`." in holdfast(tmp_path, "stop").err


def test_the_script_lists_the_words_that_only_its_folder_knows(tmp_path: Path) -> None:
    listed = run(tmp_path, "--help").out.partition("In this folder only:\n")[2].partition("\n\n")[0]
    assert re.findall(r"^  (\w+) +\w", listed, re.MULTILINE) == list(project.WORDS)
    assert "In this folder only" not in holdfast(tmp_path, "--help").out


def test_an_older_python_is_told_so(tmp_path: Path) -> None:
    """By the script, and by pip through the same number in the package."""
    shutil.copy(ROOT / "run", tmp_path)
    old = tmp_path / "bin" / "python3"
    old.parent.mkdir()
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.10.13\nexit $(( $# - 1 ))\n')
    old.chmod(0o755)
    for tool in ("dirname", "cmp"):
        (old.parent / tool).symlink_to(str(shutil.which(tool)))
    done = subprocess.run(["/bin/sh", "./run", "status"], cwd=tmp_path, env={"PATH": str(old.parent)}, capture_output=True, text=True)
    told = "Holdfast needs Python 3.11 or newer; this machine has Python 3.10.13. Install a newer one and run this again.\n"
    assert (done.returncode, done.stderr) == (1, told)
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"] == ">=3.11"


# wrong words


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sned", "new", "hi"], "There is no command 'sned'. Did you mean 'send'?"),
        (["tets"], "There is no command 'tets'. Did you mean 'test'?"),
        (["start"], "There is no command 'start'. Did you mean 'serve'?"),
        (["help"], "There is no command 'help'. Did you mean '--help'?"),
        (["zzz"], "There is no command 'zzz'.\n"),
        (["token", "rotat"], "Did you mean 'rotate'?"),
        (["service", "statsu"], "'status'?"),
        (["status", "--jsn"], "Did you mean '--json'?"),
        (["sessions", "--state", "idel"], "'idel' is not one of"),
        (["send", "new", "run", "ls", "-l"], "To send it as text, put the message in quotes, or -- in front of it."),
    ],
)
def test_wrong_words_get_a_suggestion(tmp_path: Path, words: list[str], told: str) -> None:
    said = run(tmp_path, *words)
    assert said.code == 2 and told in said.err and "Try './run" in said.err, said.err


@pytest.mark.parametrize("port", ["abc", "70000", "-1", "1.5", ""])
def test_a_port_that_is_no_number_is_said_in_plain_words(tmp_path: Path, port: str) -> None:
    said = holdfast(tmp_path, "serve", f"--port={port}")
    assert said.code == 2 and f"'{port}' is not a number from 0 to 65535. 0 takes a free port." in said.err
    if port:
        said = holdfast(tmp_path, "serve", HOLDFAST_PORT=port)
        shown = repr(int(port)) if port.lstrip("-").isdigit() else repr(port)
        told = f"holdfast: Invalid port {shown} (from HOLDFAST_PORT). It must be a number from 0 to 65535 (0 takes a free port).\n"
        assert (said.code, said.err) == (78, told)


# names of conversations


def test_several_words_are_one_message(shared: Serving) -> None:
    said = holdfast(shared.home, "send", "new", "count", "3", "0")
    assert (said.code, said.out) == (0, "1 2 3\n"), said.err
    said = holdfast(shared.home, "send", "last", "--", "count", "2", "0")
    assert (said.code, said.out) == (0, "1 2\n"), said.err


def test_a_conversation_is_named_by_the_beginning_of_its_id_or_as_the_last_one(shared: Serving) -> None:
    older, newer = shared.new_session(), shared.new_session()
    shared.post(older, "count 2 0")
    shared.wait_for(older)
    shared.post(newer, "count 3 0")
    shared.wait_for(newer)
    for name in (newer, newer[:10], newer.removeprefix("s_")[:9], "last"):
        assert holdfast(shared.home, "show", name, "--json").json["session_id"] == newer
    said = holdfast(shared.home, "send", older[:12], "count", "4", "0")
    assert (said.code, said.out) == (0, "1 2 3 4\n"), said.err
    assert holdfast(shared.home, "show", "last", "--events").out.count("turn.started") == 2
    shared.post(newer, "hang")
    shared.wait_for(newer, state="running")
    assert f"Stopped the turn of {newer}" in holdfast(shared.home, "stop", newer[:12]).out
    assert f"Suspended {newer}" in holdfast(shared.home, "suspend", newer[:12]).out
    assert f"Resumed {newer}" in holdfast(shared.home, "resume", newer[:12]).out


def test_a_beginning_that_several_ids_have_is_refused_with_the_candidates(shared: Serving) -> None:
    names = [shared.new_session() for _ in range(3)]
    for words in (["show", "s_"], ["send", "s_", "hello"], ["stop", "s_"], ["suspend", "s_"]):
        said = holdfast(shared.home, *words)
        assert said.code == 1 and is_one_sentence(said.err), said
        assert said.err.startswith("holdfast: Several conversations begin with 's_': ") and said.err.endswith("Write more of the id.\n")
        assert all(name in said.err for name in names), "the newest first"


def test_a_name_that_fits_nothing_says_where_to_look(shared: Serving, tmp_path: Path) -> None:
    said = holdfast(shared.home, "show", "nothing")
    told = f"There is no conversation 'nothing' here. `holdfast sessions --home {shared.home}` lists them."
    assert (said.code, said.err) == (1, f"holdfast: {told}\n")


# what send says


def test_send_says_that_its_conversation_is_busy(shared: Serving) -> None:
    busy = shared.new_session()
    shared.post(busy, "hang")
    shared.wait_for(busy, state="running")
    shared.post(busy, "count 1 0")
    said = holdfast(shared.home, "send", busy, "count 2 0", "--no-wait")
    assert said.out.startswith(
        "Queued: this conversation is busy. Your message comes after the answer that is being written and 1 message. `holdfast show "
    )
    said = holdfast(shared.home, "send", busy, "/status")
    assert said.code == 0 and "Queued" not in said.err, "a command is answered at once"
    assert holdfast(shared.home, "stop", busy).code == 0


def test_send_can_steer_interrupt_or_give_up_where_its_conversation_is_busy(shared: Serving) -> None:
    """P1, A21"""
    busy = shared.new_session()
    shared.post(busy, "hang")
    shared.wait_for(busy, state="running")
    refused = holdfast(shared.home, "send", busy, "and now?", "--mode", "reject")
    assert refused.code == 1 and "is busy, so the message was refused" in refused.err
    steered = holdfast(shared.home, "send", busy, "this way", "--mode", "steer", "--no-wait")
    assert steered.out.startswith("Sent to the answer that is being written")
    said = holdfast(shared.home, "send", busy, "count 2 0", "--mode", "interrupt")
    assert (said.code, said.out) == (0, "1 2\n\nYou also said: this way\n"), said.err
    shared.wait_for(busy, state="idle")
    assert holdfast(shared.home, "send", busy, "x", "--mode", "shout").code == 2


def test_send_says_that_holdfast_is_paused_each_time_and_answers_after_it(shared: Serving) -> None:
    """C21, C22"""
    session_id = shared.new_session()
    assert holdfast(shared.home, "pause", "--holder", "Ada", "--for", "600").code == 0
    told = r"Holdfast is paused by Ada until .*\. Your message is saved and will be answered after that; `holdfast unpause --home \S+` ends"
    for _ in range(2):
        assert re.match(told, holdfast(shared.home, "send", session_id, "count 2 0", "--no-wait").out)
    waiting = subprocess.Popen(
        command(shared.home, "send", session_id, "count 3 0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    with waiting:
        wait_until(lambda: shared.session(session_id)["queued"] == 3)
        assert holdfast(shared.home, "unpause").out == "Resumed.\n"
        out, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, out) == (0, "1 2 3\n")
    assert re.match(told, err) and len(err.splitlines()) == 1, "what the gateway itself says about the pause is not told again"


def test_a_message_can_be_sent_in_every_mode_there_is() -> None:
    assert MODES == tuple(Mode)
