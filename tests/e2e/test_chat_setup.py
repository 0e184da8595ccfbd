"""`holdfast PLATFORM setup` at a terminal: a person is asked, the account is tried, the first one to write is let in, and docs/chats.md
shows what stands on the screen, letter by letter.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.serving import ROOT, wait_until
from tests.e2e.window import Window
from tests.fakes.discord import server as discord_server
from tests.fakes.discord.thread import DiscordThread
from tests.fakes.matrix import entrance
from tests.fakes.matrix.entrance import EntranceThread
from tests.fakes.slack import server as slack_server
from tests.fakes.slack.thread import SlackThread
from tests.fakes.telegram import server as telegram_server
from tests.fakes.telegram.thread import TelegramThread

DOCUMENT = (ROOT / "docs" / "chats.md").read_text()
HOME = "/home/ann/.holdfast"
# Of Slack's manifest the document shows the beginning.
MANIFEST, BEGINNING = (
    re.compile(r"^\{\n.*?^\}$", re.MULTILINE | re.DOTALL),
    '{\n  "display_information": {\n    "name": "Holdfast"\n  },\n  ...\n}',
)


def documented(platform: str) -> str:
    [found] = re.findall(rf"^```\n(\$ holdfast {platform} setup\n.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)
    return str(found)


class Screen:
    """A terminal of somebody whose home folder is empty, and who has an agent."""

    def __init__(self, folder: Path, platform: str, window: Window) -> None:
        self._home, self._platform, self.window = folder / ".holdfast", platform, window

    def answer(self, question: str, words: str) -> None:
        self.window.wait_for(question)
        self.window.press(f"{words}\n")

    def waits_for_somebody(self) -> None:
        self.window.wait_for("Waiting for three minutes")

    def shown(self, **replaced: str) -> str:
        """Everything, once it has ended well. `replaced`: what stands in the document in the place of something else."""
        assert self.window.wait() == 0, self.window.text
        text = MANIFEST.sub(lambda _: BEGINNING, self.window.text.replace(str(self._home), HOME))
        for name, value in replaced.items():
            text = text.replace(value, name)
        lines = [line.rstrip() for line in text.rstrip("\n").split("\n")]
        return "\n".join([f"$ holdfast {self._platform} setup", *lines, ""])

    def written(self) -> dict[str, object]:
        table = tomllib.loads((self._home / "config.toml").read_text())[self._platform]
        assert isinstance(table, dict)
        return table

    def secret(self, name: str) -> str:
        path = self._home / f"{self._platform}.{name}"
        assert path.stat().st_mode & 0o777 == 0o600
        return path.read_text().strip()


@contextmanager
def screen(folder: Path, platform: str, *words: str) -> Iterator[Screen]:
    own = {"HOME": str(folder), "HOLDFAST_AGENT_MODULE": "tests.e2e.telling:agent"}
    command = [sys.executable, "-m", "holdfast", platform, "setup", *words]
    with Window(command, cwd=folder, columns=500, variables=own) as window:
        yield Screen(folder, platform, window)


def test_telegram(tmp_path: Path) -> None:
    with TelegramThread() as telegram, screen(tmp_path, "telegram", "--base-url", telegram.url) as ann:
        ann.answer("Token (not shown)", telegram_server.TOKEN)
        ann.waits_for_somebody()
        telegram.say(100, "hello there", **{"from": {"id": 100, "is_bot": False, "first_name": "Ann"}})
        ann.answer("Is that you?", "y")
        ann.answer("As an admin?", "y")
        assert ann.shown() == documented("telegram")
        assert ann.written() == {"token_file": "telegram.token", "base_url": telegram.url, "allowed_users": ["100"], "admins": ["100"]}
        assert ann.secret("token") == telegram_server.TOKEN


def test_who_talks_need_not_be_an_admin(tmp_path: Path) -> None:
    with TelegramThread() as telegram, screen(tmp_path, "telegram", "--base-url", telegram.url) as ann:
        ann.answer("Token (not shown)", telegram_server.TOKEN)
        ann.waits_for_somebody()
        telegram.say(100, "hello there", **{"from": {"id": 100, "is_bot": False, "first_name": "Ann"}})
        ann.answer("Is that you?", "y")
        ann.answer("As an admin?", "n")
        assert "Allowed to talk: 100. " in ann.shown()
        assert ann.written() == {"token_file": "telegram.token", "base_url": telegram.url, "allowed_users": ["100"]}


def test_slack(tmp_path: Path) -> None:
    with SlackThread() as slack, screen(tmp_path, "slack", "--base-url", slack.url) as ann:
        slack.do(lambda server: server.names.update(U100="Ann"))
        ann.answer("Bot token (xoxb-", slack_server.BOT_TOKEN)
        ann.answer("App token (xapp-", slack_server.APP_TOKEN)
        ann.waits_for_somebody()
        slack.say("D100", "hello there", user="U100")
        ann.answer("Is that you?", "y")
        ann.answer("As an admin?", "y")
        assert ann.shown() == documented("slack")
        files = {"bot_token_file": "slack.bot_token", "app_token_file": "slack.app_token"}
        assert ann.written() == {**files, "base_url": slack.url, "allowed_users": ["U100"], "admins": ["U100"]}
        assert (ann.secret("bot_token"), ann.secret("app_token")) == (slack_server.BOT_TOKEN, slack_server.APP_TOKEN)


def test_discord(tmp_path: Path) -> None:
    with DiscordThread() as discord, screen(tmp_path, "discord", "--base-url", discord.url) as ann:
        ann.answer("Token (not shown)", discord_server.TOKEN)
        ann.waits_for_somebody()
        wait_until(lambda: bool(discord.do(lambda server: server.gateway.entered)))
        author = {"id": "100", "username": "ann", "discriminator": "0", "global_name": "Ann", "avatar": None}
        discord.do(lambda server: server.say(server.private("100"), "hello there", user="100", author=author))
        ann.answer("Is that you?", "y")
        ann.answer("As an admin?", "y")
        assert ann.shown() == documented("discord")
        assert ann.written() == {"token_file": "discord.token", "base_url": discord.url, "allowed_users": ["100"], "admins": ["100"]}
        assert ann.secret("token") == discord_server.TOKEN


def test_matrix(tmp_path: Path) -> None:
    with EntranceThread() as homeserver, screen(tmp_path, "matrix") as ann:
        ann.answer("Homeserver (", homeserver.url)
        ann.answer("Account (", entrance.USER)
        ann.answer("Password (", entrance.PASSWORD)
        ann.waits_for_somebody()
        homeserver.invite("@ann:example.org", "Ann")
        ann.answer("Is that you?", "y")
        ann.answer("As an admin?", "y")
        assert ann.shown(**{"https://matrix.example.org": homeserver.url}) == documented("matrix")
        assert ann.secret("token") == entrance.TOKEN and entrance.PASSWORD not in str(ann.written())
        assert ann.written() | {"since": ""} == {
            "homeserver": homeserver.url,
            "device_id": "DEVICE",
            "since": "",
            "token_file": "matrix.token",
            "allowed_users": ["@ann:example.org"],
            "admins": ["@ann:example.org"],
        }
