"""Approving calls of the demo agent from the command line, beside a real gateway and over its death (R5, P5)."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command_line import Said, holdfast
from tests.e2e.serving import ROOT, Serving, wait_until


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    with Serving(tmp_path / "home") as running:
        yield running


def asked(serving: Serving, text: str, session: str = "new") -> tuple[str, str]:
    """The session and the approval that a message leads to."""
    said = holdfast(serving.home, "send", session, text)
    assert said.code == 0 and "May I run `terminal`" in said.out
    [approval] = set(re.findall(r"approve (q_\w+)", said.err))
    return session if session != "new" else said.err.split()[1], approval


def ends(serving: Serving, session_id: str) -> Said:
    wait_until(lambda: holdfast(serving.home, "show", session_id, "--json").json["state"] == "idle")
    return holdfast(serving.home, "show", session_id)


def test_a_command_waits_for_its_approval_over_a_death_and_runs_once(serving: Serving, tmp_path: Path) -> None:
    """R5, P5: and without a running gateway it is shown whole."""
    line = f"echo once >> {tmp_path / 'done'}; echo héllo"
    session_id, approval = asked(serving, f"approve {line}")
    serving.kill()
    shown = holdfast(serving.home, "show", session_id)
    assert line in shown.out.replace("\n  ", "") and f"holdfast approve {approval}" in shown.out and not (tmp_path / "done").exists()
    assert holdfast(serving.home, "approve", approval).code == 1
    serving.start()
    said = holdfast(serving.home, "approve", approval)
    assert said.code == 0 and said.out.startswith("Approved.")
    assert "héllo" in ends(serving, session_id).out
    assert (tmp_path / "done").read_text() == "once\n"
    late = holdfast(serving.home, "approve", approval)
    assert late.code == 1 and "cannot be answered any more" in late.err


def test_a_denied_command_does_not_run_and_a_rule_is_listed_and_removed(serving: Serving, tmp_path: Path) -> None:
    session_id, approval = asked(serving, f"approve touch {tmp_path / 'no'}")
    assert holdfast(serving.home, "deny", approval, "--reason", "not here").code == 0
    assert "not here" in ends(serving, session_id).out and not (tmp_path / "no").exists()
    assert "No rules" in holdfast(serving.home, "rules").out
    session_id, approval = asked(serving, "approve echo one", session_id)
    assert holdfast(serving.home, "approve", approval, "--always").code == 0
    ends(serving, session_id)
    [rule] = holdfast(serving.home, "rules", "--json").json["rules"]
    assert rule["pattern"] == "terminal(echo *)" and "terminal(echo *)" in holdfast(serving.home, "rules", "--session", session_id).out
    assert holdfast(serving.home, "send", session_id, "approve echo two").out == "Done.\n"
    assert holdfast(serving.home, "rules", "--remove", rule["rule_id"]).code == 0
    asked(serving, "approve echo three", session_id)


def test_the_commands_about_approvals_in_the_documentation_do_what_they_say(serving: Serving) -> None:
    text = (ROOT / "docs" / "security.md").read_text()
    [block] = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    approval, said = "", []
    for line in block.splitlines():
        program, *words = shlex.split(line.replace("q_ID", approval))
        said.append(holdfast(serving.home, *words))
        assert program == "holdfast" and said[-1].code == 0, (line, said[-1])
        if words[0] == "send":
            [approval] = set(re.findall(r"approve (q_\w+)", said[-1].err))
        else:
            wait_until(lambda: holdfast(serving.home, "show", "last", "--json").json["state"] == "idle")
    listed = said[-2].out.splitlines()
    assert listed[0].split() == ["RULE", "ALLOWS", "SESSION", "BY", "SINCE", "UNTIL"] and "terminal(ls *)" in listed[1]
    assert listed[1].endswith("reset") and said[-1].out.startswith("Removed terminal(ls *)")
    assert "No rules" in holdfast(serving.home, "rules").out
    assert "not here" in holdfast(serving.home, "show", "last").out
