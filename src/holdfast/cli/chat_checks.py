"""The checks of `holdfast doctor` about chat platforms: whether each secret can be read, is accepted, and works in a gateway that runs."""

from collections.abc import Iterator

from holdfast import config
from holdfast.api.status import Status
from holdfast.cli.findings import Finding
from holdfast.cli.terminal.layout import count
from holdfast.config import chats
from holdfast.config.chats.doors import Doors
from holdfast.core.errors import Refused


def run_all(settings: config.Config, status: Status | None, *, deep: bool) -> Iterator[Finding]:
    """`deep` asks the platforms themselves. `status`: of the gateway that runs, if one does."""
    for platform, table in config.chat_accounts(settings).items():
        if chats.configured(platform, table):
            yield _check(platform, table, settings, status, deep)


def _check(platform: str, table: Doors, settings: config.Config, status: Status | None, deep: bool) -> Finding:
    title, set_up = chats.PLATFORMS[platform].title, f"`holdfast {platform} setup` asks for what is needed and tries it."
    try:
        account = chats.account(platform, table, settings.home)
    except config.BadConfig as error:
        return Finding(platform, "fail", str(error), set_up)
    if not table.anybody:
        return Finding(platform, "warn", "Nobody may talk to the bot.", f"Set allowed_users in [{platform}], or pairing = true.")
    if deep:
        from holdfast.cli.chats import Bot

        try:
            found = Bot(platform, account).found
        except Refused as error:
            return Finding(platform, "fail", str(error), set_up)
        return Finding(platform, "ok", f"{found.name} answers")
    running = next((chat for chat in status.chats if chat.platform == platform), None) if status else None
    if running is not None and running.problem is not None:
        return Finding(platform, "fail", running.problem, "`holdfast logs` says since when.")
    if running is not None and running.refused:
        told = f"{count(running.refused, 'update')} of {title} could not be read since the start"
        return Finding(platform, "warn", f"{told}; everything else is.", "`holdfast logs` says why. They are kept: report them as a bug.")
    if running is not None and running.account:
        return Finding(platform, "ok", f"connected as {running.account}")
    return Finding(platform, "ok", f"a token is set; --deep asks {title} whose it is")
