"""`[agent]`: which agent answers, with which models, and where their keys come from. A key is never a setting, so that nobody pastes it."""

import math
import os
import re
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from holdfast.config.errors import BadConfig

if TYPE_CHECKING:
    from holdfast.core.events import Usage

KEY = "HOLDFAST_MODEL_API_KEY"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
# Below this nothing but the instructions would fit.
LEAST_WINDOW = 1000
# What a model may take besides text.
KINDS = ("image", "audio", "file")
# What Holdfast itself says in every request.
OURS = frozenset({"model", "messages", "input", "instructions", "system", "tools", "stream", "store"})
# `openai:NAME` and so on; `chat:NAME` is any server that speaks chat completions.
_MODEL = re.compile(r"[a-z][a-z0-9_-]*:\S+")


class ModelPrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model costs, in US dollars for a million tokens, and its window in tokens. `cached`: what its provider had kept, `stored`:
    what it keeps from then on; both cost as much as other input where nothing is set.
    """

    input: float | None = None
    output: float | None = None
    cached: float | None = None
    stored: float | None = None
    window: int | None = None

    @property
    def priced(self) -> bool:
        return self.input is not None and self.output is not None

    def cost(self, usage: "Usage") -> float:
        """In millionths of a US dollar."""
        plain = self.input or 0.0
        cached, stored = (plain if price is None else price for price in (self.cached, self.stored))
        rest = max(0, usage.input - usage.cached - usage.stored)
        return rest * plain + usage.cached * cached + usage.stored * stored + usage.output * (self.output or 0.0)


class Agent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`model`: PROVIDER:NAME; without one, and without a `module` or `acp`, the demo agent answers. `models`: what a conversation may
    choose besides it. `docs/operations.md` says what each one does.
    """

    model: str = ""
    fallbacks: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    base_url: str = ""
    api_key_file: str = ""
    instructions: str = ""
    instructions_file: str = ""
    module: str = ""
    acp: str = ""
    acp_idle_s: float = 900.0
    max_tokens: int | None = None
    temperature: float | None = None
    effort: str = ""
    timeout_s: float = 300.0
    max_steps: int = 250
    takes: tuple[str, ...] | None = None
    extra: dict[str, Any] = {}
    transcriber: str = ""
    titles: bool | None = None
    title_model: str = ""
    window: int | None = None
    prices: dict[str, ModelPrice] = {}

    @property
    def program(self) -> str | None:
        """The name by which conversations choose the agent of `acp`. The colon keeps it apart from names in `[agents]`."""
        return f"acp:{_called(words(self.acp))}" if self.acp else None

    @property
    def choices(self) -> tuple[str, ...]:
        """The models that a conversation may choose, the configured one first."""
        return tuple(dict.fromkeys(name for name in (self.model, *self.models) if name))


def words(command: str) -> list[str]:
    """A command line, as a shell would split it. Raises `BadConfig`."""
    try:
        found = shlex.split(command)
    except ValueError as error:
        raise BadConfig(f"Invalid acp {command!r}: {error}. Write the program and its arguments, as at a terminal.") from None
    if not found:
        raise BadConfig("acp is empty. Write the program and its arguments, for example opencode acp.")
    return found


# Programs that only run another one, which is named after them.
_RUNNERS = frozenset({"env", "npx", "bunx", "pnpx", "uvx", "nice", "nohup"})


def _called(command: list[str]) -> str:
    """The name of a program for people."""
    telling = (Path(word).name for word in command if "=" not in word and not word.startswith("-"))
    return next((name for name in telling if name not in _RUNNERS), Path(command[0]).name)


# Servers that people run on their own machine, where no address is given.
_LOCAL = ("ollama", "llamacpp", "lmstudio")


def wants_titles(agent: Agent) -> bool:
    """Not set: unless the model is on this machine. Such a server answers one request after the other, and a title would hold up the next
    answer.
    """
    if agent.titles is not None:
        return agent.titles
    host = urlsplit(agent.base_url).hostname
    return host not in LOOPBACK if host else agent.model.partition(":")[0] not in _LOCAL


# Those that are written most have a shorter variable.
VARIABLES = {"agent.model": "HOLDFAST_MODEL", "agent.base_url": "HOLDFAST_MODEL_BASE_URL"}


def check(agent: Agent, where: str = "agent") -> None:
    """Raises `BadConfig`. `where`: the table it stands in."""
    table = f"[{where}]"
    for name in (*agent.choices, *agent.fallbacks, *filter(None, [agent.transcriber, agent.title_model])):
        if not _MODEL.fullmatch(name):
            raise BadConfig(f"Invalid model {name!r} in {table}. It must be PROVIDER:NAME, for example anthropic:claude-sonnet-4-5.")
    if agent.acp:
        words(agent.acp)
    kinds = [kind for kind in ("model", "module", "acp") if getattr(agent, kind)]
    if len(kinds) > 1:
        second = f"{'an' if kinds[1] == 'acp' else 'a'} {kinds[1]}"
        raise BadConfig(
            f"[agent] has both a {kinds[0]} and {second}. Keep the one that answers by default, and write the other one in a table"
            " [agents.NAME], so that a conversation can choose it."
        )
    if agent.module and not re.fullmatch(r"[\w.]+:\w+", agent.module):
        raise BadConfig(f"Invalid {where}.module {agent.module!r}. It must be MODULE:OBJECT, for example my_agent:agent.")
    if agent.transcriber and not agent.model:
        raise BadConfig("[agent] has a transcriber but no model. Set model to the one that answers, or remove transcriber.")
    if agent.title_model and not agent.model:
        raise BadConfig("[agent] has a title_model but no model. Set model to the one that answers, or remove title_model.")
    if (agent.fallbacks or agent.models) and not agent.model:
        raise BadConfig(f"{table} lists fallbacks or models but no model. Set model to the one that answers by default.")
    if agent.instructions and agent.instructions_file:
        raise BadConfig(f"{table} has both instructions and instructions_file. Keep one.")
    if agent.max_tokens is not None and agent.max_tokens < 1:
        raise BadConfig(f"Invalid agent.max_tokens {agent.max_tokens}. It must be a number of at least 1.")
    if agent.window is not None and agent.window < LEAST_WINDOW:
        raise BadConfig(f"Invalid agent.window {agent.window}. It must be a number of at least {LEAST_WINDOW}.")
    for kind in agent.takes or ():
        if kind not in KINDS:
            raise BadConfig(f"Invalid agent.takes: {kind!r} is nothing that a model takes besides text. Use image, audio or file.")
    if ours := sorted(OURS & agent.extra.keys()):
        raise BadConfig(f"Invalid agent.extra: Holdfast itself sets {' and '.join(ours)} in each request. Remove it from [agent.extra].")
    for name, price in agent.prices.items():
        _check_price(name, price)


def _check_price(name: str, price: ModelPrice) -> None:
    where = f'[agent.prices."{name}"]'
    if not _MODEL.fullmatch(name):
        raise BadConfig(f"Invalid {where}. It must be named PROVIDER:NAME, as in model.")
    if any(each is not None and not 0 <= each < math.inf for each in (price.input, price.output, price.cached, price.stored)):
        raise BadConfig(f"Invalid price in {where}. Prices are US dollars for a million tokens, 0 or more.")
    if (price.input is None) != (price.output is None):
        raise BadConfig(f"{where} has only one of input and output. Set both, or neither.")
    if price.window is not None and price.window < LEAST_WINDOW:
        raise BadConfig(f"Invalid window {price.window} in {where}. It must be a number of at least {LEAST_WINDOW}.")


def refuse_keys(table: Mapping[str, object], path: Path) -> None:
    """A key does not belong into a file that people show each other."""
    if "api_key" in table:
        raise BadConfig(
            f"{path} holds an api_key, and a key does not belong there. Move it to a file that only you can read (chmod 600) in the same"
            f" folder and name that in api_key_file, or set {KEY}. If others may have seen it, replace the key."
        )


def key(agent: Agent, home: Path, environment: Mapping[str, str]) -> str | None:
    """The key of the configured model's provider: from its file, else from the variable. None: the provider's own variable counts."""
    if not agent.api_key_file:
        return environment.get(KEY) or None
    path = home / agent.api_key_file
    try:
        with path.open(encoding="utf-8") as file:
            mode, text = os.fstat(file.fileno()).st_mode, file.read(64 * 1024).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"agent.api_key_file {path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if stat.S_IMODE(mode) & 0o077:
        raise BadConfig(f"Others can read the key in {path}. Close it with `chmod 600 {path}`.")
    if not text:
        raise BadConfig(f"agent.api_key_file {path} is empty. Write the key into it.")
    return text
