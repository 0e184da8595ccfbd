"""Ports for servers that are started by their number, and started again."""

import contextlib
import socket
from random import SystemRandom

# A TCP port is claimed by holding the UDP port of the same number, which nothing here uses: while a server is being started or has been
# killed nobody listens, and another test, in this process or another one, must not be given its port.
_CLAIMS: list[socket.socket] = []


def free_port() -> int:
    """None of those that systems give to clients: it must still be free when the server comes back. It is this process's until its end."""
    while True:
        port = SystemRandom().randrange(20_000, 32_000)
        claim = socket.socket(type=socket.SOCK_DGRAM)
        with contextlib.suppress(OSError), socket.socket() as probe:
            claim.bind(("127.0.0.1", port))
            probe.bind(("127.0.0.1", port))
            _CLAIMS.append(claim)
            return port
        claim.close()
