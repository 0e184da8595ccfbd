"""The platforms that a configuration asks for. The SDK of one that it does not ask for is not loaded."""

from holdfast.config import Config, public_origin
from holdfast.config.chats import telegram_token
from holdfast.config.errors import BadConfig
from holdfast.core.rights import Policy
from holdfast.ports.platforms import Platform

HOOKS = "/hooks"


def make(config: Config) -> dict[str, Platform]:
    """By name. Raises `BadConfig`."""
    made: dict[str, Platform] = {}
    if config.telegram.configured:
        made["telegram"] = _telegram(config)
    return made


def policies(config: Config) -> dict[str, Policy]:
    """Who may talk, by platform."""
    return {"telegram": config.telegram.policy}


def _telegram(config: Config) -> Platform:
    token = telegram_token(config.telegram, config.home)
    try:
        from holdfast.platforms.telegram.platform import Telegram
    except ImportError as error:
        raise BadConfig('Telegram needs its SDK. Install it with `pip install "holdfast[telegram]"`.') from error
    webhook = f"{public_origin(config)}{HOOKS}/telegram" if config.telegram.webhook else ""
    return Telegram(token, base_url=config.telegram.base_url, webhook=webhook)
