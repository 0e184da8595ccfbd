"""Deleting, with real processes: what the command line says, and what is left on disk, also after kill -9 in the middle (A28)."""

import time
from pathlib import Path

from holdfast import processes, tool_processes
from holdfast.core.process_id import ProcessId
from tests.e2e.command_line import holdfast, is_one_sentence
from tests.e2e.serving import Serving, files_with, wait_until


def holds(folder: Path, word: str) -> list[str]:
    """The files of the home folder in which a word stands. What the test itself kept of the output is not theirs."""
    return [name for name in files_with(folder, word) if not name.startswith("output-")]


def left_behind(serving: Serving) -> list[ProcessId]:
    return [process for process, _ in tool_processes.running(serving.home)]


def test_delete_asks_first_and_an_undo_brings_the_conversation_back(tmp_path: Path) -> None:
    """A28"""
    with Serving(tmp_path / "home") as serving:
        sent = holdfast(serving.home, "send", "new", "zanzibar")
        session_id = sent.err.split()[1]
        said = holdfast(serving.home, "delete", session_id, given="n\n")
        assert said.code != 0 and f"Delete {session_id}, “zanzibar”?" in said.out
        assert holdfast(serving.home, "show", session_id).code == 0
        said = holdfast(serving.home, "delete", session_id[:8], given="y\n")
        assert said.code == 0 and f"`holdfast delete --undo {session_id} --home {serving.home}` brings it back." in said.out
        for words in (("show", session_id), ("send", session_id, "more"), ("delete", "--yes", session_id)):
            said = holdfast(serving.home, *words)
            assert said.code == 1 and is_one_sentence(said.err) and f"The session '{session_id}' was deleted." in said.err, words
        assert session_id not in holdfast(serving.home, "sessions").out
        assert session_id in holdfast(serving.home, "sessions", "--state", "deleted").out
        said = holdfast(serving.home, "delete", "--undo", session_id)
        assert (said.code, said.out) == (0, f"{session_id} is back.\n")
        assert "zanzibar" in holdfast(serving.home, "show", session_id).out
        assert holdfast(serving.home, "send", session_id, "count 3 0").out == "1 2 3\n"
        assert holdfast(serving.home, "delete", "--yes", "last").code == 0
        serving.stop()
        said = holdfast(serving.home, "show", session_id)  # Without a gateway, too.
        assert said.code == 1 and f"holdfast delete --undo {session_id}" in said.err
    said = holdfast(serving.home, "delete", "--yes", session_id)
    assert said.code == 1 and is_one_sentence(said.err)


def test_a_deleted_conversation_is_gone_from_every_file_of_the_home_after_its_time(tmp_path: Path) -> None:
    """A28: text, tool calls and their output, while the gateway runs; its tools are killed at once."""
    marker = tmp_path / "marker"
    with Serving(tmp_path / "home", undo_delete_s="1") as serving:
        other = serving.new_session()
        serving.post(other, "quicksilver")
        serving.wait_for(other)
        session_id = serving.new_session()
        serving.post(session_id, "run echo zan$((20+3))zibar; echo kept-zanzibar")
        serving.wait_for(session_id)
        serving.post(session_id, "run sleep 601 >/dev/null 2>&1 &")
        serving.wait_for(session_id)
        background = left_behind(serving)
        assert background
        serving.post(session_id, f"run touch {marker}; sleep 600 && echo zanzibar")
        wait_until(marker.exists)
        wait_until(lambda: "holdfast.db" in "".join(holds(serving.home, "zanzibar")))
        with serving.client() as client:
            assert client.delete(f"/api/sessions/{session_id}").status_code == 200
        wait_until(lambda: not any(processes.is_alive(process) for process in background))
        wait_until(lambda: not left_behind(serving))
        wait_until(lambda: not holds(serving.home, "zanzibar") and not holds(serving.home, "zan23zibar"))
        assert holds(serving.home, "quicksilver")
        said = holdfast(serving.home, "delete", "--undo", session_id)
        assert said.code == 1 and said.err == f"holdfast: The session '{session_id}' was deleted. Its content is gone.\n"
        assert holdfast(serving.home, "send", other, "count 2 0").out == "1 2\n"


def test_a_purge_that_is_killed_again_and_again_ends_with_nothing_left(tmp_path: Path) -> None:
    """A28: kill -9 at whatever step it is."""
    with Serving(tmp_path / "home", undo_delete_s="0") as serving:
        other = serving.new_session()
        serving.post(other, "quicksilver")
        serving.wait_for(other)
        for death in range(6):
            session_id = serving.new_session()
            serving.post(session_id, "count 400 0 zanzibar")
            serving.wait_for(session_id)
            with serving.client() as client:
                assert client.delete(f"/api/sessions/{session_id}").status_code == 200
            serving.kill()  # The purge of a start begins with it, so these deaths fall into different steps of it.
            serving.start()
            time.sleep(death * 0.05)
            serving.kill()
            serving.start()
        wait_until(lambda: not holds(serving.home, "zanzibar"))
        assert serving.session(other)["messages"][0]["text"] == "quicksilver"
        assert serving.status()["gateway_state"] == "running"
