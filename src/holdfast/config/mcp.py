"""`[mcp.NAME]`: servers whose tools agents may use, and where their secrets come from. A secret is never a setting: a value names the
variable (`${NAME}`) or the file (`${file:NAME}`) that holds it.
"""

import math
import os
import re
import shlex
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from holdfast.config.errors import BadConfig, invalid
from holdfast.tool_processes import SHARED

MOST_SERVERS = 50
_NAME = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
_LONGEST_NAME = 20
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_REFERENCE = re.compile(r"\$\{(?:file:([^}]+)|([A-Za-z_][A-Za-z0-9_]*))\}")
# What is called this holds a secret.
_SECRET = re.compile(r"auth|cookie|credential|key|passw|secret|token", re.IGNORECASE)


class McpServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program (`command`) or an address (`url`). `docs/tools.md` says what each one does."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    folders: tuple[str, ...] = ()
    sandbox: bool = True
    url: str = ""
    headers: dict[str, str] = {}
    trusted: bool = False
    enabled: bool = True
    tools: tuple[str, ...] = ("*",)
    timeout_s: float = 300.0
    start_timeout_s: float = 60.0

    @property
    def kind(self) -> str:
        return "stdio" if self.command else "http"

    def __str__(self) -> str:
        return " ".join((self.command, *self.args)) if self.command else self.url


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is started or reached, with its secrets in place. `secrets`: those, by name."""

    words: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}
    secrets: dict[str, str] = {}

    def __repr__(self) -> str:
        return "Access(...)"


def read(given: Any, source: str) -> dict[str, McpServer]:
    """The servers of a configuration, by name. Raises `BadConfig`, whose words hold no value: it may be a secret."""
    if not isinstance(given, dict) or not all(isinstance(table, dict) for table in given.values()):
        raise BadConfig(f"Invalid mcp (from {source}). Write a table [mcp.NAME] for each server; docs/tools.md has examples.")
    servers: dict[str, McpServer] = {}
    for name, table in given.items():
        if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
            raise BadConfig(
                f"Invalid name in [mcp.{name}]. It must be at most {_LONGEST_NAME} small letters and digits, with single - or _ between"
                " them."
            )
        try:
            servers[name] = msgspec.convert(table, McpServer, strict=False)
        except msgspec.ValidationError as error:
            raise BadConfig(f"Invalid [mcp.{name}] (from {source}): {error}.") from None
    return servers


def check(servers: Mapping[str, McpServer], home: Path) -> None:
    """Raises `BadConfig`."""
    if len(servers) > MOST_SERVERS:
        raise BadConfig(f"There are {len(servers)} tables [mcp.NAME], and at most {MOST_SERVERS} are allowed. Remove some.")
    for name, server in servers.items():
        _check(f"[mcp.{name}]", server)
        for folder in server.folders:
            chosen, own = Path(folder).expanduser().resolve(), home.resolve()
            if not Path(folder).expanduser().is_absolute() or chosen.is_relative_to(own) or own.is_relative_to(chosen):
                raise BadConfig(f"Invalid folder {folder!r} in [mcp.{name}]. It must be a whole path that has nothing of {home} in it.")


def _check(where: str, server: McpServer) -> None:
    if bool(server.command) == bool(server.url):
        raise BadConfig(f"{where} needs either a command, for a program, or a url, for a server that runs already.")
    if server.url and (server.args or server.env or server.folders):
        raise BadConfig(f"{where} has a url, so args, env and folders have no meaning there. Remove them.")
    if server.command and server.headers:
        raise BadConfig(f"{where} has a command, so headers have no meaning there. Remove them.")
    if server.url:
        _check_url(where, server.url)
    for name, value in (*server.env.items(), *server.headers.items()):
        _check_value(where, name, value, _HEADER if name in server.headers else _VARIABLE_NAME)
    for number, word in enumerate(server.args):
        option, _, value = word.partition("=")
        following = server.args[number + 1] if number + 1 < len(server.args) else ""
        if option.startswith("-"):
            _refuse_secret(where, option, value or ("" if following.startswith("-") else following))
    for setting in ("timeout_s", "start_timeout_s"):
        if not 0 < getattr(server, setting) < math.inf:
            raise invalid(f"{setting} in {where}", getattr(server, setting), "config.toml", "It must be a number greater than 0.")


def _check_url(where: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - it raises for a port that is none.
    except ValueError as error:
        raise BadConfig(f"Invalid url in {where}: {error}.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadConfig(f"Invalid url in {where}. It must begin with http:// or https://.")
    if parts.username is not None or parts.password is not None:
        raise BadConfig(f"The url in {where} holds a user name or password. Use headers, with ${{NAME}} for the secret.")


def _check_value(where: str, name: str, value: str, names: re.Pattern[str]) -> None:
    if not names.fullmatch(name) or "\0" in value or "\n" in value or "\r" in value:
        raise BadConfig(f"Invalid {name!r} in {where}: neither a variable nor a header can be called that, or have such a value.")
    _refuse_secret(where, name, value)


def _refuse_secret(where: str, name: str, value: str) -> None:
    if _SECRET.search(name) and value and not _REFERENCE.search(value):
        raise BadConfig(
            f"{where} holds the value of {name} itself, and a secret does not belong in config.toml. Write"
            f' "${{VARIABLE}}" instead to take it from the environment, or "${{file:NAME}}" for a file in the home folder that only you can'
            " read (chmod 600). If others may have seen it, replace it."
        )


def access(server: McpServer, home: Path, environment: Mapping[str, str]) -> Access:
    """With every value filled in, as it is now. Raises `BadConfig`."""
    secrets: dict[str, str] = {}

    def fill(text: str) -> str:
        return _REFERENCE.sub(lambda found: _value(found[1], found[2], home, environment, secrets), text)

    headers = _filled(server.headers, fill)
    if any(not value.isprintable() or not value.isascii() for value in headers.values()):
        raise BadConfig("A header has a value with characters that no header can have. Look at the variables and files it is made of.")
    return Access(
        words=tuple(map(fill, (*_command(server.command), *server.args))),
        env=_filled(server.env, fill),
        url=fill(server.url),
        headers=headers,
        secrets=secrets,
    )


def _filled(values: Mapping[str, str], fill: Callable[[str], str]) -> dict[str, str]:
    return {name: fill(value) for name, value in values.items()}


def _command(command: str) -> tuple[str, ...]:
    """`uvx mcp-server-time` may be written as one."""
    try:
        first, *rest = shlex.split(command) if command else ("",)
    except ValueError as error:
        raise BadConfig(f"The command {command!r} cannot be read: {error}.") from None
    return (os.path.expanduser(first), *rest) if first else ()


def known(servers: Mapping[str, McpServer], home: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The secrets of all servers that can be had now, by name."""
    found: dict[str, str] = {}
    for server in servers.values():
        try:
            found |= access(server, home, environment).secrets
        except BadConfig:
            continue  # Said where the server is started.
    return found


def _value(file: str | None, variable: str | None, home: Path, environment: Mapping[str, str], secrets: dict[str, str]) -> str:
    if file is not None:
        secrets[file] = value = _from_file(home / Path(file).expanduser())
        return value
    assert variable is not None
    if not environment.get(variable):
        raise BadConfig(f"The variable {variable} is not set.")
    if variable not in SHARED:  # Those hold no secrets, and what they hold stands everywhere.
        secrets[variable] = environment[variable]
    return environment[variable]


def _from_file(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            mode, text = os.fstat(file.fileno()).st_mode, file.read(64 * 1024).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"The file {path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if stat.S_IMODE(mode) & 0o077:
        raise BadConfig(f"Others can read the secret in {path}. Close it with `chmod 600 {path}`.")
    if not text:
        raise BadConfig(f"The file {path} is empty. Write the secret into it.")
    return text
