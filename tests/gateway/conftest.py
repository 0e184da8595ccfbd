"""A gateway in this process, with its web application."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.conformance.backends import quick_place
from tests.gateway import web


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In memory: what survives a power cut is tested elsewhere."""
    with quick_place() as folder:
        yield folder


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[web.World]:
    async with web.world(tmp_path) as made:
        yield made


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Showing what is logged takes longer than most tests; `structlog.testing.capture_logs` still finds it."""

    def drop(logger: Any, name: str, entry: structlog.typing.EventDict) -> structlog.typing.EventDict:
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[drop])
    yield
    structlog.configure(**before)


@pytest.fixture
async def served(world: web.World) -> AsyncIterator[web.World]:
    """The same, behind a real HTTP server."""
    async with web.serving(world):
        yield world
