"""A model server that refuses long prompts, on every wire, behind a real Holdfast process."""

from pathlib import Path

import pytest

from tests.e2e.models import ModelProcess, asking
from tests.fakes.models.script import Reply, Script, text

MODELS = {"chat": "chat:test", "responses": "responses:test", "anthropic": "anthropic:test"}


@pytest.mark.parametrize("wire", MODELS)
def test_a_conversation_that_the_server_finds_too_long_goes_on_with_a_summary(tmp_path: Path, wire: str) -> None:
    """P3, P8: nothing is lost for people, and a restart begins with the summary, too."""
    script = Script(replies=(Reply(say=text("I see.")),), window=16_000)
    with ModelProcess(tmp_path / "model", script, wire=wire) as server, asking(tmp_path / "home", server, model=MODELS[wire]) as serving:
        session_id = serving.new_session()
        for number in range(5):
            serving.post(session_id, f"{number} {'word ' * 700}")
            session = serving.wait_for(session_id)
        assert [turn["outcome"] for turn in session["turns"]] == ["completed"] * 5
        told = [message["text"] for message in session["messages"] if message["role"] == "notice"]
        assert told and "summary of the earlier messages" in told[0]
        assert [message["text"][:2] for message in session["messages"] if message["role"] == "user"] == [f"{n} " for n in range(5)]
        serving.kill()
        serving.start()
        serving.post(session_id, "and now?")
        session = serving.wait_for(session_id)
        assert session["messages"][-1]["text"] == "I see." and session["turns"][-1]["outcome"] == "completed"
        asked = str(server.requests[-1]["body"])
        assert "This is a summary of it" in asked and "'0 word" not in asked
