"""Files between people and a model behind a real Holdfast: recordings in, attachments out, and what it notes for later."""

from pathlib import Path

from tests.e2e.command_line import holdfast
from tests.e2e.models import ModelProcess, asking
from tests.fakes.models.script import Reply, Script, call, text


def test_a_recording_is_given_to_the_model_in_the_words_of_the_transcriber(tmp_path: Path) -> None:
    """P5: they are on record, and in every later request."""
    script = Script(by="steps", replies=(Reply(say=text("Noted.")),), transcripts=("Buy milk.", "Something else."))
    with (
        ModelProcess(tmp_path / "model", script) as server,
        asking(tmp_path / "home", server, agent_transcriber="chat:whisper") as serving,
        serving.client() as client,
    ):
        made = client.post("/api/uploads", params={"name": "voice.ogg", "type": "audio/ogg"}, content=b"OggS").json()
        session_id = serving.new_session()
        serving.post(session_id, "listen", attachments=[made["attachment_id"]])
        (heard,) = serving.wait_for(session_id)["messages"][-1]["tool_calls"]
        assert (heard["name"], heard["outcome"], heard["result"]) == ("transcribe", "done", "Buy milk.")
        serving.post(session_id, "and now?")
        serving.wait_for(session_id)
        for asked in server.requests:
            assert "[Transcript of voice.ogg:] Buy milk." in str(asked["body"]["messages"])
            assert "transcribe" not in [tool["function"]["name"] for tool in asked["body"]["tools"]]
        assert len(server.requests) == 2


def test_a_file_that_a_model_attaches_is_a_part_of_its_answer_and_can_be_fetched(tmp_path: Path) -> None:
    """P4"""
    script = Script(
        by="steps",
        replies=(
            Reply(say=(call("write_file", {"path": "report.txt", "content": "all is well"}),)),
            Reply(say=(call("attach_file", {"path": "report.txt"}),)),
            Reply(say=text("Here it is.")),
        ),
    )
    with ModelProcess(tmp_path / "model", script) as server, asking(tmp_path / "home", server) as serving, serving.client() as client:
        sent = holdfast(serving.home, "send", "new", "write a report")
        assert sent.code == 0 and sent.out == "Here it is.\n" and "Attached: report.txt." in sent.err
        session_id = client.get("/api/sessions").json()["sessions"][0]["session_id"]
        answer = serving.session(session_id)["messages"][-1]
        (attached,) = [part for part in answer["parts"] if "digest" in part]
        assert (attached["type"], attached["name"], attached["size"]) == ("file", "report.txt", 11) and answer["text"] == "Here it is."
        assert attached["digest"] in str(answer["tool_calls"][1]["result_parts"])
        assert client.get(f"/api/blobs/{attached['digest']}").content == b"all is well"
        assert "+ report.txt (text/plain, 11" in holdfast(serving.home, "show", session_id).out


def test_what_a_model_notes_is_on_record_and_told_to_it_in_later_turns(tmp_path: Path) -> None:
    note = {"path": "main.md", "root": "memory", "content": "Ann likes tea."}
    script = Script(by="steps", replies=(Reply(say=(call("write_file", note),)), Reply(say=text("Noted."))))
    with ModelProcess(tmp_path / "model", script) as server, asking(tmp_path / "home", server) as serving:
        first, second = serving.new_session(), serving.new_session()
        serving.post(first, "Ann likes tea")
        (written,) = serving.wait_for(first)["messages"][-1]["tool_calls"]
        assert (written["name"], written["outcome"], written["arguments"]) == ("write_file", "done", note)
        assert "Ann likes tea." not in server.requests[0]["body"]["messages"][0]["content"]
        serving.post(second, "What does Ann like?")
        serving.wait_for(second)
        assert "What you noted earlier, in memory/main.md:\n\nAnn likes tea." in server.requests[2]["body"]["messages"][0]["content"]
