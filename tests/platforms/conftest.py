"""The fixtures of the conformance suite; a platform brings its own `rig`."""

from pathlib import Path

import pytest

from tests.platforms.rigs import Place, Rig


@pytest.fixture
def place(tmp_path: Path, rig: Rig) -> Place:
    return Place(tmp_path, rig)
