"""Slack holds what every platform has to hold."""

from collections.abc import AsyncIterator

import pytest

from tests.fakes.slack import SlackServer
from tests.platforms.conformance import Conformance
from tests.platforms.rigs import Rig
from tests.platforms.slack_rig import SlackRig

pytestmark = pytest.mark.anyio


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with SlackServer() as server:
        yield SlackRig(server)


class TestSlack(Conformance):
    """By Socket Mode, with the real SDK parts in front of a server that speaks Slack's wire."""
