"""Background processes with real processes, real kills and a real systemd: they go on, and what becomes of them is told once."""

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from holdfast import files, tool_processes
from holdfast.keeper.keep import EXIT, PID
from tests.e2e.command_line import holdfast, is_one_sentence
from tests.e2e.serving import ROOT, Serving, hand_over, wait_until

# What is killed in the rounds of each batch.
BATCHES = (("gateway", "keeper", "both", "keeper", "gateway"), ("gateway", "both", "keeper", "both", "gateway")) * 2
AT_ONCE = 5


def folder(serving: Serving, process: dict[str, Any], session_id: str) -> Path:
    return serving.home / "processes" / session_id / str(process["process_id"])


def output(place: Path) -> str:
    return "".join(path.read_text() for path in sorted(place.glob("out.*"), key=lambda path: int(path.suffix[1:])))


def left(serving: Serving) -> list[int]:
    return [process.pid for process, _ in tool_processes.running(serving.home, tool_processes.KEPT)]


def begin(serving: Serving, command: str, session_id: str | None = None) -> tuple[str, dict[str, Any]]:
    """A process in the background of a conversation, whose turn is over."""
    session_id = session_id or serving.new_session()
    serving.post(session_id, f"background {command}")
    view = serving.wait_for(session_id)
    return session_id, view["processes"][-1]


def told(view: dict[str, Any]) -> list[str]:
    """Everything that was said of ends: as a cause or as a notice."""
    return [message["text"] for message in view["messages"] if message["role"] in ("cause", "notice")]


class Keeping:
    """A gateway that serves nobody (`tests.e2e.keeping`), killed and started again."""

    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir(mode=0o700)
        words, pipe = [sys.executable, "-m", "tests.e2e.keeping", str(home)], subprocess.PIPE
        with (home / "log.txt").open("w") as log:
            self._process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=log, text=True, cwd=ROOT)

    def ask(self, session_id: str = "", text: str = "") -> dict[str, Any]:
        """A conversation at rest, after these words were said in it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(session_id, text, file=self._process.stdin, flush=True)
        return dict(json.loads(self._process.stdout.readline()))

    def kill(self, number: int = signal.SIGUSR1) -> None:
        """SIGKILL, and the next one."""
        self._process.send_signal(number)
        assert self._process.stdout is not None and self._process.stdout.readline() == "killed\n"

    def end(self) -> None:
        self.kill(signal.SIGTERM)
        self._process.communicate()


class Batch:
    """Processes that count until they are told to go, and end with codes of their own. `lost`: whose keeper was killed."""

    def __init__(self, keeping: Keeping, number: int) -> None:
        self._go = keeping.home.parent / f"go-{number}"
        counts = f"n=0; while [ ! -e {self._go} ]; do n=$((n+1)); echo $n; sleep 0.05; done; exit "
        self.sessions = {keeping.ask()["session_id"]: AT_ONCE * number + which for which in range(AT_ONCE)}
        self.views = {session_id: keeping.ask(session_id, f"background {counts}{code}") for session_id, code in self.sessions.items()}
        self.lost: set[str] = set()
        self._keeping = keeping

    def place(self, session_id: str) -> Path:
        return self._keeping.home / "processes" / session_id / str(self.views[session_id]["processes"][0]["process_id"])

    def kill_a_keeper(self) -> None:
        session_id = next(session_id for session_id in self.sessions if session_id not in self.lost)
        found = files.read_json(self.place(session_id) / PID)
        assert found is not None
        os.kill(found["keeper"]["pid"], signal.SIGKILL)
        self.lost.add(session_id)

    def go(self) -> None:
        self._go.touch()

    def until_told(self, sessions: Iterable[str]) -> None:
        for session_id in sessions:
            wait_until(lambda session_id=session_id: len(self._keeping.ask(session_id)["turns"]) == 2)  # type: ignore[misc]

    def check(self) -> None:
        self.until_told(self.sessions)
        for session_id, code in self.sessions.items():
            view = self._keeping.ask(session_id)
            [process], [said] = view["processes"], told(view)
            counted = output(self.place(session_id)).split()
            assert counted and counted == [str(number + 1) for number in range(len(counted))]
            known = (None, "keeper") if session_id in self.lost else (code, None)
            assert (process["code"], process["lost"]) == known
            assert ("exit code is not known" if session_id in self.lost else f"exit code {code}.") in said
            assert [turn["cause"] for turn in view["turns"]] == ["message", "process"]


def test_processes_go_on_over_twenty_kills_of_gateway_keeper_or_both_and_each_is_told_once(tmp_path: Path) -> None:
    """E5, E6, P6: adopted, output whole, told once, codes kept; where the keeper was killed, that the code is not known. The gateway is
    killed alone 8 times, a keeper 6 times, both 6 times.
    """
    rounds = [what for batch in BATCHES for what in batch]
    assert [rounds.count(what) for what in ("gateway", "keeper", "both")] == [8, 6, 6]
    keeping, batches = Keeping(tmp_path / "home"), []
    try:
        for number, kills in enumerate(BATCHES):
            batch = Batch(keeping, number)
            batches.append(batch)
            for round_, killed in enumerate(kills, 1):
                if killed != "gateway":
                    batch.kill_a_keeper()
                if round_ == len(kills):  # They end while nobody is there.
                    batch.go()
                if killed != "keeper":
                    keeping.kill()
                keeping.ask("", "hello")  # A life that completed a turn is no part of a crash loop.
                if killed != "gateway":  # After so many crashes a turn that is interrupted would wait long to be resumed.
                    batch.until_told(batch.lost)
            batch.check()
        for batch in batches:  # Nothing was told again later.
            batch.check()
        kept = [process.pid for process, _ in tool_processes.running(keeping.home, tool_processes.KEPT)]
        assert kept == []
    finally:
        for batch in batches:
            batch.go()
        keeping.end()


def test_a_process_is_kept_over_a_hand_over_and_ends_with_an_operators_stop(tmp_path: Path) -> None:
    """C15, C28: told at once, and not again."""
    with Serving(tmp_path / "home") as serving:
        session_id, _ = begin(serving, "sleep 1000")
        hand_over(serving)
        wait_until(lambda: len(serving.processes()) == 2)
        assert serving.session(session_id)["processes"][0]["state"] == "running" and left(serving)
        serving.order("/api/admin/stop")
        assert serving.reaped().wait(30) == 0
        wait_until(lambda: left(serving) == [])
        serving.start()
        view = serving.session(session_id)
        assert view["processes"][0]["stopped"] and len(told(view)) == 1 and "because Holdfast was stopped" in told(view)[0]
        assert len(view["turns"]) == 1


def test_a_signal_that_nobody_announced_keeps_processes(tmp_path: Path) -> None:
    """C15, C26, E4: it is brought back, and finds them; each knows its conversation and turn."""
    with Serving(tmp_path / "home") as serving:
        session_id, process = begin(serving, 'echo "$HOLDFAST_SESSION_KEY $HOLDFAST_GENERATION $HOLDFAST_SESSION_ID"; sleep 1000')
        assert serving.stop(signal.SIGTERM) == 75 and left(serving)
        serving.start()
        view = serving.session(session_id)
        assert view["processes"][0]["state"] == "running"
        assert output(folder(serving, process, session_id)) == f"{view['session_key']} 1 {session_id}\n"
        serving.kill()
        said = subprocess.run([sys.executable, "-m", "holdfast", "--home", str(serving.home), "stop"], capture_output=True, text=True)
        assert (said.returncode, said.stdout) == (0, "No gateway was running. Ended 1 background process.\n")
        assert left(serving) == []
        serving.start()
        wait_until(lambda: len(told(serving.session(session_id))) == 1)
        assert "because Holdfast was stopped" in told(serving.session(session_id))[0]


@pytest.mark.parametrize("which", [PID, EXIT])
def test_a_process_whose_files_are_damaged_is_told_as_lost_once_and_keeps_no_gateway_from_serving(tmp_path: Path, which: str) -> None:
    """P8, E6"""
    with Serving(tmp_path / "home") as serving:
        session_id, process = begin(serving, "sleep 1000")
        serving.kill()
        place = folder(serving, process, session_id)
        found = files.read_json(place / PID)
        assert found is not None
        os.kill(found["keeper"]["pid"], signal.SIGKILL)
        (place / which).write_bytes(b"\0" * 100)
        for _ in range(2):
            serving.start()
            wait_until(lambda: len(serving.session(session_id)["turns"]) == 2 and serving.session(session_id)["state"] == "idle")
            [said] = told(serving.session(session_id))
            assert "because the files that say how it ended are damaged" in said and left(serving) == []
            serving.stop()


def test_a_forced_stop_ends_processes_too(tmp_path: Path) -> None:
    """C29"""
    with Serving(tmp_path / "home") as serving:
        begin(serving, "trap '' TERM; while :; do sleep 0.1; done")
        os.kill(serving.pid, signal.SIGSTOP)
        words = [sys.executable, "-m", "holdfast", "--home", str(serving.home), "stop", "--timeout", "1"]
        said = subprocess.run(words, capture_output=True, text=True)
        assert said.returncode == 1 and "so it was killed" in said.stderr
        assert left(serving) == []


def test_deleting_a_conversation_kills_its_processes_and_removes_their_files(tmp_path: Path) -> None:
    """A28"""
    with Serving(tmp_path / "home", undo_delete_s="0") as serving:
        session_id, process = begin(serving, "echo secret words; sleep 1000")
        place = folder(serving, process, session_id)
        assert "secret words" in output(place)
        with serving.client() as client:
            assert client.delete(f"/api/sessions/{session_id}").status_code == 200
        wait_until(lambda: left(serving) == [])


def dead(process: psutil.Process) -> bool:
    """Whether it has ended and nobody has waited for it."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


CONTAINER = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


@pytest.mark.skipif(
    not shutil.which("unshare") or subprocess.run([*CONTAINER, "true"], capture_output=True).returncode != 0,
    reason="this system allows no namespaces",
)
def test_what_a_container_takes_with_it_is_told_at_the_next_start(tmp_path: Path) -> None:
    """C15, E5: process 1 and everything with it is killed; each lost one is told. While it lives it waits for what is nobody's child."""
    with Serving(tmp_path / "home", inside=CONTAINER) as serving:
        first, _ = begin(serving, "sleep 1000")
        second, _ = begin(serving, "sleep 2; exit 4")
        wait_until(lambda: len(serving.session(second)["turns"]) == 2)
        assert serving.process is not None
        [init] = psutil.Process(serving.process.pid).children()
        wait_until(lambda: not any(dead(child) for child in init.children()))
        serving.kill()
        wait_until(lambda: left(serving) == [])
        serving.start()
        wait_until(lambda: len(serving.session(first)["turns"]) == 2)
        assert "was lost after" in told(serving.session(first))[0] and len(told(serving.session(second))) == 1


# the documentation


def section(title: str) -> str:
    return (ROOT / "docs" / "background.md").read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def blocks(kind: str) -> list[str]:
    """The examples of the section about processes."""
    return re.findall(rf"```{kind}\n(.*?)```", section("Processes"), re.DOTALL)


@pytest.fixture
def path(tmp_path: Path) -> Iterator[str]:
    """Where `holdfast` is found, as a user types it."""
    program = tmp_path / "bin" / "holdfast"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m holdfast "$@"\n')
    program.chmod(0o755)
    yield f"{program.parent}:{os.environ['PATH']}"


def test_the_examples_of_the_documentation_do_what_it_says(tmp_path: Path, path: str) -> None:
    with Serving(tmp_path / "home") as serving:
        environment = {**os.environ, "PATH": path, "HOLDFAST_HOME": str(serving.home), "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "150"}
        found = list(itertools.chain.from_iterable(re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M) for block in blocks("console")))
        assert len(found) == 7
        newest = ""
        for command, printed in found:
            for _ in range(TRIES):  # A busy machine may take longer than the page says.
                typed = command.replace(NAMED, newest)
                said = subprocess.run(["sh", "-c", typed], capture_output=True, text=True, env=environment, timeout=60)
                if re.search(_pattern(printed), said.stdout):
                    newest = (re.findall(r"p_[0-9a-f]{12}", said.stdout) or [newest])[-1]
                    break
            else:
                raise AssertionError(f"{command} printed\n{said.stdout}{said.stderr}")


TRIES = 5
# The process of the examples.
NAMED = "p_4b1f0c2a9d3e"


def _pattern(printed: str) -> str:
    """Ids, times and spans differ from run to run; dots stand for anything."""
    wanted = re.escape(printed.strip("\n"))
    wanted = wanted.replace(r"\.\.\.", "(?s:.*)").replace(NAMED, r"p_\w{12}").replace("12:04", r"\d\d:\d\d")
    return re.sub(r"\d+(?:\\\.\d+)?\\ s\b", r"(?:\\d+\\ min\\ )?[\\d.]+\\ s", wanted)


def command(serving: Serving, session_id: str, words: str) -> str:
    """What a conversation is told that has been given this command."""
    before = len(serving.session(session_id)["messages"])
    serving.post(session_id, words)
    wait_until(lambda: len(serving.session(session_id)["messages"]) > before)
    return str(serving.session(session_id)["messages"][-1]["text"])


def scheduled(serving: Serving) -> dict[str, dict[str, Any]]:
    found = json.loads(holdfast(serving.home, "schedules", "--json").out)["schedules"]
    return {each["schedule_id"]: each for each in found}


def test_every_reminder_of_the_documentation_is_planned_listed_and_removed(tmp_path: Path) -> None:
    written = re.findall(r"^/remind .*$|(?<=`)/remind \w[^`]*(?=`)", section("Schedules"), re.M)
    reminders = [line for line in written if line != "/remind remove ID"]
    assert len(reminders) == 5 and len(written) == 6
    with Serving(tmp_path / "home") as serving:
        session_id = serving.new_session()
        for words in reminders:
            told = command(serving, session_id, words)
            [made] = [each for name, each in scheduled(serving).items() if name in told]
            assert told.startswith("Scheduled ") and words.endswith(made["text"]) and made["text"][0].isalpha(), told
        listed = command(serving, session_id, "/remind")
        found = scheduled(serving)
        assert len(found) == len(reminders) and all(name in listed and made["text"] in listed for name, made in found.items())
        for name in found:
            command(serving, session_id, f"/remind remove {name}")
        assert scheduled(serving) == {}


def test_the_commands_and_the_times_of_the_documentation_plan_what_they_say(tmp_path: Path, path: str) -> None:
    """Each word for a time of the table, too. Days of the calendar are moved into the next year."""
    text = section("Schedules")
    commands = re.findall(r"^holdfast schedules.*$|(?<=`)holdfast schedules[^`]*(?=`)", text, re.M)
    assert [line.split()[2:3] for line in commands] == [["add"], [], ["remove"], ["pause"], ["continue"]]
    times = re.findall(r"`([^`]+)`", text.partition("| words | when |")[2].partition("\n\n")[0])
    times += [words.removeprefix("cron ") for words in times if words.startswith("cron ")]
    assert len(times) == 17
    with Serving(tmp_path / "home") as serving, serving.client() as client:
        environment = {**os.environ, "PATH": path, "HOLDFAST_HOME": str(serving.home), "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "150"}
        session_id = serving.new_session()
        serving.post(session_id, "hello")
        serving.wait_for(session_id)
        for words in times:
            later = re.sub(r"^20\d\d-", f"{time.gmtime().tm_year + 1}-", words)
            planned = client.post("/api/schedules", json={"session_id": session_id, "text": "do it", "when": later})
            assert planned.status_code == 201, (words, planned.text)
        for line in commands:
            before, name = scheduled(serving), max(scheduled(serving))
            typed = ["sh", "-c", re.sub(r"\bID$", name, line)]
            done = subprocess.run(typed, capture_output=True, text=True, env=environment, timeout=60)
            assert done.returncode == 0, (line, done.stderr)
            after = scheduled(serving)
            match line.split()[2:3]:
                case ["add"]:
                    [made] = [each for each in after.values() if each["schedule_id"] not in before]
                    assert done.stdout.startswith("Scheduled ") and made["text"] == "ask me how the talk went"
                case ["remove"]:
                    assert name not in after and len(after) == len(before) - 1
                case ["pause"] | ["continue"] as which:
                    assert (after[name]["paused_at"] is not None) is (which == ["pause"])
                case _:
                    assert all(each in done.stdout for each in after)


def test_the_calls_of_the_documentation_are_calls_of_the_tool(tmp_path: Path) -> None:
    """Run by a real gateway, for an agent that makes them."""
    with Serving(tmp_path / "home", agent_module="tests.e2e.calling:agent", policy_allow="processes") as serving:
        session_id = serving.new_session()

        def calls() -> list[dict[str, Any]]:
            """Whatever processes have to tell between them."""
            return [call for message in serving.wait_for(session_id)["messages"] for call in message.get("tool_calls", ())]

        for number, block in enumerate(blocks("json"), 1):
            serving.post(session_id, block)
            wait_until(lambda number=number: len(calls()) == number)  # type: ignore[misc]
            call = calls()[-1]
            assert call["outcome"] == "done", call
            assert json.loads(block) == call["arguments"]
        assert [process["state"] for process in serving.session(session_id)["processes"]] == ["running", "running"]


def test_a_person_lists_reads_and_ends_a_process_without_the_agent(tmp_path: Path) -> None:
    """E3, E6: with everything it started; the agent is told once, and what it printed can be read, also in part."""
    with Serving(tmp_path / "home") as serving:
        session_id, process = begin(serving, "echo first; echo second; sleep 600 & sleep 600")
        name = process["process_id"]
        listed = holdfast(serving.home, "processes").out
        assert name in listed and session_id in listed and "is running" in listed
        wait_until(lambda: holdfast(serving.home, "processes", "show", name).out == "first\nsecond\n")
        with serving.client() as client:
            part = client.get(f"/api/processes/{name}", params={"offset": 6, "limit": 100}).json()["output"]
            assert part == {"text": "second\n", "offset": 6, "next": 13, "size": 13}
            assert client.get("/api/processes/p_none").status_code == 404
            assert client.get("/api/processes", params={"session": "s_none"}).status_code == 404
        killed = holdfast(serving.home, "processes", "kill", name)
        assert killed.code == 0 and "was ended by a person" in killed.out
        wait_until(lambda: not left(serving))
        wait_until(lambda: len(serving.session(session_id)["turns"]) == 2 and serving.session(session_id)["state"] == "idle")
        [said] = told(serving.session(session_id))
        assert "was ended by a person" in said
        assert holdfast(serving.home, "processes", "kill", name).code == 0
        assert holdfast(serving.home, "processes").out == "No background process is running.\n"
        assert name in holdfast(serving.home, "processes", "list", "--session", session_id).out
        unknown = holdfast(serving.home, "processes", "kill", "p_none")
        assert unknown.code == 1 and is_one_sentence(unknown.err)
        serving.kill()
        assert name in holdfast(serving.home, "processes", "--session", session_id).out
        refused = holdfast(serving.home, "processes", "kill", name)
        assert refused.code == 1 and "No gateway runs on" in refused.err
