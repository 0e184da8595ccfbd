"""Values of known secrets are nowhere: not in a byte of the home folder, not in an answer over HTTP, not in what the process prints."""

import base64
import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import httpx

from holdfast.core.effects import SHOWN_OUTPUT
from holdfast.core.output import RESULT_HEAD
from tests.e2e.command_line import holdfast
from tests.e2e.models import ModelProcess, asking
from tests.e2e.serving import Serving, wait_until
from tests.e2e.test_acp import Scripted
from tests.fakes.models.script import Reply, Script, call, text, thought

SECRET = 'sk-live-"Zk3/9+Qx'
# One that can be the name of a file and a media type.
NO_PATH = "hunter2-hunter2-hunter2"
FORMS = (
    SECRET,
    json.dumps(SECRET)[1:-1],
    urllib.parse.quote(SECRET, safe=""),
    base64.b64encode(SECRET.encode()).decode(),
    NO_PATH,
)
KNOWN = {"HOLDFAST_TEST_API_KEY": SECRET, "HOLDFAST_TEST_TOKEN": NO_PATH}
# What may hold a credential: the token's own file.
CREDENTIALS = {"token"}
# What programs wrote themselves, raw, as docs/security.md says.
RAW = "processes"


def files(home: Path) -> Iterator[Path]:
    return (path for path in home.rglob("*") if path.is_file() and path.name not in CREDENTIALS and path.relative_to(home).parts[0] != RAW)


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


def listen(client: httpx.Client, heard: Listening, path: str, *, until: str, times: int, **asked: Any) -> None:
    """Notes a stream up to the line that comes so many times."""
    with client.stream("GET", path, params=asked) as events:
        assert events.status_code == 200
        for line in events.iter_lines():
            heard.heard += line.encode() + b"\n"
            times -= line == until
            if times == 0:
                return
    raise AssertionError(f"{path} ended before {until}")


def look_back(client: httpx.Client, session_id: str) -> None:
    """Asks for everything that was kept of a conversation."""
    path = f"/api/sessions/{session_id}"
    session = client.get(path).json()
    turns = [turn["id"] for turn in session["turns"]]
    assert turns and session["messages"]
    for where in (*(f"{path}/export?as={form}" for form in ("md", "json", "html")), *(f"{path}/turns/{turn}/events" for turn in turns)):
        assert client.get(where).status_code == 200, where
    for part in (part for message in session["messages"] for part in message["parts"] if "digest" in part):
        assert client.get(f"/api/blobs/{part['digest']}").status_code == 200


def draft(client: httpx.Client, session_id: str) -> None:
    path = f"/api/sessions/{session_id}/draft"
    kept = client.get(path).json()
    assert client.put(path, json={"text": f"to be sent: {SECRET}", "rev": kept["rev"]}).status_code == 200
    assert client.get(path).json()["text"].startswith("to be sent: ")


def knock(client: httpx.Client, heard: Listening) -> None:
    """At the OpenAI-compatible door."""
    made = client.post("/v1/responses", json={"model": "holdfast", "input": f"echo {SECRET}"})
    assert made.status_code == 200 and made.json()["status"] == "completed"
    client.get(f"/v1/responses/{made.json()['id']}")
    listen(client, heard, f"/v1/responses/{made.json()['id']}", until="event: response.completed", times=1, stream=True)
    said = [{"role": "user", "content": f"echo {SECRET}"}]
    assert client.post("/v1/chat/completions", json={"model": "holdfast", "messages": said}).status_code == 200


def run_behind(serving: Serving, client: httpx.Client) -> str:
    """A background command that prints the secret in two halves."""
    session_id = str(client.post("/api/sessions", json={}).json()["session_id"])
    command = f"background printf '%s' '{SECRET[:7]}'; sleep 0.2; printf '%s\\n' '{SECRET[7:]}'"
    client.post(f"/api/sessions/{session_id}/messages", json={"text": command})
    wait_until(
        lambda: [each["state"] for each in client.get("/api/processes", params={"session": session_id}).json()["processes"]] == ["ended"]
    )
    [process] = client.get("/api/processes", params={"session": session_id}).json()["processes"]
    shown = client.get(f"/api/processes/{process['process_id']}").json()
    assert shown["output"]["text"] == "[secret HOLDFAST_TEST_API_KEY]\n"
    serving.wait_for(session_id)
    return session_id


def use(serving: Serving, client: httpx.Client, heard: Listening) -> str:
    """Says the secret wherever something can be said, and asks for everything that can be asked for."""
    session_id = str(client.post("/api/sessions", json={"title": f"about {SECRET}"}).json()["session_id"])
    path = f"/api/sessions/{session_id}"
    halves = f"run printf '%s' '{SECRET[:7]}'; sleep 0.2; printf '%s\\n' '{SECRET[7:]}'"
    for said in (f"my key is {SECRET}", f"echo {FORMS[3]} and {FORMS[2]}", halves, f"run echo {serving.token}"):
        client.post(f"{path}/messages", json={"text": said})
        serving.wait_for(session_id)
    client.post(f"{path}/messages", json={"text": f"ask is it {SECRET}?"})
    serving.wait_for(session_id, state="waiting")
    client.post(f"{path}/messages", json={"text": f"yes, {SECRET}"})
    serving.wait_for(session_id)
    listen(client, heard, f"{path}/events", until="event: turn.ended", times=5, after=0)
    named = {"name": f"{NO_PATH}.txt", "type": f"text/{NO_PATH}", "client_id": SECRET}
    uploaded, again = (client.post("/api/uploads", params=named, content=b"x" * 300_000 + SECRET.encode() + b"y") for _ in range(2))
    assert (uploaded.status_code, again.status_code) == (201, 200) and uploaded.json() == again.json()
    looked = {"text": "look", "attachments": [uploaded.json()["attachment_id"]], "client_id": SECRET}
    first, second = (client.post(f"{path}/messages", json=looked) for _ in range(2))
    assert (first.status_code, second.status_code) == (202, 200) and first.json() == second.json(), "it is known again, without its name"
    assert client.post(f"{path}/messages", json=looked | {"client_id": f"{SECRET}!"}).status_code == 202
    assert client.post(f"{path}/messages", json=looked | {"text": "other"}).status_code == 409
    for asked in ("stop", "resume", "reset"):
        client.post(f"{path}/{asked}", json={"client_id": SECRET})
    client.patch(path, json={"title": SECRET})
    client.patch(path, json={SECRET: 1})
    client.post(f"/api/questions/{urllib.parse.quote(SECRET, safe='')}", json={"text": SECRET})
    for where in (path, "/api/sessions", "/api/status", "/metrics", "/api/openapi.json"):
        client.get(where)
    client.get("/api/sessions", params={"query": SECRET[:8]})
    knock(client, heard)
    draft(client, session_id)
    for each in (session_id, run_behind(serving, client)):
        look_back(client, each)
    return session_id


def test_no_byte_of_the_home_folder_and_of_all_answers_holds_a_secret(tmp_path: Path) -> None:
    """DESIGN 11; P7: what is shown is what is stored, and neither holds a known secret, also after a kill."""
    heard = Listening()
    with Serving(tmp_path / "home", variables=KNOWN) as serving:
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
    assert any(leaks(path.read_bytes()) for path in (serving.home / RAW).rglob("*") if path.is_file()), "and is nowhere else"
    assert not leaks(heard.heard, token)
    assert not leaks(shown.out.encode() + printed.encode(), token)
    for path in files(serving.home):
        assert not leaks(path.read_bytes(), token), path


def quoted(said: str) -> str:
    return f"'{said}'"


# What a model says that knows the secret: in words, thoughts and calls, in a summary, and in an error of its server.
KNOWING = Script(
    replies=(
        Reply(say=(*thought(f"It is {SECRET}."), *text("It is ", *SECRET), call("terminal", {"command": f"echo {quoted(SECRET)}"}))),
        Reply(say=(call("terminal", {"command": f"printf '%s' {quoted(SECRET)}"}),)),
        Reply(say=(call("write_file", {"root": "memory", "path": "main.md", "content": f"The key: {SECRET}"}),)),
        Reply(say=(call("terminal", {"command": 'printf \'%s%s\' "$(cat one)" "$(cat two)"'}),)),
        Reply(say=(call("fetch_url", {"url": f"ftp://{SECRET}"}), call(SECRET, {SECRET: SECRET}))),
        Reply(say=(call("ask_user", {"question": f"Is it {SECRET}?", "choices": [SECRET, "no"]}),)),
        Reply(say=text(f"Then it is {SECRET}."), usage=(7000, 5, 4)),
        Reply(say=text(f"They spoke of {SECRET}.")),
        Reply(status=401, error={"error": {"message": f"{SECRET} is no key of ours", "type": "invalid_request_error"}}),
    ),
)


def talk(serving: Serving, client: httpx.Client, heard: Listening) -> str:
    """Has the model say all of it, and answers what it asks."""
    session_id = str(client.post("/api/sessions", json={}).json()["session_id"])
    path = f"/api/sessions/{session_id}"
    client.post(f"{path}/messages", json={"text": f"What is my key? {'x' * 6000}"})
    [approval] = serving.wait_for(session_id, state="waiting")["questions"]
    given = {"verdict": "approve", "client_id": SECRET}
    for _ in range(2):
        assert client.post(f"/api/approvals/{approval['question_id']}", json=given).status_code == 202
    wait_until(lambda: [each["kind"] for each in serving.session(session_id)["questions"]] == ["question"])
    [question] = serving.session(session_id)["questions"]
    client.post(f"/api/questions/{question['question_id']}", json={"text": f"yes, {SECRET}"})
    serving.wait_for(session_id)
    client.post(f"{path}/messages", json={"text": "And now?"})
    serving.wait_for(session_id)
    listen(client, heard, f"{path}/events", until="event: turn.ended", times=2, after=0)
    look_back(client, session_id)
    for where in (path, f"{path}/messages", "/api/usage?days=1", "/api/rules", "/api/status", "/metrics"):
        assert client.get(where).status_code == 200
    return session_id


def flip_a_byte(home: Path) -> None:
    """Of a recorded step in which the secret was replaced, so that its row goes into quarantine."""
    db = apsw.Connection(str(home / "holdfast.db"))
    [(number, body)] = db.execute("SELECT id, body FROM event WHERE kind = 'model.responded' ORDER BY id LIMIT 1").fetchall()
    assert isinstance(body, bytes) and b"[secret" in body
    db.execute("UPDATE event SET body = ? WHERE id = ?", (b"[" + body[1:], number))
    db.close()


def quarantined(home: Path) -> int:
    db = apsw.Connection(str(home / "holdfast.db"))
    try:
        return len(db.execute("SELECT 1 FROM quarantine").fetchall())
    finally:
        db.close()


def test_a_model_that_knows_a_secret_leaves_it_nowhere_either(tmp_path: Path) -> None:
    """DESIGN 11: steps, thoughts, calls, approvals, questions, memory, summaries, errors, sums, what is damaged, and a backup of it all."""
    heard, prices = Listening(), json.dumps({"chat:test": {"window": 8000}})
    (tmp_path / "one").write_text(SECRET[:7])
    (tmp_path / "two").write_text(SECRET[7:])
    (tmp_path / "AGENTS.md").write_text(f"Use the key {SECRET}.")
    settings = {"agent_prices": prices, "policy_ask": "terminal(printf *)", "agent_instructions": f"Never say {SECRET}."}
    settings["test_api_key"] = SECRET
    with ModelProcess(tmp_path / "model", KNOWING) as server, asking(tmp_path / "home", server, **settings) as serving:
        with serving.client(event_hooks={"response": [heard.note]}) as client:
            session_id = talk(serving, client, heard)
        told = [str(asked["body"]["messages"][0]["content"]) for asked in server.requests]
        serving.kill()
        flip_a_byte(serving.home)
        serving.start()
        with serving.client(event_hooks={"response": [heard.note]}) as client:
            session = client.get(f"/api/sessions/{session_id}").json()
        shown = [holdfast(serving.home, "show", session_id, *more).out for more in ((), ("--json",), ("--events",))]
        assert holdfast(serving.home, "backup", str(serving.home / "copy")).code == 0

    calls = {call["call_id"]: (call["outcome"], call["result"]) for call in session["messages"][-3]["tool_calls"]}
    assert len(server.requests) == len(KNOWING.replies) and quarantined(serving.home) == 1
    assert [outcome for outcome, _ in calls.values()] == ["done", "failed", "failed", "done", "failed", "failed", "done"], calls
    assert "[secret HOLDFAST_TEST_API_KEY] is no key of ours" in json.dumps(session["turns"][-1])
    assert not (serving.home / "memory" / "main.md").exists()
    assert "Never say [secret HOLDFAST_TEST_API_KEY]." in told[0] and "Use the key [secret HOLDFAST_TEST_API_KEY]." in told[0]
    assert not leaks("".join(told).encode())
    assert not leaks(heard.heard, serving.token)
    assert not leaks("".join([*shown, serving.output()]).encode(), serving.token)
    for path in files(serving.home):
        assert not leaks(path.read_bytes(), serving.token), path


def test_the_environment_of_an_agent_that_is_another_program_is_on_no_disk(tmp_path: Path) -> None:
    """DESIGN 11: it gets the secrets of other programs, as any program started from that shell; its files hold none, also after a kill."""
    agent = Scripted(tmp_path / "agent")
    with Serving(tmp_path / "home", agent_acp=agent.command, variables={"OTHER_API_KEY": NO_PATH}) as serving:
        session_id = serving.new_session()
        serving.post(session_id, "say hello")
        serving.wait_for(session_id)
        assert f"OTHER_API_KEY={NO_PATH}".encode() in Path(f"/proc/{agent.pid}/environ").read_bytes()
        for _ in range(2):
            assert list((serving.home / "agents").glob("*/*/pid.json"))
            for path in files(serving.home):
                assert not leaks(path.read_bytes(), serving.token), path
            serving.kill()
            serving.start()
        assert holdfast(serving.home, "stop").code == 0


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
