"""Open questions for reading at a terminal: how each one is answered."""

from typing import Any

from holdfast.core.texts import visible


def is_approval(question: dict[str, Any]) -> bool:
    """As a session shows it, or as it was asked."""
    return "approval" in (question.get("kind"), question.get("form"))


def how_to_judge(question: dict[str, Any]) -> list[str]:
    """The commands that answer an approval."""
    name, pattern = question["question_id"], question.get("pattern")
    always = [f"`holdfast approve {name} --always` also allows {visible(pattern)} in this conversation from now on"] if pattern else []
    return [f"`holdfast approve {name}` runs it once", *always, f"`holdfast deny {name} --reason TEXT` refuses it"]
