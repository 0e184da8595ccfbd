"""A bot at a workspace of its own."""

from collections.abc import AsyncIterator

import pytest

from holdfast.platforms.slack.platform import Slack
from tests.fakes.slack import SlackServer
from tests.fakes.slack.server import APP_TOKEN, BOT_TOKEN


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer() as made:
        yield made


@pytest.fixture
async def bot(server: SlackServer) -> AsyncIterator[Slack]:
    made = Slack(BOT_TOKEN, app_token=APP_TOKEN, base_url=server.base_url, lag_s=0.01)
    await made.connect()
    yield made
    await made.aclose()
