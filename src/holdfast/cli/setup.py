"""What `holdfast setup` does: asks which model is wanted, tries it, and writes it down. Before the model has answered, nothing is
written.
"""

import os
import time
from pathlib import Path

import click
import msgspec

from holdfast import config, files
from holdfast.cli import models
from holdfast.cli.access import running
from holdfast.cli.models import PROVIDERS
from holdfast.cli.options import chosen_home, keep_files_private
from holdfast.cli.terminal.output import complain, note, say
from holdfast.config import Agent, writing
from holdfast.config import agent as agents
from holdfast.core.errors import Refused

LISTED = 30
# In the place of a model that is still to be chosen.
UNKNOWN = "?"
# What is written to the file. Variables of these settings win over it.
WRITTEN = ("model", "base_url", "api_key_file")
VARIABLES = {name: config.VARIABLES[f"agent.{name}"] for name in WRITTEN}


class NotSetUp(Refused):
    code = "not_set_up"

    def __init__(self, why: str) -> None:
        super().__init__(f"{why} Nothing was written.")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says. `key_for`: the only provider that gets this key; None: whichever is chosen. `asks`: a person is there who
    can say the rest.
    """

    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    key: str | None = None
    key_for: str | None = None
    asks: bool


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """`agent`: the settings as they will be. `key`: a new one; None if the one that is there stays."""

    agent: Agent
    key: str | None


def run(wanted: Wanted) -> None:
    """Raises `NotSetUp`, `BadConfig` or `UsageError`."""
    file = {name: value for name, value in os.environ.items() if name not in VARIABLES.values()}
    settings = config.load(file, home=chosen_home())
    before, home = settings.agent, settings.home
    while True:
        chosen = _choose(wanted, settings, before)
        try:
            chosen = _with_model(wanted, chosen, home)
            _edit(chosen.agent, home)  # A file that cannot be edited is told before anything is asked.
            _try(chosen, home)
            break
        except models.NoAnswer as error:
            if not wanted.asks:
                raise NotSetUp(str(error)) from error
            complain(str(error))
            if not click.confirm("Try again?", default=True):
                note("Nothing was written.")
                raise click.exceptions.Exit(1) from error
            # What was chosen is what Enter chooses again. A key that may be right is not asked for twice.
            before = chosen.agent
            wanted = Wanted(asks=True, key=None if error.wrong_key else chosen.key, key_for=_provider(before))
    _write(chosen, home)


def _choose(wanted: Wanted, settings: config.Config, before: Agent) -> Chosen:
    """The provider, its address and the key; the model may still be missing. `before`: what was chosen last."""
    provider, model = _named(wanted, before)
    base_url = wanted.base_url or (before.base_url if provider == _provider(before) else "")
    known = PROVIDERS.get(provider)
    if known is not None and known.base_url is None and not wanted.base_url and not os.environ.get(VARIABLES["base_url"]):
        base_url = base_url if base_url and not wanted.asks else _ask(wanted, "Address of the server", "--base-url URL", base_url or None)
    if "@" in base_url.partition("://")[2].partition("/")[0]:
        raise NotSetUp(
            "The address holds a name or password, which does not belong in config.toml. Give it without, and the key by itself."
        )
    file = f"{provider}.key"
    there = file if (settings.home / file).exists() else ""
    kept = settings.agent.api_key_file if provider == _provider(settings.agent) else there
    agent = msgspec.structs.replace(settings.agent, model=f"{provider}:{model or UNKNOWN}", base_url=base_url, api_key_file=kept)
    key = (wanted.key if wanted.key_for in (None, provider) else None) or _ask_key(wanted, agent)
    return Chosen(agent=msgspec.structs.replace(agent, api_key_file=file) if key else agent, key=key)


def _provider(agent: Agent) -> str | None:
    return models.provider_of(agent.model) if agent.model else None


def _with_model(wanted: Wanted, chosen: Chosen, home: Path) -> Chosen:
    provider, _, model = chosen.agent.model.partition(":")
    if model == UNKNOWN:
        model = _ask_model(wanted, chosen, home)
        chosen = Chosen(agent=msgspec.structs.replace(chosen.agent, model=f"{provider}:{model}"), key=chosen.key)
    agents.check(chosen.agent)
    return chosen


def _named(wanted: Wanted, before: Agent) -> tuple[str, str]:
    """Provider and model. The model may be given as PROVIDER:NAME, and a name may hold colons itself."""
    if wanted.provider:
        provider = wanted.provider.strip().lower()
        return provider, (wanted.model or "").removeprefix(f"{provider}:")
    if wanted.model:
        provider, colon, model = wanted.model.partition(":")
        if not colon:
            raise click.UsageError(f"Name the provider of {wanted.model!r} too: --provider NAME, or --model PROVIDER:NAME.")
        return provider.strip().lower(), model
    if not wanted.asks:
        raise click.UsageError("Give --provider NAME.")
    return _ask_provider(_provider(before)), ""


def _ask_provider(default: str | None) -> str:
    """One of those that Holdfast knows itself; others are named by an option."""
    known = PROVIDERS.items()
    for names, what in (
        ([name for name, each in known if each.key_variable], "with a key"),
        ([name for name, each in known if each.base_url and not each.key_variable], "on this machine"),
        ([name for name, each in known if not each.base_url], "any other server, by its address"),
    ):
        click.echo(f"  {', '.join(names)} {click.style(f'({what})', dim=True)}")
    kind = click.Choice(list(PROVIDERS), case_sensitive=False)
    return str(click.prompt("Provider", type=kind, show_choices=False, default=default if default in PROVIDERS else None))


def _ask(wanted: Wanted, question: str, option: str, default: str | None = None) -> str:
    if not wanted.asks:
        raise click.UsageError(f"Give {option}.")
    return str(click.prompt(question, default=default)).strip()


def _ask_key(wanted: Wanted, agent: Agent) -> str | None:
    """A new key; None if there is one already, or if none is needed."""
    variable = models.key_variable(models.provider_of(agent.model))
    there = agent.api_key_file or next((name for name in (config.MODEL_KEY, variable) if name and os.environ.get(name)), "")
    if wanted.asks and (variable or agent.base_url):
        hint = f"not shown; Enter keeps the one in {there}" if there else "not shown" if variable else "not shown; Enter if it needs none"
        given = str(click.prompt(f"Key ({hint})", hide_input=True, default="", show_default=False)).strip()
        if given:
            return given
    if variable and not there:
        name = models.provider_of(agent.model)
        raise NotSetUp(f"There is no key for {name}. Give it with --key-file PATH or --key-stdin, or set {variable}.")
    return None


def _ask_model(wanted: Wanted, chosen: Chosen, home: Path) -> str:
    """From the provider's list, if it has one."""
    names = models.offered(_used(chosen), chosen.agent.model, key=_key(chosen, home), environment=os.environ)
    if not wanted.asks:
        raise click.UsageError("Give --model NAME." + (f" There is: {', '.join(names[:LISTED])}." if names else ""))
    for number, name in enumerate(names[:LISTED], 1):
        click.echo(f"  {number:>2}  {name}")
    if len(names) > LISTED:
        click.echo(click.style(f"      and {len(names) - LISTED} more", dim=True))
    given = str(click.prompt("Model (name or number)" if names else "Model (its name at the provider)")).strip()
    if given.isdecimal() and 1 <= int(given) <= len(names):
        return names[int(given) - 1]
    return given.removeprefix(f"{models.provider_of(chosen.agent.model)}:")


def _used(chosen: Chosen) -> Agent:
    """The settings that a gateway started from here would have: a variable may say another address."""
    return msgspec.structs.replace(chosen.agent, base_url=os.environ.get(VARIABLES["base_url"]) or chosen.agent.base_url)


def _key(chosen: Chosen, home: Path) -> str | None:
    return chosen.key or config.model_key(chosen.agent, home, os.environ)


def _try(chosen: Chosen, home: Path) -> None:
    note(f"Trying {chosen.agent.model} with one request ...")
    began = time.monotonic()
    models.answers(_used(chosen), chosen.agent.model, key=_key(chosen, home), environment=os.environ)
    say(f"It answers ({time.monotonic() - began:.1f} s).")


def _write(chosen: Chosen, home: Path) -> None:
    """First the key, then the settings that name its file: a kill in between leaves a file that nothing names."""
    agent = chosen.agent
    keep_files_private()
    config.prepare_home(home)
    edit = _edit(agent, home)
    if chosen.key:
        files.replace(home / agent.api_key_file, chosen.key + "\n")
    edit.make()
    say(f"{'Written to' if edit.changes else 'Already in'} {home / config.FILE}:")
    click.echo("\n".join(("  [agent]", *(f'  {name} = "{value}"' for name, value in _values(agent).items() if value))))
    if chosen.key:
        say(f"The key is in {home / agent.api_key_file}; only you can read it.")
    elif not agent.api_key_file:
        _say_where_the_key_is(agent)
    for variable in VARIABLES.values():
        if os.environ.get(variable):
            note(f"{variable} is set here and wins over that file. Unset it where Holdfast is started.")
    alive = running.find(home).alive
    say("Next: `holdfast restart`; it interrupts no answer." if alive else "Next: `holdfast serve`.")


def _values(agent: Agent) -> dict[str, str | None]:
    return {name: getattr(agent, name) or None for name in WRITTEN}


def _edit(agent: Agent, home: Path) -> writing.Edit:
    return writing.Edit(home / config.FILE, "agent", _values(agent))


def _say_where_the_key_is(agent: Agent) -> None:
    names = (config.MODEL_KEY, models.key_variable(models.provider_of(agent.model)))
    if there := next((name for name in names if name and os.environ.get(name)), None):
        note(f"The key stays in {there}, which must be set wherever Holdfast is started.")
