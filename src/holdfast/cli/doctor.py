"""The checks of `holdfast doctor`. Each looks at one thing and says what it found; none changes anything."""

import hashlib
import os
import platform
import shutil
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from holdfast import config
from holdfast.api.status import Status
from holdfast.cli import chat_checks, mcp_checks, model_checks
from holdfast.cli.access import offline, running
from holdfast.cli.access.client import connect
from holdfast.cli.findings import Finding
from holdfast.cli.options import chosen_home, home
from holdfast.cli.terminal import program
from holdfast.cli.terminal.layout import count, size
from holdfast.core.blobs import FOLDER
from holdfast.core.errors import HoldfastError
from holdfast.core.spools import Gone, Unreadable
from holdfast.locks import OWNERS, OwnerLocks, living
from holdfast.ports.spool import SpoolFile
from holdfast.sandbox import Sandbox
from holdfast.spool import FOLDER as SPOOL
from holdfast.spool import FolderSpool
from holdfast.store import SqliteStore
from holdfast.store.sqlite import inspection
from holdfast.store.sqlite.connection import SCHEMA_VERSION, UNFIT, file_system
from holdfast.store.sqlite.store import DATABASE

PYTHON = (3, 11)
# Earlier versions could lose committed pages when they restarted a WAL.
SQLITE = (3, 51, 3)
LITTLE_SPACE, NO_SPACE = 1_000_000_000, 100_000_000
CLOCK_SLACK_MS = 60_000
# Holdfast did not exist earlier: a clock before that is wrong.
EARLIEST_S = 1_735_689_600
# Variables of ours that are not settings.
OTHER_VARIABLES = (
    *("HOLDFAST_HOME", "HOLDFAST_DEBUG", "HOLDFAST_SESSION_ID", "HOLDFAST_SESSION_KEY", "HOLDFAST_GENERATION", "HOLDFAST_TURN_ID"),
    *(config.MODEL_KEY, "HOLDFAST_CALL", "HOLDFAST_OWNER", "HOLDFAST_SUPERVISOR", program.COMMAND, program.OWN_WORDS),
)

INSTALL = "On Linux, install bubblewrap (on Debian and Ubuntu: `sudo apt install bubblewrap`) and restart Holdfast."
RESTORE = "Stop the gateway and restore the newest backup: `holdfast restore PATH`. The damaged database is kept."


def run_all(*, deep: bool = False) -> Iterator[Finding]:
    """`deep` reads every attachment whole, which may take minutes, asks every model something, loads every module of an agent, and starts
    every MCP server and every agent that is another program.
    """
    folder = home()
    found = running.find(folder)
    settings = config.Config(home=folder)
    try:
        settings = config.load(os.environ, home=chosen_home())
        yield from _settings(folder)
    except config.BadConfig as error:
        yield Finding("settings", "fail", str(error))
    yield _python()
    yield _sqlite()
    yield from _home(folder)
    yield _file_system(folder)
    yield _disk(folder)
    yield from _gateway(folder, found)
    yield _port(settings, found)
    yield _token(folder)
    yield from _database(folder, found.alive, deep)
    yield _sandbox(settings, found)
    if settings.mcp:
        yield from mcp_checks.run_all(settings, _said(folder, found), deep=deep, sandbox=lambda: _tried_sandbox(settings))
    yield from chat_checks.run_all(settings, _said(folder, found), deep=deep)
    yield from model_checks.run_all(settings, gateway_alive=found.alive, deep=deep, folder=_started_in(found))


def _started_in(found: running.Found) -> Path:
    """The folder of the gateway that runs, if one does, else this one: modules are looked for there."""
    if found.alive and found.status is not None:
        try:
            return Path(psutil.Process(found.status.pid).cwd())
        except psutil.Error:
            pass  # It has just ended, or belongs to somebody else.
    return Path.cwd()


def _settings(folder: Path) -> Iterator[Finding]:
    named = {*config.VARIABLES.values(), *OTHER_VARIABLES}
    unknown = sorted(name for name in os.environ if name.startswith("HOLDFAST_") and name not in named)
    if unknown:
        yield Finding(
            "settings", "warn", f"{', '.join(unknown)}: not a setting, so it has no effect.", "`holdfast config` lists the settings."
        )
    else:
        file = folder / config.FILE
        yield Finding("settings", "ok", f"read from {file}" if file.exists() else "defaults and variables; there is no config.toml")


def _python() -> Finding:
    said = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info < PYTHON:
        return Finding("python", "fail", said + ".", "Holdfast needs Python 3.11 or newer.")
    return Finding("python", "ok", said)


def _sqlite() -> Finding:
    version = inspection.sqlite_version()
    if tuple(int(part) for part in version.split(".")) < SQLITE:
        wanted = ".".join(map(str, SQLITE))
        return Finding("sqlite", "fail", f"{version}, which can lose data in WAL mode.", f"Install an apsw with SQLite {wanted} or newer.")
    return Finding("sqlite", "ok", version)


def _home(folder: Path) -> Iterator[Finding]:
    try:
        found = folder.stat()
    except FileNotFoundError:
        yield Finding("home", "warn", f"{folder} does not exist yet.", "`holdfast serve` creates it.")
        return
    except OSError as error:
        yield Finding("home", "fail", f"{folder} cannot be accessed: {error.strerror}.", "Choose another with --home.")
        return
    if not stat.S_ISDIR(found.st_mode):
        yield Finding("home", "fail", f"{folder} is not a folder.", "Choose another with --home.")
    elif found.st_uid != os.geteuid():
        yield Finding(
            "home",
            "fail",
            f"{folder} belongs to another user (uid {found.st_uid}).",
            "Run Holdfast as that user, or choose another folder with --home.",
        )
    elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("home", "fail", f"{folder} cannot be written.", f"chmod 700 {folder}")
    elif found.st_mode & 0o077:
        yield Finding("home", "warn", f"Other users can read {folder}.", f"chmod 700 {folder}")
    else:
        yield Finding("home", "ok", f"{folder}, private")
        yield from _open_files(folder)


def _open_files(folder: Path) -> Iterator[Finding]:
    for name in (DATABASE, config.TOKEN, config.FILE, config.LOG):
        try:
            if (folder / name).stat().st_mode & 0o077:
                yield Finding("files", "warn", f"Other users can read {folder / name}.", f"chmod 600 {folder / name}")
        except OSError:
            continue


def _file_system(folder: Path) -> Finding:
    kind = file_system(_existing(folder))
    if kind in UNFIT:
        return Finding("file system", "fail", f"{kind} cannot hold the database safely.", "Choose a folder on a local disk with --home.")
    return Finding("file system", "ok", kind or "unknown on this system; it must be a local disk")


def _disk(folder: Path) -> Finding:
    free = shutil.disk_usage(_existing(folder)).free
    said = f"{size(free)} free"
    if free < NO_SPACE:
        return Finding("disk", "fail", f"Only {said}.", "Free some space: a full disk means that no message is accepted.")
    if free < LITTLE_SPACE:
        return Finding("disk", "warn", f"Only {said}.", "Free some space before it runs out.")
    return Finding("disk", "ok", said)


def _existing(folder: Path) -> Path:
    return next(each for each in (folder, *folder.parents) if each.exists())


def _gateway(folder: Path, found: running.Found) -> Iterator[Finding]:
    status = found.status
    if status is None:
        yield Finding("gateway", "ok", "not running")
        return
    if not found.alive:
        last = status.gateway_state
        if last in ("stopped", "startup_failed"):
            yield Finding("gateway", "ok" if last == "stopped" else "warn", f"not running; its last state was {last}")
        else:
            yield Finding(
                "gateway",
                "warn",
                f"Process {status.pid} died; its last state was {last}.",
                "Start it again with `holdfast serve`: interrupted work is resumed.",
            )
        return
    try:
        said = connect(folder).status()
    except HoldfastError as error:
        yield Finding(
            "gateway",
            "fail",
            f"Process {status.pid} is alive, but: {error}",
            "See `holdfast logs`; then `holdfast stop`, and start it again.",
        )
        return
    if said.safe_mode:
        advice = "`holdfast logs` shows why; `holdfast resume --all` ends it."
        yield Finding("safe mode", "warn", "Several starts in a row crashed: no interrupted work is resumed automatically.", advice)
    if said.degraded:
        yield Finding("gateway", "fail", f"It cannot store anything: {said.degraded}.", "Messages are refused until that is fixed.")
    else:
        yield Finding("gateway", "ok", f"process {status.pid} answers at {status.url}")


def _said(folder: Path, found: running.Found) -> Status | None:
    """What the running gateway says about itself now, or its file says."""
    try:
        return connect(folder).status() if found.alive else None
    except HoldfastError:
        return found.status


def _port(settings: config.Config, found: running.Found) -> Finding:
    if found.alive and found.status and found.status.url and urlsplit(found.status.url).port == settings.port:
        return Finding("port", "ok", f"{settings.port}, used by our own process {found.status.pid}")
    if settings.port == 0:
        return Finding("port", "ok", "any free one")
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            text = f"{settings.host}:{settings.port} is not available ({error.strerror}){_holder(settings.port)}."
            return Finding("port", "fail", text, "Stop that program, or choose another port with --port (0 takes a free one).")
    return Finding("port", "ok", f"{settings.host}:{settings.port} is free")


def _holder(port: int) -> str:
    """Which program has it, if the system says so."""
    try:
        for link in psutil.net_connections("tcp"):
            if link.status == psutil.CONN_LISTEN and link.laddr and link.laddr[1] == port and link.pid:
                return f": process {link.pid} ({psutil.Process(link.pid).name()}) has it"
    except psutil.Error:
        pass
    return ""


def _token(folder: Path) -> Finding:
    try:
        token = config.read_token(folder)
    except config.BadConfig as error:
        return Finding("token", "fail", str(error), "`holdfast token rotate` creates a new one.")
    if token is None:
        return Finding("token", "warn", "There is no token yet.", "`holdfast serve` creates one.")
    if len(token) < 32:
        return Finding(
            "token", "warn", "It is so short that it could be guessed.", "`holdfast token rotate` creates one of 32 random bytes."
        )
    return Finding("token", "ok", "present")


def _database(folder: Path, gateway_alive: bool, deep: bool) -> Iterator[Finding]:
    async def look(store: SqliteStore, lines: inspection.ReadingLines) -> list[Finding]:
        return [
            await _integrity(folder, store, lines),
            await _clock(lines),
            await _owners(folder, store, gateway_alive),
            await _quarantine(lines),
            await _journal(folder, store, gateway_alive),
            await _attachments(folder, lines, deep),
        ]

    try:
        yield from offline.read(folder, look)
    except offline.NothingHere:
        yield Finding("database", "ok", "none yet")
        yield _sane_clock()
    except offline.Unreadable as error:
        yield Finding("database", "fail", f"It cannot be read: {error.why}.", RESTORE)
    except HoldfastError as error:
        yield Finding("database", "fail", str(error))


async def _integrity(folder: Path, store: SqliteStore, lines: inspection.ReadingLines) -> Finding:
    found = await lines.read(inspection.quick_check)
    if found != "ok":
        return Finding("database", "fail", f"It is damaged: {found}.", RESTORE)
    sessions = (await store.counts()).sessions
    return Finding("database", "ok", f"sound, schema {SCHEMA_VERSION}, {count(sessions, 'session')}, {size(_bytes(folder))}")


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob(f"{DATABASE}*"))


async def _attachments(folder: Path, lines: inspection.ReadingLines, deep: bool) -> Finding:
    known = await lines.read(inspection.blob_files)
    lost = sum(not _is_whole(folder / FOLDER / file, length, digest if deep else None) for digest, file, length in known)
    if lost:
        advice = "Send those files again, or restore a backup that has them: `holdfast restore PATH`."
        return Finding("attachments", "fail", f"{lost} of {count(len(known), 'file')} missing or damaged.", advice)
    checked = "every byte read" if deep else "sizes checked; --deep reads every byte"
    said = f"{count(len(known), 'file')}, {size(sum(length for _, _, length in known))} ({checked})" if known else "none"
    return Finding("attachments", "ok", said)


def _is_whole(path: Path, length: int, digest: str | None) -> bool:
    """Also its bytes are looked at where there is a digest to hold them to."""
    try:
        if not path.is_file() or path.stat().st_size != length:
            return False
        if digest is None:
            return True
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == digest
    except OSError:
        return False


async def _clock(lines: inspection.ReadingLines) -> Finding:
    ahead_ms = await lines.read(inspection.newest_at) - time.time_ns() // 1_000_000
    if ahead_ms > CLOCK_SLACK_MS:
        late = f"The clock is {ahead_ms // 1000} s behind the newest record."
        return Finding("clock", "warn", late, "Set it (NTP): ages and expiry times are wrong until it has caught up.")
    return _sane_clock()


def _sane_clock() -> Finding:
    if time.time() < EARLIEST_S:
        return Finding("clock", "fail", f"It says {time.strftime('%Y-%m-%d')}, which is in the past.", "Set it (NTP).")
    return Finding("clock", "ok", time.strftime("%Y-%m-%d %H:%M:%S %Z"))


async def _owners(folder: Path, store: SqliteStore, gateway_alive: bool) -> Finding:
    alive = {found.name for found in living(folder)}
    left = [path.name for path in (folder / OWNERS).glob("[!.]*") if path.name not in alive]
    running = {owner.id for owner in await store.owners() if owner.name in alive}
    interrupted = [session for session in await store.open_turns(apart_from=0) if session.owner not in running]
    if not left and not interrupted:
        return Finding("owners", "ok", "no process died unexpectedly")
    turns = f" {count(len(interrupted), 'turn')} interrupted." if interrupted else ""
    advice = "The running gateway handles that." if gateway_alive else "The next start handles that: interrupted work is resumed."
    return Finding(
        "owners", "ok" if gateway_alive else "warn", f"{count(len(left), 'process', 'processes')} died unexpectedly.{turns}", advice
    )


async def _quarantine(lines: inspection.ReadingLines) -> Finding:
    number = await lines.read(inspection.quarantined)
    if number:
        return Finding(
            "quarantine",
            "warn",
            f"{count(number, 'event')} could not be read (in quarantine).",
            "Check the disk; a backup may have them.",
        )
    return Finding("quarantine", "ok", "empty")


async def _journal(folder: Path, store: SqliteStore, gateway_alive: bool) -> Finding:
    """What turns recorded while the database was locked, and what conversations still wait for."""
    spool, locks = FolderSpool(folder), OwnerLocks(folder)
    late = len(await store.late_journals(limit=1000))
    files, hidden = spool.look()
    if hidden:
        places = ", ".join(f"{folder / SPOOL / (each.owner or '')} ({each.why})" for each in hidden[:3])
        advice = f"Check the disk, and make everything in {folder / SPOOL} readable for this user."
        return Finding("journal", "fail", f"{count(len(hidden), 'folder')} of spools cannot be listed: {places}.", advice)
    bad = [file.name for file in files if not _is_sound(spool, file)]
    if bad:
        advice = "Check the disk. `holdfast journal verify` says what can be read, `holdfast journal ship` stores that."
        return Finding("journal", "warn", f"{count(len(bad), 'spool')} cannot be read as a whole: {', '.join(bad[:3])}.", advice)
    if late:
        return Finding("journal", "warn", f"{count(late, 'journal')} of interrupted turns missing.", "`holdfast journal show` names them.")
    left = [file for file in files if not locks.alive(file.owner)]
    if left and not gateway_alive:
        return Finding("journal", "warn", f"{count(len(left), 'spool')} of processes that are gone.", "The next start stores them.")
    said = f"{count(len(files), 'spool')}, {size(sum(file.size for file in files))}, not stored yet" if files else "everything is stored"
    return Finding("journal", "ok", said)


def _is_sound(spool: FolderSpool, file: SpoolFile) -> bool:
    try:
        return not spool.read_now(file).damaged
    except Gone:
        return True  # It was stored in the meantime.
    except Unreadable:
        return False


def _sandbox(settings: config.Config, found: running.Found) -> Finding:
    """As the running gateway found it; otherwise tried now, in the home folder itself where there is one."""
    if found.alive and found.status and found.status.sandbox:
        said = found.status.sandbox
        return _said_of_sandbox(settings, said.mode, said.gaps, said.missing)
    tried = _tried_sandbox(settings)
    return _said_of_sandbox(settings, tried.mode, tried.gaps, tried.missing)


def _tried_sandbox(settings: config.Config) -> Sandbox:
    from holdfast.sandbox.trial import choose

    with tempfile.TemporaryDirectory() as nowhere:
        return choose(
            settings.tools.sandbox,
            home=settings.home if settings.home.is_dir() else Path(nowhere),
            shared=config.tools_folder(settings) if settings.tools.shared else None,
            network=settings.tools.network,
            environment=os.environ,
        )


def _said_of_sandbox(settings: config.Config, mode: str, gaps: Sequence[str], missing: Sequence[str]) -> Finding:
    if mode != "none":
        return Finding("sandbox", "ok", f"{mode}, tried. {' '.join(gaps)}")
    open_to_others = settings.host not in config.LOOPBACK
    return Finding(
        "sandbox",
        "warn",
        f"Terminal commands are not sandboxed. {' '.join((*missing, *gaps))}",
        "Anyone who can sign in can run commands as you: go back to 127.0.0.1." if open_to_others else INSTALL,
    )
