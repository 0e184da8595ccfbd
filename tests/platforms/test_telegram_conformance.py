"""Telegram holds what every platform has to hold, whether it is asked for what is new or tells it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.telegram import TelegramServer
from tests.platforms.conformance import QUIET, Conformance, shows
from tests.platforms.hooks import HookedPlace
from tests.platforms.notices import Notices
from tests.platforms.rigs import Place, Rig, until
from tests.platforms.telegram_rig import TelegramByWebhook, TelegramRig

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as made:
        yield made


class TestTelegram(Conformance):
    """By long polling, with the real SDK part in front of a server that speaks the Bot API."""

    @pytest.fixture
    def rig(self, server: TelegramServer) -> Rig:
        return TelegramRig(server)


class TestTelegramByWebhook(Conformance):
    """By requests of the server, which come to a real HTTP server in front of the gateway."""

    @pytest.fixture
    def rig(self, server: TelegramServer) -> Rig:
        return TelegramByWebhook(server)

    @pytest.fixture
    def place(self, tmp_path: Path, rig: Rig, server: TelegramServer) -> Place:
        return HookedPlace(tmp_path, rig, server.hook)

    async def test_a_webhook_that_another_program_took_away_is_set_again(self, rig: Rig, place: Place, server: TelegramServer) -> None:
        """P1: what people wrote meanwhile is answered."""
        async with place.life(manners=QUIET):
            await until(lambda: server.webhook)
            server.webhook = {}
            await rig.say("say:hello")
            await shows(rig, "hello")


class TestTelegramNotices(Notices):
    """Ends, returns and commands over the same wire."""

    @pytest.fixture
    def rig(self, server: TelegramServer) -> Rig:
        return TelegramRig(server)
