"""Background processes through the whole gateway, over several lives of its process: what is told of them, when, where, and how often."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.core import events as e
from holdfast.core.policy import parse_all
from holdfast.core.processes import Process
from holdfast.core.resets import Policy
from holdfast.gateway.background import SCAN_BYTES
from holdfast.ports.keepers import Name
from tests.fakes.clock import START_MS
from tests.fakes.keepers import Machine
from tests.fakes.loop import Crash
from tests.fakes.platform import NAME
from tests.gateway import gateways
from tests.gateway.gateways import ANN, Home, Life

ALLOWED = parse_all(allow=["processes"], ask=[], deny=[])
HOUR_S = 3600.0
# One whose end the agent answers only in its second attempt: what it prints is what the agent does. Its name is too short to say so.
HANGS = f"lasts 5; at 9 print {'x' * 60}; at 1 print first|hang / say:done"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        made.machine = machine()
        yield made


def machine() -> Machine:
    return Machine(lambda elapsed: START_MS + int(1000 * elapsed))


def start(home: Home, **settings: Any) -> Life:
    return home.start(**{"policy": ALLOWED, **settings})


def background(command: str, **more: Any) -> str:
    """Words that have the agent start it."""
    return _do({"action": "start", "command": command, **more})


def act(action: str, process: Process, **more: Any) -> str:
    return _do({"action": action, "process_id": process.process_id, **more})


def _do(arguments: dict[str, Any]) -> str:
    """Without the characters that part the agent's steps and attempts."""
    return "do:processes " + json.dumps(arguments).replace("|", "\\u007c").replace("/", "\\u002f")


def processes(life: Life, name: str = ANN) -> list[Process]:
    return life.do(life.store.processes(life.session(name).session_id))


def causes(life: Life, name: str = ANN) -> list[str]:
    return [turn.cause for turn in life.transcript(name).turns]


def nothing_more(home: Home, life: Life) -> None:
    """Neither now nor after two more starts: no turn and no word."""
    life.pass_s(30)
    asked, told = len(home.heard), len(home.server.sent)
    for _ in range(2):
        life.stop(reason="restart_timeout")
        life = start(home)
        life.pass_s(30)
    assert (len(home.heard), len(home.server.sent)) == (asked, told)
    life.stop()


# its end


def test_the_end_of_a_process_is_a_turn_of_its_own_with_the_rights_and_the_place_of_its_turn(home: Home) -> None:
    """E3, E6: nobody wrote, and no user message is invented."""
    life = start(home)
    life.say(background("lasts 20; exit 3; at 5 print built"))
    asked = home.server.updates[-1]
    assert causes(life) == ["message"] and life.session().processes == 1
    life.pass_s(25)
    life.rest()
    assert causes(life) == ["message", "process"]
    request = home.heard[-1]
    assert request.causes[0].what == "process" and request.causes[0].sender == f"{NAME}:{ANN}"
    assert "ended after 20 s with exit code 3." in request.text and request.text.endswith("built")
    assert [message.role for message in life.transcript().messages] == ["user", "assistant", "cause", "assistant"]
    assert home.sent()[-1].anchor == asked.anchor and home.replies()[-1].startswith("re: The background process")
    assert life.session().processes == 0
    nothing_more(home, life)


@pytest.mark.parametrize("how", ["killed", "stopped", "handed over"])
def test_a_process_goes_on_without_the_gateway_and_its_end_is_told_once_after_the_next_start(home: Home, how: str) -> None:
    """E5, E6, C15, P6"""
    life = start(home)
    life.say(background("lasts 20; exit 0"))
    if how == "killed":
        life.die()
    elif how == "stopped":
        life.stop(reason="restart_timeout")
    else:
        life = start(home, beside=life)
        home.lives[-2].stop()
        life.pass_s(25)
    home.later(30)
    life = life if how == "handed over" else start(home)
    life.until(lambda: causes(life) == ["message", "process"])
    life.rest()
    nothing_more(home, life)


@pytest.mark.parametrize("how", ["wait", "read", "list", "kill", "kill early"])
@pytest.mark.parametrize("dies", [False, True])
def test_what_is_killed_waited_for_or_read_is_never_told(home: Home, how: str, dies: bool) -> None:
    """E2: neither a turn nor a plain message, also if its end waited to be told, and the gateway dies as soon as it is consumed."""
    life = start(home)
    life.say(background("lasts 15; exit 1"))
    [process] = processes(life)
    before = "" if how in ("wait", "kill early") else "sleep:30|"
    life.write(before + act(how.split()[0], process))
    life.until(lambda: processes(life)[0].consumed)
    if dies:
        life.die()
        life = start(home)
    life.rest()
    life.pass_s(5)
    assert causes(life) == ["message", "message"] and not any("background process" in told for told in home.told())
    assert processes(life)[0].end is not None
    nothing_more(home, life)


@pytest.mark.parametrize("dies", ["never", "before", "after"])
def test_one_that_a_person_ends_is_told_to_the_agent_once(home: Home, dies: str) -> None:
    """E3, E6: with who ended it. A gateway that dies on the way ends it all the same, unless nothing of the kill was on record yet."""
    life = start(home)
    life.say(background("lasts 600; at 1 print building"))
    life.pass_s(5)
    [process] = processes(life)
    background_of = life.gateway.background
    assert background_of is not None
    if dies != "never":
        life.dies = (dies, life.commits + 1)
    try:
        life.do(background_of.kill(process.process_id, by="owner"))
    except Crash:
        life = start(home)
    life.pass_s(2)
    life.rest()
    if dies == "before":
        assert processes(life)[0].end is None and causes(life) == ["message"]
        return
    [process] = processes(life)
    assert process.end is not None and process.end.by == "owner" and causes(life) == ["message", "process"]
    assert "was ended by a person after 5 s." in home.heard[-1].text and home.heard[-1].text.endswith("building")
    assert home.machine is not None and len(home.machine.kills) == 1
    nothing_more(home, life)


def test_one_that_a_person_ends_while_the_agent_waits_for_it_is_told_in_the_result(home: Home) -> None:
    """E2, E6: and not again."""
    life = start(home)
    life.say(background("lasts 600"))
    [process] = processes(life)
    life.write(act("wait", process, timeout_s=300))
    life.pass_s(3)
    assert life.gateway.background is not None
    life.do(life.gateway.background.kill(process.process_id, by="owner"))
    life.rest()
    assert causes(life) == ["message", "message"] and "was ended by a person" in (life.transcript().calls[-1].result or "")
    nothing_more(home, life)


def test_one_that_nobody_wants_to_hear_of_is_told_as_a_notice_if_a_person_ends_it(home: Home) -> None:
    """E3: its agent believes that it runs. A second kill, or one of a process that has ended, changes nothing."""
    life = start(home)
    life.say(background("lasts 600", notify_on_complete=False))
    [process] = processes(life)
    assert life.gateway.background is not None
    for _ in range(2):
        life.do(life.gateway.background.kill(process.process_id, by="owner"))
    life.rest()
    assert causes(life) == ["message"] and sum("was ended by a person" in told for told in home.told()) == 1
    nothing_more(home, life)


def test_one_that_nobody_wants_to_hear_of_ends_in_silence(home: Home) -> None:
    life = start(home)
    life.say(background("lasts 5", notify_on_complete=False))
    life.pass_s(10)
    assert processes(life)[0].end is not None and causes(life) == ["message"]
    nothing_more(home, life)


@pytest.mark.parametrize("notify", [False, True])
@pytest.mark.parametrize("boot", ["b", "another"])
def test_one_that_was_lost_is_told_at_the_next_start_with_its_code_unknown(home: Home, notify: bool, boot: str) -> None:
    """E5, C15: a killed keeper, a machine or a container that was started again; also where its end was not to be told."""
    life = start(home)
    life.say(background("at 1 print begun", notify_on_complete=notify))
    life.pass_s(5)
    life.die()
    assert home.machine is not None
    home.machine.boot(home.elapsed)
    home.later(10)
    life = home.start(policy=ALLOWED, boot=boot)
    life.until(lambda: processes(life)[0].end is not None)
    life.rest()
    [ended] = [event for item in life.events() if isinstance(event := item.event, e.ProcessEnded)]
    assert ended.lost == ("keeper" if boot == "b" else "machine")
    told = life.notices() if not notify else [home.heard[-1].text]
    assert len(told) == 1 and "was lost after" in told[0] and "exit code is not known" in told[0]
    assert causes(life) == (["message", "process"] if notify else ["message"])
    home.machine.running.clear()


def test_an_end_in_a_conversation_that_was_left_is_told_where_people_are(home: Home) -> None:
    """E3: as a plain message."""
    life = start(home)
    life.say(background("lasts 20"))
    old = life.session().session_id
    life.say("/new")
    life.pass_s(30)
    life.rest()
    assert life.session().session_id != old and causes(life) == [] and causes(life, old) == ["message"]
    assert "ended after 20 s" in life.notices()[-1] and "ended after 20 s" in home.told()[-1]
    nothing_more(home, life)


def test_an_old_end_is_a_plain_message(home: Home) -> None:
    """E3, R6"""
    life = start(home)
    life.say(background("lasts 20"))
    life.die()
    home.later(2 * HOUR_S)
    life = start(home)
    life.until(lambda: "ended after 20 s" in home.told()[-1])
    assert causes(life) == ["message"]
    nothing_more(home, life)


def test_an_end_waits_for_the_end_of_safe_mode(home: Home) -> None:
    """B14: no recorded cause starts a turn there."""
    life = start(home)
    life.say(background("lasts 20"))
    for _ in range(3):
        life.die()
        life = start(home)
    life.die()
    home.later(30)
    life = start(home)
    assert life.gateway.safe_mode
    life.pass_s(10)
    assert causes(life) == ["message"] and life.session().queued == 1
    life.resume_all()
    life.rest()
    assert causes(life) == ["message", "process"]


def test_a_turn_that_runs_may_take_an_end_between_its_steps(home: Home) -> None:
    """P6: then it starts no turn."""
    life = start(home)
    life.say(background("lasts 5") + "|steer")
    assert home.replies()[-1].endswith("ended after 5 s with exit code 0.") and causes(life) == ["message"]
    nothing_more(home, life)


# what it prints


def test_lines_that_are_watched_for_start_a_turn(home: Home) -> None:
    life = start(home)
    life.say(background("at 5 print starting; at 8 print ready on 80; at 9 print more", watch_patterns=["ready", "ERROR"]))
    life.pass_s(10)
    life.rest()
    assert causes(life) == ["message", "watch"] and home.heard[-1].text.endswith("a line that is watched for:\n\nready on 80")
    nothing_more(home, life)


@pytest.mark.parametrize("before", (SCAN_BYTES - 3, SCAN_BYTES + 5, 3 * SCAN_BYTES))
def test_what_is_watched_for_is_found_in_a_line_of_any_length_and_over_the_ends_of_files(home: Home, before: int) -> None:
    life = start(home)
    assert home.machine is not None
    home.machine.file_bytes = 50_000
    life.say(background("at 9 print more", watch_patterns=["ready"]))
    for running in home.machine.running.values():
        running.prints.append((home.elapsed, b"x" * before + b"ready" + b"y" * 1000 + b"\n"))
    life.pass_s(10)
    life.rest()
    assert causes(life) == ["message", "watch"] and "xreadyy" in home.heard[-1].text
    [matched] = [event for item in life.events() if isinstance(event := item.event, e.ProcessMatched)]
    assert matched.lines == 1
    nothing_more(home, life)


def test_lines_that_come_while_a_turn_is_open_are_for_it_alone(home: Home) -> None:
    """E3: one that does not look starts no other turn; one that looks gets them."""
    life = start(home)
    lines = "at 2 print ready"
    life.say(background(lines, watch_patterns=["ready"]) + "|sleep:5")
    life.pass_s(5)
    assert causes(life) == ["message"] and life.session().queued == 0
    life.say(background(lines, watch_patterns=["ready"]) + "|steer")
    assert home.replies()[-1].endswith("watched for:\n\nready") and causes(life) == ["message", "message"]
    nothing_more(home, life)


def test_lines_of_which_a_message_came_first_are_dropped(home: Home) -> None:
    """E3: of a stale generation."""
    life = start(home)
    life.say(background("at 4 print ready", watch_patterns=["ready"]))
    life.do(life.gateway.pausing.pause(holder="op", for_s=20))
    life.write("hello")
    life.pass_s(10)
    assert life.session().queued == 2
    life.pass_s(20)
    life.rest()
    assert causes(life) == ["message", "message"]
    assert [event.reason for item in life.events() if isinstance(event := item.event, e.CauseDropped)] == ["another turn has started since"]


@pytest.mark.parametrize("dies", [False, True])
def test_lines_that_are_held_back_belong_to_the_turn_in_which_they_were_seen(home: Home, dies: bool) -> None:
    """E3: seen while a person's turn was open, and not due before it is over, they start no turn, also after a death. Later ones do."""
    life = start(home)
    prints = "at 2 print ERROR 1; at 6 print ERROR 2; at 30 print ERROR 3"
    life.say(background(prints, watch_patterns=["ERROR"]))
    life.until(lambda: causes(life) == ["message", "watch"])
    life.rest()
    life.write("sleep:7")
    life.rest()
    life.pass_s(1)
    if dies:
        life.die()
        life = start(home)
    life.pass_s(15)
    assert causes(life) == ["message", "watch", "message"]
    life.pass_s(20)
    life.rest()
    assert causes(life) == ["message", "watch", "message", "watch"] and home.heard[-1].text.endswith("watched for:\n\nERROR 3")
    assert not any("ERROR 2" in request.text.partition("watched for")[2] for request in home.heard[1:])
    nothing_more(home, life)


def test_lines_that_were_seen_while_the_conversation_was_elsewhere_are_not_told_when_it_is_back(home: Home) -> None:
    """E3: neither at once nor after a restart."""
    life = start(home)
    life.say(background("at 5 print ERROR 1; at 60 print ERROR 2", watch_patterns=["ERROR"]))
    life.say("/new")
    life.pass_s(10)
    life.say("/resume 1")
    life.pass_s(20)
    life.stop(reason="restart_timeout")
    life = start(home)
    life.pass_s(20)
    life.rest()
    assert causes(life) == ["message"]
    life.pass_s(20)
    life.rest()
    assert causes(life) == ["message", "watch"] and home.heard[-1].text.endswith("watched for:\n\nERROR 2")
    nothing_more(home, life)


def test_lines_that_do_not_cease_start_fewer_and_fewer_turns_and_are_counted(home: Home) -> None:
    """The first at once; those that follow together, later and later."""
    life = start(home)
    life.say(background("; ".join(f"at {2 + n} print ERROR {n}" for n in range(300)), watch_patterns=["ERROR"]))
    life.pass_s(320)
    life.rest()
    told = [request.text for request in home.heard[1:]]
    assert 4 <= len(told) <= 7 and told[0].endswith("watched for:\n\nERROR 0")
    lines = sum(event.lines for item in life.events() if isinstance(event := item.event, e.ProcessMatched))
    assert "lines that are watched for, of which these are the last 10:" in told[2] and 100 < lines <= 300


def test_lines_that_were_found_before_a_death_are_told_once(home: Home) -> None:
    """E6"""
    life = start(home)
    life.say(background("at 2 print ERROR 1; at 4 print ERROR 2; at 20 print ERROR 3", watch_patterns=["ERROR"]))
    life.until(lambda: len(home.heard) == 2)
    life.pass_s(3)
    life.die()
    home.later(30)
    life = start(home)
    life.pass_s(60)
    life.rest()
    first, *rest = [request.text.partition("watched for")[2] for request in home.heard[1:]]
    later = "\n".join(rest)
    assert first.endswith("ERROR 1")
    assert [later.count(f"ERROR {n}") for n in (1, 2, 3)] == [0, 1, 1]


@pytest.mark.parametrize("notify", [False, True])
def test_lines_that_come_right_before_the_end_are_told(home: Home, notify: bool) -> None:
    """With the end, if that is told; otherwise by themselves."""
    life = start(home)
    life.say(background("lasts 5; at 5 print ERROR", watch_patterns=["ERROR"], notify_on_complete=notify))
    life.pass_s(10)
    life.rest()
    assert causes(life) == ["message", "process" if notify else "watch"] and "ERROR" in home.heard[-1].text


# its turn


@pytest.mark.parametrize("ending", ["fail", "hang"])
def test_a_turn_that_failed_or_was_stopped_continues_nothing_but_the_end_of_its_process_is_a_fresh_cause(home: Home, ending: str) -> None:
    """E7"""
    life = start(home)
    life.write(background("lasts 20; at 2 print ready", watch_patterns=["ready"]) + f"|sleep:5|{ending}")
    life.pass_s(10)
    if ending == "hang":
        life.do(life.gateway.stop_turn(life.session().session_id, by=ANN, client_id=None))
    life.pass_s(5)
    assert causes(life) == ["message"] and life.session().queued == 0
    life.pass_s(20)
    assert causes(life) == ["message", "process"]


def test_a_turn_that_a_process_started_is_interrupted_and_resumed_like_any_other(home: Home) -> None:
    """E8: its row names its cause, and no user message is invented for it."""
    life = start(home)
    life.say(background(HANGS))
    life.until(lambda: len(home.heard) == 2)
    life.pass_s(1)
    life.die()
    life = start(home)
    life.rest()
    turn = life.turn()
    assert (turn.cause, turn.attempt, turn.outcome) == ("process", 2, "completed")
    assert [message.role for message in life.transcript().messages] == ["user", "assistant", "cause", "interruption", "assistant"]
    [row] = life.cuts()
    assert row.cause == "process"


def test_nobody_is_asked_whether_a_process_may_speak(home: Home) -> None:
    """E3: no allowlist is asked for what nobody wrote."""
    life = start(home)
    life.say(background(HANGS))
    home.server.banned.add(ANN)
    life.until(lambda: len(home.heard) == 2)
    life.pass_s(1)
    life.die()
    life = start(home)
    life.until(lambda: life.turn().outcome == "completed")
    assert life.turn().attempt == 2


# what ends it


def test_an_operators_stop_ends_processes_and_says_so_at_once(home: Home) -> None:
    """C15, C28: on record before they die, told as a plain message, and nothing more after the next start."""
    life = start(home)
    life.say(background("at 1 print x"))
    life.say(background("at 1 print x", notify_on_complete=False))
    life.do(life.gateway.stop(for_good=True))
    assert home.machine is not None and len(home.machine.kills) == 2
    assert [told for told in home.told() if "was ended, because Holdfast was stopped." in told] == home.told()[-1:]
    life.die()
    home.later(5)
    life = start(home)
    life.pass_s(5)
    assert [process.end and process.end.stopped for process in processes(life)] == [True, True]
    nothing_more(home, life)


def test_what_an_operator_ended_while_no_gateway_was_there_is_told_after_the_next_start(home: Home) -> None:
    """C29"""
    life = start(home)
    life.say(background("at 1 print x"))
    name = Name(life.session().session_id, processes(life)[0].process_id)
    life.die()
    assert home.machine is not None
    home.later(5)
    home.machine.running[name].killed_at = home.elapsed
    life = start(home)
    life.until(lambda: processes(life)[0].end is not None)
    life.rest()
    assert "was ended, because Holdfast was stopped." in home.told()[-1] and causes(life) == ["message"]


def test_the_processes_of_a_deleted_conversation_are_killed_and_their_files_removed(home: Home) -> None:
    """A28"""
    life = start(home, undo_delete_s=20)
    page = life.open_page()
    life.post(page, background("at 1 print x"))
    life.until(lambda: life.session(page).processes == 1 and life.session(page).state == "idle")
    life.do(life.gateway.delete_session(page, by="ann"))
    assert home.machine is not None and len(home.machine.kills) == 1
    life.pass_s(120)
    assert home.machine.running == {} and len(home.heard) == 1


def test_a_kill_that_a_death_interrupted_is_finished(home: Home) -> None:
    """E2, A28: what is on record as killed is dead in the end, and nobody is told."""
    life = start(home)
    life.say(background("at 1 print x"))
    [process] = processes(life)
    life.do(life.store.consume_process(process.process_id, how="killed", at=life.clock.now()))
    life.die()
    life = start(home)
    life.until(lambda: processes(life)[0].end is not None)
    assert causes(life) == ["message"]
    nothing_more(home, life)


def test_a_process_that_runs_though_its_end_is_on_record_is_killed(home: Home) -> None:
    life = start(home)
    life.say(background("at 1 print x"))
    ended = e.ProcessEnded(process_id=processes(life)[0].process_id, ended_at=life.clock.now(), stopped=True)
    life.do(life.store.end_process(ended, tail="", matches=gateways.NO_MATCHES, window_s=1, at=life.clock.now()))
    life.die()
    life = start(home)
    assert home.machine is not None
    life.until(lambda: home.machine is not None and len(home.machine.kills) == 1)


def test_what_is_left_of_a_process_goes_some_time_after_its_end(home: Home) -> None:
    life = start(home, keep_streams_s=600.0)
    life.say(background("lasts 5"))
    life.pass_s(300)
    assert home.machine is not None and len(home.machine.running) == 1
    life.pass_s(500)
    assert len(home.machine.running) == 0


# what it holds up


def test_a_conversation_with_a_process_in_its_background_is_not_reset(home: Home) -> None:
    """A19"""
    life = start(home, resets={"default": Policy(idle_min=1)})
    first = life.say(background("lasts 300", notify_on_complete=False)).session_id
    life.pass_s(120)
    assert life.say("still here").session_id == first
    life.pass_s(300)
    assert life.say("and now").session_id != first


def test_status_names_what_runs(home: Home) -> None:
    life = start(home)
    life.say(background("lasts 300"))
    life.pass_s(30)
    life.say("/status")
    told = home.told()[-1]
    assert "1 background process is running:\n- lasts 300 (p_" in told and told.endswith("for 30 s")


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("commit", range(1, 13))
def test_a_death_at_any_moment_of_a_start_starts_it_once_or_says_that_it_never_ran(home: Home, commit: int, moment: str) -> None:
    """P5, P6, E6: its record comes first, and the attempt that continues makes the call again and finds out."""
    life = start(home)
    life.say("hello")
    life.dies = (moment, life.commits + commit)
    try:
        life.write(background("lasts 30"))
        life.pass_s(100)
        life.die()
    except Crash:
        pass
    life = start(home)
    life.pass_s(100)
    life.rest()
    assert home.machine is not None and list(home.machine.starts.values()) in ([], [1])
    [process] = processes(life)
    ended = [event for item in life.events() if isinstance(event := item.event, e.ProcessEnded)]
    assert len(ended) == 1 and (ended[0].lost == "never_ran") is (home.machine.starts == {})
    told = "\n".join(home.told())
    if home.machine.starts:
        assert causes(life).count("process") == 1 and "Started as" in told
    else:
        assert process.consumed == "read" and told.count("was not started, because Holdfast was interrupted first") == 1
    nothing_more(home, life)
