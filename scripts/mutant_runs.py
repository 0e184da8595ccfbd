"""How a small wrong change is tried: in a process of its own, which has the change in memory and runs the tests. No file is touched."""

import ast
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import os
import select
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import TextIO

import anyio  # noqa: F401 - loaded once, for all processes that are forked.
import apsw  # noqa: F401
import hypothesis  # noqa: F401
import msgspec  # noqa: F401
import pytest
import structlog  # noqa: F401

from scripts.mutations import Mutant, mutants

ROOT = Path(__file__).parents[1]
AT_ONCE = 2
SLOW, SLOWER_S, LONG_S = 5, 10.0, 0.1
PYTEST = (
    "-x",
    "-q",
    "--no-header",
    "--tb=no",
    "-p",
    "no:cacheprovider",
    "--hypothesis-seed=0",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
)


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


def of(module: str) -> Iterator[Mutant]:
    return mutants(source_of(module).read_text())


def alone() -> None:
    """For a process that was just forked: what it starts can be ended with it."""
    os.setpgid(0, 0)
    silent()


def silent() -> None:
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silence, descriptor)


class Fork:
    """A plugin of pytest, for a process that tries a change: it ends at once with the first failure, or with the last test."""

    forked = True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self.forked and report.failed:
            os._exit(1)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if self.forked:
            os._exit(1 if exitstatus else 0)


class Ordered(Fork):
    """Runs tests in this order."""

    def __init__(self, order: Sequence[str]) -> None:
        self._places = {test: place for place, test in enumerate(order)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self._places.get(item.nodeid, 0))


def start(module: str, tree: ast.Module, tests: Sequence[str], order: Sequence[str]) -> int:
    """The process that tries it. Its exit code is 0 when no test failed."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    alone()
    sys.meta_path.insert(0, Swapped(f"holdfast.{module}", source_of(module), tree))
    pytest.main([*PYTEST, *tests], plugins=[Ordered(order)])
    os._exit(1)  # Not even the tests could be read.


def changed(was: CodeType, now: CodeType) -> dict[str, CodeType] | None:
    """The functions that differ, by their names; None where something else differs."""
    if (was.co_code, was.co_names, _values(was)) != (now.co_code, now.co_names, _values(now)):
        return None
    found: dict[str, CodeType] = {}
    for old, new in zip(_parts(was), _parts(now), strict=True):
        inner = {new.co_qualname: new} if new.co_flags & inspect.CO_OPTIMIZED else changed(old, new)
        if inner is None:
            return None
        found |= inner if old != new else {}
    return found


def _values(code: CodeType) -> list[object]:
    return [CodeType if isinstance(value, CodeType) else value for value in code.co_consts]


def _parts(code: CodeType) -> list[CodeType]:
    return [value for value in code.co_consts if isinstance(value, CodeType)]


def function(module: object, name: str) -> FunctionType | None:
    found: object = module
    for part in name.split("."):
        found = inspect.getattr_static(found, part, None)
    if isinstance(found, property):
        found = found.fget
    found = getattr(found, "func", getattr(found, "__func__", found))
    return found if isinstance(found, FunctionType) else None


class Tries:
    """As many at a time as there are cores; one that takes far longer than the tests do counts as noticed."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._running: dict[int, tuple[str, float]] = {}
        self.noticed: list[str] = []
        self.survived: list[str] = []

    def wait(self) -> None:
        while len(self._running) >= AT_ONCE:
            self._look()

    def add(self, name: str, pid: int) -> None:
        self._running[pid] = name, time.monotonic()

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
                (self.noticed if status else self.survived).append(name)
                return
        select.select([], [], [], 0.005)


class Collected(Fork):
    """Once the tests are collected, every change to a function is tried in a fork, which runs them, those that take long last."""

    forked = False

    def __init__(self, module: str, skipped: set[str], write: Callable[[str], object]) -> None:
        self._module, self._skipped, self._write = module, skipped, write
        self._took: TextIO | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        super().pytest_runtest_logreport(report)
        if self._took is not None:
            self._took.write(f"{report.duration}\t{report.nodeid}\n")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """None in a fork, which goes on to run the tests."""
        if session.testsfailed:
            return None
        took = tempfile.TemporaryFile("w+", buffering=1)
        began, unchanged = time.monotonic(), os.fork()
        if not unchanged:
            alone()
            self.forked, self._took = True, took
            return None
        if os.waitpid(unchanged, 0)[1]:
            raise SystemExit(1)
        with took:
            long_last(session.items, took)
        return self._try_all(session, Tries(limit_s=SLOWER_S + SLOW * (time.monotonic() - began)))

    def _try_all(self, session: pytest.Session, tries: Tries) -> bool | None:
        gc.freeze()  # A fork need not copy what a collection would touch.
        module = sys.modules[f"holdfast.{self._module}"]
        was = compiled(self._module, ast.parse(source_of(self._module).read_text()))
        for mutant in of(self._module):
            found = None if mutant.name in self._skipped else changed(was, compiled(self._module, mutant.tree))
            functions = {name: function(module, name) for name in found or ()}
            if not found or None in functions.values():
                continue
            tries.wait()
            if pid := os.fork():
                tries.add(mutant.name, pid)
                continue
            alone()
            self.forked = True
            for name, code in found.items():
                functions[name].__code__ = code  # type: ignore[union-attr]
            return None
        tries.finish()
        order = [item.nodeid for item in session.items]
        for result, names in (("noticed", tries.noticed), ("survived", tries.survived), ("order", order)):
            for name in names:
                self._write(f"{result}\t{name}\n")
        return True


def long_last(items: list[pytest.Item], took: TextIO) -> None:
    times: defaultdict[str, float] = defaultdict(float)
    took.seek(0)
    for line in took:
        seconds, _, test = line.rstrip("\n").partition("\t")
        times[test] += float(seconds)
    items.sort(key=lambda item: times[item.nodeid] if times[item.nodeid] > LONG_S else 0.0)


def compiled(module: str, tree: ast.Module) -> CodeType:
    code: CodeType = compile(ast.fix_missing_locations(tree), str(source_of(module)), "exec")
    return code


def try_functions(module: str, tests: Sequence[str], skipped: set[str]) -> dict[str, list[str]]:
    """The changes to functions that were `noticed` and those that `survived`; and the tests, in the `order` in which to run them."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        os.close(reader)
        silent()
        with os.fdopen(writer, "w") as out:
            code = pytest.main([*PYTEST, *tests], plugins=[Collected(module, skipped, out.write)])
            out.flush()
            os._exit(1 if code else 0)
    os.close(writer)
    found: dict[str, list[str]] = {"noticed": [], "survived": [], "order": []}
    with os.fdopen(reader) as lines:
        for line in lines:
            result, _, name = line.rstrip("\n").partition("\t")
            found[result].append(name)
    if os.waitpid(pid, 0)[1]:
        raise SystemExit(f"The tests of {module} fail without any change: {' '.join(tests)}")
    return found
