"""What only one process of a home has: the serving lock, the listening socket, and the way to the foreground process. A hand-over passes
all of it on.
"""

import socket
from contextlib import AsyncExitStack

import msgspec

from holdfast.config import Config
from holdfast.core.errors import HandOverFailed
from holdfast.locks import ServingLock
from holdfast.process.foreground import ExitPipe
from holdfast.process.handover import Inheritance, Offer
from holdfast.process.server import listen
from holdfast.store.sqlite.connection import SCHEMA_VERSION
from holdfast.store.sqlite.ground import Identity


class Place(msgspec.Struct, frozen=True):
    lock: ServingLock
    listener: socket.socket
    exit_pipe: ExitPipe

    def offer(self, *, owner: str, database: Identity | None, awaited: bool) -> Offer:
        """`awaited`: a terminal or a script waits for this process."""
        try:
            exit_pipe = self.exit_pipe.open() if awaited else None
        except OSError as error:
            raise HandOverFailed(f"it could not be started ({error.strerror}).") from error
        return Offer(
            listener=self.listener.fileno(),
            lock=self.lock.descriptor,
            exit_pipe=exit_pipe,
            schema=SCHEMA_VERSION,
            owner=owner,
            database=database,
        )

    def leave(self) -> None:
        """A successor has it. The listener is closed by the server."""
        self.lock.release()
        self.exit_pipe.give_away()


def take(config: Config, inherited: Inheritance | None, closing: AsyncExitStack) -> Place:
    """Raises `AlreadyServing`, `PortTaken`, `NoSuchAddress`, `BadConfig`."""
    lock = ServingLock(config.home, inherited=inherited.lock if inherited else None)
    closing.callback(lock.release)
    listener = socket.socket(fileno=inherited.listener) if inherited else listen(config.host, config.port)
    closing.callback(listener.close)
    return Place(lock, listener, ExitPipe(inherited.exit_pipe if inherited else None))
