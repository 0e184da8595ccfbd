"""`[discord]`."""

import re

from holdfast.config.chats.doors import Doors
from holdfast.config.chats.kinds import Kind, Secret


class Discord(Doors, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`base_url`: of another API than Discord's own."""

    token: str = ""
    token_file: str = ""
    base_url: str = ""


def _check(discord: Discord, public_url: str) -> None:
    """Every combination works."""


KIND = Kind(
    title="Discord",
    secrets={
        "token": Secret(
            re.compile(r"[\w-]+\.[\w-]+\.[\w-]+"),
            "This is not a Discord bot token: bot tokens have three parts with dots between them. The developer portal shows it once,"
            " below Bot, Reset Token; it is neither the public key nor the client secret.",
        )
    },
    check=_check,
)
