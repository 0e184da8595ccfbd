"""A session whose journal is late: what its readers are shown, when it is looked for, and what becomes of it (F1-F7, A28, E8)."""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from holdfast.cli.access import journals
from holdfast.core.effects import ToolOutcome
from holdfast.core.journals import Limits
from holdfast.core.spools import Sealed, frame, frames, read
from holdfast.ports.spool import SpoolFile
from tests.gateway import gateways
from tests.gateway.gateways import Home, Life
from tests.gateway.test_processes import ALLOWED, background, machine
from tests.gateway.test_schedules import add

DAY_S = 24 * 3600
T = TypeVar("T")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


class Spoilt:
    """The only spool of a home, made unreadable. `parts`: its frames, header first."""

    def __init__(self, home: Home) -> None:
        [self.path] = [path for path in (home.path.parent / "spool").rglob("*") if path.is_file()]
        self.whole = self.path.read_bytes()
        contents = read(self.whole, "x")
        self.header, self.events = contents.header, contents.events
        self.write(b"X" + self.whole[1:])

    def write(self, data: bytes, *, at_ms: int | None = None) -> None:
        """`at_ms`: when it was written, by the clock of a life; otherwise long before, as that clock goes."""
        self.path.write_bytes(data)
        if at_ms is not None:
            os.utime(self.path, (at_ms / 1000, at_ms / 1000))

    @property
    def name(self) -> str:
        return self.path.name


def spoilt(home: Home, script: str) -> Spoilt:
    """A process dies with a spool that cannot be read afterwards."""
    life = home.start()
    life.under_way(script)
    return dies_with_a_spool(home, life)


def dies_with_a_spool(home: Home, life: Life) -> Spoilt:
    life.lock_database(1000)
    life.pass_s(6)
    life.die()
    return Spoilt(home)


def seen(life: Life) -> dict[str, Any]:
    """What a reader of the session gets."""
    told: dict[str, Any] = msgspec.to_builtins(life.view(life.id_of("ann")))
    return told


def row(life: Life) -> dict[str, Any]:
    return next(message for message in reversed(seen(life)["messages"]) if message["role"] == "interruption")


TALK = "say:one |sleep:2|say:two |sleep:1|say:three|hang"


def test_the_first_look_shows_a_row_that_waits_and_nothing_else_of_the_turn(home: Home) -> None:
    """F1: the session is neither running nor queued any more, and nobody claims that nothing was written."""
    file = spoilt(home, TALK)
    life = home.start(auto_resume=False)
    life.rest()
    told = row(life)
    assert (told["state"], told["stream_id"], told["tries"]) == ("recovering", file.name, 0)
    assert told["first_seen"] == told["created_at"]
    assert told["text"] == "Interrupted by a crash. Some of its output has not arrived yet; Holdfast is looking for it."
    session = seen(life)
    assert (session["state"], session["queued"], session["answer_below"]) == ("interrupted", 0, None)
    assert [turn["state"] for turn in session["turns"]] == ["interrupted"]


def test_when_the_journal_can_be_read_the_next_reader_sees_it_filled_in(home: Home) -> None:
    """F2: without waiting for the next look of the gateway itself."""
    file = spoilt(home, TALK)
    life = home.start(auto_resume=False)
    life.rest()
    seen(life)
    file.write(file.whole)
    messages = seen(life)["messages"]
    assert [(message["role"], message["text"]) for message in messages[:3]] == [
        ("user", TALK),
        ("assistant", "one two three"),
        ("interruption", "Interrupted by a crash. Its output was recovered from the run journal."),
    ]
    answer, told = messages[1:3]
    assert answer["recovered"] is True and told["state"] == "recovered"
    assert not {"stream_id", "tries", "first_seen"} & told.keys()
    assert not file.path.exists() and life.spools() == {}


# A person's turn, and one that nobody wrote for, which is not resumed; the notice says so.
ROLES = ["user", "assistant", "cause", "assistant", "interruption", "notice"]


def under_way(home: Home, cause: str) -> Life:
    """The agent is at it, in the second turn of a conversation, which a process or a schedule has started."""
    home.machine = machine()
    life = home.start(policy=ALLOWED)
    if cause == "process":  # What it printed is what the agent does, and its name is too short to say so.
        life.say(background(f"lasts 3; at 9 print {'x' * 60}; at 1 print first|{TALK}"))
    else:
        life.say("say:hello")
        add(life, TALK, when="in 1 minute")
    life.until(lambda: len(home.heard) == 2)
    life.pass_s(1)
    return life


@pytest.mark.parametrize("cause", ["process", "schedule"])
def test_the_late_journal_of_a_turn_that_nobody_wrote_for_is_recovered_under_its_cause(home: Home, cause: str) -> None:
    """F1, F2, E8: its row waits, then says that the output was recovered; it names the cause all along, and no user message is invented."""
    file = dies_with_a_spool(home, under_way(home, cause))
    life = home.start(auto_resume=False, policy=ALLOWED)
    life.rest()
    told = row(life)
    assert (told["state"], told["stream_id"], told["tries"], told["cause"]) == ("recovering", file.name, 0, cause)
    assert "has not arrived yet" in told["text"]
    assert [message["role"] for message in seen(life)["messages"]] == ROLES and seen(life)["messages"][3]["text"].endswith("one ")
    file.write(file.whole)
    session = seen(life)
    assert [message["role"] for message in session["messages"]] == ROLES
    answer, told = session["messages"][3:5]
    assert answer["recovered"] is True and answer["text"].endswith("one two three")
    assert (told["state"], told["cause"]) == ("recovered", cause) and "recovered from the run journal" in told["text"]
    assert not {"stream_id", "tries", "first_seen"} & told.keys()
    assert [turn["cause"] for turn in session["turns"]] == ["message", cause]


@pytest.mark.parametrize("cause", ["process", "schedule"])
def test_a_late_journal_of_such_a_turn_that_never_comes_leaves_a_neutral_row_that_names_the_cause(home: Home, cause: str) -> None:
    """F6, E8: nothing is invented, neither output nor a message."""
    dies_with_a_spool(home, under_way(home, cause))
    for state in ("recovering", "neutral"):
        life = home.start(auto_resume=False, policy=ALLOWED)
        life.rest()
        life.pass_s(1)
        told = row(life)
        assert (told["state"], told["cause"], "tries" in told) == (state, cause, state == "recovering")
        roles = [message["role"] for message in seen(life)["messages"]]
        assert roles[: len(ROLES)] == ROLES and set(roles[len(ROLES) :]) <= {"notice"}
        life.die()
        home.later(DAY_S)


def test_a_resume_does_not_wait_and_what_arrives_belongs_to_the_earlier_attempt(home: Home) -> None:
    """F2, P5: a result that comes after its call was closed as unknown changes nothing that the agent was told."""
    file = spoilt(home, "say:one |call:deed 3|say:two|hang / say:again")
    life = home.start()
    life.rest()
    assert life.answers() == ["again"] and home.told() == ["again"]
    calls_told = home.heard[-1].calls
    assert [call.outcome for call in calls_told] == [ToolOutcome.UNKNOWN]
    file.write(file.whole)
    messages = seen(life)["messages"]
    assert [(message["role"], message["text"], message["status"]) for message in messages] == [
        ("user", "say:one |call:deed 3|say:two|hang / say:again", "complete"),
        ("assistant", "two", "superseded"),
        ("interruption", "Interrupted by a crash. Its output was recovered from the run journal.", "complete"),
        ("assistant", "again", "complete"),
    ]
    [call] = messages[-1]["tool_calls"]
    late = call["late"]
    assert (call["outcome"], call["recovered"], late["outcome"], late["result"]) == ("unknown", True, "done", "done")
    assert call["started_at"] < late["finished_at"] < call["finished_at"]  # As recorded, not as it arrived.
    assert len(home.done) == 1 and home.told() == ["again"]
    life.stop()
    life = home.start()
    life.pass_s(30)
    assert len(home.heard) == 2 and seen(life)["messages"] == messages


def test_of_readers_that_come_at_once_one_recovers_and_the_others_get_the_session_as_it_is(home: Home) -> None:
    """F3"""
    file = spoilt(home, TALK)
    life = home.start(auto_resume=False)
    life.rest()
    file.write(file.whole)

    async def read() -> str:
        async with life.gateway.view(life.id_of("ann")) as (_, transcript):
            return transcript.answer_text

    async def read_at_once() -> list[str]:
        return await asyncio.gather(*(read() for _ in range(8)))

    texts = life.do(read_at_once())
    assert set(texts) <= {"one ", "one two three"} and "one two three" in texts
    assert len(home.logged("journal shipped")) == 1
    assert [item.kind for item in life.events()].count("journal.changed") == 1


def test_a_journal_that_still_arrives_uses_no_try_however_often_it_is_read(home: Home) -> None:
    """F4, F7: what is there is shown, and completed when more comes."""
    file = spoilt(home, TALK)
    life = home.start(auto_resume=False)
    life.rest()
    first = frames((file.header, *file.events[:1]))
    for number in range(30):
        file.write(first, at_ms=life.clock.now())
        assert (row(life)["state"], row(life)["tries"]) == ("recovering", 0), number
        life.pass_s(15)
    shown = life.answers()
    assert shown[0].startswith("one two") and not shown[0].endswith("three")
    file.write(frames((file.header, *file.events, Sealed())), at_ms=life.clock.now())
    assert row(life)["state"] == "recovered"
    assert life.answers() == ["one two three"]


def test_an_unsealed_journal_that_does_not_grow_any_more_is_complete_after_a_minute(home: Home) -> None:
    """Its process was killed, and cannot say so."""
    file = spoilt(home, TALK)
    life = home.start(auto_resume=False)
    life.rest()
    file.write(file.whole, at_ms=life.clock.now())
    seen(life)
    assert (row(life)["state"], life.answers()) == ("recovering", ["one two three"])
    life.pass_s(90)
    assert row(life)["state"] == "recovered" and not file.path.exists()


def test_a_sealed_journal_without_output_is_given_up_after_twelve_tries(home: Home) -> None:
    """F5: nothing is invented."""
    file = spoilt(home, TALK)
    life = home.start(auto_resume=False)
    life.rest()
    file.write(frames((file.header, Sealed())))
    tries = []
    for _ in range(150):
        told = row(life)
        tries.append(told.get("tries"))
        life.pass_s(1)
    assert [number for number in dict.fromkeys(tries) if number] == list(range(1, 12))
    assert (told["state"], told["text"]) == ("neutral", "Interrupted by a crash. Some output may be missing.")
    assert not {"stream_id", "tries", "first_seen"} & told.keys() and life.answers() == ["one "]


def test_twelve_reads_in_a_second_are_one_try(home: Home) -> None:
    """F6"""
    spoilt(home, TALK)
    life = home.start(auto_resume=False)
    life.rest()
    life.pass_s(11)
    before = row(life)["tries"]
    for _ in range(12):
        row(life)
        life.pass_s(0.05)
    assert row(life)["tries"] <= before + 1


def test_after_a_day_the_row_is_neutral_and_the_journal_is_not_even_read(home: Home) -> None:
    """F6"""
    file = spoilt(home, TALK)
    life = home.start(auto_resume=False)
    life.rest()
    life.die()
    home.later(DAY_S)
    file.write(file.whole)
    life = home.start(auto_resume=False)
    life.pass_s(1)
    assert row(life)["state"] == "neutral" and life.answers() == ["one "]
    assert file.path.exists()


def test_tries_are_on_record_so_that_a_restart_begins_no_new_budget(home: Home) -> None:
    """F6"""
    spoilt(home, TALK)
    for _ in range(4):
        life = home.start(auto_resume=False)
        life.pass_s(45)
        tries = row(life).get("tries")
        life.stop()
    assert tries is None and row_of_stopped(home) == "neutral"


def row_of_stopped(home: Home) -> str:
    life = home.start(auto_resume=False)
    life.pass_s(1)
    return str(row(life)["state"])


def test_a_journal_with_a_hole_gives_what_can_be_read_and_the_rest_is_looked_for(home: Home) -> None:
    """F7, F8, P5: the result behind the hole counts before anything is decided."""
    life = home.start()
    life.under_way("say:one |call:deed 3|hang / say:again")
    life.lock_database(1000)
    life.pass_s(6)
    life.die()
    file = Spoilt(home)
    pieces = [frame(file.header), *map(frame, file.events)]
    file.write(pieces[0] + b"?" * 30 + b"".join(pieces[1:]))
    life = home.start()
    life.rest()
    [call] = [call for message in life.transcript().messages for call in message.tool_calls]
    assert call.outcome is ToolOutcome.DONE and len(home.done) == 1
    told = row(life)
    assert (told["state"], told["stream_id"]) == ("recovering", file.name)
    assert file.path.read_bytes().endswith(frame(Sealed()))
    life.pass_s(200)
    assert row(life)["state"] == "neutral"


@pytest.mark.parametrize("readable", (True, False))
def test_a_deleted_session_takes_its_spool_along(home: Home, readable: bool) -> None:
    """A28: also one that cannot be read."""
    file = spoilt(home, TALK)
    life = home.start(undo_delete_s=5.0, auto_resume=False)
    session = life.rest()
    if readable:
        file.write(frames((file.header, Sealed())))
    life.do(life.gateway.delete_session(session.session_id, by="owner"))
    life.pass_s(3)
    assert file.path.exists()
    life.pass_s(30)
    assert not file.path.exists()
    left = b"".join(path.read_bytes() for path in home.path.parent.rglob("*") if path.is_file())
    assert b"two three" not in left


def test_a_spool_of_a_living_process_is_nobody_elses_to_ship(home: Home) -> None:
    """A hand-over leaves two processes on one home."""
    old = home.start()
    old.under_way(TALK)
    old.lock_database(8)
    old.pass_s(4)
    new = home.start(beside=old)
    assert old.spools()
    new.pass_s(3)
    assert not home.logged("journal shipped") and old.spools()
    new.pass_s(5)
    assert not old.spools() and not home.logged("journal shipped")
    assert new.answers() == ["one two three"]


def test_a_journal_that_another_process_has_shipped_and_removes_under_the_eyes_of_recovery_is_not_late(home: Home) -> None:
    """F1, P5: all of it is stored, so the turn is decided by it and nothing is missing."""
    life = home.start()
    life.under_way("say:one |call:deed 3|say:two|hang / say:again")
    life.lock_database(1000)
    life.pass_s(6)
    life.die()
    [path] = [path for path in (home.path.parent / "spool").rglob("*") if path.is_file()]
    whole = path.read_bytes()
    [shipped] = journals.ship(home.path.parent, Limits())
    assert shipped["stored"] > 1

    async def seen_but_gone_when_it_is_read(call: Callable[..., T], /, *arguments: Any) -> T:
        """However many look for it at once: each of them comes between the commit and the end of the file."""
        if any(isinstance(each, SpoolFile) for each in arguments):
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(whole)
        return call(*arguments)

    path.parent.mkdir(parents=True)
    home.spool_run = seen_but_gone_when_it_is_read
    life = home.start()
    life.rest()
    assert not home.logged("a journal is late")
    assert "recovering" not in {message.state for message in life.transcript().messages}
    assert [call.outcome for call in home.heard[-1].calls] == [ToolOutcome.DONE] and len(home.done) == 1
    assert life.answers() == ["again"]


def hide(folder: Path) -> None:
    """Nobody can look into it from now on: it is a link to itself."""
    if folder.exists():
        folder.rename(folder.with_name(f"kept-{folder.name}"))
    folder.symlink_to(folder.name)


def show(folder: Path) -> None:
    folder.unlink()
    folder.with_name(f"kept-{folder.name}").rename(folder)


def test_a_folder_that_cannot_be_listed_makes_only_turns_of_its_own_owner_late(home: Home) -> None:
    """P8, F1: another turn of another dead process is recovered as ever."""
    life = home.start()
    life.under_way(TALK)
    life.lock_database(1000)
    life.pass_s(6)
    life.die()
    hide(home.path.parent / "spool" / "o_0")
    life = home.start(auto_resume=False)
    life.rest()
    assert life.answers() == ["one two three"] and row(life)["state"] != "recovering"
    assert len(home.logged("spools cannot be looked for")) == 1


def test_the_turn_whose_own_folder_cannot_be_listed_is_late_and_filled_in_once_it_can(home: Home) -> None:
    """F1, F2"""
    life = home.start()
    life.under_way(TALK)
    life.lock_database(1000)
    life.pass_s(6)
    life.die()
    folder = home.path.parent / "spool" / life.name
    hide(folder)
    life = home.start(auto_resume=False)
    life.rest()
    assert (row(life)["state"], life.answers()) == ("recovering", ["one "])
    show(folder)
    life.pass_s(30)
    assert (row(life)["state"], life.answers()) == ("recovered", ["one two three"])


def test_a_folder_that_cannot_be_listed_holds_up_neither_other_journals_nor_what_is_deleted(home: Home) -> None:
    """P8, F5, A28: one row becomes neutral in its time, and another session is removed for good."""
    spoilt(home, TALK)
    hide(home.path.parent / "spool" / "o_0")
    life = home.start(undo_delete_s=5.0, auto_resume=False)
    life.rest()
    gone = life.say("say:hello", chat="bob", sender="bob")
    life.do(life.gateway.delete_session(gone.session_id, by="owner"))
    life.pass_s(30)
    assert life.do(life.store.purged([gone.session_id])) == [gone.session_id]
    life.pass_s(150)
    assert row(life)["state"] == "neutral"
