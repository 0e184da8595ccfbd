"""Attachments against a real process: killed at any moment, sent from the command line, carried by a hand-over."""

import hashlib
import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from holdfast.ports.store import Store
from tests.e2e.command_line import holdfast, is_one_sentence
from tests.e2e.serving import Serving, complete_a_turn, hand_over, wait_until

KILLS = 20
AT_ONCE = 4


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def upload(client: httpx.Client, data: bytes, client_id: str) -> str:
    answer = client.post("/api/uploads", params={"name": "x.bin", "client_id": client_id}, content=data)
    assert answer.status_code in (200, 201), answer.text
    return str(answer.json()["attachment_id"])


class Person(threading.Thread):
    """Uploads, sends, deletes; asks again under the same name whenever no answer came."""

    def __init__(self, serving: Serving, name: int) -> None:
        super().__init__()
        self._serving, self._chance = serving, random.Random(name)
        self.kept: dict[str, bytes] = {}
        self.deleted: list[bytes] = []
        self.done = threading.Event()

    def run(self) -> None:
        number = 0
        while not self.done.is_set() or not self.kept or not self.deleted:
            number += 1
            data = self._chance.randbytes(self._chance.choice((0, 10, 300_000, 2_000_000)))
            session_id = str(self._ask("POST", "/api/sessions", json={})["session_id"])
            file = {"name": "x.bin", "client_id": f"u{number}"}
            attachment_id = self._ask("POST", "/api/uploads", params=file, content=data)["attachment_id"]
            message = {"text": "look", "client_id": f"m{number}", "attachments": [attachment_id]}
            self._ask("POST", f"/api/sessions/{session_id}/messages", json=message)
            if data and self._chance.random() < 0.5:
                self._ask("DELETE", f"/api/sessions/{session_id}")
                self.deleted.append(data)
            else:
                self.kept[session_id] = data

    def _ask(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        while True:
            try:
                with self._serving.client() as client:
                    answer = client.request(method, path, **more)
                if answer.status_code != 503:
                    return dict(answer.raise_for_status().json())
            except (httpx.TransportError, FileNotFoundError):
                pass
            time.sleep(0.02)


def unnamed(serving: Serving) -> list[str]:
    """Files of blobs that no row names."""

    async def ask(store: Store) -> list[str]:
        return await store.unnamed(os.listdir(serving.home / "blobs"))

    return serving.between_lives(ask)


def play(home: Path, seed: int) -> None:
    with Serving(home, undo_delete_s="0") as serving:
        person = Person(serving, seed)
        person.start()
        for kill in range(KILLS // AT_ONCE):
            time.sleep(random.Random(seed + kill).uniform(0.05, 0.8))
            serving.kill()
            serving.start()
            complete_a_turn(serving)
        person.done.set()
        person.join(60)
        assert not person.is_alive()
        with serving.client() as client:
            for data in person.kept.values():
                assert client.get(f"/api/blobs/{digest(data)}").content == data
            for data in person.deleted:
                assert client.get(f"/api/blobs/{digest(data)}").status_code == 404
        gone = {digest(data) for data in person.deleted}
        wait_until(lambda: not gone & {name.partition("-")[0] for name in os.listdir(home / "blobs")}, 120)
        serving.stop()
        assert unnamed(serving) == [], "what a kill left was not swept"


def test_attachments_are_whole_whatever_kills_the_server_and_nothing_else_stays(tmp_path: Path) -> None:
    """P1, P7, A28: twenty kills while files are uploaded, sent and deleted."""
    seed = random.randrange(10**9)
    with ThreadPoolExecutor(AT_ONCE) as sides:
        try:
            list(sides.map(lambda side: play(tmp_path / f"home-{side}", seed + side * 1000), range(AT_ONCE)))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_a_file_uploaded_before_a_hand_over_is_sent_after_it(tmp_path: Path) -> None:
    """P1"""
    with Serving(tmp_path / "home") as serving:
        complete_a_turn(serving)
        with serving.client() as client:
            attachment_id = upload(client, b"bytes", "u")
        hand_over(serving)
        session_id = serving.new_session()
        serving.post(session_id, "look", attachments=[attachment_id])
        with serving.client() as client:
            assert client.get(f"/api/blobs/{digest(b'bytes')}").content == b"bytes"


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="needs a file whose size is not known before it is read")
def test_a_file_is_sent_as_it_is_read_whatever_its_size_was_said_to_be(tmp_path: Path) -> None:
    """As one that grows; and what cannot be read again is refused before anything is sent."""
    home, words = tmp_path / "home", Path("/proc/version").read_bytes()
    with Serving(home) as serving:
        sent = holdfast(home, "send", "new", "look", "--attach", "/proc/version", "--json")
        assert sent.code == 0 and f"{len(words)} bytes)" in sent.json["text"], sent.err
        with serving.client() as client:
            assert client.get(f"/api/blobs/{digest(words)}").content == words
        refused = holdfast(home, "send", "new", "look", "--attach", "/dev/zero")
        assert refused.code == 2 and "not a regular file" in refused.err


def test_files_are_sent_from_the_command_line_and_listed_there(tmp_path: Path) -> None:
    """P1"""
    home = tmp_path / "home"
    files = [tmp_path / "notes.txt", tmp_path / "grün 1.png"]
    for number, file in enumerate(files):
        file.write_bytes(b"x" * (1000 * number + 5))
    attach = [word for file in files for word in ("--attach", str(file))]
    with Serving(home, max_upload_mb="1") as serving:
        sent = holdfast(home, "send", "new", "look", *attach, "--client-id", "k", "--json")
        assert sent.code == 0, sent.err
        session_id = sent.json["session_id"]
        assert sent.json["text"].startswith("You said: look\n- notes.txt (text/plain, 5 bytes)\n- grün 1.png (image/png, 1005 bytes)\n")
        shown = holdfast(home, "show", session_id).out
        assert "  + notes.txt (text/plain, 5 bytes)" in shown and "  + grün 1.png (image/png, 1.0 KB)" in shown
        again = holdfast(home, "send", session_id, "look", *attach, "--client-id", "k", "--json")
        assert again.json["message_id"] == sent.json["message_id"]
        alone = holdfast(home, "send", session_id, "--attach", str(files[0]), "--no-wait", "--json")
        assert alone.code == 0 and alone.json["message_id"] != sent.json["message_id"]
        files[0].write_bytes(bytes(3_000_000))
        refused = holdfast(home, "send", session_id, "look", "--attach", str(files[0]))
        assert refused.code == 1 and is_one_sentence(refused.err.replace(". Send", "; send")) and "larger than 1 MB" in refused.err
        assert holdfast(home, "send", session_id).code in (1, 2)
        assert "file" in holdfast(home, "send", session_id, "look", "--attach", "nowhere").err.lower()
        serving.stop()
        assert "  + notes.txt (text/plain, 5 bytes)" in holdfast(home, "show", session_id).out
