"""Every test of this folder runs on every backend."""

from collections.abc import AsyncIterator, Iterator

import pytest

from holdfast.ports.store import Store
from tests.conformance.backends import BACKENDS, Backend, quick_place


@pytest.fixture(params=sorted(BACKENDS))
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    with quick_place() as place:
        yield BACKENDS[request.param](place)


@pytest.fixture
async def store(backend: Backend) -> AsyncIterator[Store]:
    async with backend.opened() as store:
        yield store
