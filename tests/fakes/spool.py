"""Spools where there are no threads: what waits for the disk is done at once."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def at_once(call: Callable[..., T], /, *arguments: Any) -> T:
    return call(*arguments)
