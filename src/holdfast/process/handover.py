"""Hand-over: a new process starts next to the old one, proves itself, and takes its place. No turn is interrupted, no connection refused.

The two talk in lines of JSON over a socket of their own:

    new: {"ready": {"process", "version"}}                 it has loaded code and settings, opened the store, and could serve
    old: {"go": true}                                   the old one starts no more turns and sends no more replies
    new: {"serving": true}                              it serves; the old one lets go of lock and listener
    old: {"announced": true}                            the service manager knows the new main process

Who serves is never decided by a timer. Until "serving" has been said the old one serves, and may give the new one up: then it first shuts
the door, so that the new one can say nothing more, and reads what was said before; "serving" in there counts. Only a new one that has not
said it is killed. The new one waits for its "go" as long as it takes. When the wire breaks, the old one is dying: once its lock is free
the serving lock is the new one's alone, and it serves.

The new process is no child of the old one: it is started through a second fork, so that a service manager takes it for its own, and in a
session of its own, so that Ctrl-C at a terminal is heard by the foreground process alone.
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

from holdfast import processes
from holdfast.core.errors import HandOverFailed, StoppedInstead
from holdfast.core.process_id import ProcessId
from holdfast.store.sqlite.ground import Identity

VARIABLE = "HOLDFAST_SUCCESSION"
READY_S = 30.0
SERVING_S = 15.0
LOOK_S = 0.2
GONE_S, GONE_LOOK_S = 2.0, 0.01
# Forks again and becomes the new program: its launcher is not its parent, and no terminal is its own. It tells the new program's
# pid, or what failed.
LAUNCH = """
import os, sys
tell = int(sys.argv[1])
try:
    if pid := os.fork():
        os.write(tell, b"pid %d\\n" % pid)
        os._exit(0)
    os.set_inheritable(tell, False)
    os.setsid()
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


# --- the old process


async def hand_over(
    command: Sequence[str],
    offer: Offer,
    *,
    environment: Mapping[str, str],
    give_way: Callable[[], Awaitable[None]],
    announce: Callable[[Successor], None],
    given_up: Callable[[], bool],
) -> Successor:
    """Starts the new process and gives everything over. `give_way` is awaited before it may begin; when this raises `HandOverFailed`,
    the new process is gone and the caller takes back what it let go of.
    """
    try:
        ours, theirs = socket.socketpair()
        door = ours.dup()
    except OSError as error:
        raise _not_started(error.strerror) from error
    with door:
        inherited = Inheritance(**msgspec.structs.asdict(offer), wire=theirs.fileno())
        try:
            launched = await _launch(command, inherited, environment)
        except HandOverFailed:
            ours.close()
            raise
        finally:
            theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            successor = msgspec.convert(await _hear(reader, "ready", READY_S, given_up), Successor)
            await give_way()
            with contextlib.suppress(OSError):  # One that is gone says nothing more, and that is noticed next.
                _say(door, {"go": True})
            await _hear_serving(reader, door, given_up)
        except BaseException as error:
            # Wherever it hangs, and for whatever reason it was given up: it must not keep the lock and the listener that it was given.
            _end(launched)
            if isinstance(error, msgspec.ValidationError | ValueError | OSError):
                raise HandOverFailed(f"what it said was not understood ({error}).") from error
            raise
        else:
            announce(successor)
            with contextlib.suppress(OSError):  # It serves; whether it lives on is its own affair.
                _say(door, {"announced": True})
        finally:
            writer.close()
    return successor


async def _hear_serving(reader: asyncio.StreamReader, door: socket.socket, given_up: Callable[[], bool]) -> None:
    try:
        await _hear(reader, "serving", SERVING_S, given_up)
    except HandOverFailed:
        # This process may have been frozen, or busy, while it was said. After this nothing more can be said, and all that was is read.
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
    """Returns when it is gone: whatever comes after finds the lock and the listener with one process only."""
    if launched is not None and processes.send_signal(launched, signal.SIGKILL):
        deadline = time.monotonic() + GONE_S
        while processes.is_alive(launched) and time.monotonic() < deadline:
            time.sleep(GONE_LOOK_S)


async def _launch(command: Sequence[str], inherited: Inheritance, environment: Mapping[str, str]) -> ProcessId | None:
    """The new process; None where it is gone already."""
    try:
        told, tell = os.pipe()
    except OSError as error:
        raise _not_started(error.strerror) from error
    given = [inherited.listener, inherited.lock, inherited.wire, *([] if inherited.exit_pipe is None else [inherited.exit_pipe])]
    try:
        launcher = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", LAUNCH, str(tell), *command),
            pass_fds=[*given, tell],
            env={**environment, VARIABLE: msgspec.json.encode(inherited).decode()},
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
    return processes.with_pid(int(said["pid"]))


def _not_started(why: str | None) -> HandOverFailed:
    return HandOverFailed(f"it could not be started ({why or 'its launcher ended without a word'}).")


async def _hear(reader: asyncio.StreamReader, what: str, within_s: float, given_up: Callable[[], bool]) -> Any:
    deadline = time.monotonic() + within_s
    while True:
        try:
            async with asyncio.timeout(LOOK_S):
                return await _next(reader, what)
        except TimeoutError:
            if given_up():
                raise StoppedInstead from None
            if time.monotonic() >= deadline:
                raise HandOverFailed(f"it was not {what} within {within_s:.0f} s.") from None


async def _next(reader: asyncio.StreamReader, what: str) -> Any:
    try:
        line = await reader.readline()
    except OSError:  # It died and left something unread.
        line = b""
    if not line:
        raise HandOverFailed(f"it exited before it was {what}; see the log.")
    said = _understood(line)
    if not said or not isinstance(said[0], dict):
        raise HandOverFailed("what it said was not understood.")
    if "failed" in said[0]:
        raise HandOverFailed(str(said[0]["failed"]))
    return said[0].get(what)


def _understood(lines: bytes) -> list[Any]:
    """Nothing, where a line is not what we say."""
    try:
        return [json.loads(line) for line in lines.splitlines()]
    except ValueError:
        return []


def _say(wire: socket.socket, words: dict[str, Any]) -> None:
    """Said when this returns: a line is small enough for the wire to take it whole. Raises `OSError` when nobody can hear it."""
    wire.sendall(json.dumps(words).encode() + b"\n")


# --- the new process


def inherited(environment: MutableMapping[str, str]) -> "Inheritance | None":
    """What an old process left to this one. Taken out of the environment, and kept from this process's own children."""
    text = environment.pop(VARIABLE, None)
    if text is None:
        return None
    inherited = msgspec.json.decode(text, type=Inheritance)
    for descriptor in (inherited.listener, inherited.lock, inherited.wire, inherited.exit_pipe):
        if descriptor is not None:
            os.set_inheritable(descriptor, False)
    return inherited


class Predecessor:
    """The new process's side of the wire."""

    def __init__(self, inherited: Inheritance) -> None:
        self.inherited = inherited
        self._wire = socket.socket(fileno=inherited.wire)
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ready(self, successor: Successor, is_alive: Callable[[str], bool]) -> None:
        """Says that it could serve, and waits until it may: it is told so, or the old process is gone (its owner is not alive)."""
        self._reader, self._writer = await asyncio.open_connection(sock=self._wire.dup())
        try:
            _say(self._wire, {"ready": msgspec.to_builtins(successor)})
            await _next(self._reader, "go")
        except (HandOverFailed, OSError) as error:
            await self._outlive(is_alive, error)

    async def serving(self, is_alive: Callable[[str], bool]) -> None:
        """Says that it serves. From then on it does, whatever becomes of the old process."""
        try:
            _say(self._wire, {"serving": True})
        except OSError as error:
            await self._outlive(is_alive, error)

    async def announced(self) -> None:
        """Returns when the service manager knows of it, or nobody is left who could say so."""
        assert self._reader is not None and self._writer is not None
        try:
            await _next(self._reader, "announced")
        except HandOverFailed as error:
            log.warning("the process before this one did not say goodbye", error=str(error))
        self._writer.close()

    async def _outlive(self, is_alive: Callable[[str], bool], error: Exception) -> None:
        """Nobody hears this process. An old one that does not want it kills it; one that is gone has left it the serving lock."""
        log.warning("the process before this one does not answer", error=str(error))
        while is_alive(self.inherited.owner):  # noqa: ASYNC110 - a lock of another process has no event.
            await asyncio.sleep(GONE_LOOK_S)

    def failed(self, why: str) -> None:
        """Before it serves: the old process is told why, and goes on."""
        with contextlib.suppress(OSError):
            self._wire.setblocking(True)
            _say(self._wire, {"failed": why})
