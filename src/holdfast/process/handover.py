"""Hand-over: a new process starts beside the old one, proves itself, and takes its place. No turn is cut, no connection refused.

The two talk in lines of JSON over a socket of their own:

    new: {"ready": {"life", "version"}}                 it has loaded code and settings, opened the store, and could serve
    old: {"go": true}                                   the old one starts no more turns and sends no more replies
    new: {"serving": true}                              it serves; the old one lets go of lock and listener
    old: {"announced": true}                            the service manager knows the new main process

Whichever line is missing, or says {"failed": why}, the old one goes on as if nothing had been asked. The new process is no child of the
old one: it is started through a second fork, so that a service manager takes it for its own.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any

import msgspec
import structlog

from holdfast.core.errors import HandOverFailed
from holdfast.core.lives import Life
from holdfast.store.ground import Identity

VARIABLE = "HOLDFAST_SUCCESSION"
READY_S = 30.0
SERVING_S = 15.0
LOOK_S = 0.2
# Forks again and becomes the new program: whoever started it is not its parent. It tells the new program's pid, or what failed.
LAUNCH = """
import os, sys
tell = int(sys.argv[1])
try:
    if pid := os.fork():
        os.write(tell, b"pid %d\\n" % pid)
        os._exit(0)
    os.set_inheritable(tell, False)
    os.execv(sys.argv[2], sys.argv[2:])
except OSError as error:
    os.write(tell, f"failed {error.strerror}\\n".encode())
    os._exit(1)
"""

log = structlog.get_logger()


class Estate(msgspec.Struct, frozen=True, kw_only=True):
    """What the old process leaves: open descriptors, and what the new one must know of it."""

    listener: int
    lock: int
    wire: int
    front: int | None
    schema: int
    pid: int
    database: Identity | None = None


class Successor(msgspec.Struct, frozen=True, kw_only=True):
    life: Life
    version: str


# --- the old process


async def hand_over(
    command: Sequence[str],
    *,
    listener: int,
    lock: int,
    front: int | None,
    schema: int,
    database: Identity | None,
    environment: Mapping[str, str],
    let_go: Callable[[], Awaitable[None]],
    announce: Callable[[Successor], None],
    given_up: Callable[[], bool],
) -> Successor:
    """Starts the new process and gives everything over. `let_go` is awaited before it may begin; when this raises `HandOverFailed`,
    the caller takes back what it let go of.
    """
    try:
        ours, theirs = socket.socketpair()
    except OSError as error:
        raise _not_started(error.strerror) from error
    wire = theirs.fileno()
    estate = Estate(listener=listener, lock=lock, wire=wire, front=front, schema=schema, pid=os.getpid(), database=database)
    try:
        launched = await _launch(command, estate, environment)
    except HandOverFailed:
        ours.close()
        raise
    finally:
        theirs.close()
    reader, writer = await asyncio.open_connection(sock=ours)
    try:
        told = await _hear(reader, "ready", READY_S, given_up)
        successor = msgspec.convert(told, Successor)
        await let_go()
        _say(writer, {"go": True})
        await _hear(reader, "serving", SERVING_S, given_up)
        announce(successor)
        _say(writer, {"announced": True})
        await writer.drain()
    except BaseException as error:
        # Whatever it hangs at, and whoever gave it up: it must not keep the lock and the listener that it was given.
        with contextlib.suppress(ProcessLookupError):
            os.kill(launched, signal.SIGKILL)
        if isinstance(error, msgspec.ValidationError | ValueError | OSError):
            raise HandOverFailed(f"what it said was not understood ({error}).") from error
        raise
    finally:
        writer.close()
    return successor


async def _launch(command: Sequence[str], estate: Estate, environment: Mapping[str, str]) -> int:
    """The pid of the new process."""
    try:
        told, tell = os.pipe()
    except OSError as error:
        raise _not_started(error.strerror) from error
    given = [estate.listener, estate.lock, estate.wire, *([] if estate.front is None else [estate.front])]
    try:
        launcher = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", LAUNCH, str(tell), *command),
            pass_fds=[*given, tell],
            env={**environment, VARIABLE: msgspec.json.encode(estate).decode()},
        )
    except OSError as error:
        os.close(told)
        raise _not_started(error.strerror) from error
    finally:
        os.close(tell)
    await launcher.wait()
    with os.fdopen(told, "rb") as wire:  # At its end the new program has begun, or failed to.
        said = dict(line.split(" ", 1) for line in wire.read().decode("utf-8", "replace").splitlines())
    if "pid" not in said or "failed" in said:
        raise _not_started(said.get("failed"))
    return int(said["pid"])


def _not_started(why: str | None) -> HandOverFailed:
    return HandOverFailed(f"it could not be started ({why or 'its launcher ended without a word'}).")


async def _hear(reader: asyncio.StreamReader, what: str, within_s: float, given_up: Callable[[], bool] = lambda: False) -> Any:
    deadline = time.monotonic() + within_s
    while True:
        try:
            async with asyncio.timeout(LOOK_S):
                line = await reader.readline()
            break
        except TimeoutError:
            if given_up():
                raise HandOverFailed("this process was asked to stop instead.") from None
            if time.monotonic() >= deadline:
                raise HandOverFailed(f"it was not {what} within {within_s:.0f} s.") from None
        except OSError as error:
            raise HandOverFailed(f"it cannot be heard ({error.strerror}).") from error
    if not line:
        raise HandOverFailed(f"it exited before it was {what}; see the log.")
    try:
        said = json.loads(line)
        failed, told = said.get("failed"), said.get(what)
    except (ValueError, AttributeError) as error:
        raise HandOverFailed("what it said was not understood.") from error
    if failed is not None:
        raise HandOverFailed(str(failed))
    return told


def _say(writer: asyncio.StreamWriter, words: dict[str, Any]) -> None:
    writer.write(json.dumps(words).encode() + b"\n")


# --- the new process


def inherited(environment: MutableMapping[str, str]) -> "Estate | None":
    """What an old process left to this one. Taken out of the environment, and kept from this process's own children."""
    text = environment.pop(VARIABLE, None)
    if text is None:
        return None
    estate = msgspec.json.decode(text, type=Estate)
    for descriptor in (estate.listener, estate.lock, estate.wire, estate.front):
        if descriptor is not None:
            os.set_inheritable(descriptor, False)
    return estate


class Heir:
    """The new process's side of the wire."""

    def __init__(self, estate: Estate) -> None:
        self.estate = estate
        self._socket = socket.socket(fileno=estate.wire)
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ready(self, successor: Successor) -> None:
        """Says that it could serve, and waits until it may."""
        self._reader, self._writer = await asyncio.open_connection(sock=self._socket)
        _say(self._writer, {"ready": msgspec.to_builtins(successor)})
        await _hear(self._reader, "go", READY_S)

    async def serving(self) -> None:
        assert self._reader is not None and self._writer is not None
        _say(self._writer, {"serving": True})
        try:
            await _hear(self._reader, "announced", SERVING_S)
        except HandOverFailed as error:  # The old one is gone. One that does not want this process kills it.
            log.warning("the process before this one did not say goodbye", error=str(error))
        self._writer.close()

    def failed(self, why: str) -> None:
        """Before it was ready: the old process is told why, and goes on."""
        with contextlib.suppress(OSError):
            self._socket.setblocking(True)
            self._socket.sendall(json.dumps({"failed": why}).encode() + b"\n")
