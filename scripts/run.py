"""Prepares .venv and runs the project's own words: test, check, sim, soak, bench, mutate. Standard library only.

`./run` starts this when .venv is not ready or when the first word is one of those. Words it does not know go to
`holdfast`. What it has to say goes to standard error, so that `./run status --json` can be piped on the first run too.
"""

import argparse
import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

ROOT = Path(__file__).resolve().parent.parent
RUNTIME = ROOT / "requirements.lock"
DEVELOPMENT = ROOT / "requirements-dev.lock"

# How pip announces the next package, from an index, from a file, or as one it has.
FOUND = re.compile(r"(?:Collecting|Processing|Requirement already satisfied:) (?:\S*/)?([A-Za-z][\w.-]*?)(?:==|-\d)")

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


class Environment(NamedTuple):
    """A Python environment. `locks`: what it may be made from, each holding what those before it hold."""

    folder: Path
    locks: tuple[Path, ...]

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def stamp(self, lock: Path) -> Path:
        return self.folder / lock.name


OURS = Environment(ROOT / ".venv", (RUNTIME, DEVELOPMENT))
# The real Matrix server of the tests.
HOMESERVER = Environment(ROOT / ".venv-homeserver", (ROOT / "requirements-homeserver.lock",))
PYTHON = OURS.python


def main(words: Sequence[str]) -> int:
    word, rest = (words[0], words[1:]) if words else ("serve", ())
    if word not in WORDS:
        prepare(OURS, RUNTIME)
        os.execv(PYTHON, [str(PYTHON), "-P", "-m", "holdfast", word, *rest])
    prepare(OURS, DEVELOPMENT)
    os.chdir(ROOT)
    return WORDS[word](rest)


# The environment


def prepare(environment: Environment, lock: Path) -> None:
    """Make the environment hold what `lock` asks for. Safe when started twice at once, and after being killed at any point.

    A copy of each installed lock file lies inside it. The copies go before anything changes and come back when everything is in place, so
    an environment without one was cut short and is made again from nothing.
    """
    if is_installed(environment, lock):
        return
    started = time.monotonic()
    with exclusive(environment) as held:
        if is_installed(environment, lock):
            return
        if not environment.python.exists() or not any(environment.stamp(each).exists() for each in environment.locks):
            make_venv(environment, held)
        for each in environment.locks:
            environment.stamp(each).unlink(missing_ok=True)
        install(environment, lock, held)
        if environment is OURS:
            add_source()
        for each in environment.locks[: environment.locks.index(lock) + 1]:
            unfinished = environment.stamp(each).with_suffix(".new")
            shutil.copyfile(each, unfinished)
            unfinished.replace(environment.stamp(each))
    say(f"Ready in {time.monotonic() - started:.0f} s.")


def is_installed(environment: Environment, lock: Path) -> bool:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return environment.python.exists() and environment.stamp(lock).read_bytes() == lock.read_bytes()
    return False


@contextlib.contextmanager
def exclusive(environment: Environment) -> Iterator[int]:
    """Hold the lock on an environment. Installers inherit it: one that outlives a killed `./run` still keeps others out."""
    name = environment.folder.name
    try:
        held = os.open(ROOT / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        fail(f"Cannot write to {ROOT}, where {name} is made: {error.strerror}.")
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"Another ./run is preparing {name}; waiting for it ...")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield held
    finally:
        os.close(held)


def make_venv(environment: Environment, held: int) -> None:
    # The resolved name carries the version (python3.11), so that a system upgrade to another Python leaves a dangling
    # link, which is noticed, and not an interpreter that looks into the wrong folder.
    base = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = environment.folder
    if not can_import(base, "ensurepip", "venv"):
        install_packages([f"python{version}-venv"], "to make a Python environment")
    say(f"Making {folder.name} with Python {version} ...")
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
    made = subprocess.run([base, "-m", "venv", folder], capture_output=True, text=True, pass_fds=(held,))
    if made.returncode != 0:
        fail(f"Could not make {folder.name}:", made.stdout + made.stderr)


def can_import(python: str, *modules: str) -> bool:
    return subprocess.run([python, "-c", f"import {', '.join(modules)}"], capture_output=True).returncode == 0


def install(environment: Environment, lock: Path, held: int) -> None:
    names = [line.partition("==")[0] for line in lock.read_text().splitlines() if line[:1].isalnum()]
    say(f"Installing {len(names)} packages from {lock.name} ...")
    command = [str(environment.python), "-m", "pip", "install", "--require-hashes", "--no-deps", "--requirement", str(lock)]
    command += ["--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
    output: list[str] = []
    count = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", pass_fds=(held,)) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            output.append(line)
            if seen := FOUND.match(line):
                count += 1
                show_progress(f"  {count}/{len(names)} {seen[1]}")
            elif line.startswith("Installing "):
                show_progress("  unpacking")
    show_progress("")
    if pip.returncode != 0:
        fail(f"Could not install {lock.name}; nothing is lost, run this again. The installer said:", "".join(output))


def add_source() -> None:
    """Let our own environment import holdfast from src/. The line is relative, so the folder may be moved as a whole."""
    for packages in OURS.folder.glob("lib/python3*/site-packages"):
        (packages / "holdfast.pth").write_text(os.path.relpath(ROOT / "src", packages) + "\n")


def install_packages(packages: Sequence[str], purpose: str) -> None:
    """Install packages of the system (Debian and its kin), or say which ones are missing."""
    names = " ".join(packages)
    become_root = [] if os.geteuid() == 0 else ["sudo"] if sys.stdin.isatty() else ["sudo", "-n"]
    if not shutil.which("apt-get") or (become_root and not shutil.which("sudo")):
        fail(f"Missing {purpose}: {names}. Install it (on Debian: apt-get install {names}) and run this again.")
    say(f"Installing {names} with apt-get, {purpose} ...")
    apt = [*become_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=300"]
    # One unreachable source makes an update fail that may still be good enough: the installation decides.
    updated = subprocess.run([*apt, "update"], capture_output=True, text=True)
    installed = subprocess.run([*apt, "install", "--yes", "--no-install-recommends", *packages], capture_output=True, text=True)
    if installed.returncode != 0:
        said = updated.stderr + installed.stdout + installed.stderr
        fail(f"Could not install {names}. Install it by hand and run this again. apt-get said:", said)


# The project's own words


def check(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./run check", description="Format, lint, types, imports, SQL that every engine takes, and the built page."
    )
    parser.add_argument("--fix", action="store_true", help="format, and fix what the linter can fix")
    fix = parser.parse_args(words).fix
    python = str(PYTHON)
    typed = [name for name in ("src", "tests", "scripts", "bench") if any((ROOT / name).rglob("*.py"))]
    steps = {
        "format": [python, "-m", "ruff", "format", *([] if fix else ["--check"]), "."],
        "lint": [python, "-m", "ruff", "check", *(["--fix"] if fix else []), "."],
        "types": [python, "-m", "mypy", *typed],
        "imports": [python, "-c", "import importlinter.cli as cli; cli.lint_imports_command()"],
        "engines": [python, "-m", "scripts.engines", "--check"],
    }
    if (ROOT / "page").is_dir():
        steps["page"] = [python, "scripts/page_check.py"]
    started = time.monotonic()
    failed = []
    for name, command in steps.items():
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            failed.append(name)
            print(f"--- {name}", done.stdout + done.stderr, sep="\n", flush=True)
    verdict = f"FAILED ({', '.join(failed)})" if failed else f"passed ({', '.join(steps)})"
    say(f"check: {verdict}, {time.monotonic() - started:.1f} s")
    return 1 if failed else 0


def test(words: Sequence[str]) -> int:
    if words:
        find_homeserver(words)
        in_browser = any("browser" in word for word in words)
        find_axe(required=in_browser)
        find_page_tools(required=in_browser)
        find_tool_servers(words)
        return pytest(words, find_browser(required=in_browser))
    return run_module("scripts.suite", ROOT / "scripts" / "suite.py", ())


def sim(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="./run sim", description="Simulated faults; other words go to pytest.")
    parser.add_argument("--seeds", type=int, metavar="N", help="how many seeds to try")
    options, rest = parser.parse_known_args(words)
    if options.seeds is not None:
        os.environ["HOLDFAST_SIM_SEEDS"] = str(options.seeds)
    return pytest(["tests/sim", *rest], None)


def soak(words: Sequence[str]) -> int:
    """With a homeserver, unless it cannot be installed: then the soak says what it does without. About the page, with a browser."""
    if "--page" in words:
        os.environ["HOLDFAST_TEST_BROWSER"] = find_browser(required=True) or ""
    elif not {"--random", "--help", "-h"} & set(words):
        with contextlib.suppress(SystemExit):
            find_homeserver()
    return run_module("bench.soak", ROOT / "bench" / "soak.py", words)


def bench(words: Sequence[str]) -> int:
    return run_module("bench", ROOT / "bench" / "__main__.py", words)


def mutate(words: Sequence[str]) -> int:
    return run_module("scripts.mutate", ROOT / "scripts" / "mutate.py", words)


WORDS: dict[str, Callable[[Sequence[str]], int]] = {
    "test": test,
    "check": check,
    "sim": sim,
    "soak": soak,
    "bench": bench,
    "mutate": mutate,
}


def pytest(words: Sequence[str], browser: str | None) -> int:
    environment = dict(os.environ)
    if browser:
        environment["HOLDFAST_TEST_BROWSER"] = browser
    process = subprocess.Popen([PYTHON, "-m", "pytest", *words], env=environment)
    try:
        return process.wait()
    except KeyboardInterrupt:
        # The terminal sent the interrupt to pytest too; it is about to say what it was doing.
        process.wait()
        raise


def find_browser(*, required: bool) -> str | None:
    if required:
        missing = [] if installed_browser() else ["chromium"]
        # The node that playwright brings along links against this library, which a small Debian does not have.
        driver = next(OURS.folder.glob("lib/python3*/site-packages/playwright/driver/node"), None)
        if driver and subprocess.run([driver, "--version"], capture_output=True).returncode != 0:
            missing.append("libatomic1")
        if missing:
            install_packages(missing, "to test the page in a browser")
    return installed_browser()


def find_axe(*, required: bool) -> None:
    """The packages of tests/browser: axe, which looks for what some people could not read or use, and the examples of the Markdown
    specification.
    """
    if required:
        install_with_npm(ROOT / "tests" / "browser", "axe", "to check that everybody can read the page")


def find_page_tools(*, required: bool) -> None:
    """What builds the page and runs its own tests. Where it cannot be installed, those tests say that they were not run."""
    if required:
        with contextlib.suppress(SystemExit):
            install_with_npm(ROOT / "page", "what tests the page", "to run the page's own tests")


def find_tool_servers(words: Sequence[str] = ()) -> None:
    """The packages of tests/e2e/servers: servers of tools (MCP) as people install them."""
    if not words or any("mcp" in word or word.rstrip("/") in ("tests", "tests/e2e") for word in words):
        install_with_npm(ROOT / "tests" / "e2e" / "servers", "a server of tools", "to test the servers of tools that people use")


def install_with_npm(folder: Path, what: str, why: str) -> None:
    """What the lock file of a folder has, unless it is there."""
    lock, stamp = folder / "package-lock.json", folder / "node_modules" / "lock"
    if stamp.exists() and stamp.read_bytes() == lock.read_bytes():
        return
    if not shutil.which("npm"):
        install_packages(["npm"], why)
    say(f"Installing {what} with npm ...")
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"Could not install {what}, which the tests need; nothing is lost, run this again. npm said:", done.stdout + done.stderr)
    shutil.copyfile(lock, stamp)


def find_service_manager() -> None:
    """A systemd to test services under. It runs in namespaces of its own, which only root can make; others are told what was skipped."""
    if sys.platform == "linux" and os.geteuid() == 0 and shutil.which("apt-get") and not Path("/lib/systemd/systemd").exists():
        install_packages(["systemd"], "to test services")


def find_proxy() -> None:
    """An nginx to test behind. Others than root are told what was skipped."""
    if sys.platform == "linux" and os.geteuid() == 0 and shutil.which("apt-get") and not shutil.which("nginx"):
        install_packages(["nginx"], "to test behind a reverse proxy")


def find_homeserver(words: Sequence[str] = ()) -> None:
    """A real Matrix server, where tests need one."""
    wanted = not words or any(name in word for word in words for name in ("platforms", "matrix", "soak"))
    if wanted and any((ROOT / "tests" / "platforms").glob("test_*matrix*.py")):
        prepare(HOMESERVER, HOMESERVER.locks[0])


def find_sandbox() -> None:
    """A bubblewrap to test in. Others than root are told what was skipped."""
    if sys.platform == "linux" and os.geteuid() == 0 and shutil.which("apt-get") and not shutil.which("bwrap"):
        install_packages(["bubblewrap"], "to test the sandbox of commands")


def installed_browser() -> str | None:
    chosen = os.environ.get("HOLDFAST_TEST_BROWSER")
    return next(filter(None, map(shutil.which, [chosen] if chosen else BROWSERS)), None)


def run_module(module: str, source: Path, words: Sequence[str]) -> int:
    if not source.exists():
        fail(f"There is no {source.relative_to(ROOT)} to run.")
    os.execv(PYTHON, [str(PYTHON), "-m", module, *words])


# What a person sees


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def show_progress(text: str) -> None:
    """Overwrite one line of the terminal; anywhere else, stay silent."""
    if sys.stderr.isatty():
        columns = shutil.get_terminal_size().columns
        print(f"\r\x1b[K{text[: columns - 1]}", end="", file=sys.stderr, flush=True)


def fail(text: str, output: str = "") -> NoReturn:
    say(text)
    for line in output.splitlines()[-20:]:
        say(f"  {line}")
    sys.exit(1)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:  # A full disk, a file in the way, a folder that is not ours: the system's own words say which.
        fail(f"Could not start: {f'{error.filename}: ' if error.filename else ''}{error.strerror or error}. Fix that, and run this again.")
