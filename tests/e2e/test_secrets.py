"""Values of known secrets are nowhere: not in a byte of the home folder, not in an answer over HTTP, not in what the process prints."""

import base64
import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import httpx

from holdfast.core.effects import SHOWN_OUTPUT
from holdfast.core.output import RESULT_HEAD
from tests.e2e.command_line import holdfast
from tests.e2e.serving import Serving, wait_until

SECRET = 'sk-live-"Zk3/9+Qx'
FORMS = (SECRET, json.dumps(SECRET)[1:-1], urllib.parse.quote(SECRET, safe=""), base64.b64encode(SECRET.encode()).decode())
# What may hold a credential: the token's own file.
CREDENTIALS = {"token"}


def files(home: Path) -> Iterator[Path]:
    return (path for path in home.rglob("*") if path.is_file() and path.name not in CREDENTIALS)


def leaks(data: bytes, *more: str) -> list[str]:
    return [form for form in (*FORMS, *more) if form.encode() in data]


class Listening:
    """Keeps every byte of every answer."""

    def __init__(self) -> None:
        self.heard = b""

    def note(self, response: httpx.Response) -> None:
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            return  # It has no end: what comes of it is noted as it is read.
        response.read()
        self.heard += response.content + repr(response.headers).encode()


def use(serving: Serving, client: httpx.Client, heard: Listening) -> str:
    """Says the secret wherever something can be said, and asks for everything that can be asked for."""
    session_id = str(client.post("/api/sessions", json={"title": f"about {SECRET}"}).json()["session_id"])
    path = f"/api/sessions/{session_id}"
    halves = f"run printf '%s' '{SECRET[:7]}'; sleep 0.2; printf '%s\\n' '{SECRET[7:]}'"
    for text in (f"my key is {SECRET}", f"echo {FORMS[3]} and {FORMS[2]}", halves, f"run echo {serving.token}"):
        client.post(f"{path}/messages", json={"text": text})
        serving.wait_for(session_id)
    client.post(f"{path}/messages", json={"text": f"ask is it {SECRET}?"})
    serving.wait_for(session_id, state="waiting")
    client.post(f"{path}/messages", json={"text": f"yes, {SECRET}"})
    serving.wait_for(session_id)
    with client.stream("GET", f"{path}/events", params={"after": 0}) as events:
        ended = 0
        for line in events.iter_lines():
            heard.heard += line.encode() + b"\n"
            ended += line == "event: turn.ended"
            if ended == 5:
                break
    uploaded = client.post("/api/uploads", params={"name": f"{SECRET[:5]}.txt"}, content=b"x" * 300_000 + SECRET.encode() + b"y").json()
    client.post(f"{path}/messages", json={"text": "look", "attachments": [uploaded["attachment_id"]]})
    client.patch(path, json={"title": SECRET})
    client.patch(path, json={SECRET: 1})
    client.post(f"/api/questions/{urllib.parse.quote(SECRET, safe='')}", json={"text": SECRET})
    for where in (path, "/api/sessions", "/api/status", "/metrics", "/api/openapi.json"):
        client.get(where)
    client.get("/api/sessions", params={"query": SECRET[:8]})
    return session_id


def test_no_byte_of_the_home_folder_and_of_all_answers_holds_a_secret(tmp_path: Path) -> None:
    """DESIGN 11; P7: what is shown is what is stored, and neither holds a known secret, also after a kill."""
    heard = Listening()
    with Serving(tmp_path / "home", variables={"HOLDFAST_TEST_API_KEY": SECRET}) as serving:
        token = serving.token
        with serving.client(event_hooks={"response": [heard.note]}) as client:
            session_id = use(serving, client, heard)
        serving.wait_for(session_id)
        serving.kill()
        serving.start()
        shown = holdfast(serving.home, "show", session_id, "--json")
        backup = holdfast(serving.home, "backup", str(tmp_path / "home" / "copy"))
        with serving.client(event_hooks={"response": [heard.note]}) as client:
            session = client.get(f"/api/sessions/{session_id}").json()
        printed = serving.output()

    assert backup.code == 0, backup
    assert "[secret HOLDFAST_TEST_API_KEY]" in json.dumps(session), "the secret was said, and is marked"
    assert "[secret token]" in json.dumps(session)
    assert not leaks(heard.heard, token)
    assert not leaks(shown.out.encode() + printed.encode(), token)
    for path in files(serving.home):
        assert not leaks(path.read_bytes(), token), path


def test_no_half_of_a_secret_is_kept_where_a_long_output_is_shortened(tmp_path: Path) -> None:
    """DESIGN 11: what is left out of a result or of an interrupted call's output may begin or end within a secret."""
    secret = "".join(f"{number:x}" for number in range(400))[-120:]
    print_it = f"printf '%s' {secret[:60]} {secret[60:]}"
    halves = [secret[start : start + 70].encode() for start in range(50)]
    with Serving(tmp_path / "home", variables={"HOLDFAST_TEST_API_KEY": secret}) as serving, serving.client() as client:
        session_id = str(client.post("/api/sessions", json={}).json()["session_id"])
        path = f"/api/sessions/{session_id}"
        long = f"head -c {RESULT_HEAD - 80} /dev/zero | tr '\\0' x; {print_it}; head -c 99999 /dev/zero | tr '\\0' y"
        client.post(f"{path}/messages", json={"text": f"run {long}"})
        serving.wait_for(session_id)
        stopped = f"{print_it}; head -c {SHOWN_OUTPUT - 80} /dev/zero | tr '\\0' z; touch printed; sleep 600"
        client.post(f"{path}/messages", json={"text": f"run {stopped}"})
        wait_until(lambda: b"zzz" in client.get(path).content)
        client.post(f"{path}/stop", json={})
        serving.wait_for(session_id)
        shown = client.get(path).content
    assert b"yyy" in shown and b"zzz" in shown and b"[secret HOLDFAST_TEST_API_KEY]" in shown
    for data in (shown, *(each.read_bytes() for each in files(serving.home))):
        assert not [half for half in halves if half in data]
