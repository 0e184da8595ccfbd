"""`[chats]` and a table for each chat platform: which accounts there are, who may talk to them, and how much chats are shown. A secret may
stand in a file of its own, in a variable, or in config.toml if nobody else can read that.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.config.chats import discord, matrix, slack, telegram
from holdfast.config.chats.doors import Doors
from holdfast.config.errors import BadConfig
from holdfast.core.live import Manners

# By the name of its table, which is also its part of session keys.
PLATFORMS = {"telegram": telegram.KIND, "slack": slack.KIND, "discord": discord.KIND, "matrix": matrix.KIND}


class Chats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much chats are shown of an answer while it is being written. `docs/chats.md` says more."""

    stream: bool = True
    show_tools: bool = True
    still_working_s: float = 60.0

    @property
    def manners(self) -> Manners:
        return Manners(stream=self.stream, tools=self.show_tools, still_working_s=self.still_working_s)


def as_texts(values: dict[str, Any]) -> dict[str, Any]:
    """Ids are often written as numbers."""
    return {
        name: [str(each) if type(each) is int else each for each in value]
        if isinstance(value, list) and name.partition(".")[0] in PLATFORMS
        else value
        for name, value in values.items()
    }


def is_secret(setting: str) -> bool:
    """By its name with its table: `telegram.token`."""
    table, _, name = setting.partition(".")
    return table in PLATFORMS and name in PLATFORMS[table].secrets


def check_private(values: Mapping[str, Any], path: Path) -> None:
    """A secret in config.toml is nobody else's. Raises `BadConfig`."""
    held = [name for name, value in values.items() if value and is_secret(name)]
    if held and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise BadConfig(
            f"Others can read {held[0]} in {path}. Close it with `chmod 600 {path}`, or move it to a file of its own and name that in"
            f" {held[0]}_file. If others may have seen it, replace it."
        )


def install(platform: str) -> str:
    """What to do where its SDK is missing."""
    return f'{PLATFORMS[platform].title} needs its SDK. Install it with `pip install "holdfast[{platform}]"`.'


def configured(platform: str, table: Doors) -> bool:
    return _is_set(table, next(iter(PLATFORMS[platform].secrets)))


def account(platform: str, table: Doors, home: Path) -> dict[str, str]:
    """What an account is reached with: the texts of its table, with the secrets that stand in files. Raises `BadConfig`."""
    secrets = {name: _secret(f"{platform}.{name}", table, home) for name in PLATFORMS[platform].secrets if _is_set(table, name)}
    check_shapes(platform, secrets)
    return texts(table) | secrets


def texts(table: Doors) -> dict[str, str]:
    """The settings of a table that are a text, but for names of files."""
    found = {name: getattr(table, name) for name in table.__struct_fields__ if not name.endswith("_file")}
    return {name: value for name, value in found.items() if isinstance(value, str)}


def check_shapes(platform: str, account: Mapping[str, str]) -> None:
    """Says of a secret that cannot be one, before anybody is asked. Raises `BadConfig`."""
    for name, secret in PLATFORMS[platform].secrets.items():
        if name in account and not secret.shape.fullmatch(account[name]):
            raise BadConfig(secret.wrong)


def check(tables: Mapping[str, Doors], *, public_url: str) -> None:
    """Raises `BadConfig`."""
    for platform, table in tables.items():
        for name in PLATFORMS[platform].secrets:
            if getattr(table, name) and getattr(table, f"{name}_file"):
                raise BadConfig(f"[{platform}] has both a {name} and a {name}_file. Keep one.")
        PLATFORMS[platform].check(table, public_url)


def known(tables: Mapping[str, Doors], home: Path) -> dict[str, str]:
    """Secrets, by name, so that they are never recorded."""
    found = {}
    for platform, table in tables.items():
        for name in PLATFORMS[platform].secrets:
            try:
                value = _secret(f"{platform}.{name}", table, home) if _is_set(table, name) else ""
            except BadConfig:
                continue  # Said where the platform is made.
            if value:
                found[f"{platform}.{name}"] = value
    return found


def _is_set(table: Doors, name: str) -> bool:
    return bool(getattr(table, name) or getattr(table, f"{name}_file"))


def _secret(setting: str, table: Doors, home: Path) -> str:
    name = setting.partition(".")[2]
    value: str = getattr(table, name)
    return value or _read(home / getattr(table, f"{name}_file"), f"{setting}_file")


def _read(path: Path, setting: str) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            mode, text = os.fstat(file.fileno()).st_mode, file.read(64 * 1024).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"{setting} {path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if stat.S_IMODE(mode) & 0o077:
        raise BadConfig(f"Others can read the token in {path}. Close it with `chmod 600 {path}`.")
    return text
