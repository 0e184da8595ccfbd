"""Hand-over, the old process's side: a new process starts next to it, proves itself, and takes over. No turn is interrupted and no
connection is refused. `predecessor` is the other side.

The two talk in lines of JSON over a socket of their own:

    new: {"ready": {"process", "version"}}              it has loaded code and settings, opened the store, and could serve
    old: {"go": true}                                   the old one starts no more turns and sends no more replies
    new: {"serving": true}                              it serves; the old one closes its lock and listener
    old: {"announced": true}                            the service manager knows the new main process

No timer decides who serves. Until "serving" has been said the old process serves and may give the new one up: it first closes the socket
for reading, so that the new one can say nothing more, and reads what was said before; "serving" in there counts. Only a new process that
has not said it is killed. The new one waits for "go" as long as it takes. When the socket breaks, the old process is dying: once its
owner lock is free, the serving lock is the new one's alone, and it serves.

The new process is no child of the old one: it is started through a second fork, so that a service manager takes it for its own. Once it
has loaded its code it begins a session of its own, so that only the foreground process hears Ctrl-C at a terminal; until then it is deaf
to that. Not sooner: Linux shares the processors out among sessions first, and only within one does it matter that loading is less urgent
than serving.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import structlog

from holdfast import processes
from holdfast.core.errors import HandOverFailed, StoppedInstead
from holdfast.core.process_id import ProcessId
from holdfast.store.sqlite.ground import Identity

VARIABLE = "HOLDFAST_SUCCESSION"
READY_S = 30.0
SERVING_S = 15.0
LOOK_S = 0.2
GONE_S, GONE_LOOK_S = 2.0, 0.01
# Forks again and becomes the new program, which so is no child of this process. Writes the new program's pid, or what failed.
LAUNCH = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
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


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What the old process hands over: open descriptors, and what the new one must know about it. `owner`: the name of its lock. The names
    in JSON stay as they are: a process of another version reads them, and refuses or not.
    """

    listener: int
    lock: int
    exit_pipe: int | None = msgspec.field(name="front")
    schema: int
    owner: str
    database: Identity | None = None


class Inheritance(Offer, frozen=True, kw_only=True):
    """`wire`: the socket over which the two talk."""

    wire: int


class Successor(msgspec.Struct, frozen=True, kw_only=True):
    process: ProcessId
    version: str


async def hand_over(
    command: Sequence[str],
    offer: Offer,
    *,
    environment: Mapping[str, str],
    give_way: Callable[[], Awaitable[None]],
    announce: Callable[[Successor], None],
    given_up: Callable[[], bool],
) -> Successor:
    """Starts the new process and hands everything over. `give_way` is awaited before the new process may begin. If this raises
    `HandOverFailed`, the new process is gone and the caller takes back what it gave up in `give_way`. `given_up`: a stop was asked for.
    """
    try:
        ours, theirs = socket.socketpair()
        door = ours.dup()
    except OSError as error:
        raise _not_started(error.strerror) from error
    with door:
        try:
            inheritance = Inheritance(**msgspec.structs.asdict(offer), wire=theirs.fileno())
            with ThreadPoolExecutor(1) as own:  # Others may be stuck, for instance on a disk that does not answer.
                launched = await asyncio.get_running_loop().run_in_executor(own, _launch, command, inheritance, environment)
        except HandOverFailed:
            ours.close()
            raise
        finally:
            theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            successor = msgspec.convert(await _hear(reader, "ready", READY_S, given_up), Successor)
            await give_way()
            with contextlib.suppress(OSError):  # If it is gone, that is noticed next.
                say(door, {"go": True})
            await _hear_serving(reader, door, given_up)
        except BaseException as error:
            # Whatever the reason: it must not keep the lock and the listener that it was given.
            _end(launched)
            if isinstance(error, msgspec.ValidationError | ValueError | OSError):
                raise HandOverFailed(f"it said something unexpected ({error}).") from error
            raise
        else:
            announce(successor)
            with contextlib.suppress(OSError):  # It serves, whether it can still be told or not.
                say(door, {"announced": True})
        finally:
            writer.close()
    return successor


async def _hear_serving(reader: asyncio.StreamReader, door: socket.socket, given_up: Callable[[], bool]) -> None:
    try:
        await _hear(reader, "serving", SERVING_S, given_up)
    except HandOverFailed:
        # This process may have been frozen or busy when it was said. Nothing more can be said after this; what was said is read.
        with contextlib.suppress(OSError):
            door.shutdown(socket.SHUT_RD)
        if not any(isinstance(said, dict) and "serving" in said for said in _understood(await _rest(reader))):
            raise


async def _rest(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except OSError:
        return b""


def _end(launched: ProcessId | None) -> None:
    """Returns when it is gone, so that only one process has the lock and the listener."""
    if launched is not None and processes.send_signal(launched, signal.SIGKILL):
        deadline = time.monotonic() + GONE_S
        while processes.is_alive(launched) and time.monotonic() < deadline:
            time.sleep(GONE_LOOK_S)


def _launch(command: Sequence[str], inherited: Inheritance, environment: Mapping[str, str]) -> ProcessId | None:
    """The new process; None if it is gone already. Blocks until its program has begun, so it is no work for the event loop."""
    try:
        told, tell = os.pipe()
    except OSError as error:
        raise _not_started(error.strerror) from error
    given = [inherited.listener, inherited.lock, inherited.wire, *([] if inherited.exit_pipe is None else [inherited.exit_pipe])]
    with os.fdopen(told, "rb") as wire:
        try:
            subprocess.run(
                [sys.executable, "-I", "-S", "-c", LAUNCH, str(tell), *command],
                pass_fds=[*given, tell],
                env={**environment, VARIABLE: msgspec.json.encode(inherited).decode()},
                check=False,
            )
        except OSError as error:
            raise _not_started(error.strerror) from error
        finally:
            os.close(tell)
        said = dict(line.split(" ", 1) for line in wire.read().decode("utf-8", "replace").splitlines())
    if "pid" not in said or "failed" in said:
        raise _not_started(said.get("failed"))
    return processes.with_pid(int(said["pid"]))


def _not_started(why: str | None) -> HandOverFailed:
    return HandOverFailed(f"it could not be started ({why or 'its launcher ended without saying why'}).")


async def _hear(reader: asyncio.StreamReader, what: str, within_s: float, given_up: Callable[[], bool]) -> Any:
    deadline = time.monotonic() + within_s
    while True:
        try:
            async with asyncio.timeout(LOOK_S):
                return await next_said(reader, what)
        except TimeoutError:
            if given_up():
                raise StoppedInstead from None
            if time.monotonic() >= deadline:
                raise HandOverFailed(f"it was not {what} within {within_s:.0f} s.") from None


async def next_said(reader: asyncio.StreamReader, what: str) -> Any:
    """What the other side says next about `what`. Raises `HandOverFailed` if it is gone or says that it failed."""
    try:
        line = await reader.readline()
    except OSError:  # It died and left something unread.
        line = b""
    if not line:
        raise HandOverFailed(f"it exited before it was {what}; see the log.")
    said = _understood(line)
    if not said or not isinstance(said[0], dict):
        raise HandOverFailed("it said something unexpected.")
    if "failed" in said[0]:
        raise HandOverFailed(str(said[0]["failed"]))
    return said[0].get(what)


def _understood(lines: bytes) -> list[Any]:
    """Empty if a line is not JSON."""
    try:
        return [json.loads(line) for line in lines.splitlines()]
    except ValueError:
        return []


def say(wire: socket.socket, words: dict[str, Any]) -> None:
    """Said when this returns: a line is small enough for the socket to take it whole. Raises `OSError` if nobody can hear it."""
    wire.sendall(json.dumps(words).encode() + b"\n")
