"""The tick that stores what running turns say."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway import gateways
from tests.gateway.gateways import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def test_what_very_many_turns_say_at_once_is_stored_by_the_hundred(home: Home) -> None:
    """P8: with a thousand turns in one transaction, a message that came meanwhile waited for all of them."""
    life = home.start()
    pages = [life.open_page() for _ in range(250)]

    async def all_at_once() -> None:
        await asyncio.gather(*(life.gateway.post(page, "say:a|sleep:1|say:b|hang", client_id=None) for page in pages))

    life.do(all_at_once())
    life.pass_s(3)
    second = [item for page in pages for item in life.events(page) if item.kind == "text" and b'"b"' in item.body]
    assert len(second) == 250
    assert max(Counter(item.at for item in second).values()) == 100
