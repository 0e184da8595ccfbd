"""The sandboxes that this machine has."""

import os
from pathlib import Path

import pytest

from holdfast.sandbox import Sandbox
from holdfast.sandbox.trial import choose


def holding(mode: str, home: Path, *, shared: Path | None = None, network: bool = True) -> Sandbox:
    """One that holds. What cannot be tested on this machine is skipped, and says why."""
    found = choose(mode, home=home, shared=shared, network=network, environment=os.environ)
    if found.mode != mode:
        pytest.skip(f"NOT TESTED HERE: {' '.join(found.missing)}")
    return found
