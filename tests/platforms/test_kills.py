"""A gateway that dies at any single step of intake, streaming and delivery, on each platform: nothing is lost, nothing silently doubled."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.discord import DiscordServer
from tests.fakes.slack import SlackServer
from tests.fakes.telegram import TelegramServer
from tests.platforms.discord_rig import DiscordRig
from tests.platforms.killing import Far, Open, die_at_each
from tests.platforms.slack_rig import SlackOverHttp, SlackRig
from tests.platforms.telegram_rig import TelegramByWebhook, TelegramRig

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def telegram_by_polling() -> AsyncIterator[Far]:
    async with TelegramServer() as server:
        yield Far(TelegramRig(server), server.gate)


@asynccontextmanager
async def telegram_by_webhook() -> AsyncIterator[Far]:
    async with TelegramServer() as server:
        yield Far(TelegramByWebhook(server), server.gate, server.hook)


@asynccontextmanager
async def slack_by_socket() -> AsyncIterator[Far]:
    async with SlackServer() as server:
        yield Far(SlackRig(server), server.gate)


@asynccontextmanager
async def slack_over_http() -> AsyncIterator[Far]:
    async with SlackServer() as server:
        yield Far(SlackOverHttp(server), server.gate, server.hook)


@asynccontextmanager
async def discord() -> AsyncIterator[Far]:
    async with DiscordServer() as server:
        yield Far(DiscordRig(server), server.gate, begins=True)


FAR_SIDES = (telegram_by_polling, telegram_by_webhook, slack_by_socket, slack_over_http, discord)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("kind", "at_least"), [("commit", 16), ("request", 4)])
@pytest.mark.parametrize("far_side", FAR_SIDES, ids=lambda made: made.__name__)
async def test_killed_at_any_step_each_message_is_answered_once_whole_and_in_order(
    tmp_path: Path, far_side: Open, kind: str, at_least: int, moment: str
) -> None:
    """P1, P4, B11: LESSONS' table of kills, at each platform's own wire. Where the platform calls us, every other commit: only the way in
    is another one there.
    """
    every_other = kind == "commit" and far_side in (telegram_by_webhook, slack_over_http)
    assert await die_at_each(tmp_path, far_side, kind, moment, stride=2 if every_other else 1) >= at_least // (1 + every_other)
