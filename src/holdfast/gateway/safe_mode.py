"""Safe mode: several starts in a row died, so nothing is resumed by itself. Messages are answered as always."""

import asyncio

import structlog

log = structlog.get_logger()


class SafeMode:
    """`left`: it was on, and is no more."""

    def __init__(self) -> None:
        self.on = False
        self.left = asyncio.Event()

    def enter(self, *, starts_that_died: int | None) -> None:
        log.error("safe mode: nothing is resumed by itself", starts_that_died=starts_that_died)
        self.on = True

    def leave(self, because: str) -> None:
        if self.on:
            log.info("safe mode ends", because=because)
            self.on = False
            self.left.set()
