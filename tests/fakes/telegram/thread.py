"""The server in a thread of its own, for tests that wait for real processes."""

from typing import Any

from tests.fakes.telegram.server import TelegramServer
from tests.fakes.threads import ServerThread


class TelegramThread(ServerThread[TelegramServer]):
    def __init__(self) -> None:
        super().__init__(TelegramServer())

    @property
    def url(self) -> str:
        return self.server.base_url

    def say(self, chat: int, text: str, **more: Any) -> dict[str, Any]:
        return self.do(lambda server: server.say(chat, text, **more))

    def texts(self, chat: int) -> list[str]:
        return self.do(lambda server: server.texts(chat))
