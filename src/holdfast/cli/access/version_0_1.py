"""A gateway of version 0.1 keeps serving after a later version is installed, until it is stopped. What it says, in the shapes of today."""

from typing import Any


def session(view: dict[str, Any]) -> dict[str, Any]:
    if "questions" in view:
        return view
    return view | {"questions": [view["question"]] if view["question"] else []}


def event(name: str, data: dict[str, Any]) -> dict[str, Any]:
    if name == "snapshot":
        return session(data)
    if name == "turn.started" and "causes" not in data:
        return data | {"causes": data["message_ids"]}
    if name == "text" and "step" not in data:
        return data | {"step": 0}
    return data
