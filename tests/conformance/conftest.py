"""Every test of this folder runs on every backend; those of what operations do also where writes are gathered."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from holdfast.ports.store import Store
from tests.conformance.backends import BACKENDS, Backend, quick_place
from tests.conformance.buffering import GatheringBackend

GATHERED = ("test_causes", "test_commands", "test_fencing", "test_inbox", "test_lanes", "test_left")
ALL: dict[str, Callable[[Path], Backend]] = {**BACKENDS, "gathering": GatheringBackend}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        gathered = metafunc.module.__name__.rpartition(".")[2] in GATHERED
        metafunc.parametrize("backend", sorted(ALL if gathered else BACKENDS), indirect=True)


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    with quick_place() as place:
        yield ALL[request.param](place)


@pytest.fixture
async def store(backend: Backend) -> AsyncIterator[Store]:
    async with backend.opened() as store:
        yield store
