"""Several agents behind a real process: chosen per conversation, loaded when first needed, kept by a turn over a kill."""

from pathlib import Path

from tests.e2e.command_line import holdfast
from tests.e2e.models import ModelProcess, asking
from tests.e2e.serving import complete_a_turn, wait_until
from tests.fakes.models.script import Reply, Script, text

OWN = """
import asyncio
from pathlib import Path

Path("loaded").touch()


async def agent(request, turn):
    await turn.say(f"Working on {request.text}. ")
    while not Path("go").exists():
        await asyncio.sleep(0.02)
    await turn.say("My own agent did it.")
"""
CONFIG = """
[agents.mine]
module = "my_agent:agent"

[agents.broken]
module = "my_broken:agent"

[agents.poet]
model = "chat:test"
instructions = "Speak in verse."
"""


def test_an_agent_is_chosen_loaded_when_needed_and_kept_by_its_turn_over_a_kill(tmp_path: Path) -> None:
    """R9, P3, P8"""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(CONFIG)
    (home / "my_agent.py").write_text(OWN)
    (home / "my_broken.py").write_text("import nothing_of_the_kind\n")
    with (
        ModelProcess(tmp_path / "model", Script(replies=(Reply(say=text("The model did it.")),))) as server,
        asking(home, server) as serving,
    ):
        assert serving.status()["models"] == ["chat:test", "mine", "broken", "poet"]
        assert "chat:test, or mine, broken, poet if a conversation chooses it" in holdfast(home, "status").out
        complete_a_turn(serving)
        assert not (home / "loaded").exists(), "nobody has chosen it"
        session_id = serving.new_session()
        with serving.client() as client:
            refused = client.patch(f"/api/sessions/{session_id}", json={"model": "nobody"})
            assert refused.status_code == 400 and "chat:test, mine, broken, poet" in refused.text
            assert client.patch(f"/api/sessions/{session_id}", json={"model": "mine"}).json()["model"] == "mine"
        serving.post(session_id, "it")
        wait_until(lambda: "Working on it." in str(serving.session(session_id)["messages"]))
        with serving.client() as client:
            assert client.patch(f"/api/sessions/{session_id}", json={"model": None}).json()["model"] is None
        serving.kill()
        (home / "go").touch()
        serving.start()
        session = serving.wait_for(session_id)
        assert session["messages"][-1]["text"] == "Working on it. My own agent did it."
        assert [(turn["attempt"], turn["agent"]) for turn in session["turns"]] == [(2, "mine")]
        serving.post(session_id, "and now?")
        assert serving.wait_for(session_id)["messages"][-1]["text"] == "The model did it."
        holdfast(home, "send", session_id, "/model broken")
        serving.post(session_id, "and now?")
        error = serving.wait_for(session_id)["turns"][-1]["error"]
        assert "The agent 'my_broken:agent' cannot be loaded: ModuleNotFoundError: No module named 'nothing_of_the_kind'" in error
        holdfast(home, "send", session_id, "/model 4")
        serving.post(session_id, "and now?")
        assert serving.wait_for(session_id)["messages"][-1]["text"] == "The model did it."
        assert "Speak in verse." in server.requests[-1]["body"]["messages"][0]["content"]
