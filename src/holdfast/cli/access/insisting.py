"""Requests that are repeated while the gateway is away: it may be restarting, or about to be started again after a crash."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from holdfast.cli.access.client import ApiError, Client, Unreachable, connect
from holdfast.cli.access.running import NotRunning

T = TypeVar("T")
# How long we wait for a gateway that went away to come back.
COME_BACK_S = 120.0
RETRY_S = 0.2


class Insisting:
    """For one piece of work. `tell` gets a sentence when waiting begins. `until`: the monotonic time after which it gives up with
    `TimeoutError`. `met`: whether the gateway was there before; one that was never there is an error at once.
    """

    def __init__(self, home: Path, *, tell: Callable[[str], None], until: float | None = None, met: bool = False) -> None:
        self._home, self._tell, self._until = home, tell, until
        self.met = met
        self._gone_at: float | None = None

    def __call__(self, ask: Callable[[Client], T]) -> T:
        """Asks until there is an answer. Raises what `ask` raises, and `Unavailable` if the gateway does not come back."""
        while True:
            try:
                client = connect(self._home)
                self.met = True
                result = ask(client)
                self.answered()
                return result
            except (NotRunning, Unreachable) as error:
                if isinstance(error, NotRunning) and not self.met:
                    raise
                self._wait_for_it(error, "The gateway does not answer; waiting for it to come back.")
            except ApiError as error:
                if error.status not in (502, 503):
                    raise
                self._wait_for_it(error, f"{error} Trying again.")
            self.pause()

    def answered(self) -> None:
        """The gateway is there: the next time it goes away is a new absence."""
        self._gone_at = None

    def pause(self) -> None:
        """Between two tries. Raises `TimeoutError`."""
        if self._until is not None and time.monotonic() >= self._until:
            raise TimeoutError
        time.sleep(RETRY_S)

    def _wait_for_it(self, error: Exception, sentence: str) -> None:
        now = time.monotonic()
        if self._gone_at is None:
            self._gone_at = now
            self._tell(sentence)
        if now - self._gone_at > COME_BACK_S:
            raise error
