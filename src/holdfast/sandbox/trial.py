"""Which sandbox holds on this machine: found out by trying to read the token, and a secret made for the trial, from inside each."""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from holdfast.sandbox import bubblewrap
from holdfast.sandbox.sandbox import FOLDER, Mode, Place, Sandbox
from holdfast.sandbox.view import readable

AUTO = "auto"
TRIAL = ".trial-"
WITHIN_S = 10.0
# A sandbox in which nothing works is no use either, so something must: it comes behind what must not.
LINE = """
cat "$HIDDEN/token" "$SECRET" 2>/dev/null; ls -a "$HIDDEN" "$(dirname "$SECRET")" 2>/dev/null
cd "$WORK" && echo "$WORD" > "$HOME/word" && cat "$HOME/word"
"""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """`secret` is a file that must not be read from inside; `word` must come back."""

    home: Path
    place: Place
    secret: Path
    text: str
    word: str
    path: str


def choose(wanted: str, *, home: Path, shared: Path | None, network: bool, environment: Mapping[str, str]) -> Sandbox:
    """The best sandbox that holds, or the wanted one if it does. `wanted` is auto or a mode, `shared` the folder that all sessions share,
    if they do. Takes about a tenth of a second; blocks.
    """
    path, hidden = environment.get("PATH", os.defpath), home.resolve()
    none = Sandbox(
        mode=Mode.NONE,
        network=network,
        hidden=hidden,
        readable=readable(path, user_home=Path(environment.get("HOME") or "/nonexistent"), hidden=hidden, network=network),
        program=shutil.which(bubblewrap.PROGRAM, path=path) or "",
    )
    if wanted == Mode.NONE:
        return replace(none, missing=("The setting tools.sandbox switches it off.",))
    missing: list[str] = []
    for mode in (Mode.BUBBLEWRAP, Mode.LANDLOCK) if wanted == AUTO else (Mode(wanted),):
        if why := _flaw(replace(none, mode=mode), home, shared, path):
            missing.append(f"{mode.capitalize()}: {why}.")
        else:
            return replace(none, mode=mode, missing=tuple(missing))
    return replace(none, missing=tuple(missing))


def _flaw(sandbox: Sandbox, home: Path, shared: Path | None, path: str) -> str:
    """Why it does not hold; empty if it does."""
    if sys.platform != "linux":
        return "it is for Linux only"
    if sandbox.mode is Mode.BUBBLEWRAP and not sandbox.program:
        return f"the program {bubblewrap.PROGRAM} is not installed"
    try:
        with _trial(home, shared, path) as trial:
            return _judged(_tried(sandbox, trial), trial)
    except subprocess.TimeoutExpired:
        return f"a command in it was not over after {WITHIN_S:.0f} s"
    except OSError as error:
        return f"it could not be tried: {error}"


@contextmanager
def _trial(home: Path, shared: Path | None, path: str) -> Iterator[Trial]:
    """Everything that a trial needs, in one folder that goes when it is over."""
    around = home / FOLDER
    around.mkdir(mode=0o700, exist_ok=True)
    for left in around.glob(f"{TRIAL}*"):
        if time.time() - left.stat().st_mtime > 10 * WITHIN_S:  # By a process that was killed.
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=TRIAL, dir=around, ignore_cleanup_errors=True) as made:
        folder, inside, tmp, secret = (Path(made) / name for name in ("folder", "home", "tmp", secrets.token_hex(16)))
        for each in (folder, inside, tmp):
            each.mkdir(mode=0o700)
        trial = Trial(
            home=home,
            place=Place(shared or folder, inside, tmp),
            secret=secret,
            text=secrets.token_hex(16),
            word=secrets.token_hex(16),
            path=path,
        )
        secret.write_text(trial.text)
        yield trial


def _tried(sandbox: Sandbox, trial: Trial) -> "subprocess.CompletedProcess[str]":
    given = {
        "PATH": trial.path,
        "HIDDEN": str(trial.home),
        "SECRET": str(trial.secret),
        "WORK": str(trial.place.folder),
        "WORD": trial.word,
    }
    return subprocess.run(
        sandbox.command(LINE, trial.place),
        env=given | sandbox.environment(trial.place),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=WITHIN_S,
        start_new_session=True,
    )


def _judged(done: "subprocess.CompletedProcess[str]", trial: Trial) -> str:
    token = _token(trial.home)
    if trial.text in done.stdout or trial.secret.name in done.stdout or (token and token in done.stdout):
        return "the home folder of Holdfast can be read from inside"
    if trial.word not in done.stdout:
        return f"a command in it failed ({' '.join(done.stderr.split())[-200:] or f'exit code {done.returncode}'})"
    return ""


def _token(home: Path) -> str:
    try:
        return (home / "token").read_text().strip()
    except OSError:
        return ""
