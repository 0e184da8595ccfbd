"""`[chats]` and a table for each chat platform: which accounts there are, who may talk to them, and how much chats are shown. A token may
stand in a file of its own, in a variable, or in config.toml if nobody else can read that.
"""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.config.errors import BadConfig
from holdfast.core.live import Manners
from holdfast.core.rights import Policy

# Tables of platforms, and what of them is a secret.
SECRETS = {"telegram": ("token",)}
_TELEGRAM_TOKEN = re.compile(r"\d+:[\w-]+")


class Chats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much chats are shown of an answer while it is being written. `docs/chats.md` says more."""

    stream: bool = True
    show_tools: bool = True
    still_working_s: float = 60.0

    @property
    def manners(self) -> Manners:
        return Manners(stream=self.stream, tools=self.show_tools, still_working_s=self.still_working_s)


class Doors(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who may talk on a platform; the same for all of them. Users and chats are named by their ids."""

    allowed_users: tuple[str, ...] = ()
    admins: tuple[str, ...] = ()
    blocked_users: tuple[str, ...] = ()
    allowed_chats: tuple[str, ...] = ()
    everybody: bool = False
    mention: bool = True
    listen_chats: tuple[str, ...] = ()
    pairing: bool = True
    shared_groups: bool = False

    @property
    def policy(self) -> Policy:
        return Policy(
            users=frozenset(self.allowed_users),
            admins=frozenset(self.admins),
            blocked=frozenset(self.blocked_users),
            chats=frozenset(self.allowed_chats),
            everybody=self.everybody,
            mention=self.mention,
            listening=frozenset(self.listen_chats),
            pairing=self.pairing,
            apart=not self.shared_groups,
        )


class Telegram(Doors, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`base_url`: of a Bot API server of one's own. `webhook`: Telegram tells us at `public_url` what is new, and we need not ask."""

    token: str = ""
    token_file: str = ""
    base_url: str = ""
    webhook: bool = False

    @property
    def configured(self) -> bool:
        return bool(self.token or self.token_file)


def as_texts(values: dict[str, Any]) -> dict[str, Any]:
    """Ids are often written as numbers."""
    return {
        name: [str(each) if type(each) is int else each for each in value]
        if isinstance(value, list) and name.partition(".")[0] in SECRETS
        else value
        for name, value in values.items()
    }


def check_private(values: Mapping[str, Any], path: Path) -> None:
    """A token in config.toml is nobody else's. Raises `BadConfig`."""
    held = [f"{table}.{name}" for table, names in SECRETS.items() for name in names if values.get(f"{table}.{name}")]
    if held and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise BadConfig(
            f"Others can read {held[0]} in {path}. Close it with `chmod 600 {path}`, or move it to a file of its own and name that in"
            f" {held[0]}_file. If others may have seen it, replace it."
        )


def telegram_token(telegram: Telegram, home: Path) -> str:
    """Raises `BadConfig`."""
    token = telegram.token or _read(home / telegram.token_file, "telegram.token_file")
    if not _TELEGRAM_TOKEN.fullmatch(token):
        raise BadConfig("The Telegram token is not one. @BotFather gives it as NUMBER:LETTERS; `holdfast telegram setup` tries it.")
    return token


def check(telegram: Telegram, *, public_url: str) -> None:
    """Raises `BadConfig`."""
    if telegram.webhook and not public_url.startswith("https://"):
        raise BadConfig("telegram.webhook needs public_url, an address that begins with https:// and that Telegram can reach.")
    if telegram.token and telegram.token_file:
        raise BadConfig("[telegram] has both a token and a token_file. Keep one.")


def known(telegram: Telegram, home: Path) -> dict[str, str]:
    """Tokens, by name, so that they are never recorded."""
    try:
        return {"telegram.token": telegram_token(telegram, home)} if telegram.configured else {}
    except BadConfig:
        return {}  # Said where the platform is made.


def _read(path: Path, setting: str) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            mode, text = os.fstat(file.fileno()).st_mode, file.read(64 * 1024).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"{setting} {path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if stat.S_IMODE(mode) & 0o077:
        raise BadConfig(f"Others can read the token in {path}. Close it with `chmod 600 {path}`.")
    return text
