"""`[matrix]`."""

import re

from holdfast.config.chats.doors import Doors
from holdfast.config.chats.kinds import Kind, Secret
from holdfast.config.errors import BadConfig


class Matrix(Doors, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`homeserver`: its address. `device_id`: as which the account is logged in, so that it stays the same one. `since`: from where an
    account that was never read is read first. `messages_per_s` and `burst`: how much the homeserver takes of the account, edits included.
    """

    homeserver: str = ""
    token: str = ""
    token_file: str = ""
    device_id: str = ""
    since: str = ""
    messages_per_s: float = 0.2
    burst: int = 10


def _check(matrix: Matrix, public_url: str) -> None:
    if (matrix.token or matrix.token_file) and not re.match(r"https?://[^/\s]", matrix.homeserver):
        raise BadConfig(
            "[matrix] has a token and no homeserver. Set homeserver to its address, for example https://matrix.example.org; "
            "`holdfast matrix setup` finds it."
        )
    if matrix.messages_per_s < 0.01 or matrix.burst < 1:
        raise BadConfig("matrix.messages_per_s must be at least 0.01, and matrix.burst at least 1.")


KIND = Kind(
    title="Matrix",
    secrets={
        "token": Secret(
            re.compile(r"\S+"),
            "This is not a Matrix access token: it is empty or has spaces in it. `holdfast matrix setup` gets one.",
        )
    },
    check=_check,
)
