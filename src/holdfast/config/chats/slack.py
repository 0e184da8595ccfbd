"""`[slack]`."""

import re

from holdfast.config.chats.doors import Doors
from holdfast.config.chats.kinds import Kind, Secret
from holdfast.config.errors import BadConfig


class Slack(Doors, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """With an `app_token` we ask Slack to tell us what is new (Socket Mode); with a `signing_secret` instead, it tells us at `public_url`.
    `base_url`: of another API than Slack's own.
    """

    bot_token: str = ""
    bot_token_file: str = ""
    app_token: str = ""
    app_token_file: str = ""
    signing_secret: str = ""
    signing_secret_file: str = ""
    base_url: str = ""


def _check(slack: Slack, public_url: str) -> None:
    asks, told = bool(slack.app_token or slack.app_token_file), bool(slack.signing_secret or slack.signing_secret_file)
    if asks and told:
        raise BadConfig("[slack] has both an app_token, for Socket Mode, and a signing_secret, for HTTP. Keep one.")
    if (slack.bot_token or slack.bot_token_file) and not asks and not told:
        raise BadConfig("[slack] needs an app_token as well, for Socket Mode; or a signing_secret and public_url, for HTTP.")
    if told and not public_url.startswith("https://"):
        raise BadConfig("slack.signing_secret needs public_url, an address that begins with https:// and that Slack can reach.")


KIND = Kind(
    title="Slack",
    secrets={
        "bot_token": Secret(
            re.compile(r"xoxb-[\w-]+"),
            "This is not a Slack bot token; those begin with xoxb-. Yours is in the app's settings, below OAuth & Permissions.",
        ),
        "app_token": Secret(
            re.compile(r"xapp-[\w-]+"),
            "This is not a Slack app token; those begin with xapp-. Yours is in the app's settings, below Basic Information, App-Level"
            " Tokens.",
        ),
        "signing_secret": Secret(
            re.compile(r"[0-9a-f]{32,}"),
            "This is not a Slack signing secret; those are 32 digits and letters from a to f. Yours is in the app's settings, below Basic"
            " Information.",
        ),
    },
    check=_check,
)
