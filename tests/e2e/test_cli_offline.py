"""Conversations of a home folder whose gateway does not run: listed, shown, copied and checked, and nothing is changed by it."""

import asyncio
import contextlib
import fcntl
import hashlib
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from holdfast.core import events as e
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.turns import Outcome
from holdfast.ports.blobs import Blob
from holdfast.ports.inbox import Terms
from holdfast.ports.owners import Owner
from holdfast.store import open_store
from tests.e2e.command_line import holdfast, is_one_sentence
from tests.tools.sandboxes import holding

KEY = "agent:main:telegram:dm:123"


async def _fill(home: Path) -> None:
    store = await open_store(home, now=lambda: 0)
    at = 1_700_000_000_000

    async def say(session_id: str, text: str) -> None:
        message = e.MessageAccepted(message_id=f"m.{session_id}", content=text)
        await store.accept(session_id, message, Terms(fresh=("s_f", "l_f"), max_waiting=9), at=at)

    for name, key in (("s_done", KEY), ("s_cut", "agent:main:web:page:s_cut"), ("s_waits", "agent:main:web:page:s_waits")):
        await store.create_session(
            session_id=name, session_key=key, log=f"l_{name}", at=at, title=None if name == "s_cut" else f"Title {name}"
        )
        await say(name, f"message to {name}")
    owner = await store.register_owner(Owner(name="o_gone", pid=2**22 + 77, started_at=5, boot_id="before"))
    (home / "owners").mkdir()
    (home / "owners" / "o_gone").touch()
    for name in ("s_done", "s_cut"):
        turn = await store.start_turn(name, owner=owner, turn_id=f"t_{name}", at=at)
        assert turn is not None
        call = f"{name}.call"
        events: list[e.Event] = [
            e.ToolStarted(call_id=call, name="terminal", arguments={"command": "date"}, effect=Effect.UNSAFE),
            e.ToolFinished(call_id=call, outcome=ToolOutcome.DONE, content="a \x1b[31mred\x1b[0m result"),
            e.Text(offset=0, text="half an "),
        ]
        if name == "s_done":
            events += [
                e.TurnInterrupted(reason="crash", restarts=1, written=8),
                e.TurnResumed(attempt=2, rule="R9", reason="crash"),
            ]
        position = await store.append_turn(turn.lease, turn_id=turn.turn_id, attempt=1, position=turn.position, events=events, at=at + 1000)
        if name == "s_done":
            ends = [
                e.MessageWritten(message_id=f"{turn.turn_id}.answer", role="assistant", content="half an answer"),
                e.TurnEnded(outcome=Outcome.COMPLETED),
            ]
            await store.append_turn(turn.lease, turn_id=turn.turn_id, attempt=2, position=position, events=ends, at=at + 3500)
    while await store.index_search(limit=100):
        pass
    await store.aclose()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home"
    place.mkdir(mode=0o700)
    before = os.umask(0o077)
    try:
        asyncio.run(_fill(place))
    finally:
        os.umask(before)
    return place


def content(home: Path) -> dict[str, bytes]:
    """What a crash would leave; SQLite's shared memory is made anew by whoever opens the file."""
    return {
        path.name: path.read_bytes() for path in home.iterdir() if path.is_file() and path.name != "holdfast.db-shm" and path.stat().st_size
    }


def test_sessions_are_listed_newest_first_and_a_turn_nobody_runs_counts_as_cut(home: Path) -> None:
    found = holdfast(home, "sessions", "--json").json["sessions"]
    assert {session["session_id"]: session["state"] for session in found} == {"s_done": "idle", "s_cut": "interrupted", "s_waits": "queued"}
    assert [session["session_id"] for session in holdfast(home, "sessions", "--state", "queued", "--json").json["sessions"]] == ["s_waits"]
    assert [session["session_id"] for session in holdfast(home, "sessions", "--query", "answer", "--json").json["sessions"]] == ["s_done"]
    assert len(holdfast(home, "sessions", "--limit", "2", "--json").json["sessions"]) == 2
    said = holdfast(home, "sessions", "--state", "running")
    assert (said.code, said.out) == (0, "No conversation matches.\n")


def change(home: Path, *changes: tuple[str, e.SessionChanged]) -> None:
    async def write() -> None:
        store = await open_store(home, now=lambda: 0)
        for session_id, flags in changes:
            await store.change_session(session_id, flags, at=1_700_000_000_000)
        await store.aclose()

    asyncio.run(write())


def test_what_is_suspended_or_pending_is_listed_with_the_reason(home: Path) -> None:
    """A14: the reason and how long ago, without a gateway. Which rule decided is told by `show`."""
    change(
        home, ("s_done", e.SessionChanged(suspended=True)), ("s_waits", e.SessionChanged(resume_pending=True, resume_reason="store_full"))
    )
    for state, name in (("suspended", "s_done"), ("pending", "s_waits")):
        found = holdfast(home, "sessions", "--state", state, "--json").json["sessions"]
        assert [session["session_id"] for session in found] == [name]
    suspended, pending = (holdfast(home, "sessions", "--state", state).out.splitlines() for state in ("suspended", "pending"))
    assert len(suspended) == 2 and "suspended" in suspended[1] and "R9" not in suspended[1]
    assert len(pending) == 2 and "interrupted by a full disk" in pending[1] and "years ago" in pending[1]
    shown = holdfast(home, "show", "s_done").out
    assert f"suspended: the next message starts a new conversation; `holdfast resume s_done --home {home}` continues this one" in shown
    assert "why: rule R9 (resume)" in shown
    assert "pending: interrupted by a full disk" in holdfast(home, "show", "s_waits").out


def test_a_table_keeps_within_the_terminal(home: Path) -> None:
    change(home, ("s_cut", e.SessionChanged(resume_pending=True, resume_reason="crash")))
    for columns in (50, 60, 80):
        said = holdfast(home, "sessions", COLUMNS=str(columns))
        assert said.code == 0 and max(len(line) for line in said.out.splitlines()) <= columns
        assert "s_done" in said.out and "idle" in said.out and "Title s" in said.out
    assert "\x1b" not in said.out, "no colour where there is no terminal"


def test_a_conversation_is_shown_with_its_tool_calls_and_why_it_was_resumed(home: Path) -> None:
    said = holdfast(home, "show", "s_done")
    assert said.code == 0
    for words in (
        "Title s_done",
        "message to s_done",
        "terminal: date  done",
        "half an answer",
        "by a crash. What had been written is kept. Continued (attempt 2).",
        "why: resumed: rule R9",
    ):
        assert words in said.out
    assert "\x1b" not in said.out, "what a tool printed must not reach the terminal as a command"
    assert holdfast(home, "show", KEY).out == said.out, "a key stands for the session it points at"
    cut = holdfast(home, "show", "s_cut", "--json").json
    assert (cut["state"], cut["turns"][0]["state"], cut["messages"][-1]["status"]) == ("interrupted", "interrupted", "partial")
    assert "waits for its turn" in holdfast(home, "show", "s_waits").out


def test_an_open_question_is_shown_with_its_choices(home: Path) -> None:
    """R5"""

    async def ask() -> None:
        store = await open_store(home, now=lambda: 0)
        turn = await store.start_turn("s_waits", owner=1, turn_id="t_waits", at=1_700_000_000_000)
        assert turn is not None
        asked = e.QuestionAsked(
            question_id="q1", call_id="c1", content="By train?", expires_at=4_102_444_800_000, choices=("by train", "by boat")
        )
        await store.append_turn(turn.lease, turn_id=turn.turn_id, attempt=1, position=turn.position, events=[asked], at=1_700_000_000_000)
        await store.aclose()

    asyncio.run(ask())
    said = holdfast(home, "show", "s_waits").out
    assert "  By train?\n  - by train\n  - by boat\n" in said


def test_the_log_is_shown_event_by_event(home: Path) -> None:
    events = holdfast(home, "show", "s_done", "--events", "--json").json["events"]
    assert [event["id"] for event in events] == [f"l_s_done.{seq}" for seq in range(1, len(events) + 1)]
    assert events[0]["event"] == "session.created" and events[-1]["event"] == "turn.ended"
    assert "dedup_key" not in events[1]["data"]
    said = holdfast(home, "show", "s_done", "--events", COLUMNS="80")
    assert len(said.out.splitlines()) == len(events) and max(map(len, said.out.splitlines())) <= 80


def test_a_session_that_is_not_there_is_named(home: Path) -> None:
    for name in ("s_nothing", "agent:main:telegram:dm:9"):
        said = holdfast(home, "show", name)
        assert said.code == 1 and is_one_sentence(said.err) and name in said.err


def test_reading_changes_nothing_even_where_an_event_is_damaged(home: Path) -> None:
    db = apsw.Connection(str(home / "holdfast.db"))
    db.execute("UPDATE event SET body = '{}' WHERE kind = 'tool.finished'")
    db.close()
    before = content(home)
    assert "could not be read" in holdfast(home, "show", "s_done").out
    for words in (["sessions"], ["show", "s_cut", "--events"], ["doctor"], ["status"], ["config"]):
        holdfast(home, *words)
    assert content(home) == before


def test_a_newer_database_is_left_alone(home: Path) -> None:
    db = apsw.Connection(str(home / "holdfast.db"))
    db.execute("PRAGMA user_version = 99")
    db.close()
    for words in (["sessions"], ["show", "s_done"], ["backup", str(home / "copy")]):
        said = holdfast(home, *words)
        assert said.code == 1 and is_one_sentence(said.err) and "schema 99" in said.err
    assert not (home / "copy").exists()


# copies


def test_a_backup_is_whole_checked_and_closed_to_others(home: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    said = holdfast(home, "backup", str(copy), "--json")
    assert said.code == 0 and said.json == {"path": str(copy), "bytes": copy.stat().st_size, "lost_attachments": 0, "missed_spools": 0}
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "home"], "one file, nothing beside it"
    restored = tmp_path / "restored"
    restored.mkdir(mode=0o700)
    copy.rename(restored / "holdfast.db")
    assert holdfast(restored, "show", "s_done", "--json").json == holdfast(home, "show", "s_done", "--json").json


def test_a_backup_replaces_another_file_only_when_told_to(home: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_text("precious")
    said = holdfast(home, "backup", str(copy))
    assert said.code == 1 and is_one_sentence(said.err) and "--force" in said.err
    assert copy.read_text() == "precious"
    assert holdfast(home, "backup", str(copy), "--force").code == 0
    assert copy.read_bytes().startswith(b"SQLite format 3")


def test_a_backup_never_replaces_the_database_itself(home: Path) -> None:
    before = content(home)
    said = holdfast(home, "backup", str(home / "holdfast.db"), "--force")
    assert said.code == 1 and "the database itself" in said.err
    assert content(home) == before


def test_a_backup_into_a_folder_is_named_after_the_time(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    said = holdfast(home, "backup", str(folder))
    assert said.code == 0
    assert [path.name[:9] for path in folder.iterdir()] == ["holdfast-"]
    said = holdfast(home, "backup", str(tmp_path / "missing" / "copy.db"))
    assert said.code == 1 and is_one_sentence(said.err) and "missing" in said.err


def test_a_backup_that_fails_leaves_the_older_copy(home: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_text("the older copy")
    (home / "holdfast.db").write_bytes(b"not a database" * 1000)
    said = holdfast(home, "backup", str(copy), "--force")
    assert said.code == 1 and is_one_sentence(said.err)
    assert copy.read_text() == "the older copy" and len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("place", ["copy.db", "."], ids=["a file", "a folder"])
def test_a_backup_removes_what_a_killed_one_left(home: Path, tmp_path: Path, place: str) -> None:
    """C18: by its process id alone nobody knows whether it lives; by its lock one does."""
    folder = tmp_path / "copies"
    folder.mkdir()
    left = [".copy.db.1.making", ".copy.db.1.making.partial", f".holdfast-1.db.{os.getpid()}.making-wal"]
    kept = ["older.db", ".notes", ".copy.db.making"]
    for name in left + kept:
        (folder / name).write_text("x")
    with held(folder):
        assert holdfast(home, "backup", str(folder / "one.db")).code == 0
        assert {path.name for path in folder.iterdir()} == {*left, *kept, "one.db"}, "another backup may be writing them"
    said = holdfast(home, "backup", str(folder / place))
    assert said.code == 0 and "Removed 3 files that an interrupted backup had left" in said.err
    assert {path.name for path in folder.iterdir()} >= {*kept, "one.db"} and not [name for name in left if (folder / name).exists()]


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """As a backup to this folder holds it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


# the doctor


def states(home: Path, **variables: str) -> dict[str, str]:
    said = holdfast(home, "doctor", "--json", **variables)
    found = {check["check"]: check["state"] for check in said.json["checks"]}
    assert said.code == (1 if "fail" in found.values() else 0) and said.json["ok"] is (said.code == 0)
    return found


def test_the_doctor_finds_a_healthy_home_healthy(home: Path) -> None:
    found = states(home, HOLDFAST_PORT="0", HOLDFAST_TOOLS_SANDBOX="none")
    assert {name for name, state in found.items() if state != "ok"} == {"owners", "sandbox", "token"}
    said = holdfast(home, "doctor", HOLDFAST_PORT="0", HOLDFAST_TOOLS_SANDBOX="none")
    assert said.code == 0 and "1 process died unexpectedly. 1 turn interrupted." in said.out
    assert "Terminal commands are not sandboxed. The setting tools.sandbox switches it off." in said.out


@pytest.mark.parametrize("mode", ["bubblewrap", "landlock"])
def test_the_doctor_tries_the_sandbox_itself_where_no_gateway_runs(home: Path, tmp_path: Path, mode: str) -> None:
    holding(mode, home)
    (home / "token").write_text("t" * 43)
    for folder in (home, tmp_path / "no-home"):
        checks = {check["check"]: check for check in holdfast(folder, "doctor", "--json", HOLDFAST_TOOLS_SANDBOX=mode).json["checks"]}
        assert checks["sandbox"]["state"] == "ok" and checks["sandbox"]["text"].startswith(f"{mode}, tried. Commands ")
    assert not (tmp_path / "no-home").exists()


def test_the_doctor_sees_what_is_open_to_others(home: Path) -> None:
    (home / "holdfast.db").chmod(0o644)
    assert states(home, HOLDFAST_PORT="0")["files"] == "warn"
    home.chmod(0o755)
    assert states(home, HOLDFAST_PORT="0")["home"] == "warn"


def test_the_doctor_sees_a_damaged_database(home: Path) -> None:
    path = home / "holdfast.db"
    size = path.stat().st_size
    with path.open("r+b") as file:
        for place in range(4096 * 2, size, 4096):
            file.seek(place)
            file.write(b"\xff" * 64)
    said = holdfast(home, "doctor", HOLDFAST_PORT="0")
    assert said.code == 1 and "Traceback" not in said.out + said.err
    assert "fail  database" in said.out and "backup" in said.out


def test_the_doctor_sees_an_attachment_that_is_lost(home: Path) -> None:
    """P7"""

    async def name_a_file() -> None:
        store = await open_store(home, now=lambda: 0)
        await store.put_blob(Blob(digest="0" * 64, size=4, media_type="text/plain", file="f"), at=0)
        await store.aclose()

    assert states(home, HOLDFAST_PORT="0")["attachments"] == "ok"
    asyncio.run(name_a_file())
    assert states(home, HOLDFAST_PORT="0")["attachments"] == "fail"
    (home / "blobs").mkdir()
    (home / "blobs" / "f").write_bytes(b"some")
    assert "1 file, 4 bytes" in holdfast(home, "doctor", HOLDFAST_PORT="0").out


def test_the_doctor_looks_at_the_bytes_of_attachments_when_told_to(home: Path) -> None:
    """P7: bytes that changed on disk and are as many as before."""

    async def name_a_file() -> None:
        store = await open_store(home, now=lambda: 0)
        await store.put_blob(Blob(digest=hashlib.sha256(b"some").hexdigest(), size=4, media_type="text/plain", file="f"), at=0)
        await store.aclose()

    asyncio.run(name_a_file())
    (home / "blobs").mkdir()
    (home / "blobs" / "f").write_bytes(b"some")
    assert "1 file, 4 bytes (every byte read)" in holdfast(home, "doctor", "--deep", HOLDFAST_PORT="0").out
    (home / "blobs" / "f").write_bytes(b"same")
    assert states(home, HOLDFAST_PORT="0")["attachments"] == "ok"
    said = holdfast(home, "doctor", "--deep", HOLDFAST_PORT="0")
    assert said.code == 1 and "1 of 1 file missing or damaged" in said.out


def test_the_doctor_sees_a_port_that_is_taken(home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert states(home, HOLDFAST_PORT=str(taken.getsockname()[1]))["port"] == "fail"


def test_the_doctor_sees_a_clock_that_went_back(home: Path) -> None:
    async def write_in_the_future() -> None:
        store = await open_store(home, now=lambda: 0)
        await store.change_session("s_done", e.SessionChanged(pinned=True), at=4_102_444_800_000)
        await store.aclose()

    asyncio.run(write_in_the_future())
    assert states(home, HOLDFAST_PORT="0")["clock"] == "warn"


def test_the_doctor_sees_a_variable_that_is_no_setting(home: Path) -> None:
    assert states(home, HOLDFAST_PORT="0", HOLDFAST_PROT="1")["settings"] == "warn"


def test_the_doctor_counts_what_stands_in_quarantine(home: Path) -> None:
    db = apsw.Connection(str(home / "holdfast.db"))
    db.execute("INSERT INTO quarantine VALUES (1, 1, 1, 'its checksum does not match', x'00', 0)")
    db.close()
    said = holdfast(home, "doctor", HOLDFAST_PORT="0")
    assert said.code == 0 and "1 event could not be read" in said.out
