"""A real lock on the database, held by another program under streaming load; a real process that is killed while it spools.

HOLDFAST_LOCK_S=20 pytest tests/e2e/test_spool.py    holds it for as long as that, not only until nobody waits for it any more
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

from holdfast.core.spools import Contents, Gone, Unreadable, frame, read
from holdfast.spool import FolderSpool
from holdfast.store.sqlite.threads import HOLD_S
from tests.e2e.serving import Reader, Serving, running, wait_until
from tests.e2e.test_kill import text_of
from tests.fakes.locker import Locker

# Longer than anybody waits for the database.
LOCK_S = max(HOLD_S + 2, float(os.environ.get("HOLDFAST_LOCK_S", "0")))
COUNTED = int((LOCK_S + 4) / 0.05)
NUMBERS = " ".join(str(number) for number in range(1, COUNTED + 1))


def spools(home: Path) -> list[Contents]:
    spool = FolderSpool(home)
    found = []
    for file in spool.look().files:
        try:
            found.append(spool.read_now(file))
        except (Gone, Unreadable):
            continue  # It went while we looked.
    return found


def until_spooled(home: Path, *kinds: str) -> None:
    """Until what is spooled has all of these."""
    wait_until(lambda: set(kinds) <= {item.kind for contents in spools(home) for item in contents.events})


def test_turns_outlive_a_lock_that_another_program_holds_and_nothing_is_shown_meanwhile(tmp_path: Path) -> None:
    """P1, P3, P7: six answers and their readers; not one turn is interrupted, every piece is there once and in order. Whoever writes
    meanwhile waits as long as anybody does, and is refused.
    """
    with Serving(tmp_path / "home") as serving:
        sessions = [running(serving, f"count {COUNTED} 0.05") for _ in range(6)]
        readers = [Reader(serving, session_id).start() for session_id in sessions]
        wait_until(lambda: all(any(item.event == "text" for item in reader.seen) for reader in readers))
        with Locker(serving.home / "holdfast.db"):
            until_spooled(serving.home, "text")
            wait_until(lambda: len(spools(serving.home)) == len(sessions))
            assert serving.status()["degraded"] == "another program has locked the database"
            shown = [len(reader.seen) for reader in readers]
            began = time.monotonic()
            with serving.client() as client:
                refused = client.post(f"/api/sessions/{sessions[0]}/messages", json={"text": "lost"}, timeout=60)
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "store_away")
            time.sleep(max(0.0, LOCK_S - 2 - (time.monotonic() - began)))
            assert [len(reader.seen) for reader in readers] == shown
            unseen = {item.body for contents in spools(serving.home) for item in contents.events if item.kind == "text"}
            assert len(unseen) > len(sessions)
        for session_id, reader in zip(sessions, readers, strict=True):
            session = serving.wait_for(session_id)
            assert [turn["outcome"] for turn in session["turns"]] == ["completed"] and session["turns"][0]["attempt"] == 1
            assert [message["text"] for message in session["messages"] if message["role"] == "assistant"] == [NUMBERS]
            assert [message["text"] for message in session["messages"] if message["role"] == "user"] == [f"count {COUNTED} 0.05"]
            log = serving.log(session_id)
            assert [item.seq for item in log] == list(range(1, len(log) + 1))
            positions = [item.body["position"] for item in log if "position" in item.body]
            assert positions == sorted(set(positions))
            assert text_of(log) == NUMBERS and set(reader.stop()) <= set(log)
        assert not (serving.home / "spool").exists()
        assert "task failed" not in serving.output()


def killed_while_it_spools(serving: Serving, command: str, *, spoil: Callable[[Path], None] = lambda path: None) -> str:
    """A command ends while the database is locked, its process is killed, and another one starts."""
    session_id = running(serving, f"run {command}")
    wait_until(lambda: any(call["output"] for call in calls(serving, session_id)))
    with Locker(serving.home / "holdfast.db"):
        until_spooled(serving.home, "tool.finished")
        serving.kill()
    [file] = [path for path in (serving.home / "spool").rglob("*") if path.is_file()]
    spoil(file)
    serving.start()
    return session_id


def calls(serving: Serving, session_id: str) -> list[dict[str, object]]:
    return [call for message in serving.session(session_id)["messages"] for call in message.get("tool_calls", [])]


def test_what_a_killed_process_had_spooled_is_recovered_and_its_command_not_run_again(tmp_path: Path) -> None:
    """P5, P7: the command ended while nothing could be stored. Also with half a record behind it, as a power cut may leave it."""

    def cut(path: Path) -> None:
        whole = path.read_bytes()
        record = frame(read(whole, path.name).events[0])
        path.write_bytes(whole + record[: len(record) // 2])

    with Serving(tmp_path / "home") as serving:
        session_id = killed_while_it_spools(serving, "echo begin; sleep 3; echo line >> lines.txt; echo end", spoil=cut)
        session = serving.wait_for(session_id)
        assert (tmp_path / "lines.txt").read_text() == "line\n"
        [call] = calls(serving, session_id)
        assert (call["outcome"], str(call["result"]).split()) == ("done", ["begin", "end"])
        assert [turn["outcome"] for turn in session["turns"]] == ["completed"]
        kinds = [item.event for item in serving.log(session_id)]
        assert kinds.index("tool.finished") < kinds.index("turn.interrupted") and kinds.count("tool.finished") == 1
        assert not (serving.home / "spool").exists()
