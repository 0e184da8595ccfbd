"""Telegram holds what every platform has to hold."""

from collections.abc import AsyncIterator

import pytest

from tests.fakes.telegram import TelegramServer
from tests.platforms.conformance import Conformance
from tests.platforms.rigs import Rig
from tests.platforms.telegram_rig import TelegramRig

pytestmark = pytest.mark.anyio


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with TelegramServer() as server:
        yield TelegramRig(server)


class TestTelegram(Conformance):
    """By long polling, with the real SDK part in front of a server that speaks the Bot API."""
