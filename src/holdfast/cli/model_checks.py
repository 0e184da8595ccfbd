"""The checks of `holdfast doctor` about agents: whether their instructions can be read; whether each model's provider is known, has a key,
answers, and has a known price and window; whether agents of one's own can be loaded; and whether agents that are other programs
are installed and answer.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from holdfast import config
from holdfast.cli.findings import Finding
from holdfast.config import agents as named_agents
from holdfast.config.agent import words
from holdfast.core.errors import Refused

SET_UP = "`holdfast setup` asks for a key and tries it."
SERVED = (
    "Set agent.window to the length that the server was started with. Ollama, for one, cuts what is longer without a word; its own setting"
    " is OLLAMA_CONTEXT_LENGTH."
)


class Asked(NamedTuple):
    """The models of one table: `[agent]`, or `[agents.NAME]` with the name `where`. `key`: reads their key."""

    where: str
    agent: config.Agent
    key: Callable[[], str | None]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.agent.choices, *self.agent.fallbacks, *filter(None, [self.agent.title_model]))))


def run_all(settings: config.Config, *, gateway_alive: bool, deep: bool, folder: Path) -> Iterator[Finding]:
    """`deep` asks every model, loads every module from `folder`, where Holdfast is started, and starts every program. `gateway_alive`: it
    may have variables that are not set here.
    """
    if not config.choices(settings):
        yield Finding("model", "ok", "none, so the demo agent answers; `holdfast setup` chooses one")
    if settings.agent.module:
        yield _module(settings.agent.module, deep, folder)
    if settings.agent.acp:
        yield _program(settings.agent.acp, deep)
    for name, named in settings.agents.items():
        if named.acp:
            yield _program(named.acp, deep, name)
        elif named.module:
            yield _module(named.module, deep, folder, name)
        elif named.demo:
            yield Finding("agent", "ok", f"{name} is the demo agent")
    for problem in named_agents.unread_instructions(settings.agent, settings.agents, settings.home):
        yield Finding("instructions", "fail", problem, "Until it can be, the model gets Holdfast's own instructions. Write the file.")
    asked = list(_asked(settings))
    for each in asked:
        yield from _models(each, gateway_alive, deep)
    if settings.agent.transcriber:
        yield _transcriber(asked[0], gateway_alive, deep)
    yield from _prices(asked)
    yield from _windows(asked)


def _asked(settings: config.Config) -> Iterator[Asked]:
    agent, home = settings.agent, settings.home
    if agent.model:
        yield Asked("", agent, partial(config.model_key, agent, home, os.environ))
    for name, named in settings.agents.items():
        if named.model:
            key = partial(named_agents.key, named, agent, home, os.environ)
            yield Asked(name, named_agents.as_agent(named, agent), key)


def _program(command: str, deep: bool, name: str = "") -> Finding:
    """An agent that is another program (ACP)."""
    line = words(command)
    told = f"{name} is {command}" if name else command
    if shutil.which(line[0]) is None:
        return Finding("agent", "fail", f"{told}: there is no program {line[0]}", "Install it, or write its whole path in acp.")
    if not deep:
        return Finding("agent", "ok", f"{told}; --deep starts it")
    from holdfast.cli import models

    try:
        introduced = models.introduces_itself(line, os.environ)
    except Refused as error:
        return Finding("agent", "fail", f"{told}: {error}.", "Run it in a terminal, and see that it is the command of an ACP agent.")
    return Finding("agent", "ok", f"{told}: {introduced}")


def _module(module: str, deep: bool, folder: Path, name: str = "") -> Finding:
    told = f"{name} is {module}" if name else module
    if not deep:
        return Finding("agent", "ok", f"{told}; --deep loads it")
    from holdfast.cli import models

    began = time.monotonic()
    try:
        models.loads(module, folder)
    except Refused as error:
        return Finding("agent", "fail", f"{name}: {error}" if name else str(error), f"It is looked for in {folder} and on PYTHONPATH.")
    return Finding("agent", "ok", f"{told}, which can be loaded ({time.monotonic() - began:.1f} s)")


def _models(asked: Asked, gateway_alive: bool, deep: bool) -> Iterator[Finding]:
    try:
        key = asked.key()
    except config.BadConfig as error:
        yield Finding("model", "fail", str(error))
        return
    for name in asked.names:
        yield _model(asked, name, key, gateway_alive, deep)


def _model(asked: Asked, name: str, key: str | None, gateway_alive: bool, deep: bool) -> Finding:
    from holdfast.cli import models  # Most homes have no model.

    agent, told = asked.agent, f"{name}{f' of {asked.where}' if asked.where else ''}"
    source = _source(asked, name)
    if source is None:
        return _no_key(asked, name, gateway_alive)
    began = time.monotonic()
    try:
        if not deep:
            models.check(agent, name, key=key, environment=os.environ)
            return Finding("model", "ok", f"{told}{f', with the key in {source}' if source else ''}; --deep tries it with one request")
        models.answers(agent, name, key=key, environment=os.environ)
    except Refused as error:
        return Finding("model", "fail", str(error))
    return Finding("model", "ok", f"{told} answers ({time.monotonic() - began:.1f} s)")


def _source(asked: Asked, name: str) -> str | None:
    """Where the key of a model comes from; empty if it needs none, None if there is none."""
    from holdfast.cli import models

    provider = models.provider_of(name)
    variable = models.key_variable(provider)
    own = provider == models.provider_of(asked.agent.model)
    names = (asked.agent.api_key_file, config.MODEL_KEY) if own else ()
    found = next((each for each in (*names, variable) if each and (each == asked.agent.api_key_file or os.environ.get(each))), "")
    return None if variable and not found else found


def _no_key(asked: Asked, name: str, gateway_alive: bool) -> Finding:
    from holdfast.cli import models

    provider = models.provider_of(name)
    own = provider == models.provider_of(asked.agent.model) and not asked.where
    variable = models.key_variable(provider)
    places = f"neither agent.api_key_file nor {config.MODEL_KEY} nor {variable} is set here" if own else f"{variable} is not set here"
    return Finding("model", "warn" if gateway_alive else "fail", f"There is no key for {name}: {places}.", SET_UP if own else "Set it.")


def _transcriber(asked: Asked, gateway_alive: bool, deep: bool) -> Finding:
    from holdfast.cli import models

    name = asked.agent.transcriber
    if _source(asked, name) is None:
        return _no_key(asked, name, gateway_alive)
    began = time.monotonic()
    try:
        key = asked.key()
        if not deep:
            models.check_transcriber(asked.agent, key=key, environment=os.environ)
            return Finding("transcriber", "ok", f"{name}; --deep tries it with a second of silence")
        models.hears(asked.agent, key=key, environment=os.environ)
    except Refused as error:
        return Finding("transcriber", "fail", str(error))
    return Finding("transcriber", "ok", f"{name} answers ({time.monotonic() - began:.1f} s)")


def _prices(asked: list[Asked]) -> Iterator[Finding]:
    """What runs at home costs nothing by the token, so only models of providers with keys are missed."""
    from holdfast.cli import models

    paid = {name: each.agent for each in asked for name in each.names if models.key_variable(models.provider_of(name))}
    unknown = [name for name, agent in paid.items() if not models.price_known(agent, name)]
    if unknown:
        advice = f'Install the extra (`pip install "holdfast[prices]"`), or set [agent.prices."{unknown[0]}"]; docs/models.md says how.'
        yield Finding("prices", "warn", f"No price is known for {', '.join(unknown)}, so limits of money do not count it.", advice)
    elif paid:
        yield Finding("prices", "ok", "known for every model that needs a key")


def _windows(asked: list[Asked]) -> Iterator[Finding]:
    from holdfast.cli import models

    assumed = {name: window for each in asked for name in each.names if (window := models.window(each.agent, name))}
    if assumed:
        told = f"How much {' and '.join(assumed)} can be given is not known, so {next(iter(assumed.values())):,} tokens are assumed."
        yield Finding("window", "warn", told, SERVED)
