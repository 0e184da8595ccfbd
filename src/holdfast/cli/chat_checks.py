"""The checks of `holdfast doctor` about chat platforms: whether each token can be read, is accepted, and works in a gateway that runs."""

from collections.abc import Iterator

from holdfast import config
from holdfast.api.status import Status
from holdfast.cli.findings import Finding
from holdfast.config import chats
from holdfast.core.errors import Refused

SET_UP = "`holdfast telegram setup` asks for a token and tries it."


def run_all(settings: config.Config, status: Status | None, *, deep: bool) -> Iterator[Finding]:
    """`deep` asks the platform itself. `status`: of the gateway that runs, if one does."""
    if settings.telegram.configured:
        yield _telegram(settings, status, deep)


def _telegram(settings: config.Config, status: Status | None, deep: bool) -> Finding:
    telegram = settings.telegram
    try:
        token = chats.telegram_token(telegram, settings.home)
    except config.BadConfig as error:
        return Finding("telegram", "fail", str(error), SET_UP)
    if not (telegram.everybody or telegram.allowed_users or telegram.admins or telegram.allowed_chats or telegram.pairing):
        return Finding("telegram", "warn", "Nobody may talk to the bot.", "Set allowed_users in [telegram], or pairing = true.")
    running = next((chat for chat in status.chats if chat.platform == "telegram"), None) if status else None
    if deep:
        from holdfast.cli.chats import TelegramBot

        try:
            bot = TelegramBot(token, telegram.base_url).found
        except Refused as error:
            return Finding("telegram", "fail", str(error), SET_UP)
        return Finding("telegram", "ok", f"@{bot.username} answers")
    if running is not None and running.problem is not None:
        return Finding("telegram", "fail", running.problem, "`holdfast logs` says since when.")
    if running is not None and running.account:
        return Finding("telegram", "ok", f"connected as {running.account}")
    return Finding("telegram", "ok", "a token is set; --deep asks Telegram whose it is")
