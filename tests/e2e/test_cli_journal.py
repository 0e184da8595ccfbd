"""`holdfast journal`: what lies in the spools of a home, shown, checked and stored by a process that is not the gateway (P5, P7, F3)."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from holdfast.cli.app import cli
from holdfast.core import events as e
from holdfast.core.blame import End, Interruption
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.events import MessageAccepted
from holdfast.core.spools import Header, Sealed, Spooled, frame, frames
from holdfast.locks import OwnerLock
from holdfast.ports.inbox import Terms
from holdfast.ports.owners import Owner
from holdfast.processes import this_process
from holdfast.store import open_store
from holdfast.store.sqlite import threads
from tests.e2e.command_line import Said, command, environment, is_one_sentence
from tests.fakes.locker import Locker

# Everything here but the race runs in this process, because starting one takes longer than all the rest.
QUIET = {"HOLDFAST_PORT": "0", "HOLDFAST_TOOLS_SANDBOX": "none", "NO_COLOR": "1"}
AT = 1_700_000_000_000
HEADER = Header(session_id="s_1", turn_id="t_1", epoch=1, owner="o_gone")


def holdfast(home: Path, *words: str) -> Said:
    done = CliRunner().invoke(cli, ["--home", str(home), *words], env=QUIET, standalone_mode=False)
    assert done.exception is None, done.exception
    return Said(done.return_value or 0, done.stdout, done.stderr)


async def _fill(home: Path) -> int:
    """A turn whose process died while it spooled. Gives the position behind what is stored."""
    store = await open_store(home, now=lambda: AT, reserve_bytes=4096)
    try:
        await store.create_session(session_id="s_1", session_key="agent:main:web:page:s_1", log="l", at=AT, title="A talk")
        await store.accept("s_1", MessageAccepted(message_id="m", content="hi"), Terms(fresh=("f", "f"), max_waiting=9), at=AT)
        owner = await store.register_owner(Owner(name="o_gone", pid=2**22 + 77, started_at=5, boot_id="before"))
        turn = await store.start_turn("s_1", owner=owner, turn_id="t_1", at=AT)
        assert turn is not None
        started = e.ToolStarted(call_id="c1", name="terminal", arguments={}, effect=Effect.UNSAFE)
        events = [e.Text(offset=0, text="one"), started]
        return await store.append_turn(turn.lease, turn_id="t_1", attempt=1, position=turn.position, events=events, at=AT)
    finally:
        await store.aclose()


def _spooled(position: int) -> list[Spooled]:
    events = (e.Text(offset=3, text=" two"), e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="did it"))
    return [Spooled(position + number, 1, AT + 1000, event.kind, e.encode(event)) for number, event in enumerate(events)]


class Spool:
    def __init__(self, home: Path) -> None:
        home.mkdir(mode=0o700)
        items = _spooled(asyncio.run(_fill(home)))
        self.home, self.path, self.whole = home, home / "spool" / "o_gone" / "t_1.1", frames((HEADER, *items))
        self.parts = [frame(HEADER), *map(frame, items)]
        self.path.parent.mkdir(parents=True)
        self.path.write_bytes(self.whole)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "home")


def conversation(home: Path) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = holdfast(home, "show", "s_1", "--json").json["messages"]
    return messages


def test_a_spool_is_shown_event_by_event_also_while_the_database_is_locked(spool: Spool) -> None:
    with Locker(spool.home / "holdfast.db"):
        said = holdfast(spool.home, "journal", "show")
        assert said.code == 0 and "t_1.1" in said.out and "s_1" in said.out and "gone" in said.out and "whole" in said.out
        [told] = holdfast(spool.home, "journal", "show", "--json").json["spools"]
        assert (told["events"], told["bytes"], told["running"], told["problem"]) == (2, len(spool.whole), False, None)
    events = holdfast(spool.home, "journal", "show", "t_1.1")
    assert [line.split()[2] for line in events.out.splitlines()] == ["text", "tool.finished"] and "did it" in events.out
    assert is_one_sentence(holdfast(spool.home, "journal", "show", "t_9.1").err)
    assert spool.path.read_bytes() == spool.whole


def test_another_process_ships_what_a_dead_one_left_once(spool: Spool) -> None:
    """P5: before any start, so that the next one decides by it."""
    before = holdfast(spool.home, "doctor").out
    assert "1 spool of processes that are gone." in before
    said = holdfast(spool.home, "journal", "ship")
    assert (said.code, said.out) == (0, "t_1.1: 2 events stored\n")
    [answer] = [message for message in conversation(spool.home) if message["role"] == "assistant"]
    assert answer["text"] == "one two"
    [call] = answer["tool_calls"]
    assert (call["outcome"], call["result"]) == ("done", "did it")
    assert not (spool.home / "spool").exists()
    spool.path.parent.mkdir(parents=True)
    spool.path.write_bytes(spool.whole)
    assert holdfast(spool.home, "journal", "ship").out == "t_1.1: 0 events stored\n"
    assert holdfast(spool.home, "journal", "ship").out == "There is nothing to store: no process left a spool.\n"


def test_two_processes_that_ship_at_once_store_every_event_once(spool: Spool) -> None:
    """F3"""
    words = command(spool.home, "journal", "ship", "--json")
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) for _ in range(2)]
    for process in both:
        process.communicate(timeout=60)
    log = holdfast(spool.home, "show", "s_1", "--events", "--json").json["events"]
    assert [event["event"] for event in log].count("tool.finished") == 1
    places = [(event["data"]["turn_id"], event["data"]["position"]) for event in log if "position" in event["data"]]
    assert len(places) == len(set(places))
    assert not (spool.home / "spool").exists()


def taken_by_another(spool: Spool, *, resumed: bool = True) -> None:
    """The next process could not read the journal of the turn. `resumed`: it has continued the turn."""

    async def take() -> None:
        store = await open_store(spool.home, now=lambda: AT, reserve_bytes=4096)
        owner = await store.register_owner(Owner(name="o_next", pid=1, started_at=5, boot_id="b"))
        cut = Interruption(reason="crash", end=End.DEATH, died=1, stream_id="t_1.1")
        taken = await store.take_turn("s_1", owner=owner, turn_id="t_1", epoch=1, events=[cut], at=AT + 2000)
        if resumed:
            unknown = e.ToolFinished(call_id="c1", outcome=ToolOutcome.UNKNOWN, content="nobody knows")
            again = e.TurnResumed(attempt=2, rule="R9", reason="crash")
            await store.take_turn("s_1", owner=owner, turn_id="t_1", epoch=taken.lease.epoch, events=[unknown, again], at=AT + 3000)
        await store.aclose()

    asyncio.run(take())


def test_what_is_shipped_after_another_process_took_the_turn_is_late(spool: Spool) -> None:
    """F2: shown where it belongs, and the call stays what its agent was told it was."""
    taken_by_another(spool)
    assert "s_1 waits for t_1.1" in holdfast(spool.home, "journal", "show").out
    shown = holdfast(spool.home, "show", "s_1").out
    assert "journal: t_1.1, missing since" in shown and "0 tries so far" in shown
    assert holdfast(spool.home, "journal", "ship").out == "t_1.1: 2 events stored as a late journal\n"
    shown = holdfast(spool.home, "show", "s_1").out
    assert "(from an earlier attempt; recovered later)" in shown and "recovered from the run journal" in shown
    assert "arrived later, and the agent was not told: done" in shown and "did it" in shown


def test_half_a_record_is_no_damage_and_a_hole_is(spool: Spool) -> None:
    """F8"""
    spool.path.write_bytes(spool.whole + spool.parts[1][:20])
    said = holdfast(spool.home, "journal", "verify")
    assert (said.code, said.out) == (0, "t_1.1: whole, 2 events, and half a record of 20 bytes\n")
    spool.path.write_bytes(spool.parts[0] + b"?" * 40 + spool.parts[2])
    said = holdfast(spool.home, "journal", "verify")
    assert (said.code, said.out) == (1, "t_1.1: damaged, 1 event; 1 part of it cannot be read\n")
    doctor = holdfast(spool.home, "doctor").out
    assert "1 spool cannot be read as a whole: t_1.1." in doctor
    said = holdfast(spool.home, "journal", "ship")
    assert said.code == 1 and "t_1.1: 1 event stored; part of it is damaged\n" in said.out and spool.path.exists()
    spool.path.write_bytes(b"nonsense")
    said = holdfast(spool.home, "journal", "verify")
    assert (said.code, said.out) == (1, "t_1.1: unreadable, its beginning is damaged\n")
    assert holdfast(spool.home, "journal", "ship").code == 1


def test_the_spool_of_a_running_process_is_left_to_it(spool: Spool) -> None:
    lock = OwnerLock(spool.home, "o_gone", this_process())
    try:
        said = holdfast(spool.home, "journal", "ship")
        assert (said.code, said.out.splitlines()[0]) == (1, "t_1.1: 0 events stored; its process is running and stores it by itself")
        assert spool.path.read_bytes() == spool.whole
    finally:
        lock.release()


def test_a_database_that_stays_locked_is_told_in_one_sentence(spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "HOLD_S", 0.1)
    with Locker(spool.home / "holdfast.db"):
        said = holdfast(spool.home, "journal", "ship")
    assert said.code == 1 and is_one_sentence(said.err) and "locked the database" in said.err
    assert spool.path.read_bytes() == spool.whole
    assert holdfast(tmp_path / "nothing", "journal", "show").out == "There are no spools: everything is stored.\n"


def test_a_folder_that_cannot_be_listed_is_named_and_the_other_spools_are_shown_and_stored(spool: Spool) -> None:
    """P8"""
    bad = spool.path.parent.with_name("o_bad")
    bad.symlink_to(bad.name)
    for words, code in ((("show",), 0), (("verify",), 1), (("ship",), 1)):
        said = holdfast(spool.home, "journal", *words)
        assert said.code == code and "t_1.1" in said.out and f"{bad} cannot be listed: " in said.err, words
    assert not spool.path.exists()
    [told] = holdfast(spool.home, "journal", "verify", "--json").json["hidden"]
    assert told["folder"] == str(bad) and told["problem"]
    copy = spool.home.with_name("copy.db")
    said = holdfast(spool.home, "backup", str(copy))
    assert said.code == 0 and copy.exists() and "1 spool could not be copied" in " ".join(said.err.split())
    assert "everything is stored" not in holdfast(spool.home, "journal", "show").out
    assert "1 folder of spools cannot be listed" in " ".join(holdfast(spool.home, "doctor").out.split())


def test_a_spool_that_is_not_what_its_name_says_is_not_stored(spool: Spool) -> None:
    """P5: its header names another process, which may be running."""
    wrong = spool.path.parent.with_name("o_other") / "t_1.1"
    wrong.parent.mkdir()
    spool.path.rename(wrong)
    said = holdfast(spool.home, "journal", "ship")
    assert said.code == 1 and "t_1.1: 0 events stored; it belongs to another turn than its name says" in said.out
    assert holdfast(spool.home, "journal", "verify").code == 1
    assert wrong.read_bytes() == spool.whole


@pytest.mark.parametrize(("tries", "waits"), ((1, False), (2, True)))
def test_shipping_by_hand_keeps_to_the_configured_number_of_tries(spool: Spool, tries: int, waits: bool) -> None:
    """F5"""
    taken_by_another(spool, resumed=False)
    (spool.home / "config.toml").write_text(f"[journal]\ntries = {tries}\ngive_up_s = 1e9\n")
    spool.path.write_bytes(spool.parts[0] + b"?" * 40 + frame(Sealed()))
    for _ in range(2):  # The first finds that it has grown since nothing was known of it.
        assert "part of it is damaged" in holdfast(spool.home, "journal", "ship").out
    assert bool(holdfast(spool.home, "journal", "show", "--json").json["late"]) is waits
