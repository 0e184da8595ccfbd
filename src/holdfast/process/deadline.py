"""The deadline of a stop: set by the first request, from a signal handler too, and kept by the watchdog."""

import threading
import time


class Deadline:
    """`step`: what the stop is doing now, so that a step that hangs can be named. `forced`: a person wants the process to end now, and no
    step is to blame.
    """

    def __init__(self) -> None:
        self._at: float | None = None
        self._wake = threading.Event()
        self.step = "begin"
        self.forced = False

    def set(self, within_s: float) -> None:
        """The first call counts."""
        if self._at is None:
            self._at = time.monotonic() + within_s

    def force(self) -> None:
        self.forced = True
        # In another thread: this one may have been interrupted, by the signal that is handled here, while it held the event's lock.
        threading.Thread(target=self._wake.set, name="force", daemon=True).start()

    def at_step(self, name: str) -> None:
        self.step = name

    def passes_within(self, seconds: float) -> bool:
        """Waits for the deadline, but not longer than that; whether it has passed."""
        left = seconds if self._at is None else max(0.01, min(seconds, self._at - time.monotonic()))
        return self._wake.wait(left) or (self._at is not None and time.monotonic() >= self._at)
