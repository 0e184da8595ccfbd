"""Backup of a gateway under load, and back again: as an operator does it."""

import re
from pathlib import Path

from tests.e2e.command_line import holdfast, is_one_sentence
from tests.e2e.serving import Reader, Serving, wait_until


def test_a_backup_of_a_running_gateway_under_load_is_restored_and_goes_on(tmp_path: Path) -> None:
    """P1, P3, P7: what was acknowledged before the backup is there; what ran is resumed; an old cursor gets a snapshot."""
    backup = tmp_path / "backup.db"
    with Serving(tmp_path / "home") as serving:
        done = serving.new_session()
        serving.post(done, "count 5 0")
        before = serving.wait_for(done)
        running = [serving.new_session() for _ in range(5)]
        for session_id in running:
            serving.post(session_id, "count 200 0.05")
        reader = Reader(serving, running[0]).start()
        wait_until(lambda: all(serving.session(session_id)["messages"][1:] for session_id in running))
        assert holdfast(serving.home, "backup", str(backup)).code == 0
        since = serving.new_session()
        refused = holdfast(serving.home, "restore", str(backup))
        assert refused.code == 1 and is_one_sentence(refused.err) and "holdfast stop" in refused.err
        old_cursor = serving.session(running[0])["cursor"]
        reader.stop()
        serving.stop()
        said = holdfast(serving.home, "restore", str(backup))
        assert said.code == 0, said.err
        assert re.match(
            r"Restored 6 conversations from .*backup\.db, last changed .*\.\n5 turns were running when the backup was made;", said.out
        )
        [aside] = serving.home.glob("replaced-*")
        assert f"The previous conversations are in {aside}." in said.out
        serving.start()
        with serving.client() as client:
            assert client.get(f"/api/sessions/{since}").status_code == 404
            with client.stream("GET", f"/api/sessions/{running[0]}/events", headers={"Last-Event-ID": old_cursor}) as stream:
                lines = stream.iter_lines()
                assert next(line for line in lines if line.startswith("event: ")) == "event: snapshot"
                assert '"because":"foreign"' in next(line for line in lines if line.startswith("data: "))
        after = serving.session(done)
        assert after["messages"] == before["messages"] and after["turns"] == before["turns"]
        for session_id in running:
            session = serving.wait_for(session_id, timeout_s=120)
            answers = [message["text"] for message in session["messages"] if message["role"] == "assistant"]
            assert answers == [" ".join(str(number) for number in range(1, 201))]
            assert [turn["outcome"] for turn in session["turns"]] == ["completed"]
            row = next(message for message in session["messages"] if message["role"] == "interruption")
            assert row["reason"] == "restored" and session["interrupted_restarts"] == 0
        assert not serving.status()["safe_mode"]


def test_restore_says_what_is_wrong_in_a_sentence(tmp_path: Path) -> None:
    home, nothing, text = tmp_path / "home", tmp_path / "nothing.db", tmp_path / "text.db"
    text.write_text("words")
    for file, told in ((nothing, "There is no file"), (text, "it is damaged or not a database of Holdfast")):
        said = holdfast(home, "restore", str(file))
        assert said.code == 1 and is_one_sentence(said.err) and told in said.err, said.err
    assert not (home / "holdfast.db").exists()
