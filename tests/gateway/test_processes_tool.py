"""The processes tool, call by call: what its results say, what it refuses, and what is asked before it runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.core import events as e
from holdfast.core.effects import Effect
from holdfast.core.policy import Rules, parse_all
from holdfast.core.processes import Process
from holdfast.core.redaction import Secrets
from holdfast.ports.processes import name_of
from holdfast.tools.processes import Processes
from tests.gateway import gateways
from tests.gateway.gateways import ANN, Home, Life
from tests.gateway.test_processes import act, background, causes, machine, processes, start


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        made.machine = machine()
        yield made


def said(life: Life, words: str) -> str:
    """What the tool answered."""
    life.say(words)
    return life.answers()[-1]


def calls(life: Life) -> list[tuple[str, str]]:
    """Outcome and result of every call."""
    return [(str(call.outcome), call.result or "") for message in life.transcript().messages for call in message.tool_calls]


def test_a_start_names_its_process_and_what_will_be_told(home: Home) -> None:
    life = start(home)
    told = said(life, background("lasts 100; at 0 print listening"))
    [process] = processes(life)
    assert told == f"Started as {process.process_id}. You will be told when it ends.\n\nlistening\n"
    quiet = said(life, background("lasts 100", notify_on_complete=False, watch_patterns=["a", "b"]))
    assert quiet.endswith("You will not be told when it ends. You will be told of lines with 'a', 'b'.")


def test_one_that_ends_at_once_is_told_with_its_start_and_not_again(home: Home) -> None:
    """E2"""
    life = start(home)
    told = said(life, background("lasts 0.1; exit 4; at 0 print no such thing"))
    [process] = processes(life)
    assert told == f"{process.process_id} ended after 0 s with exit code 4.\n\nno such thing\n"
    life.pass_s(30)
    assert causes(life) == ["message"] and processes(life)[0].consumed == "read"


def test_the_list_names_all_and_consumes_the_ends_that_it_names(home: Home) -> None:
    life = start(home)
    assert said(life, 'do:processes {"action": "list"}') == "This conversation has no background processes."
    life.say(background("lasts 50"))
    life.say(background("lasts 2; exit 1") + '|sleep:5|say:\n|do:processes {"action": "list"}')
    first, second = processes(life)
    told = life.answers()[-1].splitlines()[-2:]
    assert told[0].startswith(f"{first.process_id} runs for ") and told[0].endswith(": lasts 50")
    assert told[1] == f"{second.process_id} ended after 2 s with exit code 1: lasts 2; exit 1"
    assert (first.consumed, second.consumed) == (None, "read")


def test_output_is_read_from_an_offset_on_or_from_its_end(home: Home) -> None:
    life = start(home)
    life.say(background("; ".join(f"at {n / 10} print line {n}" for n in range(1, 10)) + "; at 1 print é"))
    life.pass_s(5)
    [process] = processes(life)
    told = said(life, act("read", process, offset=7, limit=14))
    assert told.startswith(f"{process.process_id} runs for 5 s. Its output from byte 7 to 21 of 66:\n\nline 2\nline 3\n")
    assert said(life, act("read", process, offset=63, limit=1)).endswith("from byte 63 to 63 of 66:"), "half a character is left for later"
    assert said(life, act("read", process, limit=10)).endswith("from byte 63 to 66 of 66:\n\né\n")
    assert said(life, act("read", process, offset=66)).endswith("from byte 66 to 66 of 66:")
    assert processes(life)[0].consumed is None


def test_a_wait_ends_with_the_process_or_with_its_time(home: Home) -> None:
    life = start(home)
    life.say(background("lasts 30; at 1 print done; exit 2"))
    [process] = processes(life)
    assert f"{process.process_id} did not end within 2 s and still runs." in said(life, act("wait", process, timeout_s=2))
    assert processes(life)[0].consumed is None
    assert "ended after 30 s with exit code 2." in said(life, act("wait", process, timeout_s=600))
    assert processes(life)[0].consumed == "waited"


def test_what_is_written_reaches_its_input(home: Home) -> None:
    life = start(home)
    life.say(background("asks", input=True))
    [process] = processes(life)
    assert said(life, act("write", process, text="hello\n")) == "6 bytes were written."
    assert said(life, act("write", process, text="", end=True)) == "0 bytes were written. Its input is closed."
    assert said(life, act("read", process)).endswith("hello\n")
    life.say(act("kill", process))
    assert said(life, act("write", process, text="x")) == "It cannot be written to: it has ended."


def test_a_kill_says_how_it_ended(home: Home) -> None:
    life = start(home)
    life.say(background("at 0 print x"))
    [process] = processes(life)
    assert said(life, act("kill", process)).startswith(f"{process.process_id} was ended by signal 15 after ")
    assert said(life, act("kill", process)).startswith(f"{process.process_id} was ended by signal 15 after ")


def test_a_process_of_another_conversation_does_not_exist_here(home: Home) -> None:
    life = start(home)
    life.say(background("lasts 100"))
    [process] = processes(life)
    life.say("/new")
    for action in ("read", "wait", "write", "kill"):
        assert said(life, act(action, process)).startswith(f"There is no process '{process.process_id}' in this conversation.")
    assert said(life, 'do:processes {"action": "list"}') == "This conversation has no background processes."


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"action": "start"}', "`start` needs a `command`"),
        ('{"action": "start", "command": " "}', "`start` needs a `command`"),
        ('{"action": "read"}', "There is no process ''"),
        ('{"action": "dance"}', "arguments are wrong"),
        ('{"action": "start", "command": "x", "watch_patterns": [""]}', "arguments are wrong"),
    ],
)
def test_bad_arguments_get_a_clear_answer(home: Home, arguments: str, words: str) -> None:
    life = start(home)
    assert words in said(life, f"do:processes {arguments}") and calls(life)[0][0] == "failed"
    assert processes(life) == []


def test_no_more_run_at_once_than_are_allowed(home: Home) -> None:
    life = start(home)
    for _ in range(5):
        life.say(background("lasts 100"))
    assert said(life, background("lasts 100")).startswith("5 background processes are running already, and no more are allowed.")
    assert len(processes(life)) == 5


def test_a_start_that_is_stopped_leaves_nothing_running(home: Home) -> None:
    """A21: nobody has heard of it."""
    life = start(home)
    life.write(background("lasts 100"))
    life.until(lambda: life.session().processes == 1)
    life.do(life.gateway.stop_turn(life.session().session_id, by=ANN, client_id=None))
    life.until(lambda: processes(life)[0].end is not None)
    assert calls(life)[0][0] == "unknown" and processes(life)[0].consumed == "killed"


def test_a_start_that_a_restart_interrupts_is_found_again(home: Home) -> None:
    """P5"""
    life = start(home)
    life.write(background("lasts 100"))
    life.until(lambda: life.session().processes == 1)
    life.stop(reason="restart_timeout")
    life = start(home)
    life.rest()
    [process] = processes(life)
    assert life.answers() == [f"Started as {process.process_id}. You will be told when it ends."]
    assert home.machine is not None and list(home.machine.starts.values()) == [1] and home.machine.kills == []


def test_a_stop_of_its_turn_does_not_end_a_process_that_was_started(home: Home) -> None:
    life = start(home)
    life.write(background("lasts 100") + "|hang")
    life.pass_s(5)
    life.do(life.gateway.stop_turn(life.session().session_id, by=ANN, client_id=None))
    life.rest()
    assert life.session().processes == 1


# what is asked first


def rules(**more: Any) -> Rules:
    return parse_all(**{"allow": [], "ask": [], "deny": [], **more})


def test_without_a_sandbox_a_start_asks_like_the_terminal_and_offers_the_same_rule(home: Home) -> None:
    life = home.start()
    life.write(background("git status"))
    life.until(lambda: life.session().state == "waiting")
    [question] = life.transcript().questions
    assert question.form == "approval" and question.pattern == "terminal(git status *)"
    assert processes(life) == []
    life.say("/approve always")
    assert len(processes(life)) == 1
    life.say(background("git status -s"))
    assert len(processes(life)) == 2, "what was allowed of a command is allowed in the background"


@pytest.mark.parametrize("deny", ["terminal(rm *)", "terminal", "processes"])
def test_what_is_denied_in_the_terminal_is_denied_in_the_background(home: Home, deny: str) -> None:
    life = home.start(policy=rules(allow=["processes", "terminal"], deny=[deny]))
    assert "denies it" in said(life, background("cd x; rm -rf y")) and processes(life) == []


def test_what_is_denied_in_the_terminal_is_not_written_to_a_shell_either(home: Home) -> None:
    life = home.start(policy=rules(allow=["processes"], deny=["terminal(rm *)"]))
    life.say(background("sh", input=True))
    assert "denies it" in said(life, act("write", processes(life)[0], text="rm -rf y\n"))
    assert said(life, act("write", processes(life)[0], text="ls\n")) == "3 bytes were written."


def test_looking_and_killing_never_ask(home: Home) -> None:
    life = home.start(policy=rules(allow=["terminal"]))
    life.say(background("lasts 100"))
    [process] = processes(life)
    for action in ("read", "kill"):
        assert life.say(act(action, process)).state == "idle"
    life.write(act("write", process, text="x"))
    life.until(lambda: life.session().state == "waiting")


def test_effects_say_what_a_repetition_would_do() -> None:
    """P5"""
    effect = Processes.effect
    found = {action: effect(None, {"action": action}) for action in ("start", "list", "read", "wait", "write", "kill")}  # type: ignore[arg-type]
    pure, again = Effect.PURE, Effect.IDEMPOTENT
    assert found == {"start": again, "list": pure, "read": pure, "wait": pure, "write": Effect.UNSAFE, "kill": again}


TOKEN = "hunter2hunter2-and-more"
LINE = f"first\n{'x' * 40}{TOKEN}{'y' * 40}"


def printing(home: Home, life: Life, text: str, *, lasts: int = 1000) -> Process:
    """A process that prints this at once."""
    life.say(background(f"lasts {lasts}"))
    [process] = processes(life)
    assert home.machine is not None
    home.machine.running[name_of(process)].prints.append((home.elapsed, text.encode()))
    return process


def shows_a_part(text: str) -> bool:
    return any(TOKEN[at : at + 4] in text for at in range(len(TOKEN) - 3))


@pytest.mark.parametrize("file_bytes", [7, 50, 1 << 20])
def test_however_output_is_read_no_part_of_a_secret_is_shown(home: Home, file_bytes: int) -> None:
    """By a person, from every byte on and in pieces of every size. Everything else is shown once."""
    home.secrets = Secrets({"TOKEN": TOKEN})
    life = start(home)
    process = printing(home, life, LINE)
    assert home.machine is not None and life.gateway.background is not None
    home.machine.file_bytes = file_bytes
    for limit in range(1, len(LINE) + 2, 3):
        at, texts = 0, list[str]()
        while at < len(LINE):
            printed = life.do(life.gateway.background.output(process, offset=at, limit=limit))
            assert printed.next > at
            texts, at = [*texts, printed.text], printed.next
        assert "".join(texts) == LINE.replace(TOKEN, "[secret TOKEN]")
        for offset in (None, *range(len(LINE))):
            assert not shows_a_part(life.do(life.gateway.background.output(process, offset=offset, limit=limit)).text)


def test_an_end_that_may_be_the_beginning_of_a_secret_is_shown_once_it_is_none(home: Home) -> None:
    home.secrets = Secrets({"TOKEN": TOKEN})
    life = start(home)
    process = printing(home, life, f"key: {TOKEN[:9]}")
    assert life.gateway.background is not None
    found = life.do(life.gateway.background.output(process, offset=None, limit=100))
    assert (found.text, found.next, found.size) == ("key: ", 5, 14)
    life.say(act("write", process, text=f"{TOKEN[9:]}.\n"))
    assert life.do(life.gateway.background.output(process, offset=found.next, limit=100)).text == "[secret TOKEN].\n"


def test_known_secrets_are_not_in_what_an_agent_reads(home: Home) -> None:
    """Neither in a result nor in what is told at the end: see tests/e2e/test_secrets.py for the files."""
    home.secrets = Secrets({"TOKEN": TOKEN})
    life = start(home)
    process = printing(home, life, f"{'x' * 7970}{TOKEN}{'y' * 7990}", lasts=100)
    for offset in (7970, 7975, 7985):
        assert not shows_a_part(said(life, act("read", process, offset=offset, limit=30)))
    assert not shows_a_part(said(life, act("read", process, limit=8000)))
    assert "xxx[secret TOKEN]yyy" in said(life, act("read", process, offset=7960, limit=50))
    life.pass_s(200)
    told = [event for item in life.events() if isinstance(event := item.event, e.CauseRecorded)]
    assert len(told) == 1 and told[0].text.endswith("y" * 100) and not shows_a_part(told[0].text)
