"""The server in a thread of its own, for tests that wait for real processes."""

from typing import Any

from tests.fakes.slack.server import Said, SlackServer
from tests.fakes.threads import ServerThread


class SlackThread(ServerThread[SlackServer]):
    def __init__(self) -> None:
        super().__init__(SlackServer())

    @property
    def url(self) -> str:
        return self.server.base_url

    def say(self, channel: str, text: str, *, user: str, **more: Any) -> Said:
        return self.do(lambda server: server.say(channel, text, user=user, **more))

    def texts(self, channel: str) -> list[str]:
        return self.do(lambda server: server.texts(channel))
