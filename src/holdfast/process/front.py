"""The process that a terminal or a script waits for. Its successors serve; it stays, passes signals on, and ends as they end."""

import contextlib
import json
import os
import select
import signal
from typing import Any

from holdfast import processes
from holdfast.core.lives import Life, life_in

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
DIED = 1


def tell(descriptor: int | None, words: dict[str, Any]) -> None:
    """To the process in front, if there is one: who serves now, or with which code it ended."""
    if descriptor is not None:
        with contextlib.suppress(OSError):
            os.write(descriptor, json.dumps(words).encode() + b"\n")


def stay(descriptor: int, life: Life, *, unheard: list[int]) -> int:
    """Until the last successor has ended; its exit code, or 1 if it died without one. `unheard`: signals it could not pass on before."""
    serving = [life]

    def pass_on(number: int, frame: object = None) -> None:
        processes.send(serving[-1], number)

    for number in SIGNALS:
        signal.signal(number, pass_on)
    heard, code = b"", DIED
    while True:
        while unheard and not select.select([descriptor], [], [], 0)[0]:  # Everything that was said is known.
            pass_on(unheard.pop(0))
        part = os.read(descriptor, 4096)
        if not part:  # It has said its code, or not, and is gone: so are its lock and its port.
            return code
        *lines, heard = (heard + part).split(b"\n")
        for line in lines:
            said = json.loads(line)
            if "exit" in said:
                code = int(said["exit"])
            elif successor := life_in(said):
                serving.append(successor)
