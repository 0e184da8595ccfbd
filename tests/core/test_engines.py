"""What `./run check` says of SQL that a second engine would refuse, or that stands in the wrong place."""

import ast

import pytest

from scripts import engines


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("SELECT x FROM t WHERE instr(x, ?) = 1", "instr"),
        ("INSERT INTO t (k, n) VALUES (?, 1) ON CONFLICT (k) DO UPDATE SET n = n + 1", "ON CONFLICT"),
        ("INSERT INTO t (k, n) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET n = excluded.n WHERE n < excluded.n", "ON CONFLICT"),
        ("SELECT s.name, count(*) FROM t JOIN s ON s.id = t.s GROUP BY t.s", "GROUP BY"),
        ("SELECT name, count(*) FROM t\n GROUP BY day", "GROUP BY"),
        ("SELECT iif(x, 1, 2) FROM t", "iif"),
    ],
)
def test_a_statement_that_only_sqlite_takes_is_named(statement: str, what: str) -> None:
    (found,) = engines.wrong(statement)
    assert what in found


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t (k, n) VALUES (?, 1) ON CONFLICT (k) DO UPDATE SET n = t.n + 1 WHERE t.n < excluded.n",
        "SELECT s.name, count(*) FROM t JOIN s ON s.id = t.s GROUP BY s.id",
        "SELECT day, sum(x) FROM t GROUP BY day ORDER BY day",
        "SELECT a.x FROM (SELECT s, min(x) AS x FROM t GROUP BY s) a",
    ],
)
def test_what_both_engines_take_is_left_alone(statement: str) -> None:
    assert engines.wrong(statement) == []


def test_a_statement_outside_of_the_modules_for_sql_is_named() -> None:
    assert engines.wrong("SELECT x FROM t", shared=False) == ["SQL outside of store/queries.py"]
    assert engines.wrong("Selects nothing, and says so.", shared=False) == []


def test_a_name_that_stands_for_two_statements_is_named() -> None:
    assert engines.twice(ast.parse("A = 'SELECT 1'\nB, A = 'SELECT 2', 'SELECT 3'\nC = A")) == ["A"]


def test_all_sql_of_the_store_is_taken_by_both(capsys: pytest.CaptureFixture[str]) -> None:
    assert engines.main(["--check"]) == 0, capsys.readouterr().out
