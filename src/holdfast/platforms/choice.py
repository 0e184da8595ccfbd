"""The platforms that a configuration asks for. The SDK of one that it does not ask for is not loaded."""

from collections.abc import Callable, Mapping

from holdfast.config import Config, chat_accounts, chats, public_origin
from holdfast.config.errors import BadConfig
from holdfast.core.rights import Policy
from holdfast.ports.platforms import Platform

HOOKS = "/hooks"
# What an account is reached with, by the names of its settings.
Account = Mapping[str, str]


def make(config: Config) -> dict[str, Platform]:
    """By name. Raises `BadConfig`."""
    made: dict[str, Platform] = {}
    for name, table in chat_accounts(config).items():
        if chats.configured(name, table):
            account = chats.account(name, table, config.home)
            try:
                made[name] = _MAKERS[name](account, config)
            except ImportError as error:
                raise BadConfig(chats.install(name)) from error
    return made


def policies(config: Config) -> dict[str, Policy]:
    """Who may talk, by platform."""
    return {name: table.policy for name, table in chat_accounts(config).items()}


def _telegram(account: Account, config: Config) -> Platform:
    from holdfast.platforms.telegram.platform import Telegram

    webhook = f"{public_origin(config)}{HOOKS}/telegram" if config.telegram.webhook else ""
    return Telegram(account["token"], base_url=account["base_url"], webhook=webhook)


def _slack(account: Account, config: Config) -> Platform:
    from holdfast.platforms.slack.platform import Slack

    return Slack(
        account["bot_token"], app_token=account["app_token"], signing_secret=account["signing_secret"], base_url=account["base_url"]
    )


def _discord(account: Account, config: Config) -> Platform:
    from holdfast.platforms.discord.platform import Discord

    people = (*config.discord.admins, *config.discord.allowed_users)
    return Discord(account["token"], base_url=account["base_url"], people=tuple(dict.fromkeys(people)))


def _matrix(account: Account, config: Config) -> Platform:
    from holdfast.platforms.matrix.platform import Matrix

    settings = config.matrix
    return Matrix(account["homeserver"], account["token"], since=account["since"], per_s=settings.messages_per_s, burst=settings.burst)


_MAKERS: dict[str, Callable[[Account, Config], Platform]] = {
    "telegram": _telegram,
    "slack": _slack,
    "discord": _discord,
    "matrix": _matrix,
}
