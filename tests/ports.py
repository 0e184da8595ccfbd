"""Ports for servers that are started by their number, and started again."""

import contextlib
import socket
from random import SystemRandom


def free_port() -> int:
    """None of those that systems give to clients: it must still be free when the server comes back."""
    while True:
        port = SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
