"""A gateway in front of a real homeserver that dies at any single step: nothing is lost, nothing doubled, and nothing needs a label."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.matrix import Homeserver, Proxy
from tests.platforms.killing import Far, die_at_each
from tests.platforms.matrix_rig import MatrixRig, World

pytestmark = pytest.mark.anyio

AT_ONCE = 4


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[World]]:
    """Each with rooms and an account of its own."""
    with Homeserver(tmp_path_factory.mktemp("synapse")) as server:
        yield [World(server, str(number)) for number in range(AT_ONCE)]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("kind", "at_least"), [("commit", 10), ("request", 5)])
async def test_killed_at_any_step_each_message_is_answered_once_whole_and_in_order(
    tmp_path: Path, worlds: list[World], kind: str, at_least: int, moment: str
) -> None:
    """P1, P4, B11: as `test_kills.py`, at every other commit, because a real homeserver takes its time. What is stored is the same after a
    commit as before the next one.
    """
    free = list(worlds)

    @asynccontextmanager
    async def far_side() -> AsyncIterator[Far]:
        world = free.pop()
        since = await asyncio.to_thread(world.bot.token_now)
        async with Proxy(world.server.url) as proxy:
            yield Far(MatrixRig(world, proxy, since), proxy.gate)
        free.append(world)

    assert await die_at_each(tmp_path, far_side, kind, moment, stride=2 if kind == "commit" else 1, at_once=AT_ONCE) >= at_least
