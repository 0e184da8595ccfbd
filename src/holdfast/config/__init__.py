"""Settings: a file and the environment become one frozen Config, read once."""

import math
import os
import secrets
import stat
from collections.abc import Callable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from holdfast import files
from holdfast.config import agent as agent_
from holdfast.config import agents as agents_
from holdfast.config import chats as chats_
from holdfast.config import mcp as mcp_
from holdfast.config import schedules as schedules_
from holdfast.config import tools as tools_
from holdfast.config.agent import Agent, ModelPrice
from holdfast.config.agents import NamedAgent
from holdfast.config.chats import Chats
from holdfast.config.chats.discord import Discord
from holdfast.config.chats.doors import Doors
from holdfast.config.chats.matrix import Matrix
from holdfast.config.chats.slack import Slack
from holdfast.config.chats.telegram import Telegram
from holdfast.config.errors import BadConfig, invalid
from holdfast.config.journal import Journal
from holdfast.config.limits import Limits
from holdfast.config.mcp import McpServer
from holdfast.config.policy import ToolPolicy
from holdfast.config.schedules import Schedules
from holdfast.config.tools import Tools
from holdfast.core import busy, forwarding, keys, resets
from holdfast.core.blame import STUCK_AFTER
from holdfast.core.errors import BadInput
from holdfast.core.resume import FRESH_FOR_S
from holdfast.core.schedules import MISSED
from holdfast.core.schedules import Policy as SchedulePolicy

__all__ = ["Agent", "BadConfig", "Config", "Tools", "explain", "load"]

DEFAULT_PORT = 8420
MODEL_KEY = agent_.KEY
model_key = agent_.key
LOOPBACK = agent_.LOOPBACK
TOKEN = "token"
FILE = "config.toml"
LOG = "holdfast.log"
DEFAULT = "default"
# What a stop may take after the drain if no deadline is set, and the least it needs if one is.
CLOSING_S, LEAST_CLOSING_S = 30.0, 8.0


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every setting with its default. A field that is a struct is a table of the file. `docs/operations.md` says what each one does."""

    home: Path = Path()
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    allowed_hosts: tuple[str, ...] = ()
    public_url: str = ""
    trusted_proxies: tuple[str, ...] = ()
    profile: str = "main"
    turn_idle_timeout_s: float = 1800.0
    drain_timeout_s: float = 0.0
    stop_timeout_s: float = 0.0
    max_waiting: int = 100
    resumes_at_once: int = 10
    auto_resume: bool = True
    resume_window_s: float = FRESH_FOR_S
    stuck_after: int = STUCK_AFTER
    crash_policy: str = "resume"
    crash_window_s: float = 120.0
    resets: dict[str, str] = {}
    busy: dict[str, str] = {}
    keep_streams_s: float = 7 * 24 * 3600.0
    undo_delete_s: float = 600.0
    max_upload_mb: float = 25.0
    retention_days: float = 0.0
    retention_max_mb: float = 0.0
    home_channels: tuple[str, ...] = ()
    time_zone: str = ""
    log_format: str = "text"
    log_level: str = "info"
    secrets: tuple[str, ...] = ()
    agent: Agent = Agent()
    agents: dict[str, NamedAgent] = {}
    policy: ToolPolicy = ToolPolicy()
    limits: Limits = Limits()
    tools: Tools = Tools()
    mcp: dict[str, McpServer] = {}
    journal: Journal = Journal()
    schedules: Schedules = Schedules()
    chats: Chats = Chats()
    telegram: Telegram = Telegram()
    slack: Slack = Slack()
    discord: Discord = Discord()
    matrix: Matrix = Matrix()


# The file is in the home folder, so it cannot say where that is.
_FIELDS = {name: kind for name, kind in Config.__annotations__.items() if name != "home"}
TABLES: dict[str, type[msgspec.Struct]] = {name: kind for name, kind in _FIELDS.items() if isinstance(kind, type(msgspec.Struct))}
# The type of each setting; one of a table is called `table.name`.
_TYPES: dict[str, Any] = {name: kind for name, kind in _FIELDS.items() if name not in TABLES} | {
    f"{table}.{name}": kind for table, struct in TABLES.items() for name, kind in get_type_hints(struct).items()
}
SETTINGS = tuple(_TYPES)
# The variable of each setting.
VARIABLES = {name: f"HOLDFAST_{name.upper().replace('.', '_')}" for name in SETTINGS} | agent_.VARIABLES


def value(config: Config, name: str) -> Any:
    """Of a setting, by its name."""
    return attrgetter(name)(config)


def home_folder(environment: Mapping[str, str], home: str | None = None) -> Path:
    """The folder with everything of one Holdfast. The command line wins, then HOLDFAST_HOME."""
    return Path(home or environment.get("HOLDFAST_HOME") or Path(environment.get("HOME", ".")) / ".holdfast").expanduser().absolute()


def load(environment: Mapping[str, str], *, home: str | None = None, overrides: Mapping[str, Any] | None = None) -> Config:
    """Defaults, then `config.toml` in the home folder, then HOLDFAST_* variables, then the command line."""
    return explain(environment, home=home, overrides=overrides)[0]


def explain(
    environment: Mapping[str, str], *, home: str | None = None, overrides: Mapping[str, Any] | None = None
) -> tuple[Config, dict[str, str]]:
    """As `load`, with the source of each setting. An empty variable counts as not set."""
    place = home_folder(environment, home)
    values: dict[str, Any] = _from_file(place / FILE)
    sources = dict.fromkeys(values, FILE)
    for name, variable in VARIABLES.items():
        if environment.get(variable):
            values[name] = _FROM_TEXT.get(_TYPES[name], str)(environment[variable])
            sources[name] = variable
    for option, given in (overrides or {}).items():
        if given is not None:
            values[option], sources[option] = given, f"--{option.replace('_', '-')}"
    if "agents" in values:
        values["agents"] = agents_.read(values["agents"], sources["agents"], place / FILE)
    if "mcp" in values:
        values["mcp"] = mcp_.read(values["mcp"], sources["mcp"])
    values["home"] = place
    sources["home"] = "--home" if home else "HOLDFAST_HOME" if environment.get("HOLDFAST_HOME") else DEFAULT
    try:
        config = msgspec.convert(_nested(values), Config, strict=False, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise _wrong_type(error, values, sources) from error
    sources = {name: sources.get(name, DEFAULT) for name in ("home", *SETTINGS)}
    return _checked(config, sources), sources


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """As the file has them: `agent.model` is `model` in the table `agent`."""
    nested: dict[str, Any] = {}
    for name, given in values.items():
        table, dot, field = name.partition(".")
        if dot:
            nested.setdefault(table, {})[field] = given
        else:
            nested[name] = given
    return nested


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _pairs(text: str) -> dict[str, str]:
    """`default=idle 60; telegram.group=daily 4`."""
    pairs = (part.partition("=") for part in text.split(";") if part.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _json(text: str) -> Any:
    """`{"chat:mine": {"input": 1, "output": 2}}`. What does not read is refused as text."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


# How a setting with several values is written in a variable.
_FROM_TEXT: dict[Any, Callable[[str], Any]] = {
    tuple[str, ...]: _list,
    tuple[str, ...] | None: _list,
    dict[str, str]: _pairs,
    dict[str, ModelPrice]: _json,
    dict[str, McpServer]: _json,
    dict[str, NamedAgent]: _json,
    dict[str, Any]: _json,
}


def choices(config: Config) -> tuple[str, ...]:
    """What a conversation may choose to answer it, the default first: models and agents by their names. Nothing: the demo agent answers."""
    return (*config.agent.choices, *filter(None, [config.agent.module, config.agent.program]), *config.agents)


def has_agent(config: Config) -> bool:
    """Whether there is one besides the demo agent."""
    return bool(config.agent.model or config.agent.module or config.agent.acp) or any(not named.demo for named in config.agents.values())


def stop_deadline_s(config: Config) -> float:
    """A stop ends within this, whatever hangs. `stop_timeout_s` leaves a supervisor that kills enough room."""
    return config.stop_timeout_s or config.drain_timeout_s + CLOSING_S


def drain_window_s(config: Config) -> float:
    """How long running turns may continue during a stop; always less than the deadline of the stop."""
    return max(0.0, min(config.drain_timeout_s, stop_deadline_s(config) - LEAST_CLOSING_S))


def public_origin(config: Config) -> str | None:
    """`public_url`, as browsers write the origin of a page."""
    return forwarding.origin(config.public_url) if config.public_url else None


def trusted_networks(config: Config) -> tuple[forwarding.Network, ...]:
    return forwarding.networks(config.trusted_proxies)


def chat_accounts(config: Config) -> dict[str, Doors]:
    """The tables of chat platforms, by name."""
    return {name: value(config, name) for name in chats_.PLATFORMS}


def tools_folder(config: Config) -> Path:
    """Where the folders of sessions are, or the one that they share."""
    return tools_.folder(config.tools, config.home)


def reset_policies(config: Config) -> dict[str, resets.Policy]:
    """`resets`, by `default`, platform, or platform.chat_type."""
    return {name: resets.policy(text) for name, text in config.resets.items()}


def most_upload_bytes(config: Config) -> int:
    return int(config.max_upload_mb * 1_000_000)


def schedule_policy(config: Config) -> SchedulePolicy:
    return schedules_.policy(config.schedules, config.time_zone)


def busy_modes(config: Config) -> dict[str, busy.Mode]:
    """`busy`, by `default`, platform, platform.chat_type, or a pattern of session keys."""
    return busy.policies(config.busy)


def _wrong_type(error: msgspec.ValidationError, values: dict[str, Any], sources: dict[str, str]) -> BadConfig:
    """The checker names a path ("Expected `int`, got `str` - at `$.port`"); people want the setting, its value and its source."""
    wrong, _, place = str(error).partition(" - at `$.")
    name = place.rstrip("`").split("[")[0]
    if name not in values:
        return BadConfig(f"Invalid setting: {error}.")
    wanted = _WANTED.get(name) or _KINDS.get(_TYPES[name]) or wrong.replace("`", "")
    return invalid(name, values[name], sources[name], f"It must be {wanted}.")


_PORTS = "a number from 0 to 65535 (0 takes a free port)"
_WANTED = {"port": _PORTS}
_KINDS = {
    int: "a whole number",
    int | None: "a whole number",
    float: "a number",
    float | None: "a number",
    bool: "true or false",
    str: "text in quotes",
    tuple[str, ...]: 'a list of texts, for example ["one", "two"]',
    tuple[str, ...] | None: 'a list of texts, for example ["one", "two"]',
    dict[str, Any]: "a table; docs/models.md has an example",
    dict[str, str]: "a table of texts; docs/operations.md has an example",
    dict[str, ModelPrice]: "a table of prices for each model; docs/models.md has an example",
}


def _from_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        import tomllib  # Most homes have no such file.

        values = tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except ValueError as error:  # Not TOML, or not even text.
        raise BadConfig(f"{path} is not valid TOML: {error}.") from error
    except OSError as error:
        raise BadConfig(f"{path} cannot be read: {error.strerror}.") from error
    flat = chats_.as_texts(_flat(values, path))
    chats_.check_private(flat, path)
    return flat


def _flat(values: dict[str, Any], path: Path) -> dict[str, Any]:
    """The settings of a file by their names. Raises `BadConfig` for one that does not exist."""
    flat: dict[str, Any] = {}
    for name, given in values.items():
        if name in TABLES:
            if not isinstance(given, dict):
                raise invalid(name, given, FILE, f"It must be a table: write its settings below a line [{name}].")
            if name == "agent":
                agent_.refuse_keys(given, path)
            flat |= {f"{name}.{field}": each for field, each in given.items()}
        else:
            flat[name] = given
    for name in flat:
        if name not in _TYPES:
            table = name.partition(".")[0]
            known = ", ".join(TABLES[table].__struct_fields__ if table in TABLES else (*_FIELDS,))
            where = f" of [{table}]" if table in TABLES else ""
            raise BadConfig(f"Unknown setting {name} in {path}. The settings{where} are: {known}.")
    return flat


def _path(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise NotImplementedError(kind)


def _checked(config: Config, sources: dict[str, str]) -> Config:
    def wrong(name: str, why: str) -> BadConfig:
        return invalid(name, value(config, name), sources[name], why)

    if not 0 <= config.port <= 65535:
        raise wrong("port", f"It must be {_PORTS}.")
    if config.host not in LOOPBACK and not config.allowed_hosts and not config.public_url:
        raise BadConfig(
            f"Other machines can reach host {config.host}. List the host names to accept in allowed_hosts, or set public_url, or use"
            " 127.0.0.1."
        )
    for name, check in _PARSED.items():
        try:
            check(config)
        except BadInput as error:
            raise BadConfig(f"Invalid {name}: {error}") from error
    for name, least in _LEAST.items():
        if not least <= value(config, name) < math.inf:
            raise wrong(name, f"It must be a number of at least {least}.")
    for name, choices in _CHOICES.items():
        if value(config, name) not in choices:
            raise wrong(name, f"It must be {', '.join(choices[:-1])} or {choices[-1]}.")
    if math.isnan(config.resume_window_s):
        raise wrong("resume_window_s", "It must be a number of seconds; 0 means never, -1 means no limit.")
    if config.stuck_after < STUCK_AFTER:
        raise wrong("stuck_after", f"It must be at least {STUCK_AFTER}, because nothing is suspended without a trial.")
    if not config.profile:
        raise BadConfig("Invalid profile: it is empty, but a part of every session key. Leave it out to use main.")
    agent_.check(config.agent)
    agents_.check(config.agents, config.agent)
    tools_.check(config.tools, config.home)
    mcp_.check(config.mcp, config.home)
    chats_.check(chat_accounts(config), public_url=config.public_url)
    return config


_LEAST = {
    **dict.fromkeys(
        (
            *("turn_idle_timeout_s", "max_waiting", "resumes_at_once", "keep_streams_s", "max_upload_mb"),
            *("agent.timeout_s", "agent.max_steps", "tools.timeout_s"),
        ),
        1,
    ),
    "tools.process_output_mb": 1,
    "tools.max_processes": 0,
    **dict.fromkeys(
        (
            "drain_timeout_s",
            "stop_timeout_s",
            "crash_window_s",
            "undo_delete_s",
            "retention_days",
            "retention_max_mb",
        ),
        0,
    ),
    **{"schedules.limit": 0, "schedules.min_every_s": 1},
    **{f"limits.{name}": 0 for name in Limits.__struct_fields__ if name != "then"},
    **dict.fromkeys(("journal.turn_mb", "journal.all_mb", "journal.tries", "journal.try_every_s"), 1),
    "journal.give_up_s": 0,
    "chats.still_working_s": 0,
}
_CHOICES = {
    "limits.then": ("ask", "end"),
    "schedules.missed": MISSED,
    "crash_policy": ("resume", "suspend"),
    "log_format": ("text", "json"),
    "log_level": ("debug", "info", "warning", "error"),
    "tools.sandbox": tools_.SANDBOXES,
}
_PARSED: dict[str, Callable[[Config], object]] = {
    "public_url": public_origin,
    "trusted_proxies": trusted_networks,
    "resets": reset_policies,
    "busy": busy_modes,
    "time_zone": schedule_policy,
    "home_channels": lambda config: [keys.parse(channel) for channel in config.home_channels],
    "pattern in [policy]": lambda config: config.policy.rules,
}


def prepare_home(home: Path) -> None:
    """Makes the home folder, for this user alone. Raises `BadConfig` with what to do."""
    if _belongs_to_others(home):
        raise BadConfig(f"Other programs use {home}, and Holdfast needs a home folder of its own. Choose {home / 'holdfast'}, for example.")
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chmod(home, 0o700)
        probe = home / ".writable"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise BadConfig(f"The home folder {home} cannot be used: {error.strerror}. Choose another with --home or HOLDFAST_HOME.") from error


def _belongs_to_others(home: Path) -> bool:
    """A root, a shared folder such as /tmp, or the user's own: closing it to others would do harm."""
    try:
        return home == home.parent or bool(home.stat().st_mode & stat.S_ISVTX) or home.samefile(Path.home())
    except (OSError, RuntimeError):
        return False


def read_token(home: Path) -> str | None:
    try:
        return (home / TOKEN).read_text().strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"The token file {home / TOKEN} cannot be read: {error}.") from error


def make_token(home: Path) -> str:
    """A new token of 32 random bytes, which replaces an older one."""
    token = secrets.token_urlsafe(32)
    files.replace(home / TOKEN, token + "\n")
    return token
