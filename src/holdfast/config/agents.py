"""`[agents.NAME]`: more agents than the one of `[agent]`, which a conversation may choose by name."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.config import agent as agents
from holdfast.config.agent import Agent
from holdfast.config.errors import BadConfig

MOST_AGENTS = 50
# No name of a model looks like this: those have a colon. No number does either, because agents can be chosen by their number.
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*")
_LONGEST_NAME = 40
# By these names something else is chosen: the default, and by OpenAI-compatible clients whatever a conversation has chosen.
_TAKEN = ("default", "holdfast")
KINDS = ("model", "module", "acp", "demo")
_OF_MODELS = ("fallbacks", "base_url", "api_key_file", "instructions", "instructions_file")


class NamedAgent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of `model`, `module`, `acp` and `demo` says what kind it is. `docs/models.md` says what each setting does."""

    model: str = ""
    fallbacks: tuple[str, ...] = ()
    base_url: str = ""
    api_key_file: str = ""
    instructions: str = ""
    instructions_file: str = ""
    module: str = ""
    acp: str = ""
    demo: bool = False

    @property
    def kind(self) -> str:
        return next(kind for kind in KINDS if getattr(self, kind))


def read(given: Any, source: str, path: Path) -> dict[str, NamedAgent]:
    """Of a configuration, by name, in order. Raises `BadConfig`."""
    if not isinstance(given, dict) or not all(isinstance(table, dict) for table in given.values()):
        raise BadConfig(f"Invalid agents (from {source}). Write a table [agents.NAME] for each agent; docs/models.md has examples.")
    found: dict[str, NamedAgent] = {}
    for name, table in given.items():
        if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME or name in _TAKEN:
            raise BadConfig(
                f"Invalid name in [agents.{name}]. It must be at most {_LONGEST_NAME} small letters and digits, beginning with a letter,"
                f" with single - or _ between them, and not {' or '.join(_TAKEN)}."
            )
        agents.refuse_keys(table, path)
        try:
            found[name] = msgspec.convert(table, NamedAgent, strict=False)
        except msgspec.ValidationError as error:
            raise BadConfig(f"Invalid [agents.{name}] (from {source}): {error}.") from None
    return found


def check(named: Mapping[str, NamedAgent], agent: Agent) -> None:
    """Raises `BadConfig`. `agent`: that of `[agent]`."""
    if len(named) > MOST_AGENTS:
        raise BadConfig(f"There are {len(named)} tables [agents.NAME], and at most {MOST_AGENTS} are allowed. Remove some.")
    for name, each in named.items():
        kinds = [kind for kind in KINDS if getattr(each, kind)]
        if len(kinds) != 1:
            raise BadConfig(f"[agents.{name}] needs exactly one of {', '.join(KINDS[:-1])} and {KINDS[-1]}.")
        if each.kind != "model" and (wrong := [field for field in _OF_MODELS if getattr(each, field)]):
            raise BadConfig(f"[agents.{name}] has no model, and only a model has {' and '.join(wrong)}. Remove that.")
        agents.check(as_agent(each, agent), where=f"agents.{name}")


def as_agent(named: NamedAgent, agent: Agent) -> Agent:
    """The settings of an agent of its own, as if it stood in `[agent]`. What says how a provider is reached, and what it takes, counts for
    this one too if it asks the same provider at the same address; a key goes to no other.
    """
    shares = bool(named.model) and _provider(named.model) == _provider(agent.model) and named.base_url in ("", agent.base_url)
    return msgspec.structs.replace(
        agent,
        model=named.model,
        models=(),
        fallbacks=named.fallbacks,
        base_url=agent.base_url if shares else named.base_url,
        api_key_file=named.api_key_file or (agent.api_key_file if shares else ""),
        instructions=named.instructions,
        instructions_file=named.instructions_file,
        module=named.module,
        acp=named.acp,
        takes=agent.takes if shares else None,
        extra=agent.extra if shares else {},
        transcriber="",
        title_model="",
    )


def unread_instructions(agent: Agent, named: Mapping[str, NamedAgent], home: Path) -> Iterator[str]:
    """For each `instructions_file` that cannot be read: which one, and why. A model that is not told its work does something else."""
    tables = {"agent": agent.instructions_file} | {f"agents.{name}": each.instructions_file for name, each in named.items()}
    for table, file in tables.items():
        if not file:
            continue
        try:
            with (home / file).open("rb") as opened:
                opened.read(1)
        except OSError as error:
            yield f"{table}.instructions_file is {home / file}, which cannot be read: {error.strerror or error}."


def key(named: NamedAgent, agent: Agent, home: Path, environment: Mapping[str, str]) -> str | None:
    """The key of its model's provider; None: the provider's own variable counts. Raises `BadConfig`."""
    alone = as_agent(named, agent)
    if alone.api_key_file:
        return agents.key(alone, home, environment)
    shares = _provider(named.model) == _provider(agent.model) and alone.base_url == agent.base_url
    return agents.key(agent, home, environment) if shares else None


def _provider(model: str) -> str:
    return model.partition(":")[0]
