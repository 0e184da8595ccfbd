"""The OpenAI-compatible door of a real process, with the official SDK: killed in the middle, and the examples of docs/doors.md as they are
written."""

import contextlib
import io
import re
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.e2e.serving import ROOT, Serving, complete_a_turn, wait_until

DOORS = (ROOT / "docs" / "doors.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", DOORS, re.DOTALL)
COUNTED = " ".join(map(str, range(1, 61)))


def sdk(serving: Serving, **options: Any) -> OpenAI:
    http = openai.DefaultHttpxClient(verify=False, trust_env=False)
    return OpenAI(base_url=f"{serving.url}/v1", api_key=serving.token, http_client=http, **({"max_retries": 0} | options))


def test_a_stream_that_a_kill_broke_off_continues_whole(tmp_path: Path) -> None:
    """P4, P7: the gateway is killed and started, and what is read behind the last event completes the text."""
    with Serving(tmp_path / "home") as serving, sdk(serving) as client:
        complete_a_turn(serving)
        text, last, name = "", 0, ""
        with client.responses.create(model="holdfast", input="count 60 0.02", background=True, stream=True) as stream:
            for event in stream:
                last = event.sequence_number
                if event.type == "response.created":
                    name = event.response.id
                if event.type == "response.output_text.delta":
                    text += event.delta
                    if " 10" in text:
                        break
        serving.kill()
        serving.start()
        completed = None
        for event in client.responses.retrieve(name, stream=True, starting_after=last):
            assert event.sequence_number > last
            last = event.sequence_number
            if event.type == "response.output_text.delta":
                text += event.delta
            if event.type == "response.completed":
                completed = event.response
        assert text == COUNTED
        assert completed is not None and completed.output_text == COUNTED and completed.metadata is not None
        assert completed.metadata["attempt"] == "2"
        assert client.responses.retrieve(name).output_text == COUNTED


def test_an_sdk_that_waits_while_the_gateway_is_killed_gets_one_answer(tmp_path: Path) -> None:
    """P1, P5: it tries again by itself, and its message is known again, in both protocols."""
    with Serving(tmp_path / "home") as serving, sdk(serving, max_retries=10) as client:
        complete_a_turn(serving)
        found: list[str | None] = []

        def complete() -> None:
            messages: Any = [{"role": "user", "content": "count 60 0.03"}]
            found.append(client.chat.completions.create(model="holdfast", messages=messages).choices[0].message.content)

        def respond() -> None:
            found.append(client.responses.create(model="holdfast", input="count 60 0.031").output_text)

        waiting = [threading.Thread(target=each) for each in (complete, respond)]
        for each in waiting:
            each.start()
        wait_until(lambda: serving.status()["running_turns"] == 2)
        time.sleep(0.3)
        serving.kill()
        serving.start()
        for each in waiting:
            each.join(60)
        assert found == [COUNTED, COUNTED]
        with serving.client() as http:
            sessions = http.get("/api/sessions").json()["sessions"]
        assert len(sessions) == 3
        for each in sessions:
            assert len(serving.session(each["session_id"])["turns"]) == 1


def test_the_examples_of_the_documentation_print_what_it_says(tmp_path: Path) -> None:
    assert len(EXAMPLES) >= 8
    with Serving(tmp_path / "home") as serving:
        names: dict[str, Any] = {"token": serving.token}
        for code, printed in EXAMPLES:
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(code.replace("http://127.0.0.1:8420", serving.url), names)
            assert output.getvalue() == printed, code
        names["client"].close()


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_the_command_line_of_the_documentation_works(tmp_path: Path) -> None:
    [command] = re.findall(r"```sh\n(curl .*?)```", DOORS, re.DOTALL)
    with Serving(tmp_path / "home") as serving:
        typed = command.replace("http://127.0.0.1:8420", serving.url).replace("$(holdfast token)", serving.token)
        printed = subprocess.run(["sh", "-c", typed], capture_output=True, text=True, timeout=30, check=True).stdout
        assert '"content":"1 2 3"' in printed
