"""An agent that is another program (ACP), with a real keeper and real kills: of the gateway, of the agent, and by people."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast import tool_processes
from tests.e2e.command_line import holdfast
from tests.e2e.serving import Serving, hand_over, wait_until

NUMBERS = " ".join(str(number) for number in range(1, 31))


class Scripted:
    """What the agent noted, over all its lives."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.command = " ".join((sys.executable, "-m", "tests.fakes.acp_agent", str(folder), *options))

    def noted(self, file: str) -> list[str]:
        path = self.folder / file
        return path.read_text().splitlines() if path.exists() else []

    @property
    def pid(self) -> int:
        return int(next(line for line in reversed(self.noted("lives")) if line.isdigit()))

    @property
    def lives(self) -> bool:
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except FileNotFoundError:
            return False


@contextmanager
def scripted(tmp_path: Path, *options: str) -> Iterator[tuple[Serving, Scripted]]:
    agent = Scripted(tmp_path / "agent", *options)
    with Serving(tmp_path / "home", agent_acp=agent.command) as serving:
        try:
            yield serving, agent
        finally:
            tool_processes.kill_chosen(serving.home, lambda environment: True, tool_processes.KEPT)


def said(session: dict[str, Any], role: str = "assistant") -> list[str]:
    return [message["text"] for message in session["messages"] if message["role"] == role]


def approve(serving: Serving, session: dict[str, Any], **more: str) -> None:
    [question] = session["questions"]
    with serving.client() as client:
        answered = client.post(f"/api/approvals/{question['question_id']}", json={"verdict": "approve", **more})
    assert answered.status_code == 202, answered.text


def test_the_agent_does_not_notice_that_the_gateway_was_killed(tmp_path: Path) -> None:
    """P3, P5, P7: in its text, and while a permission is open."""
    with scripted(tmp_path) as (serving, agent):
        session_id = serving.new_session()
        serving.post(session_id, "count 30 0.06|tool ls|permit rm|say done")
        wait_until(lambda: "5 " in "".join(said(serving.session(session_id))))
        serving.kill()
        serving.start()
        waiting = serving.wait_for(session_id, state="waiting")
        serving.kill()
        serving.start()
        approve(serving, waiting)
        session = serving.wait_for(session_id)
        assert said(session) == [f"{NUMBERS} \n\nrm: once. done"]
        assert [turn["outcome"] for turn in session["turns"]] == ["completed"]
        calls = session["messages"][-1]["tool_calls"]
        assert [(call["name"], call["arguments"]["command"], call["outcome"]) for call in calls] == [
            ("execute", "ls", "done"),
            ("execute", "rm", "done"),
        ]
        assert agent.noted("deeds") == ["ls", "rm"] and agent.noted("permissions") == ["rm once"]
        assert len(agent.noted("lives")) == len(agent.noted("prompts")) == 1 and not agent.noted("garbage")


def test_a_hand_over_and_a_restart_leave_it_alone_and_an_operators_stop_ends_it(tmp_path: Path) -> None:
    """C24, C15"""
    with scripted(tmp_path) as (serving, agent):
        session_id = serving.new_session()
        serving.post(session_id, "count 30 0.05")
        wait_until(lambda: bool(said(serving.session(session_id))))
        hand_over(serving)
        assert said(serving.wait_for(session_id)) == [f"{NUMBERS} "]
        serving.post(session_id, "say again")
        assert said(serving.wait_for(session_id))[-1] == "again"
        assert len(agent.noted("lives")) == 1 and agent.lives
        assert holdfast(serving.home, "stop").code == 0
        wait_until(lambda: not agent.lives)


def test_a_killed_agent_is_started_again_and_loads_its_session(tmp_path: Path) -> None:
    """P3: in mid-turn, with a word to its people; and between two turns."""
    with scripted(tmp_path, "load") as (serving, agent):
        session_id = serving.new_session()
        serving.post(session_id, "say first")
        serving.wait_for(session_id)
        serving.post(session_id, "count 30 0.1|say never")
        wait_until(lambda: len(said(serving.session(session_id))) == 2)
        os.kill(agent.pid, signal.SIGKILL)
        session = serving.wait_for(session_id)
        [told] = said(session, "notice")
        assert told.startswith("The process of Scripted") and "signal 9" in told and told.endswith("it loaded its session.")
        assert [turn["outcome"] for turn in session["turns"]] == ["completed", "completed"] and agent.noted("lives")[2] == "session/load"
        os.kill(agent.pid, signal.SIGKILL)
        serving.post(session_id, "remember")
        assert "say first" in said(serving.wait_for(session_id))[-1]


def test_one_that_forgot_is_told_the_conversation_and_so_are_its_people(tmp_path: Path) -> None:
    """And an operator's stop ends it, also after the gateway's death (C15)."""
    with scripted(tmp_path, "load", "resume", "forgetful") as (serving, agent):
        session_id = serving.new_session()
        serving.post(session_id, "say first")
        serving.wait_for(session_id)
        os.kill(agent.pid, signal.SIGKILL)
        serving.post(session_id, "say second")
        session = serving.wait_for(session_id)
        assert said(session) == ["first", "second"]
        # The prompt may have come while its keeper did not know yet that it was dead.
        assert said(session, "notice")[-1] == "Scripted started a new session and was given the conversation so far."
        assert "You: first" in agent.noted("prompts")[-1]
        serving.kill()
        assert agent.lives and holdfast(serving.home, "stop").code == 0
        wait_until(lambda: not agent.lives)


def test_an_operators_stop_ends_it_also_if_it_is_configured_no_more(tmp_path: Path) -> None:
    """C15"""
    with scripted(tmp_path) as (serving, agent):
        session_id = serving.new_session()
        serving.post(session_id, "say first")
        serving.wait_for(session_id)
        serving.kill()
        with Serving(serving.home) as other:
            assert agent.lives and holdfast(other.home, "stop").code == 0
            wait_until(lambda: not agent.lives)


def test_a_stop_ends_its_work_also_if_it_does_not_listen(tmp_path: Path) -> None:
    """A21: its process is killed then, and the next message has another."""
    with scripted(tmp_path, "deaf", "load") as (serving, agent):
        session_id = serving.new_session()
        serving.post(session_id, "say one|sleep 60|tool never")
        wait_until(lambda: bool(said(serving.session(session_id))))  # The last letters wait: a secret might begin with them.
        with serving.client() as client:
            assert client.post(f"/api/sessions/{session_id}/stop", json={}).status_code == 202
        assert serving.wait_for(session_id)["turns"][0]["outcome"] == "cancelled"
        serving.post(session_id, "say two")
        assert said(serving.wait_for(session_id))[-1] == "two"
        assert agent.noted("deeds") == [] and len([life for life in agent.noted("lives") if life.isdigit()]) == 2


def test_an_agent_that_cannot_start_or_is_not_signed_in_says_what_to_do(tmp_path: Path) -> None:
    with scripted(tmp_path, "locked") as (serving, _):
        session_id = serving.new_session()
        serving.post(session_id, "say one")
        assert "it is not signed in. Run `scripted login`." in serving.wait_for(session_id)["turns"][0]["error"]
    with Serving(tmp_path / "other", agent_acp="/no/such/program acp") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "say one")
        assert "No such file or directory: /no/such/program" in serving.wait_for(session_id)["turns"][0]["error"]


def test_doctor_starts_the_program_and_says_what_it_can(tmp_path: Path) -> None:
    agent = Scripted(tmp_path / "agent", "load")
    found = holdfast(tmp_path / "home", "doctor", "--deep", HOLDFAST_AGENT_ACP=agent.command).out
    assert "Scripted answers; after its own end it loads its sessions" in found
    assert not agent.lives
    other = holdfast(tmp_path / "home", "doctor", "--deep", HOLDFAST_AGENT_ACP="true").out
    assert "it ended without an answer" in other
    assert "there is no program /no/such/program" in holdfast(tmp_path / "home", "doctor", HOLDFAST_AGENT_ACP="/no/such/program acp").out
