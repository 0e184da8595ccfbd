"""`./run mutate [MODULES]`: makes small wrong changes to the modules that decide, and lists those that no test of theirs notices.

Each change is tried in a process of its own, forked from one that has loaded pytest, with the changed module in memory: no file is
touched, and a try costs what its tests cost. What survives is either a test that is missing or judged in docs/mutants.md.
"""

import argparse
import ast
import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import select
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio  # noqa: F401 - loaded once, for all processes that are forked.
import apsw  # noqa: F401
import hypothesis  # noqa: F401
import msgspec  # noqa: F401
import pytest
import structlog  # noqa: F401

from scripts.mutations import Mutant, mutants

ROOT = Path(__file__).parents[1]
JUDGED = ROOT / "docs" / "mutants.md"
WORDS, DIAGRAMS = "tests/core/test_words.py", "tests/core/test_diagrams.py"
FOLD = (
    "tests/core/test_transcript.py",
    "tests/core/test_steps.py",
    "tests/core/test_tables.py",
    "tests/core/test_transcript_damage.py",
    "tests/core/test_transcript_decisions.py",
    "tests/core/test_transcript_signs.py",
    "tests/core/test_transcript_any.py",
)


def _own_first(own: str, others: str) -> tuple[str, ...]:
    return (own, others) if (ROOT / own).exists() else (others,)


# What is tried: the modules that decide, and the tests that are to notice. The quickest come first.
TESTS: dict[str, tuple[str, ...]] = {
    "core.resume": (WORDS, "tests/core/test_resume.py", DIAGRAMS),
    "core.blame": (WORDS, "tests/core/test_blame.py"),
    "core.stops": ("tests/core/test_stops.py",),
    "core.turns": (WORDS, DIAGRAMS, "tests/core/test_tables.py"),
    "core.lifecycle": (WORDS, DIAGRAMS, "tests/core/test_tables.py"),
    "core.transcript": FOLD,
    "core.steps": FOLD,
    "core.messages": FOLD,
    "core.rows": FOLD,
    "core.signs": FOLD,
    **{
        f"core.plans.{path.stem}": _own_first(f"tests/core/plans/test_{path.stem}.py", "tests/core/plans")
        for path in sorted((ROOT / "src" / "holdfast" / "core" / "plans").glob("*.py"))
        if path.stem != "__init__"
    },
}
AT_ONCE = 2
SLOW, SLOWER_S = 5, 10.0
PYTEST = ("-x", "-q", "--no-header", "-p", "no:cacheprovider", "--hypothesis-seed=0", "-W", "ignore::pytest.PytestAssertRewriteWarning")


class Swapped(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module from a tree instead of its file."""

    def __init__(self, module: str, path: Path, tree: ast.Module) -> None:
        self._module, self._path, self._tree = module, path, tree

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != self._module:
            return None
        return importlib.util.spec_from_file_location(name, self._path, loader=self)

    def exec_module(self, module: object) -> None:
        exec(compile(ast.fix_missing_locations(self._tree), str(self._path), "exec"), vars(module))


def source_of(module: str) -> Path:
    path = ROOT / "src" / "holdfast" / Path(*module.split("."))
    return path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"


def start(module: str, tree: ast.Module, tests: Sequence[str]) -> int:
    """The process that tries it. Its exit code is 0 when no test failed."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    os.setpgid(0, 0)
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silence, descriptor)
    sys.meta_path.insert(0, Swapped(f"holdfast.{module}", source_of(module), tree))
    os._exit(1 if pytest.main([*PYTEST, *tests]) else 0)


class Tries:
    """As many at a time as there are cores; one that takes far longer than the tests do counts as noticed."""

    def __init__(self, module: str, limit_s: float) -> None:
        self._module, self._limit_s = module, limit_s
        self._running: dict[int, tuple[str, float]] = {}
        self.survived: list[str] = []
        self.tried = 0

    def add(self, name: str, tree: ast.Module) -> None:
        while len(self._running) >= AT_ONCE:
            self._look()
        self._running[start(self._module, tree, TESTS[self._module])] = name, time.monotonic()
        self.tried += 1

    def finish(self) -> None:
        while self._running:
            self._look()

    def _look(self) -> None:
        for pid, (name, began) in list(self._running.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            if not done and time.monotonic() - began > self._limit_s:
                os.killpg(pid, signal.SIGKILL)
                done, status = os.waitpid(pid, 0)
            if done:
                del self._running[pid]
                if status == 0:
                    self.survived.append(name)
                return
        select.select([], [], [], 0.005)


def judged() -> dict[str, set[str]]:
    """The mutants that docs/mutants.md judges, by module."""
    found: dict[str, set[str]] = {}
    module = ""
    for line in JUDGED.read_text().splitlines() if JUDGED.exists() else ():
        if heading := re.fullmatch(r"## `([\w.]+)`.*", line):
            module = heading[1]
        elif row := re.match(r"- (.+? -> `.*?`(?: #\d+)?): ", line):
            found.setdefault(module, set()).add(row[1])
    return found


def of(module: str) -> Iterator[Mutant]:
    return mutants(source_of(module).read_text())


def mutate(module: str, accepted: set[str]) -> list[str]:
    """Those that survive and are not judged."""
    began = time.monotonic()
    unchanged = start(module, ast.parse(source_of(module).read_text()), TESTS[module])
    if os.waitpid(unchanged, 0)[1]:
        raise SystemExit(f"The tests of {module} fail without any change: {' '.join(TESTS[module])}")
    tries = Tries(module, limit_s=SLOWER_S + SLOW * (time.monotonic() - began))
    lines = {}
    for mutant in of(module):
        if mutant.name not in accepted:
            lines[mutant.name] = mutant.line
            tries.add(mutant.name, mutant.tree)
    tries.finish()
    took_s = time.monotonic() - began
    print(f"{module}: {tries.tried} tried, {len(tries.survived)} survived, {len(accepted)} judged, {took_s:.0f} s", flush=True)
    for name in tries.survived:
        print(f"  line {lines[name]}: - {name}: ")
    return tries.survived


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="./run mutate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"default: all of {', '.join(TESTS)}")
    modules = parser.parse_args(words).modules or list(TESTS)
    if unknown := [module for module in modules if module not in TESTS]:
        parser.error(f"no tests are named for {', '.join(unknown)}; it can be {', '.join(TESTS)}")
    accepted = judged()
    left = [name for module in modules for name in mutate(module, accepted.get(module, set()))]
    print(f"mutate: {len(left)} changes that no test notices and nobody judged" if left else "mutate: every change is noticed or judged")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
