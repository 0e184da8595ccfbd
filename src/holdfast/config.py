"""Settings: a file and the environment become one frozen Config, read once."""

import math
import os
import secrets
import stat
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast import files
from holdfast.core import forwarding, keys
from holdfast.core.blame import STUCK_AFTER
from holdfast.core.errors import BadInput, Refused
from holdfast.core.resets import Policy, policy
from holdfast.core.resume import FRESH_FOR_S

DEFAULT_PORT = 8420
LOOPBACK = ("127.0.0.1", "::1", "localhost")
TOKEN = "token"
FILE = "config.toml"
LOG = "holdfast.log"
DEFAULT = "default"
# What a stop may take after the drain if no deadline is set, and the least it needs if one is.
CLOSING_S, LEAST_CLOSING_S = 30.0, 8.0


class BadConfig(Refused):
    """The operator must fix something; the exit code is 78."""

    code = "bad_config"


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every setting with its default. `docs/operations.md` says what each one does."""

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
    keep_streams_s: float = 7 * 24 * 3600.0
    undo_delete_s: float = 600.0
    max_upload_mb: float = 25.0
    retention_days: float = 0.0
    retention_max_mb: float = 0.0
    home_channels: tuple[str, ...] = ()
    log_format: str = "text"
    log_level: str = "info"


# The file is in the home folder, so it cannot say where that is.
SETTINGS = tuple(name for name in Config.__struct_fields__ if name != "home")


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
    for name in SETTINGS:
        variable = f"HOLDFAST_{name.upper()}"
        if environment.get(variable):
            values[name] = _FROM_TEXT.get(name, str)(environment[variable])
            sources[name] = variable
    for option, value in (overrides or {}).items():
        if value is not None:
            values[option], sources[option] = value, f"--{option.replace('_', '-')}"
    values["home"] = place
    sources["home"] = "--home" if home else "HOLDFAST_HOME" if environment.get("HOLDFAST_HOME") else DEFAULT
    try:
        config = msgspec.convert(values, Config, strict=False, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise _wrong_type(error, values, sources) from error
    sources = {name: sources.get(name, DEFAULT) for name in Config.__struct_fields__}
    return _checked(config, sources), sources


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _pairs(text: str) -> dict[str, str]:
    """`default=idle 60; telegram.group=daily 4`."""
    pairs = (part.partition("=") for part in text.split(";") if part.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}


# How a setting with several values is written in a variable.
_FROM_TEXT: dict[str, Callable[[str], Any]] = {"allowed_hosts": _list, "trusted_proxies": _list, "home_channels": _list, "resets": _pairs}


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


def reset_policies(config: Config) -> dict[str, Policy]:
    """`resets`, by `default`, platform, or platform.chat_type."""
    return {name: policy(text) for name, text in config.resets.items()}


def _wrong_type(error: msgspec.ValidationError, values: dict[str, Any], sources: dict[str, str]) -> BadConfig:
    """The checker names a path ("Expected `int`, got `str` - at `$.port`"); people want the setting, its value and its source."""
    wrong, _, place = str(error).partition(" - at `$.")
    name = place.rstrip("`").split("[")[0]
    if name not in values:
        return BadConfig(f"Invalid setting: {error}.")
    wanted = _WANTED.get(name) or _KINDS.get(Config.__annotations__[name]) or wrong.replace("`", "")
    return _invalid(name, values[name], sources[name], f"It must be {wanted}.")


def _invalid(name: str, value: object, source: str, why: str) -> BadConfig:
    return BadConfig(f"Invalid {name} {value!r} (from {source}). {why}")


_PORTS = "a number from 0 to 65535 (0 takes a free port)"
_WANTED = {"port": _PORTS}
_KINDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text in quotes",
    tuple[str, ...]: 'a list of texts, for example ["one", "two"]',
    dict[str, str]: "a table of texts; docs/operations.md has an example",
}


def _from_file(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"{path} is not valid TOML: {error}.") from error
    except OSError as error:
        raise BadConfig(f"{path} cannot be read: {error.strerror}.") from error
    for name in values:
        if name not in SETTINGS:
            raise BadConfig(f"Unknown setting {name} in {path}. The settings are: {', '.join(SETTINGS)}.")
    return values


def _path(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise NotImplementedError(kind)


def _checked(config: Config, sources: dict[str, str]) -> Config:
    def wrong(name: str, why: str) -> BadConfig:
        return _invalid(name, getattr(config, name), sources[name], why)

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
        if not least <= getattr(config, name) < math.inf:
            raise wrong(name, f"It must be a number of at least {least}.")
    for name, choices in _CHOICES.items():
        if getattr(config, name) not in choices:
            raise wrong(name, f"It must be {', '.join(choices[:-1])} or {choices[-1]}.")
    if math.isnan(config.resume_window_s):
        raise wrong("resume_window_s", "It must be a number of seconds; 0 means never, -1 means no limit.")
    if config.stuck_after < STUCK_AFTER:
        raise wrong("stuck_after", f"It must be at least {STUCK_AFTER}, because nothing is suspended without a trial.")
    if not config.profile:
        raise BadConfig("Invalid profile: it is empty, but a part of every session key. Leave it out to use main.")
    return config


_LEAST = {
    **dict.fromkeys(("turn_idle_timeout_s", "max_waiting", "resumes_at_once", "keep_streams_s", "max_upload_mb"), 1),
    **dict.fromkeys(("drain_timeout_s", "stop_timeout_s", "crash_window_s", "undo_delete_s", "retention_days", "retention_max_mb"), 0),
}
_CHOICES = {"crash_policy": ("resume", "suspend"), "log_format": ("text", "json"), "log_level": ("debug", "info", "warning", "error")}
_PARSED: dict[str, Callable[[Config], object]] = {
    "public_url": public_origin,
    "trusted_proxies": trusted_networks,
    "resets": reset_policies,
    "home_channels": lambda config: [keys.parse(channel) for channel in config.home_channels],
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
