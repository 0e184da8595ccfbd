"""Whether an event loop is there for others all the time, on a machine that may be busy with other things."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

# By the clock on the wall a busy machine may take so many times as long.
BUSY = 10


@asynccontextmanager
async def undisturbed(most_s: float) -> AsyncIterator[None]:
    """Nothing holds the loop up for longer than this. Time in which this process did not compute is the machine's affair, up to a point."""
    computed_s = passed_s = 0.0

    async def beat() -> None:
        nonlocal computed_s, passed_s
        while True:
            used, began = time.process_time(), time.monotonic()
            await asyncio.sleep(0.001)
            took_s = time.monotonic() - began
            computed_s = max(computed_s, min(time.process_time() - used, took_s))
            passed_s = max(passed_s, took_s)

    task = asyncio.get_running_loop().create_task(beat())
    try:
        yield
    finally:
        task.cancel()
    assert computed_s < most_s and passed_s < BUSY * most_s, (
        f"the loop was held up for {passed_s:.2f} s, of which {computed_s:.2f} s computing"
    )
