"""Which lines of the store only SQLite can use, and which any engine could: `python -m scripts.engines`.

A line counts for its statement: those of `store/sqlite/` are SQLite's own, those of a string with SQL are SQL that both take, the rest of a
module is Python without SQL. `--check` fails where SQL outside `store/sqlite/` uses words that PostgreSQL does not know, or stands
outside the modules that are there for it.
"""

import ast
import re
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

STORE = Path(__file__).resolve().parent.parent / "src" / "holdfast" / "store"
OWN = STORE / "sqlite"
SQL = re.compile(r"\b(SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM|WHERE|ON CONFLICT|ORDER BY)\b")
STATEMENT = re.compile(r"\s*(SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM)\b")
# Where SQL stands: any text in these is taken for some.
SHARED = re.compile(r"store/(queries|rows|rebuild)\.py$|store/projection/")
# What SQLite understands and PostgreSQL does not, or otherwise.
FOREIGN = {
    "INSERT OR": r"\bINSERT OR\b",
    "iif": r"\biif\s*\(",
    "numbered marks": r"\?\d",
    "max or min of two": r"\b(max|min)\s*\([^()]*,",
    "IN ()": r"\bIN\s*\(\s*\)",
    "IS NOT ?": r"\bIS NOT \?",
    "NOT of a number": r"\bNOT (suspended|pinned|archived|purged|stop|stays)\b",
    "a column named left": r"\.left\b(?!')|\bleft =",
    "rowid": r"\browid\b",
    "PRAGMA": r"\bPRAGMA\b",
    "MATCH": r"\bMATCH \?",
    "instr": r"\binstr\s*\(",
    "a column without its table in ON CONFLICT": r"\bDO UPDATE SET\b.*(= \w+ [-+*|]|\bWHERE \w+ [<>=])",
    "a column beside GROUP BY that it does not determine": r"\bSELECT (\w+)\b(?!\()(?:(?!SELECT ).)*\bGROUP BY (?!\1\b)",
}
# Text is read as bytes, so that damage to it can be told: the one expression that an engine has to say in its own words.
HOLE = re.compile(r"CAST\((turn|kind) AS BLOB\)")


class Found(NamedTuple):
    place: str
    what: str


def main(words: list[str]) -> int:
    lines: Counter[str] = Counter()
    found: list[Found] = []
    for path in sorted(STORE.rglob("*.py")):
        count, foreign = look(path)
        lines += count
        found += foreign
    statements = sum(len(code(path)) for path in OWN.glob("*.sql"))
    total = sum(lines.values())
    if "--check" not in words:
        for name, number in lines.most_common():
            print(f"{number:5}  {100 * number / total:3.0f} %  {name}")
        print(f"{statements:5}         schema and upgrades of SQLite (SQL files)")
    for place, what in found:
        print(f"{place}: {what}")
    return 1 if found else 0


def code(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.strip() and not line.strip().startswith(("#", "--"))]


def look(path: Path) -> tuple[Counter[str], list[Found]]:
    """How many lines of a module are what, and SQL in it that stands in the wrong place."""
    total = len(code(path))
    if OWN in path.parents:
        return Counter({"SQLite's own": total}), []
    sql: set[int] = set()
    found = []
    shared = SHARED.search(path.as_posix()) is not None
    module = ast.parse(path.read_text())
    inside = str(path.relative_to(STORE.parent.parent.parent))
    found += [Found(inside, f"two statements are named {name}") for name in twice(module)]
    for node in ast.walk(module):
        text = words_of(node)
        if text is None or not (shared or SQL.search(text)):
            continue
        if SQL.search(text):
            sql |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))  # type: ignore[attr-defined]
        place = f"{inside}:{node.lineno}"  # type: ignore[attr-defined]
        found += [Found(place, what) for what in wrong(text, shared=shared)]
    return Counter({"SQL that both take": len(sql), "Python without SQL": total - len(sql)}), found


def wrong(text: str, *, shared: bool = True) -> list[str]:
    """What is wrong with a piece of SQL, which stands in a module for SQL or not."""
    outside = [] if shared or not STATEMENT.match(text) else ["SQL outside of store/queries.py"]
    foreign = [name for name, pattern in FOREIGN.items() if re.search(pattern, HOLE.sub("", text), re.DOTALL)]
    return outside + [f"SQL that only SQLite takes: {name}" for name in foreign]


def twice(module: ast.Module) -> list[str]:
    """Names of a module that stand for two things: the second would silently replace the first."""
    bound = [node for one in module.body if isinstance(one, ast.Assign) for target in one.targets for node in ast.walk(target)]
    return [name for name, times in Counter(node.id for node in bound if isinstance(node, ast.Name)).items() if times > 1]


def words_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
