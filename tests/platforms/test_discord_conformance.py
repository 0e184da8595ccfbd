"""Discord holds what every platform has to hold."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.discord import DiscordServer
from tests.platforms.conformance import Conformance
from tests.platforms.discord_rig import DiscordRig
from tests.platforms.rigs import Place, Rig, until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with DiscordServer() as server:
        yield DiscordRig(server)


@pytest.fixture
async def place(tmp_path: Path, rig: Rig) -> Place:
    """A home that was connected before: to a bot Discord tells only what happens from its first login on."""
    made = Place(tmp_path, rig)
    async with made.life() as life:

        async def begun() -> bool:
            return await life.store.cursor(life.gateway.links[rig.name].id) is not None

        await until(begun)
    return made


class TestDiscord(Conformance):
    """By the gateway, with sessions that are resumed."""
