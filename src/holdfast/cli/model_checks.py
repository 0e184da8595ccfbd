"""The checks of `holdfast doctor` about models: whether each one's provider is known, has a key, answers, and has a known price."""

import os
import time
from collections.abc import Iterator

from holdfast import config
from holdfast.cli.findings import Finding
from holdfast.core.errors import Refused

SET_UP = "`holdfast setup` asks for a key and tries it."


def run_all(settings: config.Config, *, gateway_alive: bool, deep: bool) -> Iterator[Finding]:
    """`deep` asks every model. `gateway_alive`: it may have variables that are not set here."""
    agent = settings.agent
    if agent.module:
        yield Finding("model", "ok", f"none of ours; the agent {agent.module} answers")
        return
    if not agent.model:
        yield Finding("model", "ok", "none, so the demo agent answers; `holdfast setup` chooses one")
        return
    try:
        key = config.model_key(agent, settings.home, os.environ)
    except config.BadConfig as error:
        yield Finding("model", "fail", str(error))
        return
    names = tuple(dict.fromkeys((*agent.choices, *agent.fallbacks)))
    for name in names:
        yield _model(settings, name, key, gateway_alive, deep)
    yield from _prices(agent, names)


def _model(settings: config.Config, name: str, key: str | None, gateway_alive: bool, deep: bool) -> Finding:
    from holdfast.cli import models  # Most homes have no model.

    agent, provider = settings.agent, models.provider_of(name)
    own = provider == models.provider_of(agent.model)
    variable = models.key_variable(provider)
    names = (agent.api_key_file, config.MODEL_KEY) if own else ()
    source = next((each for each in (*names, variable) if each and (each == agent.api_key_file or os.environ.get(each))), "")
    if variable and not source:
        places = f"neither agent.api_key_file nor {config.MODEL_KEY} nor {variable} is set here" if own else f"{variable} is not set here"
        return Finding("model", "warn" if gateway_alive else "fail", f"There is no key for {name}: {places}.", SET_UP if own else "Set it.")
    began = time.monotonic()
    try:
        if not deep:
            models.check(agent, name, key=key, environment=os.environ)
            told = f", with the key in {source}" if source else ""
            return Finding("model", "ok", f"{name}{told}; --deep tries it with one request")
        models.answers(agent, name, key=key, environment=os.environ)
    except Refused as error:
        return Finding("model", "fail", str(error))
    return Finding("model", "ok", f"{name} answers ({time.monotonic() - began:.1f} s)")


def _prices(agent: config.Agent, names: tuple[str, ...]) -> Iterator[Finding]:
    """What runs at home costs nothing by the token, so only models of providers with keys are missed."""
    from holdfast.cli import models

    paid = [name for name in names if models.key_variable(models.provider_of(name))]
    unknown = [name for name in paid if not models.price_known(agent, name)]
    if unknown:
        advice = f'Install the extra (`pip install "holdfast[prices]"`), or set [agent.prices."{unknown[0]}"]; docs/models.md says how.'
        yield Finding("prices", "warn", f"No price is known for {', '.join(unknown)}, so limits of money do not count it.", advice)
    elif paid:
        yield Finding("prices", "ok", "known for every model that needs a key")
