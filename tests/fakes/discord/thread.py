"""The server in a thread of its own, for tests that wait for real processes."""

from typing import Any

from tests.fakes.discord.markdown import seen
from tests.fakes.discord.server import DiscordServer
from tests.fakes.threads import ServerThread


class DiscordThread(ServerThread[DiscordServer]):
    def __init__(self) -> None:
        super().__init__(DiscordServer())

    @property
    def url(self) -> str:
        return self.server.base_url

    def say(self, user: str, text: str) -> dict[str, Any]:
        """In the private chat with somebody."""
        return self.do(lambda server: server.say(server.private(user), text, user=user))

    def texts(self, user: str) -> list[str]:
        return self.do(lambda server: [seen(text) for text in server.texts(server.private(user))])
