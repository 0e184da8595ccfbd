"""What most tools have in common: they leave nothing running and need no sandbox."""

from collections.abc import Callable
from typing import Any

from holdfast.core.effects import Effect


class PlainTool:
    """A tool that is over when its call is. What it says here is what is true of most; a tool says otherwise where it must."""

    description = ""
    schema: dict[str, Any] = {"type": "object"}  # noqa: RUF012 - nobody changes a schema.
    version = ""

    def effect(self, arguments: dict[str, Any]) -> Effect:
        return Effect.UNSAFE

    async def ready(self) -> None:
        return None

    def place(self, session_id: str, folder: str | None) -> str:
        return ""

    def confined(self, arguments: dict[str, Any]) -> bool:
        return False

    def shared(self, arguments: dict[str, Any]) -> bool:
        return False

    async def reap(self, lives: Callable[[str], bool]) -> int:
        return 0

    async def stop(self, turn_id: str) -> int:
        return 0

    async def end_session(self, session_id: str) -> int:
        return 0

    async def kept(self) -> list[str]:
        return []

    async def forget(self, session_id: str) -> None:
        return None
