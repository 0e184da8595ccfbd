"""Which of the configured models and agents a person means, and what is said about the choice. They are in one list; names of models have
a colon (PROVIDER:NAME), names of agents have none.
"""

from collections.abc import Sequence

from holdfast.core.errors import BadInput, Refused


class UnknownModel(BadInput):
    code = "unknown_model"

    def __init__(self, wanted: str, models: Sequence[str]) -> None:
        if models:
            told = f"{wanted!r} is not one of the models to choose from: {', '.join(models)}."
        else:
            told = f"{wanted!r} cannot be chosen: no model is set up here. Name one in [agent] in config.toml."
        super().__init__(told)


class AgentGone(Refused):
    """A conversation chose it, and its configuration has changed since."""

    code = "agent_gone"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The agent {name!r}, which was chosen for this conversation, is not set up any more. Choose another one with /model, and send"
            " the message again."
        )


def is_agent(name: str) -> bool:
    """Whether it is an agent of its own, and no model."""
    return ":" not in name


def pick(wanted: str, models: Sequence[str]) -> str:
    """By its name, its number in the list, or a part of its name that only one of them has. Raises `UnknownModel`."""
    if wanted in models:
        return wanted
    if wanted.isdecimal() and 1 <= int(wanted[:9]) <= len(models):
        return models[int(wanted[:9]) - 1]
    found = [model for model in models if wanted and wanted.lower() in model.lower()]
    if len(found) == 1:
        return found[0]
    raise UnknownModel(wanted, models)


def listed(models: Sequence[str], chosen: str | None) -> str:
    """The models and agents of a list, the first of which is the default, and which one answers here."""
    if not models:
        return "No model can be chosen here. The person who runs this Holdfast can name some in [agent] in config.toml."
    gone = chosen is not None and chosen not in models
    current = models[0] if chosen is None or (gone and not is_agent(chosen)) else chosen
    marks = {models[0]: " (default)"}
    lines = [
        f"{number}. {model}{marks.get(model, '')}{' - answers here' if model == current else ''}" for number, model in enumerate(models, 1)
    ]
    if current not in models:
        lines.append(f"\n{current}, which was chosen for this conversation, is not set up any more: nothing is answered here.")
    return "\n".join(lines) + "\n\n/model NAME or /model NUMBER chooses one for this conversation."


def chose(model: str) -> str:
    return f"From the next message on {model} answers in this conversation."
