"""`[telegram]`."""

import re

from holdfast.config.chats.doors import Doors
from holdfast.config.chats.kinds import Kind, Secret
from holdfast.config.errors import BadConfig


class Telegram(Doors, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`base_url`: of a Bot API server of one's own. `webhook`: Telegram tells us at `public_url` what is new, and we need not ask."""

    token: str = ""
    token_file: str = ""
    base_url: str = ""
    webhook: bool = False


def _check(telegram: Telegram, public_url: str) -> None:
    if telegram.webhook and not public_url.startswith("https://"):
        raise BadConfig("telegram.webhook needs public_url, an address that begins with https:// and that Telegram can reach.")


KIND = Kind(
    title="Telegram",
    secrets={
        "token": Secret(
            re.compile(r"\d+:[\w-]+"),
            "This is not a Telegram bot token. @BotFather gives it as NUMBER:LETTERS; `holdfast telegram setup` tries it.",
        )
    },
    check=_check,
)
