"""The small wrong changes that `./run mutate` tries, and the list of those that were judged."""

import ast

import pytest

from holdfast.core import history
from scripts.mutant_runs import ROOT, changed, function, of, source_of
from scripts.mutate import TESTS, judged
from scripts.mutations import mutants


def changes(source: str) -> list[str]:
    return [mutant.name.partition(": ")[2] for mutant in mutants(source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", ["`a < b` -> `a <= b`", "`a < b` -> `a >= b`"]),
        ("x = a and b", ["`a and b` -> `a or b`", "`a and b` -> `b`", "`a and b` -> `a`"]),
        ("x = not a", ["`not a` -> `a`"]),
        ("x = {1: a}", ["`1` -> `2`", "`1: a` -> `(removed)`"]),
        ("x = (a, b)", ["`a` -> `(removed)`", "`b` -> `(removed)`"]),
        ("x = [a for a in b if c]", ["`c` -> `(removed)`"]),
        ("x = f(a=b)", ["`a=b` -> `(removed)`"]),
        ("X = A | B | tuple[int, str]", []),
        ("__all__ = ['a', 'b']", []),
        ("x = a | b", ["`a | b` -> `a`"]),
        ("x = max(a)", ["`max(a)` -> `min(a)`"]),
        ("x = a if b else c", ["`a if b else c` -> `a`", "`a if b else c` -> `c`"]),
        ("def f():\n    g()\n    return a", ["`g()` -> `(removed)`", "`return a` -> `return None`"]),
        ("def f(a: int = 1) -> 'str':\n    'doc'", ["`1` -> `2`"]),
    ],
)
def test_each_construct_is_changed_in_every_way_that_may_matter(source: str, expected: list[str]) -> None:
    assert changes(source) == expected


def test_after_each_change_the_module_is_as_it_was() -> None:
    """Each is tried alone."""
    source = "TABLE = {(1, 'a'): 2, (3, 'b'): 4}\ndef f(a, b):\n    if a(b):\n        raise b\n    return [a, b]"
    seen = {ast.unparse(mutant.tree) for mutant in mutants(source)}
    assert len(seen) == len(changes(source)) and ast.unparse(ast.parse(source)) not in seen
    last = list(mutants(source))[-1]
    assert ast.unparse(last.tree) == ast.unparse(ast.parse(source))


@pytest.mark.parametrize(
    ("now", "functions"),
    [
        ("TABLE = {1: 2}\nclass A:\n    b = 3\n    def f(self, c=4):\n        return 6", ["A.f"]),
        ("TABLE = {1: 2}\nclass A:\n    b = 3\n    def f(self, c=5):\n        return 5", None),
        ("TABLE = {1: 2}\nclass A:\n    b = 4\n    def f(self, c=4):\n        return 5", None),
        ("TABLE = {1: 3}\nclass A:\n    b = 3\n    def f(self, c=4):\n        return 5", None),
    ],
)
def test_only_a_change_within_functions_is_tried_by_exchanging_their_code(now: str, functions: list[str] | None) -> None:
    was = "TABLE = {1: 2}\nclass A:\n    b = 3\n    def f(self, c=4):\n        return 5"
    found = changed(compile(was, "x.py", "exec"), compile(now, "x.py", "exec"))
    assert (None if found is None else list(found)) == functions


@pytest.mark.parametrize("name", ["calls_of", "User.text", "History.__len__", "History._items"])
def test_a_function_is_found_by_its_name_whatever_is_wrapped_around_it(name: str) -> None:
    found = function(history, name)
    assert found is not None and found.__code__.co_qualname == name
    assert function(history, "NOT_RUN") is None


@pytest.mark.parametrize("module", TESTS)
def test_what_is_tried_has_tests(module: str) -> None:
    assert source_of(module).exists()
    assert [test for test in TESTS[module] if not (ROOT / test).exists()] == []


def test_every_judged_mutant_is_one_of_a_module_that_is_tried() -> None:
    """One whose code is gone or was changed is judged again."""
    for module, names in judged().items():
        assert module in TESTS
        assert names <= {mutant.name for mutant in of(module)}, module
